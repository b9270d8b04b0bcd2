"""The book's source as Sphinx sees it: prose pages, executed notebooks with their provenance, the configuration."""

from __future__ import annotations

import ast
import functools
import html
import json
import os
import platform
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from importlib import metadata
from pathlib import Path
from typing import Any

import jinja2
import nbformat
import yaml
from nbformat import NotebookNode

from btcnb.book.board import bar_html, findings_myst, read_summary
from btcnb.book.page import LEFT_OUT, RECORD_MIME, code, inline_html, pipe_table
from btcnb.build.editions import strip_solutions, strip_text
from btcnb.build.execute import duration
from btcnb.build.fingerprint import ChapterState, Stamp
from btcnb.build.notebooks import load_pages, read_notebook, toc_documents
from btcnb.build.project import Edition, Output, Project, UsageError, read_config, read_repository, write_atomically
from btcnb.digits import number
from btcnb.errors import without_credentials

COLLAPSE, PIPELINE = "book/front/collapse.svg", "book/front/pipeline.html"
"""Pictures of the first page, made by `python tools/front_pictures.py`."""
_PACKAGES = (
    "numpy", "scipy", "pandas", "pyarrow", "numba", "scikit-learn", "torch", "torch_geometric", "igraph", "matplotlib",
    "papermill", "jupyter-book",
)  # fmt: skip
_GLUED = re.compile(r"\{glue:\w+\}`[^`]*`")
_CAPTION = re.compile(r"<desc>(.*?)</desc>", re.DOTALL)
_LONG_AGO = 1_000_000_000  # before any rendering, so that Sphinx never takes a file for changed because of its time
_BUTTONS = ("use_repository_button", "use_edit_page_button", "use_issues_button")
_NOT_EXECUTED = (
    "```{{warning}}\nThis chapter was not executed in this build: its figures, tables and numbers are missing. "
    "`btcnb build --preset {preset} --only {number}` executes it.\n```"
)
_NO_SUMMARY = (
    "*The scoreboard, {doc}`/notebooks/18_scoreboard`, has not been executed in this build: nothing to show yet.*"
)


def assemble(project: Project, output: Output, preset: str, edition: Edition, states: Sequence[ChapterState]) -> bool:
    """Write the source of `edition` and return whether all notebooks in it are executed.

    All files carry one and the same time: only content decides what is rendered again.
    """
    records = {state.chapter.name: _read_records(output, state) for state in states}
    last = [entry for state in states if state.chapter.reads_records for entry in records[state.chapter.name]]
    files = _prose(project, edition, last)
    files["_toc.yml"] = project.toc.read_bytes()
    shown = [state for state in states if state.chapter.in_toc]
    missing: list[str] = []
    for state in shown:
        page, names = _page(output, state, preset, records[state.chapter.name])
        missing += names
        if edition == "student":
            strip_solutions(page, state.chapter.name)
        files[f"{state.chapter.document}.ipynb"] = (nbformat.writes(page) + "\n").encode()
    files["_config.yml"] = _config(project, edition, missing)
    _synchronise(files, output.source(edition))
    return all(state.stamp for state in shown)


def take_records(notebook: NotebookNode) -> list[dict[str, Any]]:
    """Remove the records (`btcnb.book.record`) from the outputs of `notebook` and return them, in order.

    An output that held nothing else (its plain-text fallback apart) is removed as a whole.
    """
    records: list[dict[str, Any]] = []
    for cell in notebook.cells:
        if cell.cell_type != "code":
            continue
        kept = []
        for output in cell.outputs:
            data = output.get("data", {})
            if RECORD_MIME in data:
                records.append(data.pop(RECORD_MIME))
                if not set(data) - {"text/plain"}:
                    continue
            kept.append(output)
        cell.outputs = kept
    return records


def _read_records(output: Output, state: ChapterState) -> list[dict[str, Any]]:
    """The records of a chapter whose stamp vouches for them."""
    if state.stamp is None or state.chapter.is_page:
        return []
    return list(json.loads((output.records / f"{state.chapter.name}.json").read_text(encoding="utf-8")))


def leave_out(notebook: NotebookNode) -> list[str]:
    """The figures and tables that an executed notebook leaves out (`btcnb.book.leave_out`), by name.

    A figure that is left out loses its caption, and so its number.
    """
    names: list[str] = []
    for cell in notebook.cells:
        records = [output.get("data", {}).get(RECORD_MIME, {}) for output in cell.get("outputs", [])]
        for record in records:
            if record.get("kind") == LEFT_OUT:
                figure = {} if record["names"] else cell.metadata.get("mystnb", {}).pop("figure", {})
                names += record["names"] or [figure["name"]] * ("name" in figure)
    return names


