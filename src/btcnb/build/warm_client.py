"""Stands where a kernel would: asks the warm process for a fork, passes signals on, and ends as the kernel ends.

    python -I -S warm_client.py SOCKET PYTHON -m ipykernel_launcher -f CONNECTION …

Runs without the package and without site-packages, so that it starts at once. Where nobody answers it becomes the plain
kernel, whose command line it was given.
"""

import contextlib
import json
import os
import signal
import socket
import sys
from pathlib import Path
from typing import Any


def main() -> None:
    address, *plain = sys.argv[1:]
    arguments = plain[plain.index("ipykernel_launcher") + 1 :]
    request = {"arguments": arguments, "environment": dict(os.environ), "folder": str(Path.cwd())}
    try:
        warm = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        warm.connect(address)
        body = json.dumps(request).encode()
        socket.send_fds(warm, [len(body).to_bytes(8, "big")], [0, 1, 2])
        warm.sendall(body)
        answers = warm.makefile("r")
        pid = int(answers.readline())
    except (OSError, ValueError):
        os.execv(plain[0], plain)

    def forward(number: int, frame: Any) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, forward)
    code = int(answers.readline() or "1")
    if code < 0:
        if -code != signal.SIGKILL:
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    os._exit(max(code, 0))


if __name__ == "__main__":
    main()
