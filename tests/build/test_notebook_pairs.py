"""A chapter is a pair of files with one content, in jupytext's form; opened alone, it finds or installs the package."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from jupytext.cli import jupytext
from minibook import MiniBook

from btcnb.build.notebooks import (
    FIND_PACKAGE,
    finding_code,
    load_chapters,
    notebook_from_text,
    settled_text,
    stale_pairs,
    text_notebooks,
    write_pairs,
)
from btcnb.build.project import Repository, read_repository

ROOT = Path(__file__).resolve().parents[2]
CHAPTERS = sorted((ROOT / "notebooks").glob("[0-9][0-9]_*.md"))


# ---- one content in two files


@pytest.mark.parametrize("started_from", ["md", "ipynb"])
@pytest.mark.parametrize("newer", ["md", "ipynb"])
def test_jupytext_has_nothing_to_synchronise(tmp_path: Path, started_from: str, newer: str) -> None:
    shutil.copytree(ROOT / "notebooks", tmp_path / "notebooks")
    shutil.copy(ROOT / "jupytext.toml", tmp_path)
    for path in (tmp_path / "notebooks").glob("[0-9]*"):
        time = 1_700_000_000 + 100 * (path.suffix == f".{newer}")
        os.utime(path, (time, time))
    jupytext(["--quiet", "--sync", *map(str, sorted((tmp_path / "notebooks").glob(f"[0-9]*.{started_from}")))])
    found = {path.name: path.read_bytes() for path in (tmp_path / "notebooks").glob("[0-9]*")}
    changed = [name for name, data in found.items() if data != (ROOT / "notebooks" / name).read_bytes()]
    assert (len(found), changed) == (2 * len(CHAPTERS), [])


def test_pairing_twice_writes_the_same_bytes(book: MiniBook) -> None:
    pair = book.root / "notebooks/01_first.ipynb"
    before = pair.read_bytes()
    pair.unlink()
    book.pair()
    assert pair.read_bytes() == before
    assert write_pairs(text_notebooks(book.root / "notebooks")) == []


def test_ids_are_unique_and_survive_a_new_cell_above(book: MiniBook) -> None:
    def ids() -> list[str]:
        notebook = nbformat.read(book.root / "notebooks/02_second.ipynb", as_version=4)
        nbformat.validate(notebook)
        return [cell.id for cell in notebook.cells]

    before = ids()
    book.edit("notebooks/02_second.md", "# The second chapter\n", "# The second chapter\n\n```{code-cell}\n1\n```\n")
    book.edit("notebooks/02_second.md", "Why?\n```\n", "Why?\n```\n\n```{code-cell}\n1\n```\n")
    book.pair()
    assert len(set(ids())) == len(ids())
    assert set(before[1:3]) <= set(ids())  # the two code cells that were there


def test_the_check_names_the_pairs_out_of_date(book: MiniBook, capsys: pytest.CaptureFixture[str]) -> None:
    assert book.btcnb("pair", "--check") == 0
    book.edit("notebooks/02_second.md", "epochs: int = 2", "epochs: int = 3")
    assert book.btcnb("pair", "--check") == 1
    assert "02_second.md" in capsys.readouterr().err
    assert book.btcnb("pair") == 0
    assert "written: notebooks/02_second.ipynb" in capsys.readouterr().out
    assert book.btcnb("pair", "--check") == 0


def test_text_in_another_form_is_settled(book: MiniBook) -> None:
    path = book.root / "notebooks/02_second.md"
    settled = path.read_text()
    path.write_text(settled.replace(":tags: [parameters]\n", "---\ntags:\n- parameters\n---\n"))
    assert [text.name for text in stale_pairs(path.parent)] == ["02_second.md"]
    assert book.btcnb("pair") == 0
    assert path.read_text() == settled == settled_text(path)


def test_outputs_and_metadata_count_and_ids_do_not(book: MiniBook) -> None:
    path = book.root / "notebooks/01_first.ipynb"
    notebook = nbformat.read(path, as_version=4)
    for number, cell in enumerate(notebook.cells):
        cell.id = f"cell-{number}"
    nbformat.write(notebook, path)
    assert not stale_pairs(path.parent)
    code = next(cell for cell in notebook.cells if cell.cell_type == "code")
    code.outputs = [nbformat.v4.new_output("stream", text="hello")]
    nbformat.write(notebook, path)
    assert [text.name for text in stale_pairs(path.parent)] == ["01_first.md"]
    code.outputs, code.metadata["tags"] = [], ["hide-input"]
    nbformat.write(notebook, path)
    assert [text.name for text in stale_pairs(path.parent)] == ["01_first.md"]


@pytest.mark.parametrize("edited", ["md", "ipynb"])
@pytest.mark.parametrize("later", ["md", "ipynb"])
def test_the_file_that_was_edited_is_the_one_that_counts(book: MiniBook, edited: str, later: str) -> None:
    book.edit(f"notebooks/02_second.{edited}", "epochs: int = 2", "epochs: int = 9")
    for suffix in ("md", "ipynb"):  # whatever the clocks say
        os.utime(book.root / f"notebooks/02_second.{suffix}", (1e9 + 100 * (suffix == later),) * 2)
    second = load_chapters(book.project)[1]
    assert second.stale
    assert second.parameters["epochs"].default == 9


def test_the_text_counts_when_both_were_edited_or_nobody_knows(book: MiniBook) -> None:
    book.edit("notebooks/02_second.md", "epochs: int = 2", "epochs: int = 9")
    book.edit("notebooks/02_second.ipynb", "epochs: int = 2", "epochs: int = 8")
    assert load_chapters(book.project)[1].parameters["epochs"].default == 9
    book.edit("notebooks/02_second.ipynb", '"btcnb_text"', '"another"')
    assert load_chapters(book.project)[1].parameters["epochs"].default == 9
    (book.root / "notebooks/02_second.ipynb").unlink()
    assert load_chapters(book.project)[1].path.name == "02_second.md"


# ---- a chapter opened alone

PUBLISHED = Repository("https://github.com/somebody/book", "main")
UNPUBLISHED = Repository("https://github.com/your_account/btcnb", "main")
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


def test_without_a_package_pip_fetches_the_repository_and_replaces_nothing(tmp_path: Path) -> None:
    (tmp_path / "btcnb").mkdir()  # a folder of that name is no package
    done = _run(tmp_path, finding_code(PUBLISHED))
    assert done.stdout == "installed\n", done.stderr
    address = "git+https://github.com/somebody/book@main"
    assert json.loads((tmp_path / "calls.json").read_text()) == [
        "install",
        f"meanlink @ {address}#subdirectory=packages/meanlink",
        "--src",
        "book",
        "--editable",
        f"{address}#egg=btcnb",
    ]  # no --upgrade: what is there and in range stays, torch above all


def test_nothing_is_installed_from_an_address_that_nobody_configured(tmp_path: Path) -> None:
    assert finding_code(UNPUBLISHED) == finding_code(None)
    assert "://" not in finding_code(None)
    done = _run(tmp_path, finding_code(None))
    assert "ModuleNotFoundError: No module named 'btcnb'" in done.stderr
    assert not (tmp_path / "calls.json").exists()


def test_in_a_clone_its_own_sources_are_used(tmp_path: Path) -> None:
    (tmp_path / "notebooks").mkdir()
    _package(tmp_path / "src" / "btcnb", "clone")
    _package(tmp_path / "packages" / "meanlink" / "src" / "meanlink", "clone")
    done = _run(tmp_path / "notebooks", f"{finding_code(PUBLISHED)}\nimport meanlink")
    assert (done.stdout, (tmp_path / "notebooks" / "calls.json").exists()) == ("clone\n", False), done.stderr


def test_an_installed_package_is_used_as_it_is(tmp_path: Path) -> None:
    _package(tmp_path / "btcnb", "installed before")
    _package(tmp_path / "src" / "btcnb", "clone")
    done = _run(tmp_path, finding_code(PUBLISHED))
    assert (done.stdout, (tmp_path / "calls.json").exists()) == ("installed before\n", False), done.stderr


def test_pairing_writes_the_configured_address_into_both_files(tmp_path: Path) -> None:
    (tmp_path / "notebooks").mkdir()
    text = Path(shutil.copy(CHAPTERS[0], tmp_path / "notebooks"))
    (tmp_path / "_config.yml").write_text("repository: {url: https://github.com/somebody/book/, branch: main}\n")
    assert write_pairs([text]) == [text, text.with_suffix(".ipynb")]
    for notebook in (notebook_from_text(text), nbformat.read(text.with_suffix(".ipynb"), as_version=4)):
        cells = [cell.source for cell in notebook.cells if FIND_PACKAGE in cell.metadata.get("tags", [])]
        assert cells == [finding_code(PUBLISHED)]


@pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)
def test_every_chapter_begins_with_the_cell_and_no_page_shows_it(path: Path) -> None:
    first = next(cell for cell in notebook_from_text(path).cells if cell.cell_type == "code")
    assert first.metadata["tags"] == ["remove-cell", FIND_PACKAGE]
    assert first.source == finding_code(read_repository(ROOT / "_config.yml"))