def _page(
    output: Output, state: ChapterState, preset: str, records: Sequence[Mapping[str, Any]]
) -> tuple[NotebookNode, list[str]]:
    """The notebook behind a page, executed, without records and machine paths, closed by its provenance; and the names
    of the figures and tables that are left out."""
    chapter, missing = state.chapter, []
    if state.stamp is None:
        page = nbformat.from_dict(chapter.notebook)
        for cell in page.cells:
            if cell.cell_type == "markdown":
                cell.source = _GLUED.sub("–", cell.source)
        note = _NOT_EXECUTED.format(preset=preset, number=chapter.number)
        first = next((i for i, cell in enumerate(page.cells) if cell.cell_type == "markdown"), 0)
        page.cells.insert(first + 1, nbformat.v4.new_markdown_cell(note, id="not-executed"))
    else:
        page = read_notebook(output.notebooks / f"{chapter.name}.ipynb")
        missing = leave_out(page)
        take_records(page)
        if not chapter.is_page:
            box = provenance_box(state.stamp, records)
            page.cells.append(nbformat.v4.new_markdown_cell(box, id="provenance"))
    page.metadata.pop("papermill", None)  # holds this machine's paths
    for cell in page.cells:
        for key in ("papermill", "execution"):
            cell.metadata.pop(key, None)
        if "injected-parameters" in cell.metadata.get("tags", []):
            cell.source = without_credentials(cell.source)
    return page, missing


