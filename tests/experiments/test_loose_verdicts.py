"""Verdicts on the loose ends: parts make verdicts, every claim that chapter 18 judges is among them."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest

from btcnb import paper
from btcnb.data import Source
from btcnb.experiments import loose_ends as measure
from btcnb.experiments.loose_verdicts import End, bottleneck, energy, forward, labels, loose_ends, scale, sphere
from btcnb.paper.kinds import Chapter
from btcnb.paper.rules import NOT, PARTLY, REPRODUCED, UNTESTED

TIMES = {"nodes": 9, "seconds_coarse": 1.0, "seconds_linkage": 4.0, "seconds_cut": 3.0, "seconds_scores": 0.0}
RESULTS: dict[str, list[dict[str, Any]]] = {
    "benchmarks/linkage": [{"task": "average linkage", "stage": "ours", "n": 65_000, "peak_mb": 500.0}],
    "benchmarks/coarse": [
        {"stage": "coarse", "method": "a", "edges": edges, "seconds": seconds}
        for edges, seconds in ((10, 1), (100, 90))
    ],
    "benchmarks/evaluation": [{**TIMES, "stage": "embed", "seconds": 2.0}],
}


def runs(grid: str) -> pd.DataFrame | None:
    nodes = {"ablation": 100, "paper_size": 1000}
    if grid not in nodes:
        return None
    return pd.DataFrame({"row": ["gat"], "nodes": [nodes[grid]], "seconds.embed": [nodes[grid] / 10]})


def test_parts_make_a_verdict() -> None:
    assert [End("", "", "", parts, "").verdict for parts in ((True, True), (True, False), (False,), ())] == [
        REPRODUCED,
        PARTLY,
        NOT,
        UNTESTED,
    ]


def test_every_claim_that_chapter_18_judges_gets_a_verdict(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measure, "spectral_share", lambda recipe: measure.Spectral(0.4, 0.3, 0.1))
    monkeypatch.setattr(measure, "lemma_sides", lambda source: (9.0, 0.1))
    monkeypatch.setattr(measure, "work_per_seed", lambda source, neighbours: [k**3 for k in neighbours])
    found = {each.id: each.verdict for each in loose_ends(Source.of(size="tiny"), runs, RESULTS.__getitem__)}
    assert list(found) == [c.id for c in paper.claims() if isinstance(c.rule, Chapter) and c.rule.chapter == "18"]
    assert found == {
        **{"C020": PARTLY, "C039": REPRODUCED, "C045": REPRODUCED, "C050": PARTLY, "C099": PARTLY},
        **{"C150": REPRODUCED, "C151": NOT, "C152": NOT, "C153": REPRODUCED, "C156": REPRODUCED, "C157": UNTESTED},
    }


def test_what_the_evidence_says() -> None:
    assert "65,000 leaves; none of a million" in scale(RESULTS["benchmarks/linkage"]).evidence
    assert forward(1.7).verdict == NOT and "exponent 1.70" in forward(1.7).evidence
    assert "200 of 200 random sets" in sphere().evidence
    assert energy().numbers[0] == pytest.approx(energy().numbers[1])
    assert "distances and trees take 40 % of the time" in bottleneck(1.0, RESULTS["benchmarks/evaluation"]).evidence


@pytest.mark.parametrize(
    ("gains", "verdict"), [((2, -2, 0.3), REPRODUCED), ((5.0, 5.1, 4.9), NOT), ((3, 5, 4), PARTLY)]
)
def test_labels_are_few_where_the_interval_is_wide(gains: tuple[float, ...], verdict: str) -> None:
    # of three worlds, half the interval is 2.48 standard deviations: of 3, 5, 4 that is 2.48, more than half of 4
    frame = pd.DataFrame({"row": "trained 1", "state": "done", measure.HEURISTICS: 0.0, measure.HYBRID: gains})
    assert labels(frame).verdict == verdict
