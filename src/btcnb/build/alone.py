"""A chapter opened alone, in Colab or Jupyter: a cell in every .ipynb that finds the package, or installs it.

The cell is added when a pair is written, so no chapter can forget it and none has to carry it in its text. Rendered
pages do not show it. The whole repository is fetched, because chapters read records that the package does not hold.
"""

from __future__ import annotations

from nbformat import NotebookNode
from nbformat.v4 import new_code_cell

from btcnb.build.repository import Repository

TAG = "find-the-book"
TAGS = ("remove-cell", TAG)

_CELL = """\
# Opened alone, a chapter finds the package: installed, in this clone, or online.
import importlib.util
import subprocess
import sys

if getattr(importlib.util.find_spec("btcnb"), "origin", None) is None:
    sys.path[:0] = ["../src", "src", "book/btcnb/src"]
    importlib.invalidate_caches()
if getattr(importlib.util.find_spec("btcnb"), "origin", None) is None:
    address = "ADDRESS#egg=btcnb"
    install = ["pip", "install", "--src", "book", "--editable", address]
    subprocess.run([sys.executable, "-m", *install], check=True)
    importlib.invalidate_caches()"""


def finding_cell(repository: Repository) -> str:
    """The cell's code. A folder that is merely called btcnb has no origin, and is no package."""
    return _CELL.replace("ADDRESS", repository.pip)


def add_finding_cell(notebook: NotebookNode, repository: Repository | None) -> None:
    """Put the cell below the title; one that is there already, saved by an editor, is replaced by today's."""
    notebook.cells = [cell for cell in notebook.cells if TAG not in cell.metadata.get("tags", [])]
    if repository is not None:
        kinds = [cell.cell_type for cell in notebook.cells]
        position = kinds.index("markdown") + 1 if "markdown" in kinds else 0
        cell = new_code_cell(finding_cell(repository), metadata={"tags": list(TAGS)})
        notebook.cells.insert(position, cell)
