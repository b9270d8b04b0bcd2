"""What a function reaches: each edit changes what depends on it, and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from btcnb.store.reach import Package, Reach, package

FILES = {
    "__init__.py": "",
    "errors.py": "class Oops(Exception):\n    pass\n",
    "store/__init__.py": "def kept(f):\n    return f\n",
    "a/__init__.py": "from toy.a.work import work\n",
    "a/work.py": (
        "import numpy as np\n"
        "from toy.a import constants\n"
        "from toy.a.helpers import helper\n"
        "from toy.a.registry import RULES\n\n"
        "def work(x: int) -> int:\n"
        '    """Docstring."""\n'
        "    return helper(x) + constants.STEP + len(RULES)\n\n"
        "def idle() -> int:\n"
        "    return 0\n"
    ),
    "a/constants.py": "STEP = 3\nOTHER = 4\n",
    "a/helpers.py": (
        "def helper(x):\n"
        "    # a comment\n"
        "    return deeper(x)\n\n"
        "def deeper(x):\n"
        "    from toy.b import late\n"
        "    return late.thing(x)\n\n"
        "def unused(x):\n"
        "    return x\n"
    ),
    "a/registry.py": "def rule(x):\n    return x\n\nRULES = {'rule': rule}\n",
    "b/__init__.py": "",
    "b/late.py": (
        "import scipy\n\nclass Thing:\n    def run(self):\n        return 1\n\ndef thing(x) -> Thing:\n    return x\n"
    ),
}


@pytest.fixture
def toy(tmp_path: Path) -> Path:
    root = tmp_path / "toy"
    for name, text in FILES.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


def reach(root: Path, symbol: str = "work") -> Reach:
    return Package(root).of_symbol("toy.a.work", symbol)


def edit(root: Path, name: str, old: str, new: str) -> None:
    text = (root / name).read_text()
    assert old in text
    (root / name).write_text(text.replace(old, new))


def test_names_are_followed_through_imports_registries_and_inner_imports(toy: Path) -> None:
    assert set(reach(toy).symbols) == {
        "toy.a.work.work",
        "toy.a.constants.STEP",
        "toy.a.helpers.helper",
        "toy.a.helpers.deeper",
        "toy.a.registry.RULES",
        "toy.a.registry.rule",
        "toy.b.late.thing",
        "toy.b.late.Thing",
    }


def test_libraries_are_those_of_reached_code(toy: Path) -> None:
    assert reach(toy).libraries == frozenset()  # numpy and scipy are imported, but not by anything that work uses
    edit(toy, "b/late.py", "return x", "return scipy.linalg.norm(x)")
    assert reach(toy).libraries == {"scipy"}


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        ("a/work.py", "+ constants.STEP", "- constants.STEP"),
        ("a/helpers.py", "return deeper(x)", "return deeper(x + 1)"),
        ("a/constants.py", "STEP = 3", "STEP = 4"),
        ("a/registry.py", "return x", "return -x"),
        ("a/registry.py", "{'rule': rule}", "{'rule': rule, 'twice': rule}"),
        ("b/late.py", "return 1", "return 2"),
        ("a/helpers.py", "def helper", "print('imported')\n\ndef helper"),
    ],
)
def test_an_edit_of_anything_reached_counts(toy: Path, file: str, old: str, new: str) -> None:
    work, idle = reach(toy).digest, reach(toy, "idle").digest
    edit(toy, file, old, new)
    assert reach(toy).digest != work
    assert reach(toy, "idle").digest == idle


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        ("a/work.py", "Docstring.", "Another docstring."),
        ("a/helpers.py", "# a comment", "# another comment"),
        ("a/helpers.py", "def unused(x):\n    return x", "def unused(x):\n    return -x"),
        ("a/constants.py", "OTHER = 4", "OTHER = 5"),
        ("a/work.py", "return 0", "return 1"),
        ("store/__init__.py", "return f", "return  f  # kept"),
        ("a/work.py", "return helper(x) +", "return (\n        helper(x)\n    ) +"),
    ],
)
def test_an_edit_of_anything_else_does_not(toy: Path, file: str, old: str, new: str) -> None:
    before = reach(toy).digest
    edit(toy, file, old, new)
    assert reach(toy).digest == before


def test_cells_of_a_chapter(toy: Path) -> None:
    cells = ["import toy.a\nfrom toy.b.late import thing", "%time", "def own(x):\n    return toy.a.work(x)", "own(2)"]
    found = Package(toy).of_source(cells)
    assert "toy.a.helpers.deeper" in found.symbols
    assert "toy.b.late.Thing" in found.symbols
    assert "toy.a.work.idle" not in found.symbols


def test_a_module_handed_around_counts_whole(toy: Path) -> None:
    edit(toy, "a/work.py", "constants.STEP", "sum(vars(constants).values())")
    assert "toy.a.constants.OTHER" in reach(toy).symbols


def test_a_package_may_import_its_own_modules(toy: Path) -> None:
    (toy / "__init__.py").write_text("from toy import a\n\na.work(1)\n")
    assert "toy.a.helpers.deeper" in Package(toy).of_symbol("toy.b.late", "thing").symbols


def test_training_reaches_kernels_features_and_torch() -> None:
    found = package().of_symbol("btcnb.learn.training", "train")
    modules = {name.rpartition(".")[0] for name in found.symbols}
    assert {"btcnb.learn.encoders", "btcnb.learn.kernels", "btcnb.learn.losses", "btcnb.data.features"} <= modules
    assert {"torch", "torch_geometric", "numba", "numpy"} <= found.libraries
    assert not {name for name in modules if name.startswith(("btcnb.data.simulate", "btcnb.cluster", "btcnb.store"))}


FACTOR = 2


def _own_helper(x: int) -> int:
    return x * FACTOR


def _own(x: int) -> int:
    FACTORY = 5
    return _own_helper(x) + FACTORY


def test_functions_outside_the_package_are_followed_object_by_object(monkeypatch: pytest.MonkeyPatch) -> None:
    before = package().of_function(_own)
    assert {name.rpartition(".")[2] for name in before.symbols} == {"_own", "_own_helper", "FACTOR"}
    monkeypatch.setitem(globals(), "FACTOR", 3)
    assert package().of_function(_own).digest != before.digest
