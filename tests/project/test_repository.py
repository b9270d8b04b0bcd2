"""What is in git: sources only, no outputs, no caches, no path of anybody's machine."""

import json
import re
import subprocess
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]


def _tracked(*patterns: str) -> list[Path]:
    listing = subprocess.run(
        ["git", "ls-files", "-z", *patterns], cwd=ROOT, capture_output=True, text=True, check=False
    )
    if listing.returncode != 0:
        pytest.skip("not a git checkout")
    return [ROOT / name for name in listing.stdout.split("\0") if name and (ROOT / name).exists()]


def test_notebooks_in_git_have_no_outputs() -> None:
    for path in _tracked("*.ipynb"):
        for cell in json.loads(path.read_text())["cells"]:
            assert not cell.get("outputs"), f"{path.name} carries outputs: run `make pair`"
            assert cell.get("execution_count") is None


def test_nothing_that_was_built_is_in_git() -> None:
    built = re.compile(r"(^|/)(_build|\.cache|\.venv|__pycache__|runs)/(?!\.gitignore$)|\.(pyc|joblib|pt|nbi|nbc)$")
    shipped = {"src/btcnb/experiments/shipped/encoder.pt"}  # the one model that comes along, made by `btcnb encoder`
    found = {path.relative_to(ROOT).as_posix() for path in _tracked()}
    assert sorted(name for name in found - shipped if built.search(name)) == []


def test_no_file_is_too_large_to_review() -> None:
    records = ROOT / "results" / "sweeps"  # one line a run: grows with the number of worlds
    most = {path: 1_500_000 if path.parent == records else 1_000_000 for path in _tracked()}
    assert [path.name for path, limit in most.items() if path.stat().st_size > limit] == []


def test_no_path_of_a_machine_is_written_down() -> None:
    home = re.compile(rb"/(home|Users|root)/[a-z]")
    offenders = [path.name for path in _tracked() if path != Path(__file__) and home.search(path.read_bytes())]
    assert offenders == []


def test_every_chapter_is_a_pair_and_stands_in_the_table_of_contents() -> None:
    chapters = {path.stem for path in _tracked("notebooks/*.md")}
    assert chapters == {path.stem for path in _tracked("notebooks/*.ipynb")}
    toc = yaml.safe_load((ROOT / "_toc.yml").read_text())
    listed = [entry["file"] for part in toc["parts"] for entry in part["chapters"]]
    assert {f"notebooks/{name}" for name in chapters} == {name for name in listed if name.startswith("notebooks/")}
    numbers = [name for name in listed if name.startswith("notebooks/")]
    assert numbers == sorted(numbers)


def test_files_are_short_enough_to_read_in_one_sitting() -> None:
    long = {path.name: lines for path in _tracked("src/*.py") if (lines := len(path.read_text().splitlines())) > 400}
    assert long == {}
