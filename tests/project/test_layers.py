"""Sub-packages import one another in one direction only, and the check would notice if they did not."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def _lint(root: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", "from importlinter.cli import lint_imports_command; lint_imports_command()"]
    environment = {"PYTHONPATH": str(root / "src"), "PATH": "/usr/bin:/bin", "PYTHONUTF8": "1"}
    options = ["--no-cache", "--config", str(root / "pyproject.toml")]
    return subprocess.run([*command, *options], cwd=root, env=environment, capture_output=True, text=True, check=False)


def test_the_layers_hold() -> None:
    done = _lint(ROOT)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("module", "line"),
    [
        ("cluster/scores.py", "import btcnb.data.features"),
        ("build/render.py", "import btcnb.experiments"),
        ("errors.py", "import btcnb.store"),
        ("data/readers/etl.py", "import btcnb.data.simulator.config"),
    ],
)
def test_an_import_against_the_rule_is_found(tmp_path: Path, module: str, line: str) -> None:
    shutil.copytree(ROOT / "src", tmp_path / "src", ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    path = tmp_path / "src" / "btcnb" / module
    path.write_text(path.read_text() + f"\n{line}\n")
    done = _lint(tmp_path)
    assert done.returncode == 1
    assert "BROKEN" in done.stdout
