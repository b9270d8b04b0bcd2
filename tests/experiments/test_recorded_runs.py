"""The committed records belong to their grids: ids of runs do not change, and reading records needs no torch."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from btcnb.data import Source
from btcnb.experiments.recipe import Recipe
from btcnb.experiments.sweep.grid import grid_rows, read_grid
from btcnb.experiments.sweep.records import OTHER_VERSION, Record, Records, defaults, run_id, run_of
from btcnb.learn import TrainConfig

ROOT = Path(__file__).resolve().parents[2]
GRIDS = sorted((ROOT / "experiments").glob("*.yaml"))


def recorded(name: str) -> list[Record]:
    every = Records(ROOT / "results" / "sweeps" / f"{name}.jsonl").read()
    return [record for record in every if record["state"] != OTHER_VERSION]


@pytest.mark.parametrize("path", GRIDS, ids=lambda path: path.stem)
def test_every_record_has_the_id_of_its_recipe_and_of_its_job(path: Path) -> None:
    """`run` was written when the run was made; the id of the same fields today, and of the grid's job, is the same."""
    grid = read_grid(path)
    assert grid_rows(path) == (grid.name, grid.rows)
    records = recorded(grid.name)
    assert [run_of(record) for record in records] == [record["run"] for record in records]
    newest = {(record["row"], record["seed"]): record["run"] for record in records}
    jobs = {(job.row, job.seed): run_id(job) for job in grid.jobs if (job.row, job.seed) in newest}
    assert jobs == {place: newest[place] for place in jobs}
    assert len(jobs) == len(grid.jobs), "every run of the committed grids is recorded"


def test_every_field_of_a_recipe_has_a_default_that_does_not_count() -> None:
    """A new field must be added to `defaults.json` with its default; without it, every run would get another id."""
    today = Recipe(Source(), TrainConfig()).flat()
    assert {name: defaults().get(name, "missing") for name in today} == today


@pytest.mark.parametrize(
    "modules",
    [
        "btcnb.experiments.sweep.report, btcnb.experiments.sweep.grid, btcnb.experiments.sweep.records",
        "btcnb.store.kept",
        "btcnb.sizes, btcnb.book.parameters",
    ],
)
def test_commands_that_compute_nothing_import_nothing_that_computes(modules: str) -> None:
    """What `btcnb results`, `btcnb store` and `btcnb chapters` import."""
    heavy = "torch torch_geometric sklearn numba igraph matplotlib"
    script = f"import sys, {modules}\nprint(sorted(set({heavy.split()!r}) & set(sys.modules)))"
    told = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, env=os.environ.copy()
    )
    assert told.stdout.strip() == "[]"


@pytest.mark.parametrize("first", ["recipe", "stages"])
def test_the_package_hands_out_functions_also_where_modules_have_their_names(first: str) -> None:
    script = (
        f"import btcnb.experiments.{first}\nfrom btcnb.experiments import compare, recipe, scores\n"
        "assert all(callable(each) for each in (compare, recipe, scores))\n"
        "import btcnb.experiments as package\nassert set(package.__all__) <= set(dir(package))\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True, env=os.environ.copy())
