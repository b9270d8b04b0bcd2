"""Write requirements.lock: every package that the book needs, pinned, with the digest of every file that may come.

    python -m venv /tmp/lock && /tmp/lock/bin/pip install uv packaging  # the resolver, in an environment of its own
    PATH=/tmp/lock/bin:$PATH python tools/lock.py                       # new digests, new packages of pyproject.toml
    PATH=/tmp/lock/bin:$PATH python tools/lock.py --upgrade             # the newest versions in its ranges

The resolution is universal: one file for Linux and macOS and every Python that pyproject.toml allows, with digests of
all wheels and source archives that the index lists (uv reads UV_INDEX_URL; without it, the public index). A version
stays as the present lock has it, unless `--upgrade` is given or the range in pyproject.toml excludes it. What
environment.yml pins follows the lock.

torch is special. The public builds for Linux bring CUDA, gigabytes that the book does not need; builds for CPUs only
(2.13.0+cpu beside 2.13.0) stand in other places. requirements.lock names the builds without CUDA:
macOS's, and those that `--find-links` finds in folders or pages; digests that the present lock has for the same version
are kept. requirements-cuda.lock names the public builds for Linux and the libraries they need. tools/setup.sh installs
the second file only where pip is offered none of the builds that the first one names.
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
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parents[1]
LOCK, CUDA_LOCK, CONDA = (ROOT / name for name in ("requirements.lock", "requirements-cuda.lock", "environment.yml"))
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
        Pin(normal(m[1]), m[2], (m[3] or "").strip(), frozenset(re.findall(r"sha256:([0-9a-f]{64})", m[4])))
        for m in found
    )
    return {pin.name: pin for pin in pins}


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def resolve(project: dict[str, Any], kept: dict[str, Pin]) -> list[dict[str, Any]]:
    """The packages (pylock.toml's entries) that uv finds for pyproject.toml when the versions `kept` stay."""
    uv = shutil.which("uv")
    if uv is None:
        sys.exit("lock: there is no 'uv' on the path; the head of tools/lock.py tells how to get it.")
    with tempfile.TemporaryDirectory() as folder:
        constraints, tools, out = (Path(folder, name) for name in ("constraints.txt", "tools.txt", "pylock.toml"))
        constraints.write_text("".join(f"{pin.name}=={pin.version}\n" for pin in kept.values()))
        tools.write_text("\n".join(BUILD_TOOLS))
        listed = Path(folder, "wanted.txt")
        listed.write_text("\n".join(map(str, wanted(project))))
        command = [
            uv, "pip", "compile", "--quiet", "--universal", "--format", "pylock.toml",
            "--python-version", project["requires-python"].removeprefix(">="),
            "--constraints", str(constraints), "--output-file", str(out), str(listed), str(tools),
        ]  # fmt: skip
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            sys.exit(done.stderr)
        packages: list[dict[str, Any]] = tomllib.loads(out.read_text())["packages"]
    return packages


def pin(package: dict[str, Any], files: Callable[[str], bool] = lambda name: True) -> Pin:
    """The pin of one entry, with the digests of those of its files whose name `files` accepts."""
    entries = package.get("wheels", []) + ([package["sdist"]] if "sdist" in package else [])
    digests = frozenset(entry["hashes"]["sha256"] for entry in entries if files(entry["url"].rsplit("/", 1)[1]))
    return Pin(normal(package["name"]), package["version"], package.get("marker", ""), digests)


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
    """Digests of the builds for CPUs (`2.13.0+cpu`) of a pinned package in `places`."""
    of_this = re.compile(rf"{re.escape(pin.name)}-{re.escape(pin.version)}\+cpu-.*\.whl")
    return {digest for place in places for name, digest in listed(place) if of_this.fullmatch(name)}


def main() -> None:
    parser = argparse.ArgumentParser(description="Write requirements.lock and requirements-cuda.lock.")
    parser.add_argument("--upgrade", action="store_true", help="take the newest versions in the ranges")
    parser.add_argument(
        "--find-links",
        action="append",
        default=[],
        metavar="PLACE",
        help="folder or page with builds of torch for CPUs",
    )
    options = parser.parse_args()
    old = read_pins(LOCK.read_text()) if LOCK.exists() else {}
    old_cuda = read_pins(CUDA_LOCK.read_text()) if CUDA_LOCK.exists() else {}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    ranges = {normal(entry.name): entry.specifier for entry in wanted(project)}
    fit = {name: pin for name, pin in (old_cuda | old).items() if name not in ranges or pin.version in ranges[name]}
    stay = {} if options.upgrade else fit

    packages = {normal(entry["name"]): entry for entry in resolve(project, stay)}
    torch = packages.pop("torch")
    plain = pin(torch, lambda name: "linux" not in name)
    kept = old["torch"].digests if "torch" in old and old["torch"].version == plain.version else frozenset()
    plain = replace(plain, digests=plain.digests | kept | builds(plain, options.find_links))
    public = replace(pin(torch, lambda name: "linux" in name), marker="sys_platform == 'linux'")

    pins = {name: pin(entry) for name, entry in packages.items()}
    cuda = {name: entry for name, entry in pins.items() if CUDA.match(name)}
    book = {name: entry for name, entry in pins.items() if name not in cuda}
    write(LOCK, "Every package the book needs.", book | {"torch": plain})
    write(CUDA_LOCK, "torch with CUDA, for Linux where no build for CPUs is offered.", cuda | {"torch": public})
    CONDA.write_text(conda(CONDA.read_text(), project, book | {"torch": plain}))


def wanted(project: dict[str, Any]) -> list[Requirement]:
    """All dependencies, extras included, but meanlink, which stands in this repository."""
    groups = [project["dependencies"], *project["optional-dependencies"].values()]
    entries = [Requirement(entry) for group in groups for entry in group]
    return [entry for entry in entries if entry.name != "meanlink"]


def conda(text: str, project: dict[str, Any], pins: dict[str, Pin]) -> str:
    """environment.yml with the lock's version of every dependency in pyproject.toml."""
    lines = [f"      - {entry.name}=={pins[normal(entry.name)].version}\n" for entry in wanted(project)]
    return re.sub(r"(?<=  - pip:\n)(      - [^-\n].*\n)+", "".join(lines), text)


def write(path: Path, what: str, pins: dict[str, Pin]) -> None:
    path.write_text(HEAD.format(what=what) + "".join(f"{pins[name]}\n" for name in sorted(pins)))
    print(f"{path.name}: {len(pins)} packages, {sum(len(entry.digests) for entry in pins.values())} digests")


if __name__ == "__main__":
    main()
