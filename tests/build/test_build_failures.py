"""Cells that fail, builds that are killed, disks that are full: what is said, what is kept, how one goes on."""

from __future__ import annotations

import signal
import subprocess
import time
from pathlib import Path

import psutil
import pytest
from filelock import FileLock
from minibook import MiniBook

from btcnb.build.pages import assemble
from btcnb.build.project import UsageError

NOTEBOOK = '{"nbformat": 4, "nbformat_minor": 4, "metadata": {}, "cells": [%s]}'
SLOW = "if Path('slow').exists():\n    Path('sleeping').touch()\n    import time; time.sleep(600)\n"


@pytest.fixture
def slow_book(book: MiniBook) -> MiniBook:
    """The second chapter sleeps as long as the file `slow` exists when it starts."""
    book.edit("notebooks/02_second.md", "from btcnb.theory", f"{SLOW}from btcnb.theory")
    book.pair()
    book.write("slow", "")
    return book


def wait_until_asleep(book: MiniBook, process: subprocess.Popen[str]) -> None:
    for _ in range(600):
        assert process.poll() is None, process.communicate()
        if (book.root / "sleeping").exists():
            return
        time.sleep(0.1)
    raise AssertionError("the second chapter never started")


def no_process_left(book: MiniBook) -> bool:
    """Whether no kernel of this book is alive (each carries the path of its connection file); waits 2 minutes."""
    for _ in range(1200):
        lines = [" ".join(process.info["cmdline"] or []) for process in psutil.process_iter(["cmdline"])]
        if not any(str(book.root) in line for line in lines):
            return True
        time.sleep(0.1)
    return False


def goes_on_with_the_second_chapter(book: MiniBook) -> None:
    assert book.take_runs() == ["01_first"]
    assert book.made("notebooks/01_first.json").exists()
    assert not book.made("notebooks/02_second.ipynb").exists()
    (book.root / "slow").unlink()
    assert book.execute() == 0
    assert book.take_runs() == ["02_second"]


def test_kill_9_loses_nothing_finished(slow_book: MiniBook) -> None:
    process = slow_book.start("--no-pages")
    wait_until_asleep(slow_book, process)
    process.kill()
    process.communicate()
    assert no_process_left(slow_book)
    goes_on_with_the_second_chapter(slow_book)


def test_ctrl_c_ends_kernels_and_says_so_in_one_sentence(slow_book: MiniBook) -> None:
    process = slow_book.start("--no-pages")
    wait_until_asleep(slow_book, process)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=300)
    assert process.returncode == 130
    assert errors.strip() == (
        "btcnb: Interrupted; the chapters that finished are kept, and the same command goes on from there."
    )
    assert no_process_left(slow_book)
    goes_on_with_the_second_chapter(slow_book)


def test_ctrl_c_ends_the_rendering_of_both_editions(book: MiniBook) -> None:
    assert book.execute() == 0
    process = book.start("--edition", "both")
    logs = [book.made(f"{name}/sphinx.log") for name in ("rendering", "rendering-student")]
    until = time.monotonic() + 300
    while not all(log.exists() for log in logs):
        assert process.poll() is None and time.monotonic() < until
        time.sleep(0.05)
    children = psutil.Process(process.pid).children(recursive=True)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=300)
    assert process.returncode == 130 and errors.count("\n") == 2
    gone, alive = psutil.wait_procs(children, timeout=60)
    assert len(gone) >= 2 and alive == []
    assert not book.made("html").exists() and not book.made("html-student").exists()


def test_a_failing_cell_is_reported_and_the_rest_kept(book: MiniBook, capsys: pytest.CaptureFixture[str]) -> None:
    book.edit("notebooks/02_second.md", "print(half(epochs)", "print(half(epochs / 0)")
    book.pair()
    assert book.execute() == 1
    told = capsys.readouterr()
    assert "chapter 2 of 2 · 02_second · FAILED in cell 2 of 2" in told.out
    assert "cell:     from pathlib import Path" in told.out
    assert "error:    ZeroDivisionError: division by zero" in told.out
    assert "notebook: _build/quick/partial/02_second.ipynb" in told.out
    assert told.err.startswith("btcnb: 02_second has failed; the chapters that finished are kept")
    assert told.err.count("\n") == 1
    assert "ZeroDivisionError" in book.made("partial/02_second.ipynb").read_text()
    assert not book.made("notebooks/02_second.ipynb").exists()
    assert "ZeroDivisionError: division by zero" in book.made("build.log").read_text()

    book.edit("notebooks/02_second.md", "epochs / 0", "epochs")
    book.pair()
    book.take_runs()
    assert book.execute() == 0
    assert book.take_runs() == ["02_second"]
    assert not book.made("partial/02_second.ipynb").exists()


def test_a_failure_keeps_the_last_good_version_and_stops_no_other_chapter(book: MiniBook) -> None:
    assert book.execute() == 0
    good = book.made("notebooks/01_first.ipynb").read_bytes()
    book.take_runs()
    book.edit("src/btcnb/data/deep.py", "return TWO", "raise RuntimeError('broken')")
    assert book.execute("-p", "epochs=4") == 1
    assert book.take_runs() == ["01_first", "02_second"]
    assert book.made("notebooks/01_first.ipynb").read_bytes() == good
    assert "2.0 0.5" in book.printed("02_second")


