"""The rendered miniature book: provenance, status, records off the page, strictness, the student edition."""

from __future__ import annotations

import json
import os
import re
import shutil
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from minibook import HEADER, MiniBook

from btcnb.build import pages

SECRETS = re.compile(r"SECRET|secret_code|SECRET_BLOCK")


@pytest.fixture(scope="module")
def book(tmp_path_factory: pytest.TempPathFactory) -> MiniBook:
    book = MiniBook.create(tmp_path_factory.mktemp("pages") / "book")
    assert book.btcnb("build", "--jobs", "2", "-p", "epochs=6") == 0
    return book


def page(book: MiniBook, name: str, edition: str = "html") -> str:
    return (book.made(edition) / f"{name}.html").read_text(encoding="utf-8")


def text(html: str) -> str:
    """What a reader reads."""
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", "", html))


def test_a_chapter_shows_its_results_and_ends_with_its_provenance(book: MiniBook) -> None:
    read = text(page(book, "notebooks/02_second"))
    assert "3.0 0.5 none" in read
    foot = read[read.index("Provenance") :]
    for expected in (
        "preset quick",
        "epochs = 6 (changed)",
        "seed 3",
        "commit unknown",
        "3 code cells",
        "numpy 2",
    ):
        assert expected in re.sub(r"\s+", " ", foot), expected
    assert "data source a list of numbers" in text(page(book, "notebooks/01_first"))


def test_records_and_machine_paths_are_not_on_the_pages(book: MiniBook) -> None:
    source = json.loads((book.made("html") / "_sources/notebooks/01_first.ipynb").read_text())
    outputs = [output for cell in source["cells"] for output in cell.get("outputs", [])]
    assert outputs
    assert not [output for output in outputs if any("btcnb" in key for key in output.get("data", {}))]
    for path in book.made("html").rglob("*"):
        if path.suffix in {".html", ".ipynb", ".md", ".js"}:
            assert str(book.root) not in path.read_text(encoding="utf-8", errors="ignore"), path


def test_the_status_page_is_a_notebook_that_knows_every_chapter(book: MiniBook) -> None:
    read = text(page(book, "book/status"))
    assert "quick 2 of 2 executed" in read
    assert "The first chapter True 5 [] []" in read
    assert "The second chapter True 3 ['epochs'] []" in read
    assert "Provenance" not in read


def test_a_second_build_renders_nothing(book: MiniBook, capsys: pytest.CaptureFixture[str]) -> None:
    before = (book.made("html") / "index.html").stat().st_mtime_ns
    assert book.btcnb("build", "-p", "epochs=6") == 0
    told = capsys.readouterr().out
    assert "Pages are up to date." in told
    assert told.rstrip().endswith(f"The book's first page: {book.made('html') / 'index.html'}")
    assert (book.made("html") / "index.html").stat().st_mtime_ns == before


DAMAGES: dict[str, Callable[[MiniBook], None]] = {
    "a page is empty": lambda book: (book.made("html") / "notebooks/02_second.html").write_text("") and None,
    "half a state": lambda book: truncate(book.made("rendering/rendered.json")),
    "what Sphinx remembers is damaged": lambda book: [
        truncate(book.made("rendering/_build/.doctrees/notebooks/02_second.doctree")),
        (book.made("html") / "index.html").unlink(),
    ].clear(),
}


def truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


@pytest.mark.parametrize("case", DAMAGES)
def test_published_pages_that_are_not_what_was_rendered_are_made_again(
    book: MiniBook, capsys: pytest.CaptureFixture[str], case: str
) -> None:
    DAMAGES[case](book)
    assert book.btcnb("build", "-p", "epochs=6") == 0
    assert "Pages rendered" in capsys.readouterr().out
    assert "3.0 0.5 none" in text(page(book, "notebooks/02_second"))
    assert (book.made("html") / "_static").is_dir()


