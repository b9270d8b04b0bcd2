"""Processes that never outlive the build: for chapters and for Sphinx.

A child ignores Ctrl-C (the build decides what happens), writes what it prints to the log, and ends itself and all its
own children, kernels included, when the build goes away, be it by `kill -9`.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator
from multiprocessing.connection import wait
from multiprocessing.context import SpawnProcess
from pathlib import Path
from typing import Any

import psutil


def start_child(target: Callable[..., None], *arguments: Any, log: Path) -> SpawnProcess:
    """Run `target(*arguments)` in a fresh process under the rules above."""
    process = multiprocessing.get_context("spawn").Process(target=_child, args=(target, arguments, log))
    with _interrupts_ignored():
        process.start()
    return process


def end_child(process: SpawnProcess) -> None:
    """Kill the process with everything it started."""
    if process.pid is not None and process.is_alive():
        end_tree(process.pid)
    process.join()


def _child(target: Callable[..., None], arguments: tuple[Any, ...], log: Path) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    os.dup2(descriptor, 1)
    os.dup2(descriptor, 2)
    os.close(descriptor)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    target(*arguments)


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    wait([parent.sentinel])
    end_tree(os.getpid())


def end_tree(pid: int) -> None:
    """Kill a process with everything it started."""
    with contextlib.suppress(psutil.NoSuchProcess):
        root = psutil.Process(pid)
        for process in [*root.children(recursive=True), root]:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()


@contextlib.contextmanager
def _interrupts_ignored() -> Iterator[None]:
    """A child that starts while Ctrl-C is ignored ignores it from its first instruction on."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
