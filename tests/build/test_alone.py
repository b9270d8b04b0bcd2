"""A chapter opened alone finds the package, or has it installed; every pair holds the cell that does it."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from btcnb.build.notebooks import (
    FIND_PACKAGE,
    add_finding_cell,
    finding_cell,
    is_paired,
    notebook_from_text,
    write_pairs,
)
from btcnb.build.project import Repository, read_repository

ROOT = Path(__file__).resolve().parents[2]
ADDRESS = Repository("https://github.com/somebody/book", "main")
FAKE_PIP = """
import json, pathlib, sys
pathlib.Path("calls.json").write_text(json.dumps(sys.argv[1:]))
package = pathlib.Path("book/btcnb/src/btcnb")
package.mkdir(parents=True)
(package / "__init__.py").write_text("here = 'installed'")
"""


def _run(folder: Path, cell: str) -> subprocess.CompletedProcess[str]:
    """Run a cell where nothing is installed (-S), with a pip that writes down what it is asked for."""
    fake = folder / "fake" / "pip"
    fake.mkdir(parents=True)
    (fake / "__init__.py").touch()
    (fake / "__main__.py").write_text(FAKE_PIP)
    code = f"{cell}\nimport btcnb\nprint(btcnb.here)"
    environment = {**os.environ, "PYTHONPATH": str(folder / "fake")}
    command = [sys.executable, "-S", "-c", code]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


def _package(folder: Path, here: str) -> None:
    folder.mkdir(parents=True)
    (folder / "__init__.py").write_text(f"here = {here!r}")


def test_without_a_package_pip_fetches_the_repository(tmp_path: Path) -> None:
    (tmp_path / "btcnb").mkdir()  # a folder of that name is no package
    done = _run(tmp_path, finding_cell(ADDRESS))
    assert done.stdout == "installed\n", done.stderr
    wanted = "git+https://github.com/somebody/book@main#egg=btcnb"
    assert json.loads((tmp_path / "calls.json").read_text()) == ["install", "--src", "book", "--editable", wanted]


def test_in_a_clone_its_own_sources_are_used(tmp_path: Path) -> None:
    (tmp_path / "notebooks").mkdir()
    _package(tmp_path / "src" / "btcnb", "clone")
    done = _run(tmp_path / "notebooks", finding_cell(ADDRESS))
    assert (done.stdout, (tmp_path / "notebooks" / "calls.json").exists()) == ("clone\n", False), done.stderr


def test_an_installed_package_is_used_as_it_is(tmp_path: Path) -> None:
    _package(tmp_path / "btcnb", "installed before")
    _package(tmp_path / "src" / "btcnb", "clone")
    done = _run(tmp_path, finding_cell(ADDRESS))
    assert (done.stdout, (tmp_path / "calls.json").exists()) == ("installed before\n", False), done.stderr


def test_a_failed_installation_is_an_error(tmp_path: Path) -> None:
    cell = finding_cell(ADDRESS).replace('"-m", *install', '"-c", "raise SystemExit(3)"')
    done = _run(tmp_path, cell)
    assert done.returncode != 0
    assert "CalledProcessError" in done.stderr


TEXT = """---
kernelspec: {display_name: Python 3, language: python, name: python3}
---

# Title

```{code-cell} ipython3
x = 1
```
"""


def test_pairs_hold_the_cell_below_the_title_once(tmp_path: Path) -> None:
    text = tmp_path / "notebooks" / "01_a.md"
    text.parent.mkdir()
    text.write_text(TEXT)
    (tmp_path / "_config.yml").write_text("repository: {url: https://github.com/somebody/book/, branch: main}\n")
    write_pairs([text])
    notebook = notebook_from_text(text)
    assert [cell.metadata.get("tags") for cell in notebook.cells] == [None, ["remove-cell", FIND_PACKAGE], None]
    assert notebook.cells[1].source == finding_cell(ADDRESS)
    assert is_paired(text, text.with_suffix(".ipynb"))
    add_finding_cell(notebook, ADDRESS)
    assert len(notebook.cells) == 3
    add_finding_cell(notebook, None)
    assert len(notebook.cells) == 2


def test_without_an_address_nothing_is_added(tmp_path: Path) -> None:
    text = tmp_path / "notebooks" / "01_a.md"
    text.parent.mkdir()
    text.write_text(TEXT)
    assert len(notebook_from_text(text).cells) == 2


@pytest.mark.parametrize("path", sorted((ROOT / "notebooks").glob("[0-9][0-9]_*.ipynb")), ids=lambda path: path.stem)
def test_every_chapter_can_be_opened_alone(path: Path) -> None:
    address = read_repository(ROOT / "_config.yml")
    assert address is not None
    cells = [cell for cell in json.loads(path.read_text())["cells"] if cell["cell_type"] == "code"]
    assert "".join(cells[0]["source"]) == finding_cell(address)
