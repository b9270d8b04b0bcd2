"""What a build says, on a terminal and off it, and the environment it gives to its kernels."""

from __future__ import annotations

import io
import os
import time
from pathlib import Path

import nbformat
import pytest

from btcnb.build.execute import Execution, Progress, chapter_environment, duration


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def running(chapter: str, number: int, cell: int, cells: int) -> Execution:
    """A notebook of so many code cells that has just begun its cell `cell`."""
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("1") for _ in range(cells)])
    made = Execution(chapter, notebook, {}, Path("x.ipynb"), Path(), {}, Path("log"), number=number)
    made.started = time.monotonic()
    for _ in range(cell):
        made.begin_cell("1")
    return made


def tell(progress: Progress) -> None:
    progress.total = 2
    for cell in range(4):
        made = running("01_first", 1, cell, 3)
        made.said = made.started if cell else 0.0  # off a terminal it was shown a moment ago
        progress.tell([made])
    progress.end(made, "done, 3 cells in 0:00")
    progress.close()


def screen(written: str) -> list[str]:
    """The lines that stay on a terminal: a carriage return with erasure starts a line anew."""
    return [line.split("\x1b[2K")[-1] for line in written.split("\n")]


def test_a_terminal_keeps_one_line_up_to_date(tmp_path: Path) -> None:
    terminal = Terminal()
    tell(Progress(tmp_path / "build.log", terminal))
    assert "\r\x1b[2Kchapter 1 of 2 · 01_first · cell 2 of 3 · 0:00" in terminal.getvalue()
    assert screen(terminal.getvalue()) == ["chapter 1 of 2 · 01_first · done, 3 cells in 0:00", ""]


def test_off_a_terminal_lines_are_plain_and_few(tmp_path: Path) -> None:
    stream = io.StringIO()
    tell(Progress(tmp_path / "build.log", stream))
    assert stream.getvalue().splitlines() == [
        "chapter 1 of 2 · 01_first · starting · 0:00",
        "chapter 1 of 2 · 01_first · done, 3 cells in 0:00",
    ]


def test_the_log_has_every_cell_with_the_time_of_day(tmp_path: Path) -> None:
    progress = Progress(tmp_path / "deep" / "build.log", io.StringIO())
    running("01_first", 1, 3, 3)
    progress.close()
    running("02_second", 1, 3, 3)  # nobody listens any more
    lines = (tmp_path / "deep" / "build.log").read_text(encoding="utf-8").splitlines()
    assert [line.split("  ", 1)[1] for line in lines] == [f"01_first · cell {cell} of 3 · 0:00" for cell in (1, 2, 3)]


def test_two_chapters_share_the_line(tmp_path: Path) -> None:
    terminal = Terminal()
    progress = Progress(tmp_path / "build.log", terminal)
    progress.total = 2
    progress.tell([running("01", 1, 1, 3), running("02", 2, 1, 4)])
    assert screen(terminal.getvalue())[-1].startswith("chapter 1 of 2 · 01 · cell 1 of 3 · 0:00   chapter 2 of 2 · 02")
    progress.close()


@pytest.mark.parametrize(("seconds", "shown"), [(7.9, "0:07"), (750, "12:30"), (3723, "1:02:03")])
def test_durations(seconds: float, shown: str) -> None:
    assert duration(seconds) == shown


def test_jobs_share_the_cores_and_never_ask_for_more_than_the_user_allows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("btcnb.build.execute.cores", lambda: 8)
    monkeypatch.setenv("PYTHONPATH", "mine")
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    monkeypatch.setenv("MKL_NUM_THREADS", "16")
    environment = chapter_environment(Path("src/btcnb"), Path("records"), "quick", 2)
    assert [environment[f"{name}_NUM_THREADS"] for name in ("OMP", "MKL", "NUMBA")] == ["1", "4", "4"]
    assert environment["PYTHONPATH"] == f"src{os.pathsep}mine"
    assert chapter_environment(Path("src/btcnb"), Path("records"), "quick", 16)["NUMBA_NUM_THREADS"] == "1"
