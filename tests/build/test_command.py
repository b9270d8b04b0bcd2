"""The entry of the command line: Ctrl-C before the package is loaded."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tomllib
from pathlib import Path

import btcnb_command

ROOT = Path(__file__).parents[2]


def test_the_installed_command_enters_there() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert project["project"]["scripts"] == {"btcnb": "btcnb_command:main"}
    assert project["tool"]["setuptools"]["py-modules"] == ["btcnb_command"]


def test_ctrl_c_while_the_package_is_imported(tmp_path: Path) -> None:
    """A package of our name that takes its time stands in front of the real one."""
    (tmp_path / "btcnb").mkdir()
    (tmp_path / "btcnb" / "__init__.py").write_text("import time; print('loading', flush=True); time.sleep(600)")
    process = subprocess.Popen(
        [sys.executable, "-P", btcnb_command.__file__, "build"],
        env=os.environ | {"PYTHONPATH": str(tmp_path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None and process.stdout.readline() == "loading\n"
    process.send_signal(signal.SIGINT)
    _, told = process.communicate(timeout=300)
    assert process.returncode == 130
    assert told.strip() == "btcnb: Interrupted before anything ran."


def test_otherwise_it_is_the_command_line() -> None:
    done = subprocess.run(
        [sys.executable, btcnb_command.__file__, "--help"], capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0 and done.stdout.startswith("usage: btcnb")


def test_nothing_is_imported_before_ctrl_c_can_be_answered() -> None:
    code = "import sys; before = set(sys.modules); import btcnb_command; print(sorted(set(sys.modules) - before))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300)
    assert done.stdout.strip() == "['btcnb_command']"
