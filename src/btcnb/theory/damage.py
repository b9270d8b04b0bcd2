"""An ideal cluster graph that is damaged step by step: pair after pair, or all pairs at once by a growing weight.

A flip takes weight away from an edge inside a cluster, or adds an edge between clusters. The order of the pairs is
drawn once, so that every graph of the path contains the damage of those before it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from btcnb.errors import ParameterError
from btcnb.theory.laplacians import FloatArray, IdealLaplacian, IntArray, as_labels, ideal_adjacency, laplacian
from btcnb.theory.lemma import LemmaForm, lemma_margin_at
from btcnb.theory.separation import Separation, separation
from btcnb.theory.spectral import laplacian_distance, spectral_embedding


@dataclass(frozen=True)
class Damage:
    """All pairs (first[t], second[t]) of the nodes behind `labels`, in the order in which they are flipped."""

    labels: IntArray
    first: IntArray
    second: IntArray

    @classmethod
    def random(cls, labels: npt.ArrayLike, rng: np.random.Generator) -> Damage:
        """Every order of the pairs equally likely."""
        codes, _ = as_labels(labels)
        first, second = np.triu_indices(len(codes), 1)
        order = rng.permutation(len(first))
        return cls(codes, first[order], second[order])

    @property
    def pairs(self) -> int:
        return len(self.first)

    def graph(self, flips: int, weight: float = 1.0) -> FloatArray:
        """Adjacency (n, n) of the ideal graph after the first `flips` pairs were flipped by `weight`."""
        if not 0 <= flips <= self.pairs:
            raise ParameterError(f"{flips} flips, but there are {self.pairs} pairs of nodes.")
        if not 0 <= weight <= 1:
            raise ParameterError(f"weight {weight} must lie in [0, 1]: an edge cannot lose more than it has.")
        A = ideal_adjacency(self.labels)
        i, j = self.first[:flips], self.second[:flips]
        A[i, j] += weight * (1 - 2 * A[i, j])
        A[j, i] = A[i, j]
        return A

    def separation(self, flips: int, weight: float = 1.0, **kind: bool) -> Separation:
        """Distances in the spectral embedding of that graph; `kind` chooses the Laplacian (see `laplacians`)."""
        L = laplacian(self.graph(flips, weight), **kind)
        return separation(spectral_embedding(L, int(self.labels.max()) + 1), self.labels)


def last_separable(found: Mapping[int, Separation]) -> int:
    """The most flips up to which every graph of the path was separable; 0 if the first one already was not."""
    last = 0
    for flips in sorted(found):
        if not found[flips].separable:
            break
        last = flips
    return last


@dataclass(frozen=True)
class DamagePath:
    """Distances along a path of growing damage; arrays have one entry per step."""

    ideal: IdealLaplacian
    distance: FloatArray
    """‖L − L°‖_op"""
    intra: FloatArray
    inter: FloatArray

    @property
    def truth(self) -> float:
        """The largest ‖L − L°‖ of the path before the first graph that is not separable; 0 if that is the first."""
        bad = np.flatnonzero(self.intra >= self.inter)
        steps = int(bad[0]) if len(bad) else len(self.distance)
        return float(self.distance[steps - 1]) if steps else 0.0


def damage_path(damage: Damage, flips: int, weights: Iterable[float], **kind: bool) -> DamagePath:
    """Flip the same `flips` pairs by each of `weights` in turn, for the Laplacian that `kind` chooses."""
    ideal = IdealLaplacian(damage.labels, **kind)
    records = []
    for weight in weights:
        L = laplacian(damage.graph(flips, weight), **kind)
        found = separation(spectral_embedding(L, ideal.num_clusters), damage.labels)
        records.append((laplacian_distance(L, ideal), found.intra_max, found.inter_min))
    distance, intra, inter = np.array(records, dtype=np.float64).reshape(-1, 3).T
    return DamagePath(ideal, distance, intra, inter)


def condition_end(ideal: IdealLaplacian, form: LemmaForm) -> float:
    """The ‖L − L°‖ at which a form of the lemma stops holding (both forms are linear in it); infinity if never."""
    unit = lemma_margin_at(1.0, ideal, form)
    return unit.right / unit.left if unit.left > 0 else float("inf")


def bridge_ratios(sizes: Sequence[int], forms: Sequence[LemmaForm]) -> FloatArray:
    """Left over right of each form, (sizes, forms), for two cliques of equal size that one edge joins.

    One added edge changes the Laplacian D − A by a matrix of norm 2, whatever the cliques.
    """
    ideals = [IdealLaplacian(np.repeat([0, 1], size)) for size in sizes]
    return np.array([[2.0 / condition_end(ideal, form) for form in forms] for ideal in ideals])
