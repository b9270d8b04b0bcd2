"""papermill executes notebooks side by side; each has a thread here and a kernel process of its own."""

from __future__ import annotations

import errno
import logging
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TextIO

from nbformat import NotebookNode
from papermill.clientwrap import PapermillNotebookClient
from papermill.engines import Engine, papermill_engines
from papermill.exceptions import PapermillExecutionError
from papermill.execute import execute_notebook

from btcnb.build.kernels import end_children, kernel_manager

DISK_FULL = {errno.ENOSPC, errno.EDQUOT}
LOGGER = logging.getLogger("btcnb.build")
_ENGINE = "btcnb"
_START_SECONDS = 300  # for a kernel on a busy machine that imports from a cold disk
_TICK = 0.5  # seconds between two updates of the progress line
_QUIET_SECONDS = 10.0  # off a terminal: at most one line per chapter in this time
_THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")


@dataclass
class Execution:
    """One notebook to execute, and how far it has come. Code cells are counted from 1; 0 means no cell has begun."""

    chapter: str
    notebook: NotebookNode
    parameters: dict[str, Any]
    target: Path
    root: Path
    environment: dict[str, str]
    log: Path
    forked: bool = False
    cell: int = 0
    first_line: str = ""
    started: float = 0.0
    ended: float = 0.0
    error: str = ""  # empty after a success
    disk_full: bool = False
    number: int = 0
    said: float = field(default=0.0, repr=False)

    @property
    def cells(self) -> int:
        return sum(map(_is_code, self.notebook.cells)) + bool(self.parameters)  # papermill injects one cell

    @property
    def seconds(self) -> float:
        return (self.ended or time.monotonic()) - self.started

    def begin_cell(self, source: str) -> None:
        self.cell += 1
        self.first_line = next((line for line in source.splitlines() if line.strip()), "")
        LOGGER.info("%s · cell %d of %d · %s", self.chapter, self.cell, self.cells, duration(self.seconds))

    def run(self) -> None:
        """Execute the notebook in a kernel. What goes wrong ends in `error` and concerns this notebook only."""
        private = self.target.parent / f".{self.chapter}"  # connection file and history, outside the user's home
        self.started = time.monotonic()
        try:
            private.mkdir(parents=True, exist_ok=True)
            execute_notebook(
                self.notebook,
                str(self.target),
                parameters=self.parameters,
                engine_name=_ENGINE,
                kernel_name="python3",
                language="python",
                progress_bar=False,
                execution=self,
                private=private,
            )
        except PapermillExecutionError as error:
            self.error = f"{error.ename}: {error.evalue}".strip()
        except Exception as error:  # a dead kernel, a kernel that does not start, a full disk
            self.error = f"{type(error).__name__}: {error}".strip()
            self.disk_full = isinstance(error, OSError) and error.errno in DISK_FULL
        finally:
            self.ended = time.monotonic()
            shutil.rmtree(private, ignore_errors=True)


class _ReportingEngine(Engine):
    """papermill's engine with our kernels, which tells when a code cell begins."""

    @classmethod
    def execute_managed_notebook(
        cls, nb_man: Any, kernel_name: str, execution: Execution, private: Path, **_: Any
    ) -> None:
        begin = nb_man.cell_start

        def cell_start(cell: Any, cell_index: int | None = None, **more: Any) -> None:
            if _is_code(cell):
                execution.begin_cell(cell["source"])
            begin(cell, cell_index, **more)

        nb_man.cell_start = cell_start
        client = PapermillNotebookClient(
            nb_man,
            km=kernel_manager(private / "kernel.json", execution.forked),
            kernel_name=kernel_name,
            startup_timeout=_START_SECONDS,
            shutdown_kernel="immediate",  # whatever is to be kept is on the disk
            coalesce_streams=True,  # else printed text arrives in pieces, and pages differ from run to run
        )
        environment = {**os.environ, **execution.environment, "IPYTHONDIR": str(private / "ipython")}
        with execution.log.open("ab") as log:
            client.execute(cleanup_kc=True, env=environment, cwd=str(execution.root), stdout=log, stderr=log)


papermill_engines.register(_ENGINE, _ReportingEngine)


