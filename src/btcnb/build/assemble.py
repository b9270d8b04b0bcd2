"""The book's source as Sphinx sees it: prose pages, executed chapters with their provenance, generated pages."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import nbformat
import yaml
from nbformat import NotebookNode

from btcnb.book.text import without_credentials
from btcnb.build.api_pages import PAGES as API
from btcnb.build.api_pages import api_pages
from btcnb.build.chapters import toc_documents
from btcnb.build.editions import strip_solutions, strip_text
from btcnb.build.errors import UsageError
from btcnb.build.front import PAGE, front_page
from btcnb.build.measured import fill
from btcnb.build.pairs import read_notebook
from btcnb.build.project import Edition, Output, Project, read_mapping, write_atomically
from btcnb.build.provenance import provenance_box
from btcnb.build.records import read_records, take_records
from btcnb.build.reports import benchmarks_page, current_code, verdicts_page
from btcnb.build.repository import read_repository
from btcnb.build.status import ChapterState, status_page
from btcnb.plain_yaml import PlainLoader

STATUS = "book/status.md"
BENCHMARKS = "book/benchmarks.md"
VERDICTS = "book/verdicts.md"
GENERATED = (STATUS, BENCHMARKS, VERDICTS, *(f"{page}.md" for page in API))
_GLUED = re.compile(r"\{glue:\w+\}`[^`]*`")
_LONG_AGO = 1_000_000_000  # before any rendering, so that Sphinx never takes a file for changed because of its time
_BUTTONS = ("use_repository_button", "use_edit_page_button", "use_issues_button")
_NOT_EXECUTED = (
    "```{warning}\nThis chapter was not executed in this build: its figures, tables and numbers are missing. "
    "`btcnb build --preset PRESET --only NUMBER` executes it.\n```"
)


def assemble(project: Project, output: Output, preset: str, edition: Edition, states: Sequence[ChapterState]) -> bool:
    """Lay out the source of `edition` and return whether all chapters in it are executed.

    All files carry one and the same time: what is to be rendered again is told by content alone.
    """
    files = _prose(project, edition)
    files["_config.yml"] = _config(project, edition)
    files["_toc.yml"] = project.toc.read_bytes()
    files[STATUS] = status_page(preset, states).encode()
    files[BENCHMARKS] = benchmarks_page(project.root / "results" / "benchmarks", current_code(project)).encode()
    recorded = [(s.chapter, read_records(output.records / f"{s.chapter.name}.json")) for s in states if s.stamp]
    files[VERDICTS] = verdicts_page(recorded).encode()
    files |= _reference(project)
    if PAGE in files:
        told = [entry for chapter, records in recorded if chapter.reads_records for entry in records]
        files[PAGE] = front_page(files[PAGE].decode(), files, told).encode()
    shown = [state for state in states if state.chapter.in_toc]
    for state in shown:
        page = _page(output, state, preset)
        if edition == "student":
            strip_solutions(page, state.chapter.name)
        files[f"notebooks/{state.chapter.name}.ipynb"] = (nbformat.writes(page) + "\n").encode()
    _synchronise(files, output.source(edition))
    return all(state.stamp for state in shown)


def _reference(project: Project) -> dict[str, bytes]:
    """The pages about the package's names, where the table of contents lists them."""
    listed = set(toc_documents(project)) & set(API)
    if not listed:
        return {}
    repository = read_repository(project.config)
    pages = api_pages(project.source / "btcnb", repository.files if repository else "")
    return {f"{page}.md": pages[page].encode() for page in listed}


