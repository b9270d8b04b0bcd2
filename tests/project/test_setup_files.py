"""One set of versions: pyproject.toml, requirements.lock and environment.yml may not drift apart."""

import re
import runpy
import subprocess
import tomllib
from importlib.metadata import version
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]


LOCKS = ("requirements.lock", "requirements-cuda.lock")


def _pins(lines: list[str]) -> dict[str, str]:
    pairs = (re.fullmatch(r"([A-Za-z0-9_.-]+)==([^\s;]+)", line.strip()) for line in lines)
    return {match[1].lower().replace("_", "-"): match[2] for match in pairs if match}


def _entries(name: str) -> list[str]:
    """The entries of a lock file, each on one line: `name==version ; marker --hash=… --hash=…`."""
    joined = (ROOT / name).read_text().replace("\\\n", " ")
    return [" ".join(line.split()) for line in joined.splitlines() if line and not line.startswith("#")]


@pytest.fixture(scope="module")
def lock() -> dict[str, str]:
    return _pins([entry.split()[0] for entry in _entries("requirements.lock")])


@pytest.mark.parametrize("name", LOCKS)
def test_every_locked_package_is_pinned_and_carries_digests(name: str) -> None:
    whole = re.compile(r"[a-z0-9.-]+==[^\s;]+( ; [^#]+?)?( --hash=sha256:[0-9a-f]{64})+")
    assert [entry for entry in _entries(name) if not whole.fullmatch(entry)] == []


def test_the_lock_is_whole_and_names_no_package_twice(lock: dict[str, str]) -> None:
    assert len(_entries("requirements.lock")) == len(lock) > 100


@pytest.mark.parametrize("name", LOCKS)
def test_the_lock_names_no_index(name: str) -> None:
    assert not re.search(r"https?:|--(extra-)?index|--find-links|--trusted-host", (ROOT / name).read_text())


def test_the_tool_reads_back_what_it_writes() -> None:
    tool = runpy.run_path(str(ROOT / "tools" / "lock.py"))
    for name in LOCKS:
        text = (ROOT / name).read_text()
        head = text.splitlines(keepends=True)[0]
        assert head + "".join(f"{pin}\n" for pin in tool["read_pins"](text).values()) == text


def test_what_is_installed_here_is_what_the_lock_names(lock: dict[str, str]) -> None:
    names = _pins(tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"])
    assert {name: version(name).split("+")[0] for name in names} == {name: lock[name] for name in names}


def test_pyproject_names_the_versions_of_the_lock(lock: dict[str, str]) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = project["dependencies"] + project["optional-dependencies"]["dev"]
    wanted = [each for each in wanted if not each.startswith("meanlink")]  # stands in this repository
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
    assert "Python 3.8.20 is too old: Python 3.11.5 or newer is needed" in done.stderr
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


def _calls(tmp_path: Path, offered: str) -> list[str]:
    """What pip is asked to install, in order, where builds of torch for CPUs are `offered` (yes) or not (no)."""
    tools, venv = tmp_path / "bin", tmp_path / "venv"
    _fake(tools, "python3", "exit 0")
    _fake(tools, "uname", "echo Linux")
    (venv / "bin").mkdir(parents=True)
    probe = 'case "$*" in *--dry-run*) exit 1;; esac' if offered == "no" else ""
    _fake(venv / "bin", "python", f'echo "$*" >> {tmp_path}/calls\n{probe}')
    assert _setup("python3", str(venv), path=f"{tools}:/usr/bin:/bin").returncode == 0
    lines = (tmp_path / "calls").read_text().splitlines()
    return [line.split("--no-deps ")[1] for line in lines if " install " in line and "--dry-run" not in line]


def test_digests_are_enforced_and_nothing_is_resolved(tmp_path: Path) -> None:
    assert _calls(tmp_path, offered="yes") == [
        "--require-hashes --requirement requirements.lock",
        "--no-build-isolation --editable packages/meanlink --editable .",
    ]
    probe = (tmp_path / "venv" / "torch-cpu.txt").read_text().replace("\\\n", " ").split()
    assert re.fullmatch(r"torch==[0-9.]+\+cpu", probe[0])
    assert len(probe) > 1 and all(word.startswith("--hash=sha256:") for word in probe[1:])


def test_where_no_build_for_cpus_is_offered_the_public_one_comes_with_its_libraries(tmp_path: Path) -> None:
    assert _calls(tmp_path, offered="no") == [
        "--require-hashes --requirement requirements-cuda.lock",
        "--require-hashes --requirement requirements.lock",
        "--no-build-isolation --editable packages/meanlink --editable .",
    ]


def test_what_the_installation_compiles_beforehand_can_be_compiled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where it cannot, the installation goes on and only its log says why."""
    from btcnb.data.change_votes.revealed import _joined_at
    from btcnb.data.readers.blocks.parse import _fill
    from meanlink._level_scores import best_threshold
    from meanlink._rounds import reciprocal_pairs
    from meanlink.levels import _nearest_listed

    monkeypatch.setenv("BTCNB_CACHE", str(tmp_path))
    tool = runpy.run_path(str(ROOT / "tools" / "compile.py"))
    tool["data"](), tool["trees"](), tool["large_trees"](), tool["blocks"]()
    for kernel in (best_threshold, _joined_at, reciprocal_pairs, _nearest_listed, _fill):
        assert kernel.signatures


def test_continuous_integration_calls_make_test_and_nothing_hidden() -> None:
    lines = [line.strip() for line in (ROOT / ".ci" / "run").read_text().splitlines()]
    assert lines[-1] == "make test"
    assert not any("|| true" in line or "-k " in line or "--ignore" in line for line in lines)


def test_make_runs_every_file_that_has_tests_of_the_book() -> None:
    told = subprocess.run(["make", "--dry-run", "chapters"], cwd=ROOT, capture_output=True, text=True, check=True)
    (files,) = re.findall(r'-m "book and not nightly" (.*)', told.stdout)
    marked = [
        path for path in (ROOT / "tests").rglob("test_*.py") if re.search(r"needs_book|mark\.book", path.read_text())
    ]
    assert {path.relative_to(ROOT).as_posix() for path in marked} == set(files.split())


def test_files_whose_tests_stay_together_are_there_and_have_tests_of_the_book() -> None:
    """A name that leads nowhere would be ignored in silence."""
    together = runpy.run_path(str(ROOT / "tests" / "conftest.py"))["TOGETHER"]
    assert together and all("book" in (ROOT / name).read_text(encoding="utf-8") for name in together)
