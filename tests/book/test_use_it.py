"""The page *Use it in your project*: its snippets run, with the packages it names and no others."""

import importlib.metadata
import re
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "book" / "use_it.md").read_text(encoding="utf-8")
SNIPPETS = re.findall(r"^```python\n(.*?)^```", PAGE, flags=re.M | re.S)
BLOCK = """
import sys

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {names}:
            raise ModuleNotFoundError(f"No module named {{name!r}}")

sys.meta_path.insert(0, Absent())
"""


def _unlisted() -> set[str]:
    """What can be imported from the book's dependencies that the page does not tell to install."""
    listed = set(re.search(r"^pip install (?!-)(.+)$", PAGE, flags=re.M)[1].lower().split())  # type: ignore[index]
    pins = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    packages = {re.match(r"[\w-]+", pin)[0].lower().replace("_", "-") for pin in pins} - {"meanlink"}  # type: ignore[index]
    assert listed <= packages
    modules = importlib.metadata.packages_distributions().items()
    unlisted = packages - listed - {"threadpoolctl", "joblib"}  # which come with scikit-learn
    return {name for name, homes in modules if any(home.lower().replace("_", "-") in unlisted for home in homes)}


def test_the_snippets_run_with_what_the_page_installs() -> None:
    unlisted = _unlisted()
    assert {"torch", "igraph", "papermill"} <= unlisted
    code = BLOCK.format(names=sorted(unlisted)) + "\n".join(SNIPPETS)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    said = dict(re.findall(r"^(.+?):? (\S+)$", done.stdout, flags=re.M))
    assert float(said["largest difference of heights"]) < 1e-9
    assert float(said["difference"]) < 1e-9
    assert said["the same partition"] == "True"
    sampled = re.search(r"from 10,000 pairs (\S+) give or take (\S+)", done.stdout)
    assert sampled is not None
    assert abs(float(said["exact"]) - float(sampled[1])) < 6 * float(sampled[2])
    assert "[20, " in done.stdout, "the silhouette finds the number of centres"


def test_no_snippet_is_longer_than_seven_lines() -> None:
    assert len(SNIPPETS) >= 7
    assert all(len(snippet.splitlines()) <= 7 for snippet in SNIPPETS)


def test_numbers_are_not_typed() -> None:
    """Every number in a row about speed or memory comes through a mark, but for sizes that name themselves."""
    rows = re.findall(r"^\| measured \|.*$", PAGE, flags=re.M)
    assert len(rows) == 3
    for row in rows:
        typed = re.sub(r"\{\{.*?\}\}|10,000 pairs", "", row)
        assert not re.search(r"\d", typed), typed
