"""Write requirements.lock: every package that the book needs, pinned, with the digest of every file that may be installed.

    python -m venv /tmp/lock && /tmp/lock/bin/pip install uv     # the resolver, in an environment of its own
    PATH=/tmp/lock/bin:$PATH python tools/lock.py                # new digests, and new packages of pyproject.toml
    PATH=/tmp/lock/bin:$PATH python tools/lock.py --upgrade      # newer versions of what pyproject.toml does not pin

The resolution is universal: one file for Linux and macOS and every Python that pyproject.toml allows, with digests of all
wheels and source archives that the index lists (uv reads UV_INDEX_URL; without it the public index). Versions stay as the
present lock has them unless `--upgrade` is given or pyproject.toml pins another.

torch is special: besides the builds of the public index there are builds for CPUs only (version 2.13.0+cpu), which
satisfy the same pin and are ten times smaller. `--find-links` names folders or pages that list such files; their digests
are added to the public ones, and digests of the same version that the present lock has are kept. What only the public
builds for Linux need, the CUDA libraries, goes to requirements-cuda.lock, which tools/setup.sh installs when the torch
that was installed asks for them.
"""

from __future__ import annotations

import argparse
import hashlib
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

ROOT = Path(__file__).resolve().parents[1]
LOCK, CUDA_LOCK = ROOT / "requirements.lock", ROOT / "requirements-cuda.lock"
BUILD_TOOLS = ("setuptools", "wheel")  # tools/setup.sh installs btcnb itself without build isolation
CUDA = re.compile(r"(nvidia|cuda|triton)\b")
HEAD = "# {what} Written by tools/lock.py, which tells how; do not edit.\n"


@dataclass(frozen=True)
class Pin:
    """One package: `name==version ; marker` and the digests of its files."""

    name: str
    version: str
    marker: str
    digests: frozenset[str]

    def __str__(self) -> str:
        condition = f" ; {self.marker}" if self.marker else ""
        lines = [f"{self.name}=={self.version}{condition}", *(f"    --hash=sha256:{d}" for d in sorted(self.digests))]
        return " \\\n".join(lines)


def read_pins(text: str) -> dict[str, Pin]:
    """The pins of a lock file by normalised name."""
    joined = text.replace("\\\n", " ")
    found = re.finditer(r"^([\w.-]+)==([^\s;]+)(?: *; *(.*?))?((?:\s+--hash=sha256:[0-9a-f]{64})*) *$", joined, re.M)
    pins = (
        Pin(normal(m[1]), m[2], (m[3] or "").strip(), frozenset(re.findall(r"sha256:([0-9a-f]{64})", m[4]))) for m in found
    )
    return {pin.name: pin for pin in pins}


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def resolve(kept: dict[str, Pin], python: str) -> dict[str, Pin]:
    """What uv makes of pyproject.toml when the versions `kept` stay."""
    uv = shutil.which("uv")
    if uv is None:
        sys.exit("lock: there is no 'uv' on the path; the head of tools/lock.py tells how to get it.")
    with tempfile.TemporaryDirectory() as folder:
        constraints, tools = Path(folder, "constraints.txt"), Path(folder, "tools.txt")
        constraints.write_text("".join(f"{pin.name}=={pin.version}\n" for pin in kept.values()))
        tools.write_text("\n".join(BUILD_TOOLS))
        command = [
            uv, "pip", "compile", "--quiet", "--universal", "--python-version", python, "--generate-hashes",
            "--extra", "dev", "--no-annotate", "--no-header", "--no-emit-index-url", "--constraints", str(constraints),
            "pyproject.toml", str(tools),
        ]  # fmt: skip
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(done.stderr)
    return read_pins(done.stdout)


def listed(place: str) -> Iterator[tuple[str, str]]:
    """(file name, digest) of what a folder holds or a page links to."""
    folder = Path(place)
    if folder.is_dir():
        for path in sorted(folder.glob("*.whl")):
            with path.open("rb") as file:
                yield path.name, hashlib.file_digest(file, "sha256").hexdigest()
        return
    with urllib.request.urlopen(place, timeout=60) as answer:
        page = answer.read().decode()
    for name, digest in re.findall(r"""([^/"'>]+\.whl)#sha256=([0-9a-f]{64})""", page):
        yield unquote(name), digest


def builds(pin: Pin, places: list[str]) -> set[str]:
    """Digests of the builds (`2.13.0`, `2.13.0+cpu`, …) of a pinned package in `places`."""
    of_this = re.compile(rf"{re.escape(pin.name)}-{re.escape(pin.version)}(\+[a-z0-9.]+)?-.*\.whl")
    return {digest for place in places for name, digest in listed(place) if of_this.fullmatch(name)}


def main() -> None:
    parser = argparse.ArgumentParser(description="Write requirements.lock and requirements-cuda.lock.")
    parser.add_argument("--upgrade", action="store_true", help="let versions that pyproject.toml does not pin move")
    parser.add_argument(
        "--find-links", action="append", default=[], metavar="PLACE", help="folder or page with further builds of torch"
    )
    options = parser.parse_args()
    old = {path: read_pins(path.read_text()) if path.exists() else {} for path in (LOCK, CUDA_LOCK)}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    pinned = {normal(entry.split("==")[0]) for entry in project["dependencies"] + project["optional-dependencies"]["dev"]}
    before = old[LOCK] | old[CUDA_LOCK]
    stay = {} if options.upgrade else {name: pin for name, pin in before.items() if name not in pinned}
    pins = resolve(stay, project["requires-python"].removeprefix(">="))

    torch = pins["torch"]
    kept = before["torch"].digests if "torch" in before and before["torch"].version == torch.version else frozenset()
    pins["torch"] = Pin(
        torch.name, torch.version, torch.marker, torch.digests | kept | builds(torch, options.find_links)
    )
    cuda = {name for name in pins if CUDA.match(name)}
    write(LOCK, "Every package the book needs.", [pins[name] for name in sorted(pins.keys() - cuda)])
    write(CUDA_LOCK, "What builds of torch with CUDA need besides, on Linux.", [pins[name] for name in sorted(cuda)])


def write(path: Path, what: str, pins: list[Pin]) -> None:
    path.write_text(HEAD.format(what=what) + "".join(f"{pin}\n" for pin in pins))
    print(f"{path.name}: {len(pins)} packages, {sum(len(pin.digests) for pin in pins)} digests")


if __name__ == "__main__":
    main()
