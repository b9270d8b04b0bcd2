"""The text notebook and its pair: same content, same bytes each time, compared without clocks."""

from __future__ import annotations

import os

import nbformat
import pytest
from minibook import MiniBook

from btcnb.build.notebooks import load_chapters, stale_pairs, text_notebooks, write_pairs


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


def test_outputs_in_a_pair_are_noticed(book: MiniBook) -> None:
    path = book.root / "notebooks/01_first.ipynb"
    notebook = nbformat.read(path, as_version=4)
    code = next(cell for cell in notebook.cells if cell.cell_type == "code")
    code.outputs = [nbformat.v4.new_output("stream", text="hello")]
    nbformat.write(notebook, path)
    assert [text.name for text in stale_pairs(book.root / "notebooks")] == ["01_first.md"]


def test_metadata_counts_and_ids_do_not(book: MiniBook) -> None:
    path = book.root / "notebooks/01_first.ipynb"
    notebook = nbformat.read(path, as_version=4)
    for number, cell in enumerate(notebook.cells):
        cell.id = f"cell-{number}"
    nbformat.write(notebook, path)
    assert not stale_pairs(book.root / "notebooks")
    notebook.cells[2].metadata["tags"] = ["hide-input"]
    nbformat.write(notebook, path)
    assert stale_pairs(book.root / "notebooks")


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


def test_a_chapter_without_a_pair_is_read_from_its_text(book: MiniBook) -> None:
    (book.root / "notebooks/02_second.ipynb").unlink()
    assert load_chapters(book.project)[1].path.name == "02_second.md"
