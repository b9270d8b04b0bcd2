"""Which package code a chapter can reach."""

from __future__ import annotations

from pathlib import Path

import pytest

from btcnb.build.imports import Package, scan_source

FILES = {
    "__init__.py": "",
    "errors.py": "",
    "data/__init__.py": "from .graph import build",
    "data/graph.py": "from .. import errors\n\ndef build():\n    import btcnb.data.late",
    "data/late.py": "",
    "data/unused.py": "",
    "theory/__init__.py": "",
    "theory/cut.py": "from btcnb.theory import bound",
    "theory/bound.py": "",
    "lazy/__init__.py": "import importlib\n\ndef get():\n    return importlib.import_module('btcnb.theory.cut')",
    "dynamic.py": "from importlib import import_module\n\ndef get(name):\n    return import_module(name)",
}


@pytest.fixture
def package(tmp_path: Path) -> Package:
    for name, text in FILES.items():
        path = tmp_path / "btcnb" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return Package(tmp_path)


def reached(package: Package, cell: str) -> set[str]:
    return set(package.closure([scan_source(cell)])[0]) - {"btcnb"}


DATA = {"btcnb.data", "btcnb.data.graph", "btcnb.data.late", "btcnb.errors"}
CUT = {"btcnb.theory", "btcnb.theory.cut", "btcnb.theory.bound"}


@pytest.mark.parametrize(
    ("cell", "modules"),
    [
        ("import numpy as np", set()),
        ("import btcnb.data as d", DATA),
        ("from btcnb import data", DATA),
        ("from btcnb.data import build", DATA),
        ("from btcnb.theory import cut", CUT),
        ("from btcnb.theory.cut import something", CUT),
        ("%matplotlib inline\n!ls\nfrom btcnb.theory import bound", {"btcnb.theory", "btcnb.theory.bound"}),
        ("import btcnb.lazy", {"btcnb.lazy", *CUT}),
    ],
)
def test_the_closure_of_an_import(package: Package, cell: str, modules: set[str]) -> None:
    assert reached(package, cell) == modules


@pytest.mark.parametrize("cell", ["from btcnb import dynamic", "for for for"])
def test_what_cannot_be_told_counts_as_everything(package: Package, cell: str) -> None:
    assert reached(package, cell) == set(package.modules) - {"btcnb"}


def test_a_name_that_only_looks_like_ours_is_not(package: Package) -> None:
    assert reached(package, "import btcnb_extra\nx = 'btcnb.nothing.here'") == set()
