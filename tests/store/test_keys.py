"""Which code decides a result: imports are followed, contents count, magics do not."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from btcnb.store.keys import cell_modules, code_digest, imported_subpackages, library_versions

FILES = {
    "__init__.py": "",
    "errors.py": "class Oops(Exception):\n    pass\n",
    "sizes.py": "from pathlib import Path\n",
    "sizes.yml": "tiny: 1\n",
    "store/__init__.py": "from toy import book\n",
    "a/__init__.py": "from toy.a.work import work\n",
    "a/work.py": (
        "import numpy as np\nfrom ..errors import Oops\nfrom toy.store import kept\n\ndef work(x):\n    return x\n"
    ),
    "a/rates.csv": "rate\n0.5\n",
    "b/__init__.py": "",
    "b/late.py": "def thing():\n    from toy.a import work\n    import toy.sizes\n    return work(1)\n",
    "c/__init__.py": "try:\n    import scipy\nexcept ImportError:\n    pass\n",
    "book/__init__.py": (
        "from typing import TYPE_CHECKING\n\nif TYPE_CHECKING:\n    from toy.book.page import show as show\n\n"
        "def __getattr__(name):\n    from toy.book import page\n    return getattr(page, name)\n"
    ),
    "book/page.py": "import toy.c\n",
}


@pytest.fixture
def toy(tmp_path: Path) -> Path:
    root = tmp_path / "toy"
    for name, text in FILES.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


@pytest.mark.parametrize(
    ("module", "expected"),
    [
        ("toy.errors", {"errors"}),
        ("toy.a.work", {"a", "errors"}),  # a relative import; the store decides no number
        ("toy.b", {"b"}),  # module by module: what toy.b.late imports does not count
        ("toy.b.late", {"a", "b", "errors", "sizes"}),  # inside a function
        ("toy.c", {"c"}),
        ("toy.book", {"book", "c"}),  # names that are imported on first use count
        ("toy.store", set()),
        ("numpy", set()),
        ("toy", set()),
    ],
)
def test_subpackages_are_those_imported_at_any_depth(toy: Path, module: str, expected: set[str]) -> None:
    assert imported_subpackages([module], toy) == {f"toy.{name}" for name in expected}


def test_libraries_are_those_of_imported_modules(toy: Path) -> None:
    assert set(library_versions(["toy.errors"], toy)) == {"python"}
    assert set(library_versions(["toy.b.late"], toy)) == {"python", "numpy"}
    assert set(library_versions(["toy.c", "pandas.core"], toy)) == {"python", "scipy", "pandas"}


@pytest.mark.parametrize(("file", "counts"), [("a/work.py", True), ("a/rates.csv", True), ("b/late.py", False)])
def test_a_digest_changes_with_any_file_of_its_subpackages(toy: Path, file: str, counts: bool) -> None:
    before = code_digest(["toy.a"], toy)
    path = toy / file
    path.write_text(path.read_text() + "\n")
    assert (code_digest(["toy.a"], toy) != before) == counts


def test_a_digest_knows_contents_and_names_and_no_times(toy: Path) -> None:
    before = code_digest(["toy.a", "toy.sizes"], toy)
    os.utime(toy / "a" / "work.py", (1, 1))
    (toy / "a" / "__pycache__").mkdir()
    (toy / "a" / "__pycache__" / "work.pyc").write_bytes(b"compiled")
    assert code_digest(["toy.sizes", "toy.a"], toy) == before
    (toy / "a" / "rates.csv").rename(toy / "a" / "shares.csv")
    assert code_digest(["toy.a", "toy.sizes"], toy) != before


def test_data_beside_a_top_level_module_belongs_to_it(toy: Path) -> None:
    before = code_digest(["toy.sizes"], toy)
    (toy / "sizes.yml").write_text("tiny: 2\n")
    assert code_digest(["toy.sizes"], toy) != before


def test_a_missing_subpackage_is_an_error(toy: Path) -> None:
    with pytest.raises(ModuleNotFoundError, match=r"toy\.nowhere"):
        code_digest(["toy.a", "toy.nowhere"], toy)


@pytest.mark.parametrize(
    ("cell", "expected"),
    [
        ("import toy.a\nfrom toy.b import late, other", {"toy.a", "toy.b", "toy.b.late"}),
        ("%matplotlib inline\nimport toy.a", {"toy.a"}),
        ("import toy.a\nfiles = !ls\n!echo {files}\nimport toy.c", {"toy.a", "toy.c"}),
        ("%%time\nimport toy.a", {"toy.a"}),
        ("import toy.a\nrest = (7\n    % 4)\nimport toy.c", {"toy.a", "toy.c"}),
        ("import toy.a\nother = (7\n    != 4)\nimport toy.c", {"toy.a", "toy.c"}),
        ("def f():\n    import toy.a", {"toy.a"}),
        ("%%bash\necho not python", set()),
        ("import (", set()),
        ("", set()),
    ],
)
def test_modules_of_cells(toy: Path, cell: str, expected: set[str]) -> None:
    assert cell_modules([cell], toy) == expected


def test_training_depends_on_data_and_not_on_clusters() -> None:
    found = imported_subpackages(["btcnb.learn"])
    assert {"btcnb.learn", "btcnb.data", "btcnb.errors"} <= found
    assert not found & {"btcnb.cluster", "btcnb.experiments", "btcnb.store", "btcnb.build", "btcnb"}
    assert {"torch", "torch_geometric", "numba", "numpy"} <= set(library_versions(["btcnb.learn"]))
