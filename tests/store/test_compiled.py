"""Compiled code is found under the content of everything that may be compiled into it."""

from __future__ import annotations

from pathlib import Path

import pytest

from btcnb import compiled


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    root = tmp_path / "src" / "btcnb"
    for name, source in {
        "cluster/kernel.py": "from numba import njit\n",
        "cluster/constants.py": "STEP = 1\n",
        "book/page.py": "TITLE = 'a'\n",
        "../../meanlink/search.py": "NEAREST = 1\n",
    }.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(source)
    (tmp_path / "pyproject.toml").touch()
    monkeypatch.setattr(compiled, "PACKAGE", root)
    monkeypatch.setattr(compiled, "LIBRARY", tmp_path / "meanlink")
    return root


@pytest.mark.parametrize(
    ("file", "again"),
    [("cluster/kernel", True), ("cluster/constants", True), ("book/page", False), ("../../meanlink/search", True)],
)
def test_an_edit_of_what_may_be_compiled_in_compiles_anew(package: Path, file: str, again: bool) -> None:
    before = compiled.compiled_folder()
    path = package / f"{file}.py"
    path.write_text(path.read_text() + "MORE = 2\n")
    assert (compiled.compiled_folder() != before) == again


def test_outside_of_a_project_numba_decides(package: Path) -> None:
    (package.parents[1] / "pyproject.toml").unlink()
    assert compiled.compiled_folder() is None
