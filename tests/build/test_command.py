"""The entry of the command line: Ctrl-C before the package is loaded."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import get_args

import pytest

import btcnb_command
from btcnb.build.cli import Preset, _repeated, main
from btcnb.sizes import names

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
    assert done.returncode == 0 and done.stdout.startswith("Usage: btcnb")


def test_nothing_is_imported_before_ctrl_c_can_be_answered() -> None:
    code = "import sys; before = set(sys.modules); import btcnb_command; print(sorted(set(sys.modules) - before))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300)
    assert done.stdout.strip() == "['btcnb_command']"


def test_presets_are_those_of_the_table_of_sizes() -> None:
    assert {*get_args(Preset), "tiny"} == set(names())  # the smallest is for tests


@pytest.mark.parametrize(
    ("words", "made"),
    [
        (["build", "--only", "03", "06", "-j", "2"], ["build", "--only", "03", "--only", "06", "-j", "2"]),
        (
            ["sweep", "a.yaml", "--only", "x", "y", "--dry-run"],
            ["sweep", "a.yaml", "--only", "x", "--only", "y", "--dry-run"],
        ),
        (["build", "--only", "3,4"], ["build", "--only", "3,4"]),
        (["results", "--metric", "DP"], ["results", "--metric", "DP"]),
    ],
)
def test_an_option_may_take_several_words(words: list[str], made: list[str]) -> None:
    assert _repeated(words) == made


@pytest.mark.parametrize("words", [["nonsense"], ["build", "--preset", "huge"], ["build", "--what"], ["slides"]])
def test_a_wrong_command_line_is_refused_in_one_sentence(capsys: pytest.CaptureFixture[str], words: list[str]) -> None:
    assert main(words) == 2
    told = capsys.readouterr().err
    assert told.startswith("btcnb: ") and told.count("\n") == 1


@pytest.mark.parametrize("command", ["--help", "results --help", "chapters", "store"])
def test_a_command_that_computes_nothing_loads_nothing_heavy(command: str) -> None:
    code = (
        f"import sys; from btcnb.build.cli import main; main({command.split()!r}); "
        "assert not {'torch', 'sklearn', 'numba', 'pandas'} & set(sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr


def test_a_library_that_is_not_installed_is_named(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(sys.modules, "btcnb.build.notebooks", raising=False)
    monkeypatch.setitem(sys.modules, "jupytext", None)  # as if it were not there
    assert main(["chapters"]) == 1
    assert "pip install 'btcnb[book]'" in capsys.readouterr().err
