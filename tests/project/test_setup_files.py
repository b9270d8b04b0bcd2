"""One set of versions: pyproject.toml, requirements.lock and environment.yml may not drift apart."""

import re
import subprocess
import tomllib
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]


def _pins(lines: list[str]) -> dict[str, str]:
    pairs = (re.fullmatch(r"([A-Za-z0-9_.-]+)==([^\s;]+)", line.strip()) for line in lines)
    return {match[1].lower().replace("_", "-"): match[2] for match in pairs if match}


@pytest.fixture(scope="module")
def lock() -> dict[str, str]:
    return _pins((ROOT / "requirements.lock").read_text().splitlines())


def test_the_lock_pins_every_line(lock: dict[str, str]) -> None:
    lines = [
        line for line in (ROOT / "requirements.lock").read_text().splitlines() if line and not line.startswith("#")
    ]
    assert len(lines) == len(lock) > 100


def test_pyproject_names_the_versions_of_the_lock(lock: dict[str, str]) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = project["dependencies"] + project["optional-dependencies"]["dev"]
    pins = _pins(wanted)
    assert len(pins) == len(wanted), "every dependency is pinned with =="
    assert pins == {name: lock[name] for name in pins}


def test_the_conda_environment_names_the_same_versions(lock: dict[str, str]) -> None:
    environment = yaml.safe_load((ROOT / "environment.yml").read_text())
    pip = next(entry["pip"] for entry in environment["dependencies"] if isinstance(entry, dict))
    pins = _pins(pip)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert pins == _pins(project["dependencies"] + project["optional-dependencies"]["dev"])
    assert pins == {name: lock[name] for name in pins}


def _setup(*arguments: str, path: str | None = None) -> subprocess.CompletedProcess[str]:
    environment = None if path is None else {"PATH": path}
    return subprocess.run(
        ["/bin/sh", str(ROOT / "tools" / "setup.sh"), *arguments],
        capture_output=True,
        text=True,
        env=environment,
        cwd=ROOT,
        check=False,
    )


def _fake(folder: Path, name: str, body: str) -> None:
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(f"#!/bin/sh\n{body}\n")
    (folder / name).chmod(0o755)


def test_an_old_python_is_refused_in_one_sentence(tmp_path: Path) -> None:
    _fake(tmp_path / "bin", "python3.8", 'case "$1" in --version) echo "Python 3.8.20";; *) exit 1;; esac')
    done = _setup(str(tmp_path / "bin" / "python3.8"), str(tmp_path / "venv"))
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert "Python 3.8.20 is too old: Python 3.11 or newer is needed" in done.stderr
    assert not (tmp_path / "venv").exists()


def test_a_missing_python_is_named(tmp_path: Path) -> None:
    done = _setup("python-that-is-not-there", str(tmp_path / "venv"))
    assert done.returncode == 1
    assert "there is no 'python-that-is-not-there' here" in done.stderr


def test_a_full_disk_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    tools = tmp_path / "bin"
    _fake(tools, "python3", "exit 0")
    _fake(tools, "df", "echo head; echo '/dev/x 100 90 10240 99% /'")
    done = _setup("python3", str(tmp_path / "venv"), path=f"{tools}:/usr/bin:/bin")
    assert done.returncode == 1
    assert "only 10 MB are free on this disk" in done.stderr
    assert not (tmp_path / "venv").exists()


def test_a_failed_install_says_so_and_where_the_log_is(tmp_path: Path) -> None:
    tools = tmp_path / "bin"
    venv = tmp_path / "venv"
    _fake(tools, "python3", "exit 0")
    (venv / "bin").mkdir(parents=True)
    _fake(venv / "bin", "python", 'case "$*" in *pip*) echo "ERROR: no route to the index"; exit 1;; esac')
    done = _setup("python3", str(venv), path=f"{tools}:/usr/bin:/bin")
    assert done.returncode == 1
    assert "ERROR: no route to the index" in done.stderr
    assert f"the installation failed: the last lines are above, all of it is in {venv}/install.log" in done.stderr


def test_continuous_integration_calls_make_test_and_nothing_hidden() -> None:
    lines = [line.strip() for line in (ROOT / ".ci" / "run").read_text().splitlines()]
    assert lines[-1] == "make test"
    assert not any("|| true" in line or "-k " in line or "--ignore" in line for line in lines)
