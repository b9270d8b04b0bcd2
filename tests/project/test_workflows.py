"""Workflows put no expression into a shell line and run on every promised Python; releases agree on a version."""

import os
import re
import runpy
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
RELEASE = runpy.run_path(str(ROOT / "tools" / "release_notes.py"))


def _steps(path: Path) -> list[dict[str, Any]]:
    return [step for job in yaml.safe_load(path.read_text())["jobs"].values() for step in job["steps"]]


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_nothing_is_interpolated_into_a_shell_line(path: Path) -> None:
    assert [step["run"] for step in _steps(path) if "${{" in step.get("run", "")] == []


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_a_workflow_says_what_it_may_do_and_pins_its_actions(path: Path) -> None:
    assert "permissions" in yaml.safe_load(path.read_text())
    assert all(re.fullmatch(r"[\w/-]+@v\d+", step["uses"]) for step in _steps(path) if "uses" in step)


@pytest.mark.parametrize("name", ["publish", "release"])
def test_nothing_is_published_whose_chapters_install_from_elsewhere(name: str, tmp_path: Path) -> None:
    lines = [step["run"] for step in _steps(ROOT / ".github" / "workflows" / f"{name}.yml") if "run" in step]
    (guard,) = [line for line in lines if "GITHUB_REPOSITORY" in line]
    assert lines.index(guard) == 0, "before anything is built"
    (tmp_path / "_config.yml").write_text("repository:\n  url: https://github.com/a/b\n")
    told = [
        subprocess.run(["sh", "-c", guard], cwd=tmp_path, env=os.environ | {"GITHUB_REPOSITORY": where}).returncode
        for where in ("a/b", "a/other")
    ]
    assert told == [0, 1]


def test_every_promised_python_is_tested() -> None:
    matrix = yaml.safe_load((ROOT / ".github" / "workflows" / "test.yml").read_text())["jobs"]["test"]["strategy"][
        "matrix"
    ]
    assert matrix["python"] == ["3.11", "3.12", "3.13"]
    oldest = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["requires-python"]
    assert oldest.startswith(">=3.11")


def test_all_files_name_one_version_and_the_changelog_knows_it() -> None:
    versions = set(RELEASE["named_versions"](ROOT).values())
    assert len(versions) == 1
    assert RELEASE["section"]((ROOT / "CHANGELOG.md").read_text(), versions.pop())


def test_the_notes_of_a_release_are_its_section() -> None:
    text = "# Changelog\n\n## [Unreleased]\n- x\n\n## [1.2.0] - 2026-01-01\n- y\n\n## [1.1.0] - 2025-01-01\n- z\n"
    assert RELEASE["section"](text, "1.2.0") == "- y"
    assert RELEASE["section"](text, "1.1.0") == "- z"
    assert RELEASE["section"](text, "1.0.0") == ""