def test_a_clock_that_was_wrong_changes_no_page(book: MiniBook, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is written now is older than what Sphinx has read, as after setting back a clock that was a day ahead."""
    real = pages._synchronise

    def a_day_ago(files: Mapping[str, bytes], folder: Path) -> None:
        before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
        real(files, folder)
        for path in folder.rglob("*"):
            if path.is_file() and before.get(path) != path.read_bytes():
                os.utime(path, (time.time() - 86_400,) * 2)

    monkeypatch.setattr(pages, "_synchronise", a_day_ago)
    book.edit("book/intro.md", "Welcome.", "Welcome, early riser.")
    assert book.btcnb("build", "-p", "epochs=10") == 0
    assert "5.0 0.5 none" in text(page(book, "notebooks/02_second"))
    assert "Welcome, early riser." in page(book, "book/intro")
    book.edit("book/intro.md", "Welcome, early riser.", "Welcome.")
    assert book.btcnb("build", "-p", "epochs=6") == 0


def test_rendering_what_changed_gives_the_pages_of_a_rendering_from_nothing(book: MiniBook) -> None:
    book.edit("notebooks/02_second.md", "# The second chapter", "# Another title")
    book.pair()
    assert book.btcnb("build", "-p", "epochs=6") == 0
    assert "Another title" in page(book, "notebooks/01_first")  # in the list of chapters at its side
    some = pages_below(book.made("html"))
    shutil.rmtree(book.made("rendering"))
    assert book.btcnb("build", "-p", "epochs=6") == 0
    assert pages_below(book.made("html")) == some
    book.edit("notebooks/02_second.md", "# Another title", "# The second chapter")
    book.pair()
    assert book.btcnb("build", "-p", "epochs=6") == 0


def pages_below(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*.html")}


def test_pages_follow_the_records_of_benchmarks_that_they_read(book: MiniBook) -> None:
    """A page that is a notebook runs again; prose takes a number by its name."""
    prose = 'Welcome: {{ measured("linkage", "seconds", "{:.1f}") }} s.'
    book.edit("book/intro.md", "Welcome.", prose)
    book.edit("_toc.yml", "  - file: book/status", "  - file: book/benchmarks\n  - file: book/status")
    cell = "from btcnb.store import note_read\nprint(note_read('results/benchmarks/linkage.json').read_text())"
    book.write("book/benchmarks.md", f"{HEADER.replace('{more}', '')}# Benchmarks\n\n```{{code-cell}}\n{cell}\n```\n")
    book.write("results/benchmarks/linkage.json", '[{"benchmark": "linkage", "seconds": 2.125}]')
    book.take_runs()
    assert book.btcnb("build", "-p", "epochs=6") == 0
    assert "2.125" in text(page(book, "book/benchmarks")) and "Welcome: 2.1 s." in page(book, "book/intro")
    book.write("results/benchmarks/linkage.json", '[{"benchmark": "linkage", "seconds": 7.5}]')
    book.edit("book/intro.md", prose, "Welcome.")
    assert book.btcnb("build", "-p", "epochs=6") == 0
    assert "7.5" in text(page(book, "book/benchmarks"))
    assert book.take_runs() == []


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full, a disk that is always full")
def test_a_disk_that_fills_up_while_pages_are_published(
    book: MiniBook, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    before = page(book, "book/intro")
    book.edit("book/intro.md", "Welcome.", "Welcome to a full disk.")

    def copy(source: str, target: str) -> None:
        Path("/dev/full").write_bytes(Path(source).read_bytes() or b"0")

    real = shutil.copytree
    monkeypatch.setattr(shutil, "copytree", lambda source, target, *_: real(source, target, copy_function=copy))
    assert book.btcnb("build", "-p", "epochs=6") == 1
    told = capsys.readouterr().err
    assert told.startswith("btcnb: The disk is full") and told.count("\n") == 1
    assert page(book, "book/intro") == before
    assert not list(book.made("").glob(".html*"))
    monkeypatch.undo()
    book.edit("book/intro.md", "Welcome to a full disk.", "Welcome.")
    assert book.btcnb("build", "-p", "epochs=6") == 0


def test_students_find_no_solution_anywhere(book: MiniBook) -> None:
    full = [path for path in book.made("html").rglob("*") if path.is_file() and SECRETS.search(_content(path))]
    assert {path.suffix for path in full} >= {".html", ".ipynb"}  # the full edition does have them
    book.take_runs()
    assert book.btcnb("build", "--edition", "both", "-p", "epochs=6") == 0
    assert book.take_runs() == []
    assert [path for path in book.made("html").rglob("*") if path.is_file() and SECRETS.search(_content(path))] == full
    leaks = [path for path in book.made("html-student").rglob("*") if path.is_file() and SECRETS.search(_content(path))]
    assert leaks == []
    read = text(page(book, "notebooks/01_first", "html-student"))
    assert "What is twice the seed?" in read and "After the exercise." in read and "Provenance" in read


def test_a_warning_is_an_error_each_time_and_the_last_pages_stay(
    book: MiniBook, capsys: pytest.CaptureFixture[str]
) -> None:
    before = page(book, "book/intro")
    book.edit("book/intro.md", "Welcome.", "See {ref}`nowhere`.")
    for _ in range(2):  # Sphinx itself would not repeat the warning of a page it has already read
        assert book.btcnb("build", "-p", "epochs=6") == 1
        told = capsys.readouterr().err
        assert re.search(r"book/intro\.md.*WARNING: undefined label: 'nowhere'", told)
        assert "not rendered: Jupyter Book reports 1 warning;" in told
    assert page(book, "book/intro") == before
    book.edit("book/intro.md", "See {ref}`nowhere`.", "Welcome back.")
    assert book.btcnb("build", "-p", "epochs=6") == 0
    assert "Welcome back." in page(book, "book/intro")


def test_one_chapter_alone_still_makes_a_book(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    book = MiniBook.create(tmp_path / "book")
    assert book.btcnb("build", "--only", "02") == 0
    assert "Not executed yet, so without results in the pages: 01_first." in capsys.readouterr().out
    assert "1.0 0.5 none" in text(page(book, "notebooks/02_second"))
    read = text(page(book, "notebooks/01_first"))
    assert "This chapter was not executed in this build" in read
    assert "btcnb build --preset quick --only 01" in read
    assert "quick 1 of 2 executed" in text(page(book, "book/status"))


def _content(path: Path) -> str:
    return path.read_bytes().decode("utf-8", errors="ignore")
