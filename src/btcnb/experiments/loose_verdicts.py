"""Verdicts on the claims of `loose_ends`: what each asks for, in parts, and the numbers that answer.

All parts hold: *reproduced*; some: *partly*; none: *not reproduced*; no parts: the claim cannot be tested here. Chapter
18 tells the rules in words and shows the verdicts.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pandas as pd

from btcnb.data import Source
from btcnb.digits import number
from btcnb.experiments import loose_ends as measure
from btcnb.experiments.loose_ends import LINEAR
from btcnb.experiments.recipe import recipe
from btcnb.paper import value
from btcnb.paper.rules import NOT, PARTLY, REPRODUCED, UNTESTED

Read = Callable[[str], "pd.DataFrame | None"]
Results = Callable[[str], Any]
"""Gives what `results/NAME` holds: `btcnb.book.results`."""
NEIGHBOURS = (2, 4, 8, 16)
LARGE, HUGE = 10**4, 10**6
"""Leaves: *tens of thousands* of nodes, and *millions*."""


@dataclass(frozen=True)
class End:
    """A claim, whether each of its parts holds, and the evidence; `numbers` are those that decide."""

    id: str
    claim: str
    where: str
    parts: tuple[bool, ...]
    evidence: str
    numbers: tuple[float, ...] = ()

    @property
    def verdict(self) -> str:
        if not self.parts:
            return UNTESTED
        return REPRODUCED if all(self.parts) else PARTLY if any(self.parts) else NOT


def loose_ends(source: Source, read: Read, results: Results) -> list[End]:
    """All of them, in the order of the claims.

    source: simulated worlds, for what is measured on graphs
    read, results: give the records of a grid, and of a benchmark
    """
    linear = measure.embedding_exponent(_frame(read, "ablation"), _frame(read, "paper_size"))
    return [
        eigenvectors(source),
        sphere(),
        guarantee(source),
        energy(),
        scale(results("benchmarks/linkage")),
        forward(linear),
        sampled(source),
        communities(results("benchmarks/coarse")),
        distances(),
        bottleneck(linear, results("benchmarks/evaluation")),
        labels(read("entity")),
    ]


def _frame(read: Read, grid: str) -> pd.DataFrame:
    found = read(grid)
    return pd.DataFrame({"row": [], "nodes": [], "seconds.embed": []}) if found is None else found


def eigenvectors(source: Source) -> End:
    share = measure.spectral_share(recipe(source))
    return End(
        "C020",
        "Contrastive losses recover representations that are like eigenvectors",
        "Section 3.3",
        (share.trained > share.untrained, share.trained > 0.5),
        "share of the embedding in the span of the lowest eigenvectors of the graph of positive pairs: trained "
        f"{100 * share.trained:.0f} %, untrained {100 * share.untrained:.0f} %, by chance {100 * share.chance:.0f} % "
        "(one network, simulated)",
        tuple(share),
    )


def sphere() -> End:
    found = measure.on_and_off_the_sphere()
    return End(
        "C039",
        "The arguments hold for cosine distance on a common sphere",
        "Section 4.1",
        (found.alike == found.sets, found.euclidean and not found.cosine),
        "on a sphere of radius r, ‖x − y‖² is 2r² times the cosine distance: the same order of pairs in "
        f"{found.alike} of {found.sets} random sets. Off it, two clusters on one ray are separable by Euclidean "
        "distance and not by cosine",
    )


def guarantee(source: Source) -> End:
    left, right = measure.lemma_sides(source)
    return End(
        "C045",
        "The theory is intuition, not a guarantee that can be verified on such graphs",
        "Section 4.1",
        (left >= right,),
        f"Lemma 1 asks for M below {right:.2g}; on a simulated test graph M is {left:,.0f}. For an unweighted graph "
        "other than the ideal one it is always too large (chapter 04)",
        (left, right),
    )


def energy() -> End:
    two = measure.dirichlet_two_ways()
    return End(
        "C050",
        "The Dirichlet energy is Σ λ_i‖H_i‖²",
        "Appendix D.4",
        tuple(abs(two.energy - way) < 1e-9 for way in (two.spectral, two.rows)),
        f"path of six nodes: energy {two.energy:.3f}; with rows of $U^\\top H$ {two.spectral:.3f}, with rows of $H$ "
        f"{two.rows:.3f}",
        tuple(two),
    )


def scale(records: measure.Records) -> End:
    memory = 1024 * value("text", "value", quantity="memory of the authors' machine")
    leaves = measure.largest_tree(records, memory)
    missing = "" if leaves >= HUGE else "; none of a million leaves is on record"
    return End(
        "C099",
        "The approach scales to clusters of tens of thousands of nodes, potentially of millions",
        "Section 6.2",
        (leaves >= LARGE, leaves >= HUGE),
        f"largest recorded tree within the authors' {memory / 1024:.0f} GB: {leaves:,} leaves{missing}",
        (float(leaves),),
    )


def forward(linear: float) -> End:
    return End(
        "C150",
        "A forward pass takes O(Md + Nd²) time",
        "Table 11",
        (linear <= LINEAR,),
        f"recorded times to embed whole graphs grow with exponent {linear:.2f} over nodes; edges grow in step, so the "
        "two are not told apart",
        (linear,),
    )


def sampled(source: Source) -> End:
    counted = measure.exponent(NEIGHBOURS, measure.work_per_seed(source, NEIGHBOURS))
    printed = measure.exponent(NEIGHBOURS, measure.printed_work(NEIGHBOURS))
    return End(
        "C151",
        "With neighbour sampling a pass takes O(N k_s^(L−1) d (k_s + d)) time",
        "Table 11",
        (counted <= printed,),
        f"operations counted on a simulated graph grow with exponent {counted:.2f} over k_s, the formula with "
        f"{printed:.2f}: an upper bound, far from tight, since most addresses have few neighbours",
        (counted, printed),
    )


def communities(records: measure.Records) -> End:
    found = measure.community_exponents(records)
    told = ", ".join(f"{name} {exponent:.2f}" for name, exponent in found.items())
    return End(
        "C152",
        "Leiden takes O(M) time",
        "Table 11",
        tuple(exponent <= LINEAR for exponent in found.values()),
        f"exponent of recorded times over edges, from two sizes: {told}",
        tuple(found.values()),
    )


def distances() -> End:
    found = measure.distance_exponents()
    return End(
        "C153",
        "Distances take O(N²d) time and O(N²) memory; within communities O(N k_l)",
        "Table 11",
        (abs(found.whole - 2) < 0.05, abs(found.parts - 1) < 0.05),
        f"distances counted: exponent {found.whole:.2f} over N; within parts {found.parts:.2f} over N and "
        f"{found.size:.2f} over k_l (true by construction). Average linkage needs none of them (chapter 10)",
        tuple(found),
    )


def bottleneck(linear: float, records: measure.Records) -> End:
    found, trees = measure.evaluation_shares(records), "distances and trees"
    return End(
        "C156",
        "Embedding is linear; distances and hierarchical clustering are the bottleneck",
        "Appendix G",
        (linear <= LINEAR, found.longest == trees),
        f"exponent of embedding {linear:.2f}; at {found.nodes:,} nodes {trees} take {100 * found.share(trees):.0f} % "
        f"of the time, {found.longest} most ({100 * found.share(found.longest):.0f} %). Ours need no distance "
        "matrix",
        (linear, found.share(trees)),
    )


def labels(records: pd.DataFrame | None) -> End:
    claim, where = "Few ground-truth labels at scale are a key limitation", "Conclusion"
    gain = measure.label_gain(records)
    if gain is None:
        return End("C157", claim, where, (), "the grid “entity” has no records from enough worlds")
    half = (gain.high - gain.low) / 2
    return End(
        "C157",
        claim,
        where,
        (half > abs(gain.mean) / 2, half > abs(gain.mean)),
        f"by labels, balanced accuracy changes by {_points(gain.mean)} points ({_points(gain.low)} to "
        f"{_points(gain.high)}) over "
        f"{gain.count} simulated worlds: half the interval is {half / max(abs(gain.mean), 1e-9):.1f} times the change",
        (gain.mean, half),
    )


def _points(value: float) -> str:
    return number(value, "{:+.1f}").replace("-", "−")