def execute(
    executions: Sequence[Execution], workers: int, progress: Progress, on_end: Callable[[Execution], None]
) -> None:
    """Run all `executions`, at most `workers` at a time, in the order given; `on_end` is called for each that ends.

    Whatever ends this function, an exception of `on_end` or Ctrl-C among them, also ends the kernels.
    """
    for execution in executions:
        progress.total += 1
        execution.number = progress.total
    with ThreadPoolExecutor(workers) as pool:
        tasks = {pool.submit(execution.run): execution for execution in executions}
        waiting = set(tasks)
        try:
            while waiting:
                ended, waiting = wait(waiting, _TICK, FIRST_COMPLETED)
                for task in ended:
                    task.result()
                    on_end(tasks[task])
                progress.tell(execution for execution in executions if execution.started and not execution.ended)
        finally:
            for task in tasks:
                task.cancel()
            while not all(task.done() for task in tasks):  # a kernel may be starting at this moment
                end_children()
                wait(tasks, 0.1)


def chapter_environment(package: Path, records: Path, preset: str, workers: int) -> dict[str, str]:
    """The environment of the kernels: the project's own package first, a fair share of the cores.

    `BTCNB_PRESET` and `BTCNB_RECORDS` tell a chapter the preset and the folder of the chapters' records.
    """
    threads = str(max(1, cores() // workers))
    path = [str(package.parent), *filter(None, [os.environ.get("PYTHONPATH", "")])]
    return {
        "PYTHONPATH": os.pathsep.join(path),
        "PYTHONHASHSEED": "0",
        "PYDEVD_DISABLE_FILE_VALIDATION": "1",
        "BTCNB_PRESET": preset,
        "BTCNB_RECORDS": str(records),
        **{name: min(threads, os.environ.get(name, threads), key=_as_number) for name in _THREAD_VARIABLES},
    }


def cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _as_number(text: str) -> float:
    return float(text) if text.isdigit() and int(text) > 0 else float("inf")


def _is_code(cell: Any) -> bool:
    return cell["cell_type"] == "code" and bool(cell["source"].strip())


class Progress:
    """What a build says: one line kept up to date on a terminal, plain lines elsewhere, everything in the log."""

    def __init__(self, log: Path, stream: TextIO | None = None) -> None:
        self.stream = stream or sys.stdout
        self.live = self.stream.isatty()
        self.total = 0
        self._line = ""
        log.parent.mkdir(parents=True, exist_ok=True)
        self._log = _Log(log, encoding="utf-8")
        self._log.setFormatter(logging.Formatter("%(asctime)s  %(message)s", "%Y-%m-%d %H:%M:%S"))
        logging.getLogger().addHandler(self._log)  # also for what libraries report
        logging.captureWarnings(True)
        LOGGER.setLevel(logging.INFO)

    def close(self) -> None:
        self.show("")
        logging.captureWarnings(False)
        logging.getLogger().removeHandler(self._log)
        self._log.close()

    def say(self, message: str) -> None:
        """A line that stays."""
        self.show("")
        print(message, file=self.stream, flush=True)
        LOGGER.info("%s", message)

    def end(self, execution: Execution, outcome: str) -> None:
        """Say how a notebook has ended."""
        self.say(f"chapter {execution.number} of {self.total} · {execution.chapter} · {outcome}")

    def tell(self, running: Iterable[Execution]) -> None:
        """Show how far the notebooks have come that run now."""
        lines = []
        for execution in running:
            where = f"cell {execution.cell} of {execution.cells}" if execution.cell else "starting"
            head = f"chapter {execution.number} of {self.total} · {execution.chapter}"
            lines.append(f"{head} · {where} · {duration(execution.seconds)}")
            if not self.live and (not execution.said or time.monotonic() - execution.said >= _QUIET_SECONDS):
                print(lines[-1], file=self.stream, flush=True)
                execution.said = time.monotonic()
        self.show("   ".join(lines))

    def show(self, line: str) -> None:
        """Replace the line that is kept up to date."""
        if self.live and line != self._line:
            width = shutil.get_terminal_size().columns - 1
            self.stream.write("\r\x1b[2K" + line[:width])
            self.stream.flush()
            self._line = line


class _Log(logging.FileHandler):
    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802, the name is logging's
        """A full disk ends the build instead of being ignored."""
        raise


def duration(seconds: float) -> str:
    """0:07, 12:30, 1:02:03."""
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"
