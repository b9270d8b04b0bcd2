"""A small world measured: every number that rules and chapter look at is there, and the tables find it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
import pytest
from payments import chain_of

from btcnb import paper
from btcnb.data import Source
from btcnb.data.change_votes import HEURISTICS, UNIVERSAL
from btcnb.experiments import moser_measure, recipe
from btcnb.experiments import tables_of_moser as tables
from btcnb.experiments.change_forest import ForestConfig
from btcnb.experiments.moser import CONFUSED
from btcnb.experiments.recipe import Job
from btcnb.paper.rules import parts

SEED = 1


@pytest.fixture(scope="module")
def record() -> Iterator[dict[str, object]]:
    """One tiny world, with as few repeats, labelled graphs and true payments as will do."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(moser_measure, "REPEATS", 1)
        patch.setattr(moser_measure, "TRUE_TRANSACTIONS", 300)
        patch.setattr(moser_measure, "ENTITY_GRAPHS", 4)
        job = Job("forest", SEED, recipe(Source(size="tiny", seed=SEED), SEED), measure="moser")
        yield dict(moser_measure.moser(job))


def metrics(rule: Any) -> set[str]:
    """Metrics of the grid `moser` that a rule looks at."""
    terms = [term for part in parts(rule) for group in part.groups() for term in group if part.grid == "moser"]
    return {name for term in terms for name in (term.metric, term.less) if name}


def test_every_number_that_a_rule_looks_at_is_measured(record: dict[str, object]) -> None:
    wanted = set().union(*(metrics(paper.claim(id).rule) for id in ("C005", "C118", "C122", "C123", "C125", "C126")))
    assert len(wanted) == 22
    assert wanted <= set(record)
    assert all(value is None or isinstance(value, int | float | str) for value in record.values())


def test_numbers_of_a_world_hang_together(record: dict[str, object]) -> None:
    n = {name: value for name, value in record.items() if isinstance(value, int | float)}
    assert n["truth.eligible"] >= n["truth.candidates"] >= n["truth.not yet known"]
    assert n["rows.base_rate"] == 0.5
    assert n["merging.merges"] == n["merging.merged"] + n["merging.joined"] + n["merging.blocked"]
    assert n["decisions.eligible"] >= n["decisions.silent"] + n["decisions.decided"]
    assert n["coinjoin.heuristics.TN"] == n["coinjoin.moser.TN"] == 0  # all inputs of a mix are one cluster
    assert n["true.transactions"] <= 300
    for name in HEURISTICS:
        right, wrong, all_ = (n[f"votes.{name}.{rate}"] for rate in ("TPR", "FPR", "coverage"))
        assert right + wrong == pytest.approx(all_)


def test_tables_of_a_record(record: dict[str, object]) -> None:
    frame = pd.DataFrame([{**record, "row": "forest", "seed": SEED, "state": "done"}])
    votes = tables.votes_beside(frame, None)
    assert tuple(votes.index) == HEURISTICS
    assert votes["TPR simulated"].notna().all() and votes["TPR real"].isna().all()
    assert votes.loc["fp_rbf", "coverage simulated"] == record["votes.fp_rbf.remaining_spent"]
    assert votes.loc["address_type", "coverage simulated"] == record["votes.address_type.remaining"]
    scores = tables.scores_beside(frame, None).set_index("")
    assert scores.loc["original study, forest", "AUC"] == 0.9986
    assert scores.loc["the paper", "accuracy"] == pytest.approx(0.9943)
    assert scores.loc["simulated, majority vote", "AUC"] == record["majority.auc"]
    assert scores.loc["real, majority vote"].isna().all()
    clusters = tables.clusters_beside(frame).set_index("clusters by")
    assert clusters.loc["common inputs", "precision"] == record["common.precision"]
    labels = tables.labels_beside(frame).set_index("clusters by")
    assert labels.loc["Möser–Narayanan, paper", "bACC"] == 57.6
    assert labels.loc["heuristics, ours", ["TP", "FP", "FN", "TN"]].sum() == pytest.approx(100)
    dose = tables.doses(frame, "largest", CONFUSED)
    assert dose.loc[0.2, "naive"] == record["confused.0.2.naive.largest"]


def test_tables_without_records_are_empty_not_broken() -> None:
    assert np.isnan(tables.mean_of(None, "forest", "forest.auc"))
    votes = tables.votes_beside(None, None)
    assert votes["TPR simulated"].isna().all() and votes["TPR published"].notna().all()
    assert tables.scores_beside(None, None)["AUC"].notna().sum() == 2
    assert tables.clusters_beside(None)["precision"].isna().all()
    assert tables.labels_beside(None)["bACC"].notna().sum() == 2
    assert tables.doses(None, "largest", (0.0,)).isna().all(axis=None)


def test_real_rates_of_fingerprints_are_not_shown() -> None:
    cells = {
        f"votes.{name}.{rate}": 0.5 for name in HEURISTICS for rate in ("TPR", "FPR", "remaining", "remaining_spent")
    }
    votes = tables.votes_beside(None, pd.DataFrame([{"row": "all", "seed": 0, **cells}]))
    assert votes["coverage real"].notna().all()
    assert tuple(votes.index[votes["TPR real"].notna()]) == UNIVERSAL
    compact = tables.votes_compact(votes).set_index("heuristic")
    assert compact.loc["optimal_change"].tolist() == ["0.133 / – / 0.500", "0.306 / – / 0.500", "0.026 / – / 0.500"]
    assert compact.loc["fp_rbf", "TPR"] == "0.075 / – / –"


def test_rows_of_the_true_change_are_drawn_by_seed() -> None:
    chains = [chain_of(6), chain_of(4, name="v")]
    some = moser_measure.true_rows(chains, 5, seed=0)
    assert some.transactions == 5
    assert (some.X == moser_measure.true_rows(chains, 5, seed=0).X).all()
    assert moser_measure.true_rows(chains, 99, seed=0).transactions == 10
    numbers = moser_measure.forest_numbers(moser_measure.true_rows(chains, 99, seed=0), ForestConfig(trees=3), 1)
    assert numbers["rows.clusters"] == 10 and numbers["rows.largest_cluster"] == pytest.approx(0.1)
