"""One set of versions: pyproject.toml, requirements.lock and environment.yml may not drift apart."""

import os
import re
import runpy
import shutil
import subprocess
import sys
import tomllib
import zipfile
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parents[2]
TOOL = runpy.run_path(str(ROOT / "tools" / "lock.py"))
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
    for name in LOCKS:
        text = (ROOT / name).read_text()
        head = text.splitlines(keepends=True)[0]
        assert head + "".join(f"{pin}\n" for pin in TOOL["read_pins"](text).values()) == text


@pytest.fixture(scope="module")
def wanted() -> list[Requirement]:
    """All that pyproject.toml asks for, extras included."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    found: list[Requirement] = TOOL["wanted"](project)
    return found


def test_the_lock_lies_in_the_ranges_and_is_what_is_installed(lock: dict[str, str], wanted: list[Requirement]) -> None:
    assert [entry for entry in wanted if lock[TOOL["normal"](entry.name)] not in entry.specifier] == []
    here = {entry.name: version(entry.name).split("+")[0] for entry in wanted}
    assert here == {entry.name: lock[TOOL["normal"](entry.name)] for entry in wanted}


def test_only_what_is_known_to_break_has_an_upper_bound(wanted: list[Requirement]) -> None:
    """So the package installs beside newer NumPy, pandas and torch."""
    bounded = {entry.name for entry in wanted for each in entry.specifier if each.operator != ">="}
    assert bounded == {"jupyter-book", "sphinx-book-theme", "pydata-sphinx-theme"}
    assert [entry.name for entry in wanted if not any(each.operator in (">=", "==") for each in entry.specifier)] == []
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert not bounded & {Requirement(entry).name for entry in project["dependencies"]}


def test_the_conda_environment_is_what_the_tool_writes(lock: dict[str, str], wanted: list[Requirement]) -> None:
    text = (ROOT / "environment.yml").read_text()
    pip = next(entry["pip"] for entry in yaml.safe_load(text)["dependencies"] if isinstance(entry, dict))
    assert _pins(pip) == {TOOL["normal"](each.name): lock[TOOL["normal"](each.name)] for each in wanted}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    pins = TOOL["read_pins"]((ROOT / "requirements.lock").read_text())
    assert TOOL["conda"](text.replace("numpy==", "numpy==1."), project, pins) == text


@dataclass(frozen=True)
class Wheels:
    """Wheels of btcnb and meanlink, and the files below the `src` that each was built of."""

    paths: dict[str, Path]
    files: dict[str, set[str]]


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Wheels:
    """Built of copies, so that no earlier build helps, without the network."""
    folder = tmp_path_factory.mktemp("wheels")
    sources = {"btcnb": ROOT, "meanlink": ROOT / "packages" / "meanlink"}
    files: dict[str, set[str]] = {}
    for name, source in sources.items():
        copy = folder / name
        shutil.copytree(source / "src", copy / "src", ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
        for file in ("pyproject.toml", "README.md", "LICENSE"):
            shutil.copy(source / file, copy / file)
        files[name] = {path.relative_to(copy / "src").as_posix() for path in copy.rglob("src/**/*") if path.is_file()}
    options = ["--no-deps", "--no-index", "--no-build-isolation", "--wheel-dir", str(folder / "made")]
    _pip("wheel", *options, *(str(folder / name) for name in sources))
    for name in sources:
        shutil.rmtree(folder / name)
    return Wheels({path.name.partition("-")[0]: path for path in (folder / "made").glob("*.whl")}, files)


def _pip(*arguments: str) -> str:
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_wheel_holds_every_file_of_its_package(wheels: Wheels) -> None:
    for name, path in wheels.paths.items():
        with zipfile.ZipFile(path) as held:
            assert {item for item in held.namelist() if ".dist-info/" not in item} == wheels.files[name]


def test_the_wheels_work_outside_of_the_tree(wheels: Wheels, tmp_path: Path) -> None:
    site = tmp_path / "site"
    _pip("install", "--no-deps", "--no-index", "--target", str(site), *map(str, wheels.paths.values()))
    code = """
import btcnb, btcnb.book, btcnb.build.cli, meanlink
from btcnb.data import SimulationConfig
from btcnb.experiments.encoder import read_encoder
from btcnb.paper import claims, table
claims(), table("hyperparameters"), SimulationConfig.preset("tiny", seed=1), read_encoder(), meanlink.MeanLinkage
print(btcnb.__file__, meanlink.__file__)
"""
    environment = {**os.environ, "PYTHONPATH": str(site), "BTCNB_CACHE": str(tmp_path / "cache")}
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.stdout.split() == [str(site / name / "__init__.py") for name in ("btcnb", "meanlink")], done.stderr


def test_pip_takes_the_conda_environment_beside_both_packages(wheels: Wheels, tmp_path: Path) -> None:
    """The lines become a requirements file, which knows few of pip's options; ranges and pins fit together."""
    entries = yaml.safe_load((ROOT / "environment.yml").read_text())["dependencies"][-1]["pip"]
    assert entries[-2:] == ["--editable packages/meanlink", "--editable ."]
    file = tmp_path / "requirements.txt"
    file.write_text("\n".join([*entries[:-2], *map(str, wheels.paths.values())]))
    told = _pip("install", "--dry-run", "--no-index", "--requirement", str(file))
    assert not re.findall(r"Collecting (\S+)", told)


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
        "--no-build-isolation --editable packages/meanlink --editable .[book,dask,dev]",
    ]
    probe = (tmp_path / "venv" / "torch-cpu.txt").read_text().replace("\\\n", " ").split()
    assert re.fullmatch(r"torch==[0-9.]+\+cpu", probe[0])
    assert len(probe) > 1 and all(word.startswith("--hash=sha256:") for word in probe[1:])


def test_where_no_build_for_cpus_is_offered_the_public_one_comes_with_its_libraries(tmp_path: Path) -> None:
    assert _calls(tmp_path, offered="no") == [
        "--require-hashes --requirement requirements-cuda.lock",
        "--require-hashes --requirement requirements.lock",
        "--no-build-isolation --editable packages/meanlink --editable .[book,dask,dev]",
    ]


def test_what_the_installation_compiles_beforehand_can_be_compiled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where it cannot, the installation goes on and only its log says why."""
    from btcnb.data.change_votes.truth import _joined_at
    from meanlink._level_scores import best_threshold
    from meanlink._rounds import reciprocal_pairs
    from meanlink.levels import _nearest_listed

    monkeypatch.setenv("BTCNB_CACHE", str(tmp_path))
    tool = runpy.run_path(str(ROOT / "tools" / "compile.py"))
    tool["data"](), tool["trees"](), tool["large_trees"]()
    for kernel in (best_threshold, _joined_at, reciprocal_pairs, _nearest_listed):
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
