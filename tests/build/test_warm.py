"""Kernels forked from a warm process: they are kernels like any other, and end when they should."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import nbformat
import papermill
import psutil
import pytest
from nbclient.exceptions import DeadKernelError

from btcnb.build.warm import SOCKET, WarmProcess, imported, through_client, warm_manager, warmable
from btcnb.store.reach import PACKAGE

pytestmark = pytest.mark.skipif(not warmable(PACKAGE.parent), reason="kernels are forked on Linux only")

ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1"}
PATIENCE = 120  # seconds; what works takes one
Run = Callable[..., list[str]]


@pytest.fixture(scope="module")
def warm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WarmProcess]:
    log = tmp_path_factory.mktemp("warm") / "log"
    with WarmProcess(["import sqlite3", "this does not parse", "import no_such_module"], ONE_THREAD, log) as process:
        yield process


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Executes cells in a kernel of the warm process at `address`: what they print, line by line."""

    def execute(address: Path, *cells: str) -> list[str]:
        monkeypatch.setenv(SOCKET, str(address))
        notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
        made = papermill.execute_notebook(
            notebook,
            None,
            kernel_name="python3",
            language="python",
            progress_bar=False,
            cwd=str(tmp_path),
            kernel_manager_class=warm_manager(),
        )
        outputs = [output for cell in made.cells for output in cell.outputs]
        kinds = [kind for output in outputs for kind in output.get("data", {})]
        return [line for output in outputs for line in output.get("text", "").splitlines()] + kinds

    return execute


def gone(pid: int) -> bool:
    """Whether a process ends in time; one that nobody has fetched yet has ended."""
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        if not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE:
            return True
        time.sleep(0.05)
    return False


def test_a_kernel_is_a_fork_with_its_own_folder_and_environment(
    warm: WarmProcess, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OF_THIS_KERNEL", "yes")
    cell = """
import os, sys
print(os.getppid(), os.getcwd(), os.environ.get("OF_THIS_KERNEL"), "sqlite3" in sys.modules, "nothing" in globals())
nothing = 1
"""
    lines = [run(warm.address, cell)[0].split(), run(warm.address, cell)[0].split()]
    for parent, folder, environment, imported_before, left_over in lines:
        assert int(parent) == warm.process.pid
        assert Path(folder) == tmp_path
        assert (environment, imported_before, left_over) == ("yes", "True", "False")


def test_libraries_have_the_threads_that_the_environment_grants(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ONE_THREAD:
        monkeypatch.setenv(name, "2")
    cell = """
import os, numba, scipy.linalg, torch
from threadpoolctl import threadpool_info
print(os.getppid(), {each["num_threads"] for each in threadpool_info()}, numba.config.NUMBA_NUM_THREADS)
print(torch.get_num_threads())
"""
    with WarmProcess([cell], dict.fromkeys(ONE_THREAD, "2"), tmp_path / "log") as warm:
        assert run(warm.address, cell) == [f"{warm.process.pid} {{2}} 2", "2"], (tmp_path / "log").read_text()


def test_figures_appear_below_their_cells(warm: WarmProcess, run: Run) -> None:
    assert "image/png" in run(warm.address, "import matplotlib.pyplot as plt\nplt.plot([1, 2]);")


def test_random_numbers_of_two_kernels_are_not_shared(warm: WarmProcess, run: Run) -> None:
    cell = "import random, uuid\nprint(random.random(), uuid.uuid4())"
    assert run(warm.address, cell) != run(warm.address, cell)


@pytest.mark.parametrize("end", ["os._exit(3)", "os.kill(os.getpid(), 9)", "os.kill(os.getpid(), 11)"])
def test_a_kernel_that_dies_is_missed_and_the_next_one_starts(warm: WarmProcess, run: Run, end: str) -> None:
    with pytest.raises(DeadKernelError):
        run(warm.address, f"import os\n{end}")
    assert run(warm.address, "print('alive')") == ["alive"]


def test_a_cell_is_interrupted(warm: WarmProcess, run: Run) -> None:
    cell = """
import os, signal, threading, time
client = int(os.environ["JPY_PARENT_PID"])  # the manager, whose child stands for this kernel
import psutil
stand_in = next(each for each in psutil.Process(client).children() if "warm_client.py" in " ".join(each.cmdline()))
threading.Timer(0.5, lambda: os.kill(stand_in.pid, signal.SIGINT)).start()
try:
    time.sleep(100)
except KeyboardInterrupt:
    print("interrupted")
"""
    assert run(warm.address, cell) == ["interrupted"]


def test_a_kernel_ends_with_the_client_that_stands_for_it(warm: WarmProcess, tmp_path: Path) -> None:
    manager, kernel = start(warm.address, tmp_path)
    os.kill(manager.provisioner.pid, signal.SIGKILL)
    assert gone(kernel)
    manager.provisioner.process.wait()


def test_kernels_end_with_the_warm_process(tmp_path: Path) -> None:
    with WarmProcess([], ONE_THREAD, tmp_path / "log") as warm:
        manager, kernel = start(warm.address, tmp_path)
    assert gone(kernel)
    assert not warm.folder.exists()
    assert manager.provisioner.process.wait(PATIENCE) != 0


def start(address: Path, folder: Path) -> tuple[Any, int]:
    """A kernel, and the number of its process, which is a child of the warm one."""
    from jupyter_client.manager import KernelManager

    class Manager(KernelManager):
        def format_kernel_cmd(self, extra_arguments: list[str] | None = None) -> list[str]:
            return through_client(super().format_kernel_cmd(extra_arguments))

    os.environ[SOCKET] = str(address)
    try:
        manager = Manager(kernel_name="python3")
        manager.start_kernel(cwd=str(folder))
    finally:
        del os.environ[SOCKET]
    client = manager.blocking_client()
    client.start_channels()
    client.wait_for_ready(timeout=PATIENCE)
    said: list[str] = []
    client.execute_interactive(
        "import os; print(os.getpid())", output_hook=lambda message: said.append(message["content"].get("text", ""))
    )
    client.stop_channels()
    return manager, int("".join(said))


def test_where_nobody_listens_the_kernel_starts_by_itself(run: Run, tmp_path: Path) -> None:
    assert run(tmp_path / "nobody", "print('plain')") == ["plain"]


def test_where_a_library_has_started_a_thread_kernels_start_by_themselves(run: Run, tmp_path: Path) -> None:
    (tmp_path / "threaded.py").write_text("import threading\nthreading.Thread(target=threading.Event().wait).start()\n")
    log = tmp_path / "log"
    with WarmProcess(["import threaded"], {**ONE_THREAD, "PYTHONPATH": str(tmp_path)}, log) as warm:
        parent = run(warm.address, "import os\nprint(os.getppid())")
    assert int(parent[0]) != warm.process.pid
    assert "started threads" in log.read_text()


def test_what_cells_import() -> None:
    cells = ["import a.b as c, d\nfrom e.f import g\nfrom . import h", "def later():\n    import i", "not python"]
    assert imported(cells) == ["a.b", "d", "e.f", "e.f.g"]


def test_another_package_than_the_one_that_builds_is_not_forked(tmp_path: Path) -> None:
    assert not warmable(tmp_path)
    assert warmable(PACKAGE.parent) == (sys.platform == "linux")
