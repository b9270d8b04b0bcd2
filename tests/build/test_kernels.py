"""Kernels forked from the fork server: they are kernels like any other, and end when they should."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from pathlib import Path

import nbformat
import psutil
import pytest

from btcnb.build import kernels
from btcnb.build.execute import Execution

PACKAGE = Path(kernels.__file__).parents[1]
ONE_THREAD = {f"{name}_NUM_THREADS": "1" for name in ("OMP", "OPENBLAS", "MKL", "NUMBA")}
PATIENCE = 120  # seconds; what works takes one
Run = Callable[..., Execution]

pytestmark = pytest.mark.skipif(not kernels.forkable(PACKAGE), reason="kernels are forked on Linux only")


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A fork server runs; the file is what it writes to."""
    path = tmp_path_factory.mktemp("server") / "log"
    kernels.start_fork_server(["sqlite3", "no_such_module"], ONE_THREAD, path)
    return path


@pytest.fixture
def run(log: Path, tmp_path: Path) -> Run:
    """Executes cells in a forked kernel."""

    def execute(*cells: str, **environment: str) -> Execution:
        notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
        target = tmp_path / "out.ipynb"
        made = Execution("01_a", notebook, {}, target, tmp_path, {**ONE_THREAD, **environment}, log, forked=True)
        made.run()
        return made

    return execute


def printed(execution: Execution) -> list[str]:
    assert not execution.error, execution.error
    cells = nbformat.read(execution.target, as_version=4).cells
    outputs = [output for cell in cells for output in cell.outputs]
    kinds = [kind for output in outputs for kind in output.get("data", {})]
    return [line for output in outputs for line in output.get("text", "").splitlines()] + kinds


def gone(pid: int) -> bool:
    """Whether a process ends in time; one that nobody has waited for yet has ended."""
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        if not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE:
            return True
        time.sleep(0.05)
    return False


def test_a_kernel_is_a_fork_with_its_own_folder_environment_and_session(run: Run, tmp_path: Path) -> None:
    cell = """
import os, sys
print(os.getppid(), os.getcwd(), os.environ.get("MINE"), "sqlite3" in sys.modules, "left" in globals(), "" in sys.path)
print(os.getsid(0) == os.getpid(), "JPY_PARENT_PID" in os.environ)
left = 1
"""
    servers = set()
    for mine in ("one", "two"):
        first, second = printed(run(cell, MINE=mine))
        parent, folder, environment, imported_before, left_over, path = first.split()
        servers.add(int(parent))
        assert Path(folder) == tmp_path
        assert (environment, imported_before, left_over, path) == (mine, "True", "False", "True")
        assert second == "True False"
    (server,) = servers
    assert psutil.Process(server).ppid() == os.getpid()


def test_libraries_have_the_threads_that_the_environment_grants(run: Run) -> None:
    cell = """
import numpy, scipy.linalg
from threadpoolctl import threadpool_info
print({each["num_threads"] for each in threadpool_info() if each["internal_api"] == "openblas"})
"""
    assert printed(run(cell, OPENBLAS_NUM_THREADS="2")) == ["{2}"]
    assert printed(run(cell, OPENBLAS_NUM_THREADS="1")) == ["{1}"]


def test_figures_appear_below_their_cells(run: Run) -> None:
    assert "image/png" in printed(run("import matplotlib.pyplot as plt\nplt.plot([1, 2]);"))


def test_random_numbers_of_two_kernels_are_not_shared(run: Run) -> None:
    cell = "import random, uuid\nprint(random.random(), uuid.uuid4())"
    assert printed(run(cell)) != printed(run(cell))


@pytest.mark.parametrize("end", ["os._exit(3)", "os.kill(os.getpid(), 9)"])
def test_a_kernel_that_dies_is_missed_and_the_next_one_starts(run: Run, end: str) -> None:
    failed = run("1", f"import os\n{end}")
    assert "DeadKernelError" in failed.error and (failed.cell, failed.first_line) == (2, "import os")
    assert printed(run("print('alive')")) == ["alive"]


def test_what_a_kernel_started_ends_with_it(run: Run) -> None:
    cell = "import subprocess, sys\nprint(subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)']).pid)"
    assert gone(int(printed(run(cell))[0]))


SERVED = """
import os, sys
from pathlib import Path
import nbformat
from btcnb.build import kernels
from btcnb.build.execute import Execution

if __name__ == "__main__":
    log = Path(sys.argv[1]) / "log"
    environment = {"PYTHONPATH": os.pathsep.join([sys.argv[1], os.environ.get("PYTHONPATH", "")])}
    kernels.start_fork_server(sys.argv[3:], environment, log)
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(sys.argv[2])])
    target, root = Path(sys.argv[1]) / "out.ipynb", Path(sys.argv[1])
    made = Execution("01_a", notebook, {}, target, root, environment, log, forked=True)
    made.run()
    print(made.error)
"""


def driver(folder: Path, cell: str, *modules: str) -> subprocess.Popen[str]:
    """A build of its own: it starts a fork server, and executes one cell in a forked kernel."""
    script = folder / "driver.py"
    script.write_text(SERVED)
    return subprocess.Popen([sys.executable, str(script), str(folder), textwrap.dedent(cell), *modules], text=True)


def test_kernels_and_fork_server_end_when_the_build_is_killed(tmp_path: Path) -> None:
    cell = "import os, pathlib, time\npathlib.Path('pids').write_text(f'{os.getpid()} {os.getppid()}')\ntime.sleep(600)"
    process = driver(tmp_path, cell)
    until = time.monotonic() + PATIENCE
    while not (tmp_path / "pids").exists() or not (tmp_path / "pids").read_text():
        assert process.poll() is None and time.monotonic() < until
        time.sleep(0.05)
    kernel, server = map(int, (tmp_path / "pids").read_text().split())
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert gone(kernel) and gone(server)


def test_where_a_library_has_started_a_thread_the_fork_becomes_a_plain_kernel(tmp_path: Path) -> None:
    (tmp_path / "threaded.py").write_text(
        "import threading\nthreading.Thread(target=threading.Event().wait, daemon=True).start()\n"
    )
    process = driver(tmp_path, "import sys\nopen('told', 'w').write(str('threaded' in sys.modules))", "threaded")
    assert process.wait(PATIENCE) == 0
    assert (tmp_path / "told").read_text() == "False"
    assert "started threads" in (tmp_path / "log").read_text()


def test_another_package_than_the_one_that_builds_is_not_forked(tmp_path: Path) -> None:
    assert not kernels.forkable(tmp_path / "btcnb")
