"""Notebooks as text: the chapters `notebooks/NN_name.md` with their pairs `.ipynb`, and the pages that are notebooks.

People edit the text, machines open the pair. Pairs are compared by content, because timestamps say nothing after a
checkout. Cell ids follow from the cells' content, so pairing twice writes the same bytes; a pair also carries the
digest of the text it was made of.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import jupytext
import nbformat
from jupytext.config import load_jupytext_config
from nbformat import NotebookNode

from btcnb.book.parameters import Parameter, chapter_parameters
from btcnb.build.project import Project, Repository, UsageError, read_mapping, read_repository, write_atomically

FIND_PACKAGE = "find-the-book"
"""Tag of the cell that finds the package, or installs it, where a chapter is opened alone, in Colab or Jupyter."""
_TEXT = "btcnb_text"
_KERNEL = {"display_name": "Python 3", "language": "python", "name": "python3"}
_NAME = re.compile(r"\d\d_\w+")
_LEFT_BEHIND = {"papermill", "execution", "editable", "slideshow", "trusted"}  # metadata of tools and editors
_FIND = """\
# Opened alone, a chapter finds the package where it is installed, or in this copy.
import importlib.util
import sys

if getattr(importlib.util.find_spec("btcnb"), "origin", None) is None:
    for root in ("..", ".", "book/btcnb"):
        sys.path += [f"{root}/src", f"{root}/packages/meanlink/src"]
    importlib.invalidate_caches()"""
_INSTALL = """
if getattr(importlib.util.find_spec("btcnb"), "origin", None) is None:
    import subprocess

    address = "ADDRESS"
    library = f"meanlink @ {address}#subdirectory=packages/meanlink"
    wanted = [library, "--src", "book", "--editable", f"{address}#egg=btcnb"]
    subprocess.run([sys.executable, "-m", "pip", "install", *wanted], check=True)
    importlib.invalidate_caches()"""


@dataclass(frozen=True)
class Chapter:
    """One notebook. `path` is the file its text was taken from; `notebook` is that text, never written back.

    Pages of the book that are notebooks (`load_pages`) are chapters with `is_page`: they run after all others.
    """

    name: str
    path: Path
    notebook: NotebookNode = field(repr=False, compare=False)
    parameters: dict[str, Parameter] = field(default_factory=dict, repr=False, compare=False)
    in_toc: bool = True
    stale: bool = False  # the pair and its text disagree
    is_page: bool = False

    @property
    def number(self) -> str:
        return self.name.split("_")[0]

    @property
    def document(self) -> str:
        """What `_toc.yml` calls it."""
        return f"{'book' if self.is_page else 'notebooks'}/{self.name}"

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
        """`btcnb: {reads_records: true}` in its front matter: it reads what others recorded, so it runs later."""
        return bool(dict(self.notebook.metadata.get("btcnb", {})).get("reads_records"))


def load_chapters(project: Project) -> list[Chapter]:
    """All chapters in the order of the book, those outside `_toc.yml` last.

    Where a pair disagrees with its text, the one that was edited counts; neither is written to.
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
    path = _edited(text, pair) if stale else pair
    assert path is not None
    notebook = read_notebook(path) if path.suffix == ".ipynb" else notebook_from_text(path)
    return Chapter(name, path, notebook, chapter_parameters(name, notebook), in_toc, stale)


def load_pages(project: Project) -> list[Chapter]:
    """The pages under `book/` that are notebooks: those whose text begins with jupytext's front matter."""
    listed = [project.root / f"{name}.md" for name in toc_documents(project) if name.startswith("book/")]
    paths = [path for path in listed if path.is_file() and path.read_bytes().startswith(b"---\njupytext:")]
    return [Chapter(path.stem, path, notebook_from_text(path), is_page=True) for path in paths]


def select(chapters: Sequence[Chapter], only: Iterable[str]) -> list[Chapter]:
    """The chapters meant by `--only`: numbers (3, 03) or names (03_graph), commas allowed; all without the option."""
    wanted = [part.strip() for entry in only for part in entry.split(",")]
    chosen = set()
    for entry in wanted:
        number = entry.zfill(2) if entry.isdecimal() else None
        found = [chapter.name for chapter in chapters if entry == chapter.name or number == chapter.number]
        if not found:
            names = ", ".join(chapter.name for chapter in chapters)
            raise UsageError(f"There is no chapter `{entry:.80}`; the chapters are {names}.")
        chosen.update(found)
    return [chapter for chapter in chapters if not wanted or chapter.name in chosen]


def toc_documents(project: Project) -> list[str]:
    """The documents that `_toc.yml` lists, in order, without suffix."""
    return documents_below(read_mapping(project.toc, project.toc.name))


def documents_below(node: Any) -> list[str]:
    """The documents that a part of the table of contents lists."""
    if isinstance(node, list):
        return [document for item in node for document in documents_below(item)]
    if not isinstance(node, dict):
        return []
    own = [re.sub(r"\.(md|ipynb)$", "", str(node[key])) for key in ("root", "file") if key in node]
    return own + [document for value in node.values() for document in documents_below(value)]


def text_notebooks(folder: Path) -> list[Path]:
    return sorted(folder.glob("[0-9][0-9]_*.md"))


def notebook_from_text(path: Path) -> NotebookNode:
    """The notebook that a MyST text file describes: no outputs, ids that depend on content alone."""
    return _without_outputs(_read_text(path))


