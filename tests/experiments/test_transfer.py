"""Transfer between simulated worlds and somebody's chain; here the somebody is a tiny simulated economy in files."""

from __future__ import annotations

from pathlib import Path

import pytest

from btcnb.data import ROLES, Source, load_graph, load_transactions, real_source, write_etl
from btcnb.data.sources import BLOCKS
from btcnb.errors import DataError, ParameterError
from btcnb.experiments import recipe
from btcnb.experiments.measures import measure
from btcnb.experiments.recipe import Job
from btcnb.experiments.sweep.grid import read_grid
from btcnb.experiments.transfer import encoder_of
from btcnb.paper.claims import questions
from btcnb.paper.rules import places

ROOT = Path(__file__).parents[2]
TINY = recipe(Source(size="tiny", seed=3), 3)
TIMES = ("seconds.", "peak_mb.")


@pytest.fixture(scope="module", autouse=True)
def theirs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Five tiny economies, one in each interval of the paper, as bitcoin-etl files without owners."""
    folder = tmp_path_factory.mktemp("real")
    (folder / BLOCKS).mkdir()
    for role in ROLES:
        txs = load_transactions(Source(size="tiny", seed=90), role)
        write_etl(txs, folder / BLOCKS / f"{role}.parquet", sidecar=False)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BTCNB_REAL_DATA", str(folder))
        yield folder


def job(teacher: str, method: str = "trained") -> Job:
    return Job("row", 3, TINY, method, "transfer", (("teacher", teacher),))


def lasting(numbers: dict[str, object]) -> dict[str, object]:
    return {name: value for name, value in numbers.items() if not name.startswith(TIMES)}


def test_an_encoder_of_either_kind_is_scored_on_both_test_graphs() -> None:
    ours, other = (measure(job(teacher)) for teacher in ("simulated", "real"))
    for numbers in (ours, other):
        for graph in ("simulated", "real"):
            for score in ("DP", "NMI", "AMI", "ARI"):
                assert -1.0 <= numbers[f"{graph}.{score}"] <= 1.0
        assert 0.0 < numbers["real.whole_DP"] <= 1.0
        assert "simulated.owner_ARI" in numbers and "real.owner_ARI" not in numbers, "their owners are nobody's to know"
    assert ours["real.DP"] != other["real.DP"] and ours["simulated.DP"] != other["simulated.DP"]
    test = load_graph(real_source(), "test")
    assert (other["real.data"], other["real.nodes"]) == (test.fingerprint(), test.num_nodes)
    assert other["real.first_block"] >= 685_000 and other["real.imputed"] == 0.0
    assert other["data"] == ours["data"] != other["real.data"]


def test_the_same_job_gives_the_same_numbers() -> None:
    first, second = (lasting(measure(job("both"))) for _ in range(2))
    assert first == second and first["epochs_run"] == TINY.train.epochs


def test_both_is_taught_by_six_graphs_in_turn() -> None:
    """Three epochs, another graph after each: simulated, real, simulated."""
    run = encoder_of(TINY, real_source(), "both")
    assert run.history["graph"].tolist() == [0, 1, 2]
    alone = encoder_of(TINY, real_source(), "simulated")
    assert run.history["train_loss"].iloc[0] == alone.history["train_loss"].iloc[0], "the first graph is the same"
    assert run.history["train_loss"].iloc[1] != alone.history["train_loss"].iloc[1]


def test_without_training_the_teacher_does_not_matter() -> None:
    first, second = (lasting(measure(job(who, "untrained"))) for who in ("simulated", "real"))
    assert str(first) == str(second) and first["epochs_run"] == 0  # losses are NaN


def test_communities_have_a_resolution_for_each_kind_of_graph() -> None:
    numbers = measure(job("simulated", "louvain"))
    assert {"real.resolution", "simulated.resolution", "real.NMI", "simulated.ARI"} <= set(numbers)
    assert "real.DP" not in numbers, "flat clusters have no tree"


def test_encoders_of_both_kinds_stand_side_by_side() -> None:
    numbers = measure(job("side by side"))
    assert numbers["real.DP"] > 0


def test_methods_and_teachers_that_are_none_are_refused() -> None:
    with pytest.raises(ParameterError, match="transfer knows the methods"):
        measure(job("real", "gae"))
    with pytest.raises(ParameterError, match="and the teachers simulated, real, both"):
        measure(job("nobody"))


def test_without_real_files_a_run_says_what_to_do(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("BTCNB_REAL_DATA", str(tmp_path))
    with pytest.raises(DataError, match="is not at hand; set BTCNB_REAL_DATA"):
        measure(job("real"))


def test_the_grid_has_the_rows_that_the_questions_look_at() -> None:
    grid = read_grid(ROOT / "experiments" / "transfer.yaml")
    wanted = {place.row for each in questions("17") for place in places(each.rule) if place.grid == "transfer"}
    assert wanted == set(grid.rows)
    assert {each.seed for each in grid.jobs} == {2, 3, 4, 5, 6}
