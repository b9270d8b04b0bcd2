"""Compiled code is found under the content of everything that is compiled into it."""

from __future__ import annotations

from pathlib import Path

import pytest

from btcnb import compiled


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    root = tmp_path / "src" / "btcnb"
    root.mkdir(parents=True)
    (tmp_path / "pyproject.toml").touch()
    (root / "kernel.py").write_text("from numba import njit\nfrom btcnb.constants import (\n    STEP,\n)\n")
    (root / "constants.py").write_text("from btcnb.deeper import BASE\nSTEP = BASE + 1\n")
    (root / "deeper.py").write_text("BASE = 1\n")
    (root / "page.py").write_text("TITLE = 'a'\n")
    monkeypatch.setattr(compiled, "PACKAGE", root)
    return root


@pytest.mark.parametrize(("file", "again"), [("kernel", True), ("constants", True), ("deeper", True), ("page", False)])
def test_an_edit_of_what_is_compiled_in_compiles_anew(package: Path, file: str, again: bool) -> None:
    before = compiled.compiled_folder()
    path = package / f"{file}.py"
    path.write_text(path.read_text() + "MORE = 2\n")
    assert (compiled.compiled_folder() != before) == again


def test_outside_of_a_project_numba_decides(package: Path) -> None:
    (package.parents[1] / "pyproject.toml").unlink()
    assert compiled.compiled_folder() is None
