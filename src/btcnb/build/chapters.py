"""The chapters of the book: which there are, what they say, which of them a command means."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from nbformat import NotebookNode

from btcnb.book.parameters import Parameter, chapter_parameters
from btcnb.build.errors import UsageError
from btcnb.build.pairs import edited, is_paired, notebook_from_text, read_notebook, text_notebooks
from btcnb.build.project import Project, read_mapping

_NAME = re.compile(r"\d\d_\w+")


@dataclass(frozen=True)
class Chapter:
    """One notebook. `path` is the file its text was taken from; `notebook` is that text, never written back."""

    name: str
    path: Path
    notebook: NotebookNode = field(repr=False, compare=False)
    parameters: dict[str, Parameter] = field(repr=False, compare=False)
    in_toc: bool = True
    stale: bool = False  # the pair and its text disagree

    @property
    def number(self) -> str:
        return self.name.split("_")[0]

    @property
    def title(self) -> str:
        for cell in self.notebook.cells:
            if cell.cell_type == "markdown" and (found := re.search(r"^# +(.+)$", cell.source, re.MULTILINE)):
                return found[1].strip()
        return self.name

    @property
    def code_cells(self) -> list[str]:
        return [cell.source for cell in self.notebook.cells if cell.cell_type == "code" and cell.source.strip()]

    @property
    def reads_records(self) -> bool:
        """`btcnb: {reads_records: true}` in its front matter: it reads what the others recorded, so it runs last."""
        return bool(dict(self.notebook.metadata.get("btcnb", {})).get("reads_records"))


def load_chapters(project: Project) -> list[Chapter]:
    """All chapters in the order of the book, those outside `_toc.yml` last.

    Where a pair disagrees with its text, the one that was edited is taken (neither is written to): either edit counts.
    """
    listed = [Path(document).name for document in toc_documents(project) if document.startswith("notebooks/")]
    texts = {path.stem: path for path in text_notebooks(project.notebooks)}
    pairs = {path.stem: path for path in sorted(project.notebooks.glob("[0-9][0-9]_*.ipynb"))}
    names = [name for name in texts | pairs if _NAME.fullmatch(name)]
    missing = [name for name in listed if name not in names]
    if missing:
        raise UsageError(f"_toc.yml lists notebooks/{missing[0]}, but there is no such notebook.")
    if not names:
        raise UsageError(f"There are no chapters in {project.notebooks}; they are named NN_name.md.")
    order = listed + sorted(set(names) - set(listed))
    return [_load(name, texts.get(name), pairs.get(name), name in listed) for name in order]


def _load(name: str, text: Path | None, pair: Path | None, in_toc: bool) -> Chapter:
    stale = text is not None and (pair is None or not is_paired(text, pair))
    path = edited(text, pair) if stale else pair
    assert path is not None
    notebook = read_notebook(path) if path.suffix == ".ipynb" else notebook_from_text(path)
    return Chapter(name, path, notebook, chapter_parameters(name, notebook), in_toc, stale)


def select(chapters: Sequence[Chapter], only: Iterable[str]) -> list[Chapter]:
    """The chapters meant by `--only`: numbers (3, 03) or names (03_graph), commas allowed; all without the option."""
    wanted = [part.strip() for entry in only for part in entry.split(",")]
    if not wanted:
        return list(chapters)
    chosen = set()
    for entry in wanted:
        number = entry.zfill(2) if entry.isdecimal() else None
        found = [chapter.name for chapter in chapters if entry == chapter.name or number == chapter.number]
        if not found:
            names = ", ".join(chapter.name for chapter in chapters)
            raise UsageError(f"There is no chapter `{entry:.80}`; the chapters are {names}.")
        chosen.update(found)
    return [chapter for chapter in chapters if chapter.name in chosen]


def toc_documents(project: Project) -> list[str]:
    """The documents that `_toc.yml` lists, in order, without suffix."""
    toc = read_mapping(project.toc, project.toc.name)
    return [re.sub(r"\.(md|ipynb)$", "", document) for document in _files(toc)]


def _files(node: Any) -> list[str]:
    if isinstance(node, list):
        return [file for item in node for file in _files(item)]
    if not isinstance(node, dict):
        return []
    own = [str(node[key]) for key in ("root", "file") if key in node]
    return own + [file for value in node.values() for file in _files(value)]
