"""Claims that no chapter is about: each measurement on cases that one can work out by hand, and the verdicts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from btcnb import paper
from btcnb.data import Source, load_graph
from btcnb.experiments import other_claims as claims
from btcnb.experiments.other_claims import Judged
from btcnb.paper.rules import Chapter
from btcnb.paper.verdicts import NOT, PARTLY, REPRODUCED, UNTESTED

TIMES = {"nodes": 9, "seconds_coarse": 1.0, "seconds_linkage": 4.0, "seconds_cut": 3.0, "seconds_scores": 0.0}
RESULTS: dict[str, list[dict[str, Any]]] = {
    "benchmarks/linkage": [{"task": "average linkage", "stage": "ours", "n": 65_000, "peak_mb": 500.0}],
    "benchmarks/coarse": [
        {"stage": stage, "method": name, "edges": edges, "seconds": seconds}
        for stage, name, edges, seconds in (
            *(("coarse", "a", 10, 1.0), ("coarse", "a", 100, 10.0), ("coarse", "b", 10, 1.0)),
            *(("coarse", "b", 100, 100.0), ("coarse", "c", 9, 1.0), ("total", "a", 10, 77.0)),
        )
    ],
    "benchmarks/evaluation": [
        {**TIMES, "stage": "total", "seconds": 99.0},
        {**TIMES, "stage": "embed", "seconds": 2.0},
    ],
}


def runs(grid: str) -> pd.DataFrame | None:
    nodes = {"ablation": 100, "paper_size": 1000}
    if grid not in nodes:
        return None
    return pd.DataFrame({"row": ["gat"], "seed": [2], "nodes": [nodes[grid]], "seconds.embed": [nodes[grid] / 10]})


def test_parts_make_a_verdict() -> None:
    parts = ((True, True), (True, False), (False,), ())
    assert [Judged("", "", "", each, "").verdict for each in parts] == [REPRODUCED, PARTLY, NOT, UNTESTED]


def test_every_claim_that_chapter_18_judges_gets_a_verdict(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(claims, "eigenvectors", lambda recipe: Judged("C020", "", "", (True, False), ""))
    monkeypatch.setattr(claims, "_lemma_sides", lambda source: (9.0, 0.1))
    monkeypatch.setattr(claims, "work_per_seed", lambda source, neighbours, d: [k**3 for k in neighbours])
    found = {each.id: each.verdict for each in claims.other_claims(Source.of(size="tiny"), runs, RESULTS.__getitem__)}
    assert list(found) == [c.id for c in paper.claims() if isinstance(c.rule, Chapter) and c.rule.chapter == "18"]
    assert found == {
        **{"C020": PARTLY, "C039": REPRODUCED, "C045": REPRODUCED, "C050": PARTLY, "C099": PARTLY},
        **{"C150": REPRODUCED, "C151": NOT, "C152": PARTLY, "C153": REPRODUCED, "C156": REPRODUCED, "C157": UNTESTED},
    }


def test_exponents_of_powers() -> None:
    assert claims.exponent([1, 2, 4], [3.0, 12.0, 48.0]) == pytest.approx(2)
    assert claims.exponent([10, 1000], [7.0, 7.0]) == pytest.approx(0)
    assert claims.communities(RESULTS["benchmarks/coarse"]).numbers == pytest.approx((1, 2)), "by implementation"


def test_times_of_two_sizes_give_the_exponent() -> None:
    small, large = runs("ablation"), runs("paper_size")
    assert small is not None and large is not None
    assert claims.embedding_exponent(small, large) == pytest.approx(1)
    assert np.isnan(claims.embedding_exponent(small, small)) and claims.forward(float("nan")).verdict == UNTESTED
    assert claims.forward(1.7).verdict == NOT and "exponent 1.70" in claims.forward(1.7).evidence


def test_on_a_sphere_both_distances_order_pairs_alike_and_off_it_they_do_not() -> None:
    found = claims.sphere(sets=30)
    assert found.parts == (True, True) and "30 of 30 random sets" in found.evidence


def test_the_energy_needs_the_spectral_coefficients() -> None:
    exact, spectral, rows = claims.energy().numbers
    assert exact == pytest.approx(spectral) and rows != pytest.approx(exact, rel=0.01)


def test_the_share_between_clusters_by_hand() -> None:
    # rows 0, 2 | 4, 6 around the mean 3: total 20, of which 2·4 + 2·4 lie between; the node alone is left out
    rows = np.array([[0.0], [2.0], [4.0], [6.0], [99.0]])
    labels = np.array([0, 0, 1, 1, 2])
    assert claims.between_share(rows, labels) == pytest.approx(16 / 20)
    assert claims.between_share(np.array([[1.0], [1.0], [5.0], [5.0]]), labels[:4]) == pytest.approx(1)


def test_sampled_work_stays_below_what_is_printed() -> None:
    source, neighbours = Source.of(size="tiny"), (1, 2, 4)
    counted = claims.work_per_seed(source, neighbours, d=8, seeds=64)
    assert counted == sorted(counted), "more neighbours, more work"
    most = [2 * (k + k * k) * 8 + (2 + k) * 64 for k in neighbours]  # every node with k neighbours, none met twice
    assert all(0 < done <= bound for done, bound in zip(counted, most, strict=True))


def test_distances_are_counted() -> None:
    whole, parts, size = claims.distances(points=(200, 400, 800), part=50).numbers
    assert whole == pytest.approx(2, abs=0.02)
    assert parts == pytest.approx(1, abs=0.001) and size == pytest.approx(1, abs=0.03)


def test_where_the_time_of_an_evaluation_goes() -> None:
    found = claims.bottleneck(1.0, RESULTS["benchmarks/evaluation"])
    assert found.numbers == pytest.approx((1.0, 0.4)) and found.verdict == REPRODUCED
    assert "at 9 nodes distances and trees take 40 % of the time" in found.evidence


def test_the_largest_tree_within_memory() -> None:
    trees = [
        {"task": task, "stage": stage, "n": n, "peak_mb": peak}
        for task, stage, n, peak in (
            ("average linkage", "ours", 10, 5.0),
            ("average linkage", "ours", 50, 90_000.0),
            ("average linkage", "pdist + SciPy", 40, 5.0),
            ("agreement", "ours", 70, 5.0),
        )
    ]
    assert claims.scale(trees).numbers == (10.0,) and claims.scale(trees[2:]).numbers == (0.0,)
    whole = {"task": "whole tree", "stage": "ours", "n": 100, "rows": 80, "peak_mb": 9.0}
    assert claims.scale([*trees, whole]).numbers == (80.0,), "asked for 100, there were 80"
    assert "65,000 leaves; none of a million" in claims.scale(RESULTS["benchmarks/linkage"]).evidence


@pytest.mark.parametrize(
    ("gains", "verdict"), [((2, -2, 0.3), REPRODUCED), ((5.0, 5.1, 4.9), NOT), ((3, 5, 4), PARTLY), ((3, 5), UNTESTED)]
)
def test_labels_are_few_where_the_interval_is_wide(gains: tuple[float, ...], verdict: str) -> None:
    # of three worlds, half the interval is 2.48 standard deviations: of 3, 5, 4 that is 2.48, more than half of 4
    frame = pd.DataFrame({"row": "trained 1", "state": "done", "seed": range(len(gains)), "heuristics.bACC": 0.0})
    assert claims.labels(frame.assign(**{"hybrid.average.silhouette.bACC": gains})).verdict == verdict


def test_the_lemma_is_far_from_holding_on_a_simulated_graph() -> None:
    source = Source.of(size="tiny")
    left, right = claims.guarantee(source).numbers
    largest = int(np.bincount(load_graph(source, "test").labels()).max())
    assert right == pytest.approx(1 / np.sqrt(2 * largest)) and left > right
