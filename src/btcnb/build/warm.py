"""Kernels that start warm: one process imports what the chapters import, and every kernel is a fork of it.

Importing torch, PyTorch Geometric, SciPy and this package takes some ten seconds of a core, and reading the code that
kept results depend on some more; eighteen chapters would pay for it eighteen times. Here it is paid once. A chapter
sees no difference: its kernel is a process of its own, with its own environment and folder, and starts with what a
fresh interpreter would have after its imports: no data, and no random numbers that anyone drew.

    build ── warm process (this file as a program) ──fork── kernel of chapter 01, 02, …
      └── worker of a lane ── `warm_client.py`, in the place of the kernel: asks for a fork, passes signals on

Forking is safe because the warm process runs one thread; where it would not be (macOS, Windows, libraries that have
started threads), and wherever the warm process does not answer, the client becomes the plain kernel.
"""

from __future__ import annotations

import ast
import contextlib
import gc
import importlib
import json
import os
import selectors
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

from btcnb.build.child import end_tree
from btcnb.store.reach import PACKAGE, package

SOCKET = "BTCNB_WARM"
"""Environment variable of a kernel's launcher: where the warm process listens."""
CLIENT = Path(__file__).with_name("warm_client.py")
_BACKEND = "module://matplotlib_inline.backend_inline"  # what a kernel sets before its first cell
_HARMLESS = {"jemalloc_bg_thd"}  # of Arrow's allocator, which knows of forks
_BLAS = "OPENBLAS_NUM_THREADS"
"""The one library that starts threads when it is loaded: none in the warm process, as many as wanted in a kernel."""
_GRACE = 10.0  # seconds for the warm process to end its kernels


class WarmProcess:
    """The process that kernels are forked from; a context, at whose end it and all its kernels are gone."""

    def __init__(self, sources: Iterable[str], environment: Mapping[str, str], log: Path) -> None:
        """sources: the code cells whose imports are wanted. environment: of the kernels, as far as they share it."""
        self.folder = Path(tempfile.mkdtemp(prefix="btcnb-"))  # the path of a socket must be short
        self.address = self.folder / "warm"
        with log.open("ab") as told, socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
            listener.bind(str(self.address))
            listener.listen()  # here, so that nobody can come too early
            self.process = subprocess.Popen(
                [sys.executable, "-m", __name__, str(listener.fileno())],
                stdin=subprocess.PIPE,
                stdout=told,
                stderr=told,
                pass_fds=[listener.fileno()],
                env={**os.environ, "MPLBACKEND": _BACKEND, **environment, _BLAS: "1"},
                start_new_session=True,  # Ctrl-C is the build's to hear
            )
        assert self.process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.write(json.dumps(list(sources)).encode() + b"\n")
            self.process.stdin.flush()

    def __enter__(self) -> WarmProcess:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        assert self.process.stdin is not None
        with contextlib.suppress(OSError):
            self.process.stdin.close()  # which it takes as its end
        try:
            self.process.wait(_GRACE)
        except subprocess.TimeoutExpired:
            end_tree(self.process.pid)
            self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)


def warmable(source: Path) -> bool:
    """Whether kernels can be forks: on Linux, of the package that runs this build."""
    return sys.platform == "linux" and hasattr(os, "pidfd_open") and source.resolve() == PACKAGE.parent


def warm_manager() -> type[Any]:
    """A kernel manager that starts the client of a warm process instead of a kernel."""
    from jupyter_client.manager import AsyncKernelManager

    class WarmKernelManager(AsyncKernelManager):
        def format_kernel_cmd(self, extra_arguments: list[str] | None = None) -> list[str]:
            return through_client(super().format_kernel_cmd(extra_arguments))

    return WarmKernelManager


def through_client(plain: list[str]) -> list[str]:
    """The command line of the client that stands for the kernel with this command line."""
    return [sys.executable, "-I", "-S", str(CLIENT), os.environ[SOCKET], *plain]


# --- inside of the warm process ---