def _prose(project: Project, edition: Edition, records: Sequence[Mapping[str, Any]]) -> dict[str, bytes]:
    """Everything under `book/` that is no notebook, and pages elsewhere that the table of contents lists.

    Pages are Jinja2 templates as far as they hold `{{ … }}`; `records` are those of the scoreboard's chapter.
    """
    pages = {page.path for page in load_pages(project)}
    found = [path for path in (project.root / "book").rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    for document in toc_documents(project):
        places = [path for suffix in (".md", ".ipynb") if (path := project.root / f"{document}{suffix}").is_file()]
        if not places and not document.startswith("notebooks/"):
            raise UsageError(f"_toc.yml lists {document}, but there is no such page.")
        found += [] if document.startswith("notebooks/") else places
    files = {project.relative(path): path.read_bytes() for path in found if path not in pages}
    filling = _filling(project, files, records)
    for name in [name for name in files if name.endswith(".md")]:
        try:
            text = files[name].decode()
        except UnicodeDecodeError as error:
            raise UsageError(f"{name} is not UTF-8 text (byte {error.start}); save it as UTF-8.") from None
        if "{{" in text:
            text = fill(text, name, filling)
        files[name] = (strip_text(text, name) if edition == "student" else text).encode()
    return files


def fill(text: str, page: str, filling: Mapping[str, Any]) -> str:
    """A page's text with every `{{ … }}` replaced; `page` is named in errors."""
    environment = jinja2.Environment(
        undefined=jinja2.StrictUndefined, keep_trailing_newline=True, comment_start_string="{##"
    )
    try:
        return environment.from_string(text).render(filling)
    except (jinja2.TemplateError, TypeError) as error:
        raise UsageError(f"{page}: cannot be filled in: {error}.") from None
    except UsageError as error:
        raise UsageError(f"{page}: {error}") from None


def _filling(project: Project, files: Mapping[str, bytes], records: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    repository = read_repository(project.config)
    words = {"repository": repository.url, "pip": repository.pip} if repository else {}
    names = functools.partial(public_names, project.package)
    return {**words, "measured": measured(project.benchmarks), "front": front(files, records), "names": names}


def public_names(package: Path, subpackage: str) -> str:
    """Links to all names in `__all__` of a sub-package, for the index of the reference."""
    tree = ast.parse((package / subpackage / "__init__.py").read_text(encoding="utf-8"))
    lists = [
        node.value
        for node in tree.body
        if isinstance(node, ast.Assign) and [ast.unparse(target) for target in node.targets] == ["__all__"]
    ]
    if not lists:
        raise UsageError(f"btcnb.{subpackage} has no __all__: its public names are unknown.")
    names = sorted(ast.literal_eval(lists[-1]), key=str.lower)
    return ", ".join(f"{{py:obj}}`{name} <btcnb.{subpackage}.{name}>`" for name in names)


def measured(folder: Path) -> Callable[..., str]:
    """The function that pages call for a number of a benchmark: `measured("linkage", "seconds", "{:.1f}", n=20000)`.

    Keywords pick rows of `results/benchmarks/linkage.json`. All rows that are picked must hold the same number.
    """

    def value(benchmark: str, column: str, form: str | None = None, **where: Any) -> str:
        path = folder / f"{benchmark}.json"
        try:
            rows = [dict(entry) for entry in json.loads(path.read_text(encoding="utf-8"))]
        except (OSError, ValueError, TypeError) as error:
            raise UsageError(f"results/benchmarks/{path.name} cannot be read: {error!s:.200}.") from None
        picked = [row for row in rows if all(row.get(key) == wanted for key, wanted in where.items())]
        values = {row[column] for row in picked if column in row}
        if len(values) != 1:
            picks = "".join(f", {key}={wanted!r}" for key, wanted in where.items())
            raise UsageError(f"{benchmark}.{column}{picks} means {len(values)} numbers of {path.name}, not one.")
        return number(values.pop(), form)

    return value


def front(files: Mapping[str, bytes], records: Sequence[Mapping[str, Any]]) -> Callable[[str], str]:
    """The function that the first page calls for its parts: pictures, and what chapter 18 has recorded in this build.

    The first page and the scoreboard cannot disagree, because both show the same record.
    """
    summary = read_summary(records)

    def file(name: str) -> str:
        if name not in files:
            raise UsageError(f"{name} is missing; `python tools/front_pictures.py` makes it.")
        return files[name].decode().strip()

    def collapse() -> str:
        svg = file(COLLAPSE)
        found = _CAPTION.search(svg)
        caption = inline_html(html.unescape(found[1])) if found else ""
        return f'<figure class="front-picture">\n{svg}\n<figcaption>{caption}</figcaption>\n</figure>'

    def raw(text: str) -> str:
        return f"```{{raw}} html\n{text.strip()}\n```"

    parts: dict[str, Callable[[], str]] = {
        "collapse": lambda: raw(collapse()),
        "pipeline": lambda: raw(file(PIPELINE)),
        "verdicts": lambda: raw(bar_html(summary)) if summary else _NO_SUMMARY,
        "findings": lambda: findings_myst(summary) if summary else _NO_SUMMARY,
        "claims": lambda: f"There are {summary.claims} claims on the board." if summary else "",
    }

    def part(name: str) -> str:
        if name not in parts:
            raise UsageError(f"front({name!r}) is none of {', '.join(parts)}.")
        return parts[name]()

    return part


def _config(project: Project, edition: Edition, missing: Sequence[str]) -> bytes:
    """`_config.yml`, with execution off for certain; students get no button that leads to the solutions.

    missing: names of figures and tables that are left out, for `btcnb.book.sphinx_links`
    """
    config = read_config(project.config)
    config["execute"] = {**_mapping(config, "execute"), "execute_notebooks": "off"}
    config["only_build_toc_files"] = True
    if missing:
        config["sphinx"] = sphinx = _mapping(config, "sphinx")
        sphinx["config"] = {**_mapping(sphinx, "config"), "btcnb_left_out": sorted(missing)}
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


def versions() -> dict[str, str]:
    """Python, btcnb and the libraries that results depend on."""
    found = {"python": platform.python_version()}
    for package in ("btcnb", *_PACKAGES):
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return found


def machine(cores: int) -> str:
    return f"{platform.system()} {platform.machine()}, {cores} {'core' if cores == 1 else 'cores'}"


def provenance_box(stamp: Stamp, records: Sequence[Mapping[str, Any]]) -> str:
    """A folded admonition, MyST. It has no heading, so it fits below any section."""
    parameters = [
        code(without_credentials(f"{name} = {value!r}")) + (" (changed)" if name in stamp.changed else "")
        for name, value in stamp.parameters.items()
    ]
    seeds = [
        str(value) if name == "seed" else f"{name} {value}"
        for name, value in stamp.parameters.items()
        if "seed" in name
    ]
    executed = datetime.fromisoformat(stamp.finished).strftime("%Y-%m-%d %H:%M UTC")
    rows = [
        ("preset", f"`{stamp.preset}`"),
        ("parameters", ", ".join(parameters) or "none"),
        ("seed", ", ".join(seeds) or "none used"),
        ("data source", _data_sources(records)),
        ("recipe", _recipes(records)),
        ("commit", f"`{stamp.commit}`"),
        ("executed", f"{executed}, {stamp.cells} code cells in {duration_words(stamp.seconds)}"),
        ("machine", stamp.machine),
        ("versions", ", ".join(f"{name} {version}" for name, version in stamp.versions.items())),
    ]
    table = pipe_table(["what", "value"], rows)
    return f":::{{admonition}} Provenance\n:class: dropdown note provenance\n\n{table}\n:::"


def duration_words(seconds: float) -> str:
    """7.3 s, 12:30 min, 1:02:03 h; the space before the unit does not break."""
    if seconds < 60:
        return f"{seconds:.1f}\u00a0s"
    return f"{duration(seconds)}\u00a0{'min' if seconds < 3600 else 'h'}"


def _recipes(records: Sequence[Mapping[str, Any]]) -> str:
    """Every recipe that the chapter named, with all of its fields: enough to compute the page's numbers again."""
    found = {}
    for record in records:
        if record.get("kind") == "recipe":
            fields = ", ".join(f"{name} = {value}" for name, value in record["fields"].items())
            found[record["id"]] = f"{code(record['id'])}: {code(without_credentials(fields))}"
    return "; ".join(found.values()) or "none: the parameters decide all numbers"


def _data_sources(records: Sequence[Mapping[str, Any]]) -> str:
    sources = []
    for record in records:
        if record.get("kind") == "data_source":
            mark = f" ({code(str(record['fingerprint']))})" if record.get("fingerprint") else ""
            sources.append(f"{without_credentials(str(record.get('source', 'unknown')))}{mark}")
    return "; ".join(dict.fromkeys(sources)) or "not recorded"
