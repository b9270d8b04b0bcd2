"""The spectral lemma: both sides of its inequality, as printed, as its proof gives it, and in the sharpest form we
can prove.

With ε = ‖L − L°‖_op, g = λ_{k+1}(L°), and S₁ ≥ S₂ the sizes of the two largest clusters, the spectral embeddings are
cluster-separable whenever

- printed: M = 4√(2k)·(1 − 1/S_max)·ε < 1/√(2·S_max), the paper's statement, with 1/g of the normalised Laplacian;
- proof: M = 4√(2k)·ε/g < 1/√(2·S_max), the paper's proof with the eigenvalue of the Laplacian in use;
- sharp: 2ε/g < √((1/S₁ + 1/S₂)/2), by Davis and Kahan's sin 2Θ theorem instead of sin Θ, without the factor √k.

The sharp form rests on two facts, derived in chapter 04. First, rows of U_k differ by ‖e_i − e_j‖ = ‖P(δ_i − δ_j)‖
with P = U_k U_kᵀ, so no rotation Q is needed. Second, with θ the largest angle between the spans of U_k and U°, sin
2θ ≤ 2ε/g and θ < π/4 whenever ε < g/2. Then distances inside a cluster are at most √2·sin θ, and distances between
clusters a and b at least √2·cos(φ + θ), where cos φ = √((1/|C_a| + 1/|C_b|)/2).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import asin, cos, inf, pi, sin, sqrt
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from btcnb import gates
from btcnb.theory.laplacians import IdealLaplacian, IntArray, laplacian
from btcnb.theory.spectral import laplacian_distance

LemmaForm = Literal["printed", "proof", "sharp"]


@dataclass(frozen=True)
class LemmaMargin:
    """Both sides of the lemma's inequality `left < right`, and every quantity in it."""

    form: LemmaForm
    normalised: bool
    k: int
    """number of clusters"""
    S_max: int
    """size of the largest cluster"""
    S_second: int
    """size of the second largest cluster; 0 when there is only one"""
    S_min: int
    """size of the smallest cluster with at least two nodes; 1 when there is none"""
    distance: float
    """ε = ‖L − L°‖_op"""
    eigengap: float
    """g = λ_{k+1}(L°); infinity when every cluster has one node"""
    M: float
    """4√(2k)·ε times the form's reading of 1/g (the forms `printed` and `proof`; `sharp` does not use it but keeps
    the proof's value)"""
    left: float
    right: float
    intra_bound: float
    """what the form promises: no distance inside a cluster exceeds this (√2 where it promises nothing)"""
    inter_bound: float
    """what the form promises: no distance between clusters falls below this (0 where it promises nothing, ∞ with one
    cluster)"""

    @property
    def holds(self) -> bool:
        """Whether the sufficient condition is met; the embeddings may well be separable when it is not."""
        return self.left < self.right

    @property
    def slack(self) -> float:
        """right − left: positive when the condition holds."""
        return self.right - self.left


def lemma_margin(
    A: Any, labels: npt.ArrayLike, *, normalised: bool = False, self_loops: bool = False, form: LemmaForm = "printed"
) -> LemmaMargin:
    """The lemma's inequality for a symmetric adjacency matrix (n, n) and one label per node.

    `normalised` and `self_loops` choose the Laplacian (see `laplacians`); `form` the statement (see above).
    """
    L = laplacian(A, normalised, self_loops=self_loops)
    ideal = IdealLaplacian(labels, normalised, self_loops=self_loops)
    return lemma_margin_at(laplacian_distance(L, ideal), ideal, form)


def lemma_margin_at(distance: float, ideal: IdealLaplacian, form: LemmaForm = "printed") -> LemmaMargin:
    """The same for a distance ε = ‖L − L°‖_op that is already known."""
    distance = gates.real("distance", distance, "[0, inf)")
    form = gates.choice("form", form, get_args(LemmaForm))
    gates.instance("ideal", ideal, IdealLaplacian)
    sizes = np.sort(ideal.sizes)[::-1]
    k, largest, gap = len(sizes), int(sizes[0]), ideal.eigengap
    inverse_gap = 1 - 1 / largest if form == "printed" else 1 / gap
    M = 4 * sqrt(2 * k) * inverse_gap * distance
    left, right = M, 1 / sqrt(2 * largest)
    intra, inter = min(M, sqrt(2)), max(sqrt(2 / largest) - M, 0.0)
    if form == "sharp":
        left, right = 2 * distance / gap, cos_phi(sizes)
        intra, inter = sharp_bounds(left, right)
    return LemmaMargin(
        form=form,
        normalised=ideal.normalised,
        k=k,
        S_max=largest,
        S_second=int(sizes[1]) if k > 1 else 0,
        S_min=int(sizes[sizes >= 2].min()) if largest >= 2 else 1,
        distance=distance,
        eigengap=gap,
        M=M,
        left=left,
        right=right,
        intra_bound=intra,
        inter_bound=inter if k > 1 else inf,
    )


def cos_phi(sizes: IntArray) -> float:
    """√((1/S₁ + 1/S₂)/2) for the two largest clusters: the smallest ideal distance between clusters, over √2.

    With a single cluster there is no pair to keep apart, and no perturbation is too large: infinity.
    """
    if len(sizes) < 2:
        return inf
    second, largest = np.sort(sizes)[-2:]
    return sqrt((1 / largest + 1 / second) / 2)


def subspace_angle(ratio: float) -> float:
    """θ = ½ arcsin(2ε/g), the largest angle between U_k and U° that a perturbation with 2ε/g = `ratio` < 1 can cause;
    else π/2."""
    return 0.5 * asin(ratio) if ratio < 1 else pi / 2


def sharp_bounds(ratio: float, cosine: float) -> tuple[float, float]:
    """Upper bound on distances inside clusters and lower bound on distances between clusters, from 2ε/g and cos φ."""
    angle = subspace_angle(ratio)
    phi = np.arccos(min(cosine, 1.0))
    return sqrt(2) * sin(angle), sqrt(2) * cos(min(phi + angle, pi / 2))