def test_a_kernel_that_is_killed_fails_its_chapter_only(slow_book: MiniBook) -> None:
    process = slow_book.start("--no-pages")
    wait_until_asleep(slow_book, process)
    (slow_book.root / "slow").unlink()
    for child in psutil.Process(process.pid).children(recursive=True):
        if "ipykernel_launcher" in " ".join(child.cmdline()):
            child.kill()
    out, _ = process.communicate(timeout=300)
    assert process.returncode == 1
    assert "02_second · FAILED in cell 2 of 2" in out
    assert "DeadKernelError" in out
    assert slow_book.take_runs() == ["01_first"] and slow_book.made("notebooks/01_first.json").exists()


def test_two_builds_in_one_folder(book: MiniBook, capsys: pytest.CaptureFixture[str]) -> None:
    folder = book.made("")
    folder.mkdir(parents=True)
    with FileLock(folder / ".lock"):
        assert book.execute() == 1
    told = capsys.readouterr().err
    assert "Another build is at work in _build/quick" in told
    assert told.count("\n") == 1
    assert book.take_runs() == []


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full, a disk that is always full")
def test_a_disk_that_fills_up_while_a_chapter_runs(book: MiniBook, capsys: pytest.CaptureFixture[str]) -> None:
    book.made("partial").mkdir(parents=True)
    book.made("partial/01_first.ipynb").symlink_to("/dev/full")
    assert book.execute("--only", "1") == 1
    assert capsys.readouterr().err.startswith("btcnb: The disk is full")
    assert not book.made("notebooks/01_first.json").exists()


def test_a_build_folder_that_cannot_be_used_is_told_in_one_sentence(
    book: MiniBook, capsys: pytest.CaptureFixture[str]
) -> None:
    book.write("_build", "not a folder")
    assert book.execute() == 1
    told = capsys.readouterr().err
    assert told.startswith("btcnb: A file or folder cannot be used (") and "_build" in told
    assert told.count("\n") == 1


def test_what_a_killed_build_left_behind_is_swept_away(book: MiniBook) -> None:
    for name in (
        ".html.new/a.html",
        "partial/.01_first/x",
        "notebooks/.01_first.json.abc",
        "records/.02_second.json.x",
    ):
        book.write(f"_build/quick/{name}", "")
    book.write("_build/quick/.html.old/index.html", "the last pages")
    book.write("_build/quick/records/09_gone.json", "[]")
    assert book.execute("--only", "2") == 0
    left = {path.relative_to(book.made("")).as_posix() for path in book.made("").rglob("*") if path.is_file()}
    assert left == {
        ".lock", "build.log", "html/index.html", "notebooks/02_second.ipynb", "notebooks/02_second.json",
        "records/02_second.json",
    }  # fmt: skip


def test_what_a_cell_prints_is_one_output_however_it_arrives(book: MiniBook) -> None:
    pieces = "import sys, time\nfor i in range(4):\n    print(i, flush=True); time.sleep(0.3)\n"
    book.edit("notebooks/02_second.md", "print(half", f"{pieces}print(half")
    book.pair()
    assert book.execute("--only", "2") == 0
    outputs = book.executed("02_second").cells[2].outputs
    assert [output.text for output in outputs] == ["0\n1\n2\n3\n1.0 0.5 none\n"]


@pytest.mark.parametrize(
    ("name", "text", "complaint"),
    [
        ("_toc.yml", "root: [", "_toc.yml is not valid YAML"),
        ("_toc.yml", "root: a\nchapters: [{file: notebooks/05_fifth}]", "lists notebooks/05_fifth, but there is no"),
        ("_toc.yml", "- one\n- two", "_toc.yml: expected a mapping"),
        ("notebooks/01_first.ipynb", "{", "01_first.ipynb is not a notebook"),
        ("notebooks/01_first.ipynb", NOTEBOOK % '{"cell_type": "code", "metadata": {}}', "is not a notebook: a cell"),
    ],
)
def test_a_broken_project_is_told_in_one_sentence(
    book: MiniBook, capsys: pytest.CaptureFixture[str], name: str, text: str, complaint: str
) -> None:
    book.write(name, text)
    assert book.execute() == 2
    told = capsys.readouterr().err
    assert complaint in told
    assert told.count("\n") == 1


@pytest.mark.parametrize(
    ("name", "content", "complaint"),
    [
        ("_config.yml", b"title: [", "_config.yml is not valid YAML"),
        ("_config.yml", b"execute: 3", "_config.yml: execute: expected a mapping"),
        ("_config.yml", b"title: \xe9", "_config.yml is not valid YAML"),
        ("book/intro.md", b"# \xe9", "book/intro.md is not UTF-8 text"),
    ],
)
def test_pages_that_cannot_be_laid_out_are_told_in_one_sentence(
    book: MiniBook, name: str, content: bytes, complaint: str
) -> None:
    (book.root / name).write_bytes(content)
    with pytest.raises(UsageError, match=complaint):
        assemble(book.project, book.project.output("quick"), "quick", "student", [])


def test_a_configuration_with_empty_sections_is_one(book: MiniBook) -> None:
    book.write("_config.yml", "title: A book\nsphinx:\n")
    assert assemble(book.project, book.project.output("quick"), "quick", "student", [])