def _read_text(path: Path) -> NotebookNode:
    try:
        return jupytext.read(path, fmt="md:myst")
    except Exception as error:  # jupytext has no error class of its own for text it cannot read
        raise UsageError(f"{path.name} cannot be read as a MyST notebook: {' '.join(str(error).split())}.") from None


def _without_outputs(notebook: NotebookNode) -> NotebookNode:
    notebook.metadata.get("jupytext", {}).pop("text_representation", None)  # stands in the text alone
    notebook.metadata["kernelspec"] = dict(_KERNEL)
    notebook.metadata["language_info"] = {"name": "python"}
    notebook.metadata[_TEXT] = _digest(notebook)
    notebook.nbformat, notebook.nbformat_minor = 4, 5
    seen: Counter[str] = Counter()
    for cell in notebook.cells:
        digest = hashlib.sha256(f"{cell.cell_type}\n{cell.source}".encode()).hexdigest()[:10]
        seen[digest] += 1
        cell.id = digest if seen[digest] == 1 else f"{digest}-{seen[digest]}"
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
    return notebook


def finding_code(repository: Repository | None) -> str:
    """The code of the cell that finds the package; without a published repository it installs nothing.

    A folder that is merely called btcnb has no origin, and is no package. The whole repository is installed, because
    chapters read records.
    """
    if repository is None or not repository.published:
        return _FIND
    return _FIND + _INSTALL.replace("ADDRESS", repository.pip)


def settled_text(path: Path) -> str:
    """A chapter's text as jupytext writes it, so that `jupytext --sync` finds nothing to change.

    Metadata are sorted and take one line each; the cell that finds the package is the one that `_config.yml` asks for.
    """
    notebook = _read_text(path)
    code = finding_code(read_repository(path.parent.parent / "_config.yml"))
    for cell in notebook.cells:
        cell.metadata = nbformat.from_dict(_one_line(cell.metadata))
        if FIND_PACKAGE in cell.metadata.get("tags", []):
            cell.source = code
    notebook.metadata = nbformat.from_dict(_plain(notebook.metadata))
    config = load_jupytext_config(str(path))
    return str(jupytext.writes(notebook, fmt="md:myst", config=config))


def _one_line(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _one_line(item) for key, item in sorted(value.items())}
    if isinstance(value, list):
        return [_one_line(item) for item in value]
    return " ".join(value.split()) if isinstance(value, str) else value


def read_notebook(path: Path) -> NotebookNode:
    """An ipynb file as a version 4 notebook; `UsageError` if it is none."""
    try:
        notebook = nbformat.read(path, as_version=4)
        if not all(map(_is_cell, notebook.cells)):  # nbformat only logs what it finds wrong
            raise ValueError("a cell lacks its type, text or metadata, or its tags are no list")
        return notebook
    except OSError:
        raise
    except Exception as error:  # nbformat raises its own, jsonschema's and json's errors
        raise UsageError(f"{path.name} is not a notebook: {' '.join(str(error).split())[:200]}.") from None


def _is_cell(cell: Any) -> bool:
    fields = (("cell_type", str), ("source", str), ("metadata", dict))
    if not isinstance(cell, dict) or not all(isinstance(cell.get(name), kind) for name, kind in fields):
        return False
    return isinstance(cell["metadata"].get("tags", []), list) and isinstance(cell.get("outputs", []), list)


def content(notebook: NotebookNode) -> list[tuple[str, str, dict[str, Any]]]:
    """What makes two notebooks the same to a reader: type, source and metadata of each cell."""
    return [(cell.cell_type, cell.source.strip(), _plain(cell.metadata)) for cell in notebook.cells]


def is_paired(text: Path, notebook: Path) -> bool:
    """Whether the pair exists, has the same content and carries no outputs."""
    if not notebook.exists():
        return False
    pair = read_notebook(notebook)
    clean = not any(cell.get("outputs") for cell in pair.cells)
    return clean and content(pair) == content(notebook_from_text(text))


def _edited(text: Path | None, pair: Path | None) -> Path | None:
    """Which of two that disagree was edited: the pair if it was made of the text as it is now, else the text."""
    if text is None or pair is None:
        return text or pair
    made_of = read_notebook(pair).metadata.get(_TEXT)
    return pair if made_of == _digest(notebook_from_text(text)) else text


def _digest(notebook: NotebookNode) -> str:
    return hashlib.sha256(json.dumps(content(notebook), sort_keys=True).encode()).hexdigest()[:16]


def stale_pairs(folder: Path) -> list[Path]:
    """The text notebooks of `folder` that jupytext would write differently, or whose pair has other content."""
    texts = text_notebooks(folder)
    return [text for text in texts if not (is_paired(text, text.with_suffix(".ipynb")) and _is_settled(text))]


def _is_settled(text: Path) -> bool:
    return text.read_text(encoding="utf-8") == settled_text(text)


def write_pairs(texts: Iterable[Path]) -> list[Path]:
    """Settle each text notebook and write its pair (the text wins); return the files that changed."""
    changed = []
    for text in texts:
        pair = text.with_suffix(".ipynb")
        if not _is_settled(text):
            write_atomically(text, settled_text(text))
            changed.append(text)
        data = (nbformat.writes(notebook_from_text(text), version=nbformat.NO_CONVERT) + "\n").encode()
        if not pair.exists() or pair.read_bytes() != data:
            write_atomically(pair, data)
            changed.append(pair)
    return changed


def _plain(value: Any) -> Any:
    """Notebook nodes as plain dictionaries, without what papermill and editors leave behind."""
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in sorted(value.items()) if key not in _LEFT_BEHIND}
    return [_plain(item) for item in value] if isinstance(value, list) else value
