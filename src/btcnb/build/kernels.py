"""Kernels for chapters: forked from a process that has imported what the chapters import, or plain ones.

Importing torch, SciPy and this package takes a kernel 5 to 10 seconds. On Linux the fork server of `multiprocessing`
imports them once, and every kernel is a fork of it with its own environment, folder and session. A fork is safe because
the fork server runs one thread. Where a library has started threads there, the fork at once becomes a plain kernel.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterable, Mapping
from multiprocessing import forkserver
from multiprocessing.connection import wait
from pathlib import Path
from typing import Any

import psutil
from jupyter_client.manager import AsyncKernelManager
from jupyter_client.provisioning.local_provisioner import LocalProvisioner

MODULES, LOG = "BTCNB_PRELOAD", "BTCNB_PRELOAD_LOG"
"""Environment variables of the fork server: modules to import, separated by commas, and where it writes."""
_ALWAYS = ("ipykernel.kernelapp", "ipykernel.ipkernel", "matplotlib.pyplot")
_BACKEND = "module://matplotlib_inline.backend_inline"  # which a kernel sets before its first cell
_HARMLESS = {"jemalloc_bg_thd"}  # a thread of Arrow's allocator, which survives forks
_BLAS = "OPENBLAS_NUM_THREADS"
"""OpenBLAS starts threads when it is loaded: none in the fork server, as many as granted in a kernel."""

_started = False  # whether this process has started the fork server
_path: list[str] = []  # of the fork server: where its forks import from
_threads: list[str] = []  # of the fork server: threads that a fork would lose


def forkable(package: Path) -> bool:
    """Whether kernels can be forks: on Linux, for the package that runs this build."""
    return sys.platform == "linux" and package.resolve() == Path(__file__).resolve().parents[1]


def start_fork_server(modules: Iterable[str], environment: Mapping[str, str], log: Path) -> None:
    """Start the fork server, which begins to import `modules`; one that runs already stays as it is."""
    global _started
    before = dict(os.environ)
    told = {MODULES: ",".join([*_ALWAYS, *sorted(modules)]), LOG: str(log), "MPLBACKEND": _BACKEND, _BLAS: "1"}
    quiet = "ignore::UserWarning:multiprocessing.resource_tracker"  # kernels are killed, and leave semaphores behind
    os.environ.update({**environment, **told, "PYTHONWARNINGS": quiet})
    try:
        forkserver.set_forkserver_preload([__name__])
        forkserver.ensure_running()
        _started = True
    finally:
        os.environ.clear()
        os.environ.update(before)


def new_process(target: Callable[..., None], *arguments: Any) -> Any:
    """A process that has not started yet: a fork of the fork server where this build has one."""
    context: Any = multiprocessing.get_context("forkserver" if _started else "spawn")
    return context.Process(target=target, args=arguments)


def kernel_manager(connection_file: Path, forked: bool) -> AsyncKernelManager:
    """The manager of one kernel that has not started yet."""
    manager = AsyncKernelManager(kernel_name="python3", connection_file=str(connection_file))
    if forked:
        manager.provisioner = _ForkedKernel(kernel_id="", kernel_spec=manager.kernel_spec, parent=manager)
    return manager


def end_tree(pid: int) -> None:
    """Kill a process with everything it started."""
    with contextlib.suppress(psutil.NoSuchProcess):
        end_children(pid)
        psutil.Process(pid).kill()


def end_children(pid: int | None = None) -> None:
    """Kill everything that a process (this one) has started."""
    for process in psutil.Process(pid).children(recursive=True):
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()


class _ForkedKernel(LocalProvisioner):
    async def launch_kernel(self, cmd: list[str], **kwargs: Any) -> Any:
        fork: Any = _Fork(cmd, dict(kwargs["env"]), str(kwargs["cwd"]))
        self.process, self.pid, self.cwd = fork, fork.pid, kwargs["cwd"]
        return self.connection_info


class _Fork:
    """A fork with the methods of `subprocess.Popen` that jupyter_client calls."""

    stdin = stdout = stderr = None

    def __init__(self, command: list[str], environment: dict[str, str], folder: str) -> None:
        self._process = new_process(_run_kernel, command, environment, folder)
        self._process.start()
        self.pid: int = self._process.pid

    def poll(self) -> int | None:
        code: int | None = self._process.exitcode
        return code

    def wait(self) -> int | None:
        self._process.join()
        return self.poll()

    def send_signal(self, number: int) -> None:
        if number == signal.SIGKILL:
            end_tree(self.pid)
        else:
            os.kill(self.pid, number)


# --- inside the fork server and its forks ---


def _preload() -> None:
    """Import the modules that the environment names; a chapter reports a module that fails."""
    with Path(os.environ[LOG]).open("ab") as log:
        os.dup2(log.fileno(), 1)
        os.dup2(log.fileno(), 2)
    for name in os.environ[MODULES].split(","):
        with contextlib.suppress(Exception):
            importlib.import_module(name)
    _path[:] = sys.path[1:]  # without the working directory, which kernels add themselves
    _threads[:] = _started_threads()
    if _threads:
        print(f"btcnb: libraries have started threads ({', '.join(_threads)}), so no kernel is forked", flush=True)
    gc.collect()
    gc.freeze()  # no kernel looks for garbage in what all share, which would also copy it


def _started_threads() -> list[str]:
    """Names of the threads that a fork would lose."""
    tasks = [task for task in Path("/proc/self/task").iterdir() if task.name != str(os.getpid())]
    names = [(task / "comm").read_text(encoding="utf-8").strip() for task in tasks]
    return sorted(name for name in names if name not in _HARMLESS)


def _run_kernel(command: list[str], environment: dict[str, str], folder: str) -> None:
    os.setsid()  # Ctrl-C is for the build alone
    os.chdir(folder)
    if _threads:
        os.execve(command[0], command, {**environment, "JPY_PARENT_PID": str(os.getppid())})
    os.environ.clear()
    os.environ.update(environment)
    sys.path[:] = _path
    sys.argv = command[command.index("ipykernel_launcher") :]
    end_with_build()
    _grant_blas_threads()
    from ipykernel import kernelapp

    kernelapp.launch_new_instance()


def end_with_build() -> None:
    """End this process and all that it starts as soon as the build ends, even by `kill -9`."""
    build = multiprocessing.parent_process()
    assert build is not None

    def watch() -> None:
        wait([build.sentinel])
        end_tree(os.getpid())

    threading.Thread(target=watch, daemon=True).start()


def _grant_blas_threads() -> None:
    from threadpoolctl import ThreadpoolController

    granted = os.environ.get(_BLAS) or os.environ.get("OMP_NUM_THREADS") or ""
    threads = int(granted) if granted.isdigit() and int(granted) else len(os.sched_getaffinity(0))
    if threads > 1:
        ThreadpoolController().select(internal_api="openblas").limit(limits=threads)


if MODULES in os.environ:  # this is the fork server, which imports this module first
    _preload()