def _page(output: Output, state: ChapterState, preset: str) -> NotebookNode:
    """The notebook behind a page: executed, without records and machine traces, closed by its provenance."""
    chapter = state.chapter
    if state.stamp is None:
        page = nbformat.from_dict(chapter.notebook)
        note = _NOT_EXECUTED.replace("PRESET", preset).replace("NUMBER", chapter.number)
        for cell in page.cells:
            if cell.cell_type == "markdown":
                cell.source = _GLUED.sub("–", cell.source)
        page.cells.insert(_after_title(page), _markdown("not-executed", note))
    else:
        page = read_notebook(output.notebooks / f"{chapter.name}.ipynb")
        take_records(page)
        box = provenance_box(state.stamp, read_records(output.records / f"{chapter.name}.json"))
        page.cells.append(_markdown("provenance", box))
    page.metadata.pop("papermill", None)  # holds this machine's paths
    for cell in page.cells:
        for key in ("papermill", "execution"):
            cell.metadata.pop(key, None)
        if "injected-parameters" in cell.metadata.get("tags", []):
            cell.source = without_credentials(cell.source)
    return page


def _after_title(page: NotebookNode) -> int:
    """Where a note goes: below the cell that holds the title."""
    first = next((i for i, cell in enumerate(page.cells) if cell.cell_type == "markdown"), 0)
    return min(first + 1, len(page.cells))


def _markdown(name: str, source: str) -> NotebookNode:
    return nbformat.v4.new_markdown_cell(source, id=name)


def _prose(project: Project, edition: Edition) -> dict[str, bytes]:
    """Everything under `book/`, and pages elsewhere that the table of contents lists."""
    folder = project.root / "book"
    paths = [path for path in folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    for document in toc_documents(project):
        if document.startswith("notebooks/") or f"{document}.md" in GENERATED:
            continue
        found = [path for suffix in (".md", ".ipynb") if (path := project.root / f"{document}{suffix}").is_file()]
        if not found:
            raise UsageError(f"_toc.yml lists {document}, but there is no such page.")
        paths += found
    files = {project.relative(path): path.read_bytes() for path in paths}
    repository = read_repository(project.config)
    words = {"repository": repository.url, "pip": repository.pip} if repository else {}
    for name in [name for name in files if name.endswith(".md")]:
        try:
            text = files[name].decode()
        except UnicodeDecodeError as error:
            raise UsageError(f"{name} is not UTF-8 text (byte {error.start}); save it as UTF-8.") from None
        text = fill(text, project.root / "results" / "benchmarks", name, words)
        files[name] = (strip_text(text, name) if edition == "student" else text).encode()
    return files


def _config(project: Project, edition: Edition) -> bytes:
    """`_config.yml`, with execution off for certain; students get no button that leads to the solutions."""
    config = read_mapping(project.config, project.config.name, PlainLoader)  # as Jupyter Book reads it
    config["execute"] = {**_mapping(config, "execute"), "execute_notebooks": "off"}
    config["only_build_toc_files"] = True
    if edition == "student":
        config.pop("launch_buttons", None)
        config["html"] = {**_mapping(config, "html"), **dict.fromkeys(_BUTTONS, False)}
        options = config
        for section in ("sphinx", "config", "html_theme_options"):
            options[section] = options = _mapping(options, section)
        for button in ("launch_buttons", *_BUTTONS, "use_source_button"):
            options.pop(button, None)
    return yaml.safe_dump(config, sort_keys=False, allow_unicode=True).encode()


def _mapping(config: Mapping[str, Any], key: str) -> dict[str, Any]:
    section = config.get(key) or {}
    if not isinstance(section, dict):
        raise UsageError(f"_config.yml: {key}: expected a mapping, found {section!r:.80}.")
    return dict(section)


def _synchronise(files: Mapping[str, bytes], folder: Path) -> None:
    """Make `folder` hold exactly `files`, touching only what differs."""
    folder.mkdir(parents=True, exist_ok=True)
    for path in sorted(folder.rglob("*"), reverse=True):
        if path.is_file() and path.relative_to(folder).as_posix() not in files:
            path.unlink()
        elif path.is_dir() and not any(path.iterdir()):
            path.rmdir()
    for name, data in files.items():
        path = folder / name
        if not path.is_file() or path.read_bytes() != data:
            write_atomically(path, data)
        os.utime(path, (_LONG_AGO, _LONG_AGO))