def main() -> None:
    """Import, then fork a kernel for everyone who asks, until standard input ends. Argument: the socket's number."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    del sys.path[0]  # the working directory: kernels put it back themselves
    listener = socket.socket(fileno=int(sys.argv[1]))
    _prepare(json.loads(sys.stdin.buffer.readline() or "[]"))
    if others := ", ".join(_threads()):
        print(f"btcnb: libraries have started threads ({others}), so kernels start by themselves", flush=True)
        os._exit(0)  # without waiting for them
    serve(listener)


def _threads() -> list[str]:
    """The threads of this process that a fork would lose without their knowing, by name."""
    tasks = [task for task in Path("/proc/self/task").iterdir() if task.name != str(os.getpid())]
    names = [(task / "comm").read_text(encoding="utf-8").strip() for task in tasks]
    return sorted(name for name in names if name not in _HARMLESS)


def _prepare(sources: list[str]) -> None:
    """Import what the cells import, and read the code behind them. What fails here, the chapter will tell of."""
    for name in ("ipykernel.kernelapp", "ipykernel.ipkernel", "matplotlib.pyplot", *imported(sources)):
        with contextlib.suppress(Exception):
            importlib.import_module(name)
    from btcnb.store.entries import library_versions

    library_versions(package().of_source(sources).libraries)
    gc.collect()
    gc.freeze()  # what is here stays: no kernel looks for garbage in it, which would also copy it, page by page


def imported(sources: Iterable[str]) -> list[str]:
    """Modules that are imported at the top level of these pieces of code; one that does not parse imports nothing."""
    found: dict[str, None] = {}
    for source in sources:
        with contextlib.suppress(SyntaxError):
            for node in ast.parse(source).body:
                if isinstance(node, ast.Import):
                    found |= dict.fromkeys(alias.name for alias in node.names)
                elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                    found[node.module] = None
                    found |= dict.fromkeys(f"{node.module}.{alias.name}" for alias in node.names)
    return list(found)


def serve(listener: socket.socket) -> None:
    """One thread waits for callers, for kernels that end, and for the end of standard input."""
    kernels: dict[int, tuple[int, socket.socket]] = {}  # pidfd -> (pid, the caller's connection)
    with selectors.DefaultSelector() as ready:
        ready.register(listener, selectors.EVENT_READ)
        ready.register(sys.stdin, selectors.EVENT_READ)
        while True:
            for key, _ in ready.select():
                if key.fileobj is listener:
                    caller, _ = listener.accept()
                    if (pid := _fork(caller, [listener, *(each for _, each in kernels.values())])) is None:
                        continue
                    handle = os.pidfd_open(pid)
                    kernels[handle] = (pid, caller)
                    ready.register(handle, selectors.EVENT_READ)
                elif key.fileobj is sys.stdin:
                    for pid, _ in kernels.values():
                        end_tree(pid)
                    return
                else:
                    handle = key.fd
                    ready.unregister(handle)
                    os.close(handle)
                    pid, caller = kernels.pop(handle)
                    _report(caller, os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))


def _fork(caller: socket.socket, others: list[socket.socket]) -> int | None:
    """Start the kernel that a caller asks for; None where the caller has gone away meanwhile."""
    try:
        request, descriptors = _receive(caller)
    except (OSError, ValueError):
        caller.close()
        return None
    pid = os.fork()
    if pid == 0:
        try:
            for each in others:
                each.close()
            _become_kernel(request, descriptors, caller)
        finally:
            os._exit(1)  # a kernel ends itself; one that could not start must not go on as a warm process
    for descriptor in descriptors:
        os.close(descriptor)
    with contextlib.suppress(OSError):
        caller.sendall(f"{pid}\n".encode())
    return pid


def _receive(caller: socket.socket) -> tuple[dict[str, Any], list[int]]:
    """Arguments, environment and folder as JSON with its length in front, and the standard streams."""
    head, descriptors, _, _ = socket.recv_fds(caller, 8, 3)
    with caller.makefile("rb") as stream:
        length = int.from_bytes(head + stream.read(8 - len(head)), "big")
        request = json.loads(stream.read(length))
    if len(descriptors) != 3:
        raise ValueError("no streams")
    return request, list(descriptors)


def _become_kernel(request: dict[str, Any], descriptors: list[int], caller: socket.socket) -> None:
    os.setsid()
    for number, descriptor in enumerate(descriptors):
        os.dup2(descriptor, number)
        os.close(descriptor)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.environ.clear()
    os.environ.update(request["environment"])
    os.chdir(request["folder"])
    _share_blas()
    sys.argv = ["ipykernel_launcher", *request["arguments"]]
    threading.Thread(target=_end_with_caller, args=(caller,), daemon=True).start()
    from ipykernel import kernelapp

    try:
        kernelapp.launch_new_instance()
    except SystemExit as ended:
        _leave(ended.code if isinstance(ended.code, int) else int(ended.code is not None))
    _leave(0)


def _share_blas() -> None:
    """As many threads as the environment grants; one that says nothing gets one for each core, as ever."""
    from threadpoolctl import ThreadpoolController

    wanted = os.environ.get(_BLAS) or os.environ.get("OMP_NUM_THREADS") or ""
    threads = int(wanted) if wanted.isdigit() and int(wanted) else len(os.sched_getaffinity(0))
    if threads > 1:
        ThreadpoolController().select(internal_api="openblas").limit(limits=threads)


def _leave(code: int) -> None:
    """End like an interpreter that runs out: exit handlers, then streams."""
    import atexit

    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def _end_with_caller(caller: socket.socket) -> None:
    """The client stands for the kernel: when it is killed, the kernel and what it started end too."""
    with contextlib.suppress(OSError):
        while caller.recv(1):
            pass
    end_tree(os.getpid())


def _report(caller: socket.socket, code: int) -> None:
    with contextlib.suppress(OSError):
        caller.sendall(f"{code}\n".encode())
    caller.close()


if __name__ == "__main__":
    main()
