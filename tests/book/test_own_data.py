"""The doors open: chapters executed on somebody's own data, and what they say where it lacks something."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import nbformat
import papermill
import pytest

from btcnb.build import kernels
from btcnb.build.execute import Execution
from btcnb.data import Source, load_graphs, load_transactions, write_etl, write_release
from btcnb.store.keys import cell_modules

ROOT = Path(__file__).parents[2]
REAL = Path(os.environ.get("BTCNB_REAL_DATA") or "no-real-data")
ONE_THREAD = {f"{name}_NUM_THREADS": "1" for name in ("OMP", "OPENBLAS", "MKL", "NUMBA")}
SMALL: dict[str, dict[str, Any]] = {
    "02_heuristics": {"repeats": 1},
    "03_address_graph": {},
    "06_homophily": {"networks": 1, "untrained": 1, "trials": 20, "pairs": 200},
    "08_training": {"epochs": 2, "steps_per_epoch": 2, "anchors": 32, "rotate_every": 1},
    "09_dendrograms": {},
}

ALONE = ("08_training", "chain.parquet")  # this one in a kernel of its own, as papermill starts it

pytestmark = pytest.mark.book


def some(*nightly: str) -> list[Any]:
    """Every chapter of `SMALL`; the named ones are for the night: other doors try them, and others try this door."""
    return [pytest.param(name, marks=pytest.mark.nightly) if name[:2] in nightly else name for name in SMALL]


@pytest.fixture(scope="module", autouse=True)
def own_store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BTCNB_CACHE", str(tmp_path_factory.mktemp("cache")))
        patch.setenv("PYTHONPATH", str(ROOT / "src"))
        if kernels.forkable(ROOT / "src" / "btcnb"):
            notebooks = [nbformat.read(ROOT / "notebooks" / f"{name}.ipynb", as_version=4) for name in SMALL]
            cells = [cell.source for notebook in notebooks for cell in notebook.cells if cell.cell_type == "code"]
            kernels.start_fork_server(cell_modules(cells), ONE_THREAD, tmp_path_factory.mktemp("server") / "log")
        yield


@pytest.fixture(scope="module")
def etl(own_store: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A chain of transactions without owners or labels."""
    chain = load_transactions(Source(size="tiny", seed=3), "train1", sampled=False)
    return write_etl(replace(chain, truth=None), tmp_path_factory.mktemp("own") / "chain.parquet")


@pytest.fixture(scope="module")
def release(own_store: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Five graphs without owners, as the released dataset has them."""
    graphs = {role: replace(graph, truth=None) for role, graph in load_graphs(Source(size="tiny", seed=3)).items()}
    return write_release(graphs, tmp_path_factory.mktemp("own") / "release")


def execute(chapter: str, source: Path, folder: Path, **more: Any) -> str:
    """All text that the executed chapter puts on its page."""
    parameters = {"size": "tiny", "source": str(source), **SMALL[chapter], **more}
    target = folder / f"{chapter}.ipynb"
    notebook = ROOT / "notebooks" / f"{chapter}.ipynb"
    if (chapter, source.name) == ALONE:
        papermill.execute_notebook(str(notebook), str(target), parameters, progress_bar=False, cwd=str(ROOT))
    else:
        forked = kernels.forkable(ROOT / "src" / "btcnb")
        read = nbformat.read(notebook, as_version=4)
        made = Execution(chapter, read, parameters, target, ROOT, {}, folder / "log", forked=forked)
        made.run()
        assert not made.error, made.error
    cells = nbformat.read(target, as_version=4).cells
    outputs = [output for cell in cells for output in cell.get("outputs", [])]
    return "\n".join(str(item.get("data", {}).get("text/markdown", item.get("text", ""))) for item in outputs)


@pytest.mark.parametrize("chapter", some("02", "03", "06", "09"))
def test_a_chapter_on_transactions_of_ones_own(chapter: str, etl: Path, tmp_path: Path) -> None:
    page = execute(chapter, etl, tmp_path)
    assert "The data on this page is somebody's own" in page
    assert "chain.parquet" in page
    assert "It does not tell the true owners of the addresses." in page
    if chapter in ("02_heuristics", "09_dendrograms"):  # chapters that judge, or look, by owners
        assert ("cannot be tested here" if chapter[:2] == "02" else "| nothing |") in page
        assert "This needs the true owners of the addresses" in page


@pytest.mark.parametrize("chapter", some("02", "03", "08"))
def test_a_chapter_on_released_graphs(chapter: str, release: Path, tmp_path: Path) -> None:
    page = execute(chapter, release, tmp_path)
    assert "(release)" in page
    assert "It does not tell the transactions behind the graph." in page
    if chapter == "09_dendrograms":  # which looks by owners
        assert "| nothing |" in page and "This needs the true owners of the addresses" in page


@pytest.mark.parametrize(
    ("chapter", "path", "more"),
    [
        ("02_heuristics", "bitcoin-core-regtest/wasabi2-run.zip", {"split": "test"}),
        pytest.param(
            "08_training",
            "mainnet-mempool/mempool-2024-03-etl.jsonl.gz",
            {"baselines": False},
            marks=pytest.mark.nightly,
        ),
        ("03_address_graph", "dumplings/wasabi1-2021.zip", {}),
    ],
)
def test_a_chapter_on_real_transactions(chapter: str, path: str, more: dict[str, Any], tmp_path: Path) -> None:
    if not (REAL / path).exists():
        pytest.skip(f"{path} is not at hand: set BTCNB_REAL_DATA to the folder of real files")
    page = execute(chapter, REAL / path, tmp_path, **more)
    assert "The data on this page is somebody's own" in page
