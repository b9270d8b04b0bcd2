"""`notebooks/NN_name.md`, which people edit, and its pair `notebooks/NN_name.ipynb`, which machines open.

Pairs are compared by content: timestamps say nothing after a checkout, or when a clock was wrong. Cell ids come from
the cells' content, so pairing twice writes the same bytes; a pair also carries the digest of the text it was made of.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import jupytext
import nbformat
from nbformat import NotebookNode

from btcnb.build.alone import add_finding_cell
from btcnb.build.errors import UsageError
from btcnb.build.project import write_atomically
from btcnb.build.repository import read_repository

_TEXT = "btcnb_text"
_KERNEL = {"display_name": "Python 3", "language": "python", "name": "python3"}


def notebook_from_text(path: Path) -> NotebookNode:
    """The notebook that a MyST text file describes: no outputs, ids that depend on content alone.

    It holds one cell more than the text, which finds the package where a chapter is opened alone (`alone`).
    """
    try:
        notebook = jupytext.read(path, fmt="md:myst")
    except Exception as error:  # jupytext has no error class of its own for text it cannot read
        raise UsageError(f"{path.name} cannot be read as a MyST notebook: {' '.join(str(error).split())}.") from None
    add_finding_cell(notebook, read_repository(path.parent.parent / "_config.yml"))
    pairing = notebook.metadata.get("jupytext", {})
    pairing.pop("text_representation", None)  # holds versions that change without the text
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


def read_notebook(path: Path) -> NotebookNode:
    """An ipynb file as a version 4 notebook; a sentence if it is none."""
    try:
        notebook = nbformat.read(path, as_version=4)
        if not all(map(_is_cell, notebook.cells)):  # nbformat only logs what it finds amiss
            raise ValueError("a cell is without type, text, metadata or tags that are one")
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
    """Whether the pair exists, says the same and carries no outputs."""
    if not notebook.exists():
        return False
    pair = read_notebook(notebook)
    clean = not any(cell.get("outputs") for cell in pair.cells)
    return clean and content(pair) == content(notebook_from_text(text))


def edited(text: Path | None, pair: Path | None) -> Path | None:
    """Which of two that disagree was edited: the pair if the text is still the one it was made of, else the text."""
    if text is None or pair is None:
        return text or pair
    made_of = read_notebook(pair).metadata.get(_TEXT)
    return pair if made_of == _digest(notebook_from_text(text)) else text


def _digest(notebook: NotebookNode) -> str:
    return hashlib.sha256(json.dumps(content(notebook), sort_keys=True).encode()).hexdigest()[:16]


def stale_pairs(folder: Path) -> list[Path]:
    """The text notebooks of `folder` whose pair is missing or says something else."""
    return [text for text in text_notebooks(folder) if not is_paired(text, text.with_suffix(".ipynb"))]


def write_pairs(texts: Iterable[Path]) -> list[Path]:
    """Write the pair of each text notebook (the text wins); return those that changed."""
    changed = []
    for text in texts:
        pair = text.with_suffix(".ipynb")
        data = (nbformat.writes(notebook_from_text(text), version=nbformat.NO_CONVERT) + "\n").encode()
        if not pair.exists() or pair.read_bytes() != data:
            write_atomically(pair, data)
            changed.append(pair)
    return changed


def text_notebooks(folder: Path) -> list[Path]:
    return sorted(folder.glob("[0-9][0-9]_*.md"))


def _plain(value: Any) -> Any:
    """Notebook nodes as plain dictionaries, without what papermill and editors leave behind."""
    if isinstance(value, dict):
        left_behind = {"papermill", "execution", "editable", "slideshow", "trusted"}
        return {key: _plain(item) for key, item in sorted(value.items()) if key not in left_behind}
    return [_plain(item) for item in value] if isinstance(value, list) else value
