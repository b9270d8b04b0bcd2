"""What is executed, and when it is not: text, parameters, package code and input data are the four reasons."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from minibook import MiniBook

from btcnb.build.chapters import load_chapters
from btcnb.build.fingerprint import fingerprint
from btcnb.build.imports import Package

BOTH = ["01_first", "02_second"]


@pytest.fixture(scope="module")
def book(tmp_path_factory: pytest.TempPathFactory) -> MiniBook:
    """One book for the whole file, executed once; each test leaves it up to date."""
    book = MiniBook.create(tmp_path_factory.mktemp("execution") / "book")
    assert book.execute("--jobs", "2") == 0
    assert book.take_runs() == BOTH
    return book


def test_nothing_changed_nothing_runs(book: MiniBook, capsys: pytest.CaptureFixture[str]) -> None:
    assert book.execute() == 0
    assert book.take_runs() == []
    assert "0 chapters to execute, 2 unchanged" in capsys.readouterr().out


def test_new_timestamps_change_nothing(book: MiniBook) -> None:
    for path in book.root.rglob("*"):
        if "_build" not in path.parts:
            os.utime(path)
    assert book.execute() == 0
    assert book.take_runs() == []


CHANGES: list[tuple[str, Callable[[MiniBook], None], str, list[str]]] = [
    ("text", lambda book: book.edit("notebooks/01_first.ipynb", "It counts", "This counts"), "text", ["01_first"]),
    ("code", lambda book: book.edit("src/btcnb/data/deep.py", "2", "4 // 2"), "package code", ["01_first"]),
    ("data", lambda book: book.edit("data/numbers.txt", "3\n", "3\n4\n"), "input data/numbers.txt", ["01_first"]),
    ("lock", lambda book: book.edit("requirements.lock", "1.0", "1.1"), "locked versions", BOTH),
]


@pytest.mark.parametrize(
    ("change", "reason", "runs"), [case[1:] for case in CHANGES], ids=[case[0] for case in CHANGES]
)
def test_a_change_runs_the_chapters_it_touches(
    book: MiniBook,
    capsys: pytest.CaptureFixture[str],
    change: Callable[[MiniBook], None],
    reason: str,
    runs: list[str],
) -> None:
    change(book)
    assert book.execute("--jobs", "2") == 0
    assert book.take_runs() == runs
    assert f"{runs[0]}: changed since it was executed: {reason}." in capsys.readouterr().out
    assert book.execute() == 0
    assert book.take_runs() == []


def test_a_parameter_runs_its_chapter_and_back(book: MiniBook) -> None:
    assert book.execute("-p", "epochs=8") == 0
    assert book.take_runs() == ["02_second"]
    assert "4.0 (1, 2) None" in book.printed("02_second")
    assert book.execute() == 0
    assert book.take_runs() == ["02_second"]
    assert "1.0 (1, 2) None" in book.printed("02_second")


def test_code_out_of_reach_runs_nothing(book: MiniBook) -> None:
    book.write("src/btcnb/data/other.py", "x = 1\n")
    assert book.execute() == 0
    assert book.take_runs() == []


def test_force_and_only(book: MiniBook) -> None:
    assert book.execute("--force", "--only", "02_second") == 0
    assert book.take_runs() == ["02_second"]


def test_an_executed_notebook_that_was_tampered_with_is_made_again(book: MiniBook) -> None:
    path = book.made("notebooks/02_second.ipynb")
    path.write_text(path.read_text().replace("1.0 (1, 2)", "9.9 (1, 2)"))
    assert book.execute() == 0
    assert book.take_runs() == ["02_second"]
    assert "1.0 (1, 2)" in book.printed("02_second")


def test_paired_notebooks_are_never_written_to(book: MiniBook) -> None:
    before = {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in (book.root / "notebooks").iterdir()}
    assert book.execute("--force", "-p", "epochs=8", "--only", "02") == 0
    after = {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in (book.root / "notebooks").iterdir()}
    assert after == before
    assert book.execute() == 0
    book.take_runs()


def test_records_are_kept_beside_the_notebook(book: MiniBook) -> None:
    records = json.loads(book.made("records/01_first.json").read_text())
    assert records == [{"kind": "data_source", "source": "a list of numbers"}]
    assert json.loads(book.made("records/02_second.json").read_text()) == []


def test_the_log_tells_the_story(book: MiniBook) -> None:
    log = book.made("build.log").read_text()
    assert "02_second is to be executed: never executed" in log
    assert "02_second · cell 2 of 2 ·" in log
    assert "· 02_second · done, 2 cells in 0:0" in log


def test_a_chapter_may_read_what_the_others_recorded(tmp_path: Path) -> None:
    book = MiniBook.create(tmp_path / "book")
    text = (
        "# Last\n\n```{code-cell}\nimport json, os, pathlib\n"
        "found = sorted(pathlib.Path(os.environ['BTCNB_RECORDS']).glob('*.json'))\n"
        "print([path.stem for path in found], os.environ['BTCNB_PRESET'])\n```\n"
    )
    book.chapter("00_scores", text, more="btcnb:\n  reads_records: true\n")
    assert book.execute("--jobs", "2") == 0
    assert "['01_first', '02_second'] quick" in book.printed("00_scores")
    book.edit("notebooks/01_first.ipynb", "a list of numbers", "a longer list")
    assert book.execute() == 0
    assert book.stamp("00_scores")["fingerprint"]["data"]["record 01_first"]
    assert "00_scores: changed since it was executed: input record 01_first." in book.made("build.log").read_text()


@pytest.mark.parametrize(
    ("cell", "module", "found"),
    [
        ("", "files = folder.rglob('*')", set()),  # a reader of any folder is no reader of results/
        ("", "files = folder.glob('abl*.csv')", {"results/ablation.csv"}),
        ("files = folder.glob('*.csv')", "", {"results/ablation.csv", "results/other.csv"}),
        ("table = 'results/other.csv'", "", {"results/other.csv"}),
        ("", "name = 'other'", {"results/other.csv"}),
        ("times = 'results/chapter_times.csv'", "", set()),
        ("where = 'data'", "", set()),
        ("bold = f'**{2**3}**'", "bold = '**'", set()),
    ],
)
def test_what_counts_as_a_reference(tmp_path: Path, cell: str, module: str, found: set[str]) -> None:
    book = MiniBook.create(tmp_path / "book")
    for name in ("ablation", "other", "chapter_times"):
        book.write(f"results/{name}.csv", "1\n")
    book.write("src/btcnb/data/deep.py", f"{module}\n")
    book.chapter("03_third", f"# Third\n\n```{{code-cell}}\nimport btcnb.data.deep\n{cell}\n```\n")
    chapter = load_chapters(book.project)[2]
    printed = fingerprint(book.project, Package(book.project.source), chapter, {"sep": "/", "up": ".."}, tmp_path)
    assert set(printed.data) == found


def test_reference_results_and_declared_files_are_inputs(tmp_path: Path) -> None:
    book = MiniBook.create(tmp_path / "book")
    book.write("results/ablation.csv", "1\n")
    book.write("results/other.csv", "1\n")
    book.write("extra/a.txt", "1\n")
    cell = "# Third\n\n```{code-cell}\nwanted = 'ablation'\nfolder = 'BTCNB_REAL_DATA'\n```\n"
    book.chapter("03_third", cell, more="btcnb:\n  inputs: ['extra/*.txt']\n")
    assert book.execute("--only", "3") == 0
    data = book.stamp("03_third")["fingerprint"]["data"]
    assert set(data) == {"results/ablation.csv", "extra/a.txt", "BTCNB_REAL_DATA"}
    assert data["BTCNB_REAL_DATA"] == "absent"
