"""The child process that executes chapters with papermill, one after the other, and reports each step."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from papermill.engines import NBClientEngine, papermill_engines
from papermill.exceptions import PapermillExecutionError
from papermill.execute import execute_notebook
from papermill.translators import PythonTranslator, papermill_translators

from btcnb.build.project import DISK_FULL
from btcnb.build.warm import SOCKET, warm_manager

_ENGINE = "btcnb"
_START_SECONDS = 300  # a kernel on a busy machine, importing from a cold disk


@dataclass(frozen=True)
class Job:
    """One chapter to execute: its notebook as JSON, the parameters to inject, where to write, and its environment."""

    chapter: str
    notebook: str
    parameters: dict[str, Any]
    target: Path
    root: Path
    environment: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class CellStarted:
    """Code cell `cell` of `cells` starts; cell 0 is the kernel."""

    chapter: str
    cell: int
    cells: int
    first_line: str


@dataclass(frozen=True)
class Finished:
    chapter: str
    cells: int
    seconds: float


@dataclass(frozen=True)
class Failed:
    """`cell` is 0 when no cell can be blamed."""

    chapter: str
    cell: int
    cells: int
    first_line: str
    error: str
    seconds: float
    disk_full: bool = False


Event = CellStarted | Finished | Failed


def serve(connection: Connection) -> None:
    """Execute the jobs that arrive until None does."""
    papermill_engines.register(_ENGINE, _ReportingEngine)
    papermill_translators.register("python", _TupleTranslator)
    while (job := connection.recv()) is not None:
        connection.send(_run(job, connection))


def _run(job: Job, connection: Connection) -> Event:
    import nbformat

    started = time.monotonic()
    notebook = nbformat.reads(job.notebook, as_version=4)
    progress = _Progress(job.chapter, connection)
    private = job.target.parent / f".{job.chapter}"  # kernels' connection files and history, out of the user's home
    os.environ.update(
        job.environment | {"IPYTHONDIR": str(private / "ipython"), "JUPYTER_RUNTIME_DIR": str(private / "runtime")}
    )
    _ReportingEngine.progress = progress
    connection.send(CellStarted(job.chapter, 0, sum(map(_is_code, notebook.cells)), ""))
    try:
        private.mkdir(parents=True, exist_ok=True)
        execute_notebook(
            notebook,
            str(job.target),
            parameters=job.parameters,
            engine_name=_ENGINE,
            kernel_name="python3",
            language="python",
            progress_bar=False,
            start_timeout=_START_SECONDS,
            shutdown_kernel="immediate",  # whatever was to be kept is on the disk
            **({"kernel_manager_class": warm_manager()} if SOCKET in job.environment else {}),
            coalesce_streams=True,  # else what a cell prints arrives in pieces, and pages differ from run to run
            cwd=str(job.root),
        )
    except PapermillExecutionError as error:
        return progress.failed(f"{error.ename}: {error.evalue}", started)
    except Exception as error:  # a dead kernel, a kernel that does not start, a full disk: all end this chapter only
        full = isinstance(error, OSError) and error.errno in DISK_FULL
        return progress.failed(f"{type(error).__name__}: {error}", started, disk_full=full)
    finally:
        shutil.rmtree(private, ignore_errors=True)
    return Finished(job.chapter, progress.cells, time.monotonic() - started)


class _Progress:
    """Counts code cells, as Jupyter's `In [n]` does."""

    def __init__(self, chapter: str, connection: Connection) -> None:
        self.chapter, self.connection = chapter, connection
        self.cell, self.cells, self.first_line = 0, 0, ""

    def start(self, cell: Mapping[str, Any], cells: int) -> None:
        self.cell += 1
        self.cells = cells
        self.first_line = next((line for line in cell["source"].splitlines() if line.strip()), "")
        self.connection.send(CellStarted(self.chapter, self.cell, cells, self.first_line))

    def failed(self, error: str, started: float, disk_full: bool = False) -> Failed:
        seconds = time.monotonic() - started
        return Failed(self.chapter, self.cell, self.cells, self.first_line, error.strip(), seconds, disk_full)


class _ReportingEngine(NBClientEngine):
    """papermill's own engine, which tells us when a code cell starts."""

    progress: _Progress

    @classmethod
    def execute_managed_notebook(cls, nb_man: Any, kernel_name: str, **kwargs: Any) -> Any:
        begin = nb_man.cell_start
        cells = sum(_is_code(cell) for cell in nb_man.nb.cells)

        def cell_start(cell: Any, cell_index: int | None = None, **more: Any) -> None:
            if _is_code(cell):
                cls.progress.start(cell, cells)
            begin(cell, cell_index, **more)

        nb_man.cell_start = cell_start
        return super().execute_managed_notebook(nb_man, kernel_name, **kwargs)


def _is_code(cell: Mapping[str, Any]) -> bool:
    return cell["cell_type"] == "code" and bool(cell["source"].strip())


class _TupleTranslator(PythonTranslator):
    """papermill would inject a tuple as a string."""

    @classmethod
    def translate(cls, val: Any) -> str:
        if isinstance(val, tuple):
            return "(" + "".join(f"{cls.translate(item)}, " for item in val).rstrip() + ")"
        return str(super().translate(val))
