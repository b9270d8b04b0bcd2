"""The paper's theory: perfect cuts, the spectral lemma, the linearised GNN theorem, homophily and low-pass behaviour.

Needs only numpy, scipy and numba. Matrices are sparse or operators throughout; what is dense says so and has a limit.
"""

from btcnb.theory.filters import (
    PolynomialFilter,
    gcn_filter,
    learned_filter,
    linearised_gnn,
    step_filter,
    stop_band_filter,
)
from btcnb.theory.homophily import (
    PAPER_BANDS,
    CutRatioTest,
    band_subgraph,
    cantelli,
    cut_ratio,
    cut_ratio_by_size,
    cut_ratio_test,
    predicted_z,
)
from btcnb.theory.laplacians import IdealLaplacian, adjacency, ideal_adjacency, ideal_laplacian, laplacian
from btcnb.theory.lemma import LemmaMargin, lemma_margin, lemma_margin_at
from btcnb.theory.lowpass import Stage, dirichlet_energy, rayleigh_quotient, spectral_energy, stage_quotients
from btcnb.theory.separation import (
    Cut,
    Separation,
    best_cut,
    pair_distances,
    sample_pair_distances,
    separation,
)
from btcnb.theory.spectral import (
    difference,
    laplacian_distance,
    operator_norm,
    principal_angles,
    smallest_eigenpairs,
    spectral_embedding,
)
from btcnb.theory.theorem import FilterQuality, TheoremMargin, split_spectrum, theorem_margin

__all__ = [
    "PAPER_BANDS",
    "Cut",
    "CutRatioTest",
    "FilterQuality",
    "IdealLaplacian",
    "LemmaMargin",
    "PolynomialFilter",
    "Separation",
    "Stage",
    "TheoremMargin",
    "adjacency",
    "band_subgraph",
    "best_cut",
    "cantelli",
    "cut_ratio",
    "cut_ratio_by_size",
    "cut_ratio_test",
    "difference",
    "dirichlet_energy",
    "gcn_filter",
    "ideal_adjacency",
    "ideal_laplacian",
    "laplacian",
    "laplacian_distance",
    "learned_filter",
    "lemma_margin",
    "lemma_margin_at",
    "linearised_gnn",
    "operator_norm",
    "pair_distances",
    "predicted_z",
    "principal_angles",
    "rayleigh_quotient",
    "sample_pair_distances",
    "separation",
    "smallest_eigenpairs",
    "spectral_embedding",
    "spectral_energy",
    "split_spectrum",
    "stage_quotients",
    "step_filter",
    "stop_band_filter",
    "theorem_margin",
]
