"""The library installs alone, into an empty environment, and its tests pass there."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import venv
from importlib import metadata
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1]
NEEDED = ("numpy", "scipy", "numba", "fastcluster", "pytest", "hypothesis", "scikit-learn")


@pytest.mark.nightly
@pytest.mark.timeout(3600)
def test_an_empty_environment_is_enough(tmp_path: Path) -> None:
    """The same versions as here; the sources are copied, so that nothing else of this folder can be imported."""
    copy = tmp_path / "meanlink"
    shutil.copytree(PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info", "build"))
    venv.create(tmp_path / "env", with_pip=True)
    python = tmp_path / "env" / ("Scripts" if os.name == "nt" else "bin") / "python"
    env = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "NUMBA", "PYTEST"))}
    pinned = [f"{name}=={metadata.version(name)}" for name in NEEDED]
    subprocess.run([python, "-m", "pip", "install", "--quiet", *pinned, copy], check=True, env=env)
    shutil.rmtree(copy / "src")
    command = [python, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", "not nightly", "tests"]
    subprocess.run(command, check=True, cwd=copy, env=env)
    code = "import sys, meanlink; sys.exit('sklearn' in sys.modules or 'btcnb' in sys.modules)"
    subprocess.run([python, "-c", code], check=True, cwd=tmp_path, env=env)


def test_the_import_is_light() -> None:
    """Neither scikit-learn nor a plotting library is loaded before it is needed."""
    code = "import sys, meanlink; print(*{'sklearn', 'matplotlib', 'pandas', 'torch', 'btcnb'} & set(sys.modules))"
    found = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert found.stdout.split() == []
