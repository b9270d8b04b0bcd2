"""What is executed, and when it is not: text, parameters, imported code, versions and what was read are the reasons."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from minibook import MiniBook

from btcnb.store import keys

BOTH = ["01_first", "02_second"]
THIRD = """# The third chapter

```{code-cell} ipython3
from pathlib import Path

import yaml

from btcnb.store import note_read


def scale():
    # a comment
    return 3


results = note_read("results/toy.csv").read_text() if note_read("results/toy.csv").exists() else "none"
with Path("runs.txt").open("a") as runs:
    runs.write("03_third\\n")
print(scale(), results, yaml.safe_load("1"))
```
"""


@pytest.fixture(scope="module")
def book(tmp_path_factory: pytest.TempPathFactory) -> MiniBook:
    """One book for the whole file, executed once; each test leaves it up to date."""
    book = MiniBook.create(tmp_path_factory.mktemp("execution") / "book")
    book.chapter("03_third", THIRD)
    assert book.execute("--jobs", "2") == 0
    assert book.take_runs() == [*BOTH, "03_third"]
    return book


def test_nothing_changed_nothing_runs(book: MiniBook, capsys: pytest.CaptureFixture[str]) -> None:
    assert book.execute() == 0
    assert book.take_runs() == []
    assert "0 chapters to execute, 3 unchanged" in capsys.readouterr().out


def test_new_timestamps_change_nothing(book: MiniBook) -> None:
    for path in book.root.rglob("*"):
        if "_build" not in path.parts:
            os.utime(path)
    assert book.execute() == 0
    assert book.take_runs() == []


def edit(name: str, old: str, new: str) -> Callable[[MiniBook], None]:
    return lambda book: book.edit(name, old, new)


def edit_text(name: str, old: str, new: str) -> Callable[[MiniBook], None]:
    def change(book: MiniBook) -> None:
        book.edit(f"notebooks/{name}.md", old, new)
        book.pair()

    return change


CHANGES: dict[str, tuple[Callable[[MiniBook], None], str, list[str]]] = {
    "prose": (edit_text("01_first", "It counts", "This counts"), "text", ["01_first"]),
    "a notebook function's body": (edit_text("03_third", "return 3", "return 4"), "text", ["03_third"]),
    "a helper's body": (
        edit("src/btcnb/data/deep.py", "return TWO", "return TWO + 0"), "code of btcnb.data", ["01_first"]
    ),
    "behind a re-export": (
        edit("src/btcnb/theory/cut.py", "x / 2", "x * 0.5"), "code of btcnb.theory", ["02_second"]
    ),
    "a data file": (edit("data/numbers.txt", "3\n", "3\n4\n"), "content of data/numbers.txt", ["01_first"]),
    "a results file that comes": (
        lambda book: book.write("results/toy.csv", "1\n") and None, "content of results/toy.csv", ["03_third"]
    ),
    "a results file": (edit("results/toy.csv", "1\n", "2\n"), "content of results/toy.csv", ["03_third"]),
}  # fmt: skip


@pytest.mark.parametrize("case", CHANGES)
def test_a_change_runs_the_chapters_it_touches(book: MiniBook, capsys: pytest.CaptureFixture[str], case: str) -> None:
    change, reason, runs = CHANGES[case]
    change(book)
    assert book.execute("--jobs", "2") == 0
    assert book.take_runs() == runs
    assert f"{runs[0]}: changed since it was executed: {reason}." in capsys.readouterr().out
    assert book.execute() == 0
    assert book.take_runs() == []


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("src/btcnb/learn/__init__.py", "unused", "still unused"),
        ("requirements.lock", "1.0", "1.1"),
        ("src/btcnb/sizes.yml", "seed: 12", "seed: 13"),
    ],
)
def test_what_decides_no_number_runs_nothing(book: MiniBook, name: str, old: str, new: str) -> None:
    book.edit(name, old, new)
    assert book.execute() == 0
    assert book.take_runs() == []


def test_a_new_version_of_a_library_runs_the_chapters_that_import_it(
    book: MiniBook, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    real = keys.library_version
    monkeypatch.setattr(keys, "library_version", lambda name: "99" if name == "yaml" else real(name))
    assert book.execute() == 0
    assert book.take_runs() == ["03_third"]
    assert "03_third: changed since it was executed: version of yaml." in capsys.readouterr().out
    monkeypatch.undo()
    assert book.execute() == 0
    assert book.take_runs() == ["03_third"]


def test_a_parameter_runs_its_chapter_and_back(book: MiniBook) -> None:
    assert book.execute("-p", "epochs=8") == 0
    assert book.take_runs() == ["02_second"]
    assert "4.0 0.5 none" in book.printed("02_second")
    assert book.execute() == 0
    assert book.take_runs() == ["02_second"]
    assert "1.0 0.5 none" in book.printed("02_second")


def test_force_and_only(book: MiniBook) -> None:
    assert book.execute("--force", "--only", "02_second") == 0
    assert book.take_runs() == ["02_second"]


DAMAGES: dict[str, Callable[[MiniBook], None]] = {
    "notebook": lambda book: damage(book.made("notebooks/02_second.ipynb"), b"1.0 0.5", b"9.9 0.5"),
    "half a stamp": lambda book: truncate(book.made("notebooks/02_second.json")),
    "records": lambda book: damage(book.made("records/02_second.json"), b"[]", b"[{}]"),
}


def damage(path: Path, old: bytes, new: bytes) -> None:
    data = path.read_bytes()
    assert old in data
    path.write_bytes(data.replace(old, new))


def truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


@pytest.mark.parametrize("case", DAMAGES)
def test_whatever_was_tampered_with_is_made_again(book: MiniBook, case: str) -> None:
    DAMAGES[case](book)
    assert book.execute() == 0
    assert book.take_runs() == ["02_second"]
    assert "1.0 0.5" in book.printed("02_second")
    assert json.loads(book.made("records/02_second.json").read_text()) == []


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


def test_the_stamp_holds_what_was_read(book: MiniBook) -> None:
    assert set(book.stamp("01_first")["reads"]) == {"data/numbers.txt"}
    assert book.stamp("02_second")["reads"] == {}
    assert not list(book.made("partial").glob("*.reads"))


def test_the_log_tells_the_story(book: MiniBook) -> None:
    log = book.made("build.log").read_text()
    assert "02_second is to be executed: never executed" in log
    assert "02_second · cell 2 of 2 ·" in log
    assert "· 02_second · done, 2 cells in 0:0" in log


def test_running_times_are_written_for_the_cards(book: MiniBook) -> None:
    book.write("results/chapter_times.csv", "chapter,preset,seconds\n02_second,quick,999\n02_second,paper,7\n")
    assert book.execute("--record-times") == 0
    assert book.take_runs() == []
    rows = (book.root / "results/chapter_times.csv").read_text().splitlines()
    assert [row.rsplit(",", 1)[0] for row in rows[1:]] == [
        "01_first,quick", "02_second,paper", "02_second,quick", "03_third,quick",
    ]  # fmt: skip
    assert "02_second,paper,7" in rows and "02_second,quick,999" not in rows


def test_another_folder_of_real_files_runs_the_chapters_that_read_them(
    book: MiniBook, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = (
        "# Real\n\n```{code-cell}\nimport os\nfrom pathlib import Path\nfrom btcnb.store import note_read\n"
        "note_read(Path(os.environ.get('BTCNB_REAL_DATA', '_build/no-real-data')).resolve() / 'mixes')\n"
        "with Path('runs.txt').open('a') as runs:\n    runs.write('04_real\\n')\n```\n"
    )
    book.chapter("04_real", text)
    real = tmp_path / "real"

    def runs() -> list[str]:
        assert book.execute() == 0
        return book.take_runs()

    monkeypatch.delenv("BTCNB_REAL_DATA", raising=False)
    assert runs() == ["04_real"]
    monkeypatch.setenv("BTCNB_REAL_DATA", str(real))
    assert runs() == []  # there is nothing in this one either
    (real / "mixes").mkdir(parents=True)
    (real / "mixes" / "a.txt").write_text("1")
    assert runs() == ["04_real"]
    monkeypatch.delenv("BTCNB_REAL_DATA")
    assert runs() == ["04_real"]


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
    record = "_build/quick/records/01_first.json"
    assert book.stamp("00_scores")["reads"][record]
    assert f"00_scores: changed since it was executed: content of {record}." in book.made("build.log").read_text()
    for suffix in ("md", "ipynb"):
        (book.root / f"notebooks/02_second.{suffix}").unlink()
    book.edit("_toc.yml", "  - file: notebooks/02_second\n", "")
    assert book.execute() == 0
    assert "['00_scores', '01_first'] quick" in book.printed("00_scores")
