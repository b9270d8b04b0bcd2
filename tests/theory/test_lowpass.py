"""Dirichlet energy and Rayleigh quotient, by hand, along edges and in the spectrum."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from btcnb.errors import DataError, ParameterError
from btcnb.theory import (
    adjacency,
    dirichlet_energy,
    gcn_filter,
    laplacian,
    rayleigh_quotient,
    spectral_energy,
    stage_quotients,
)

PATH = laplacian(adjacency([[0, 1], [1, 2]], 3))


def test_path_by_hand():
    """Signal 0, 1, 3: edge differences 1 and 2, energy 1 + 4, over 0 + 1 + 9."""
    assert dirichlet_energy(PATH, [0.0, 1, 3]) == pytest.approx(5)
    assert rayleigh_quotient(PATH, [0, 1, 3]) == pytest.approx(0.5)
    assert rayleigh_quotient(PATH, np.ones(3)) == 0


def test_eigenvectors_give_their_eigenvalue():
    values, vectors = np.linalg.eigh(PATH.toarray())
    for value, vector in zip(values, vectors.T, strict=True):
        assert rayleigh_quotient(PATH, vector) == pytest.approx(value, abs=1e-12)


@settings(deadline=None, max_examples=40)
@given(st.integers(2, 15), st.integers(1, 40), st.integers(0, 9999))
def test_three_ways_to_the_same_energy(n, d, seed):
    """trace(HᵀLH) = sum over edges = Σ λ_i ‖(UᵀH)_i‖², which is not Σ λ_i ‖H_i‖²."""
    rng = np.random.default_rng(seed)
    edges = np.stack(np.nonzero(np.triu(rng.random((n, n)) < 0.5, 1)))
    L, H = laplacian(adjacency(edges, n)), rng.standard_normal((n, d))
    along = ((H[edges[0]] - H[edges[1]]) ** 2).sum()
    values, energy = spectral_energy(L, H)
    assert dirichlet_energy(L, H) == pytest.approx(along)
    assert values @ energy == pytest.approx(along, abs=1e-8)
    assert energy.sum() == pytest.approx((H**2).sum())


def test_the_printed_sum_over_rows_is_another_number():
    H = np.array([[1.0], [0], [0]])
    values, energy = spectral_energy(PATH, H)
    assert values @ energy == pytest.approx(dirichlet_energy(PATH, H)) == pytest.approx(1)
    assert values @ (H**2).sum(axis=1) == pytest.approx(0, abs=1e-12)  # λ_1 = 0 meets the only non-zero row


def test_an_offset_lowers_the_quotient_but_not_the_centred_one():
    H = np.random.default_rng(0).standard_normal((3, 5))
    assert rayleigh_quotient(PATH, H + 100) < 0.01 * rayleigh_quotient(PATH, H)
    assert rayleigh_quotient(PATH, H + 100, centred=True) == pytest.approx(rayleigh_quotient(PATH, H, centred=True))


def test_low_pass_stages_fall():
    rng = np.random.default_rng(0)
    L = laplacian(adjacency(rng.integers(0, 60, (2, 300)), 60), True, self_loops=True)
    X = rng.standard_normal((60, 4))
    stages = stage_quotients(L, {"input": X, "one": gcn_filter(1).apply(L, X), "two": gcn_filter(2).apply(L, X)})
    assert [stage.name for stage in stages] == ["input", "one", "two"]
    assert stages[0].rayleigh > stages[1].rayleigh > stages[2].rayleigh
    assert stages[0].dirichlet == pytest.approx(dirichlet_energy(L, X))


@pytest.mark.parametrize("normalised", [False, True])
def test_stages_centre_without_a_second_product(normalised):
    """The shortcut for the centred quotient agrees with removing the mean row by hand, also where L·1 is not 0."""
    rng = np.random.default_rng(1)
    L = laplacian(adjacency(rng.integers(0, 40, (2, 90)), 40), normalised)
    H = rng.standard_normal((40, 6)) + np.arange(6)
    (stage,) = stage_quotients(L, {"only": H})
    assert stage.rayleigh == pytest.approx(rayleigh_quotient(L, H))
    assert stage.rayleigh_centred == pytest.approx(rayleigh_quotient(L, H, centred=True))
    assert stage.constant_share == pytest.approx(40 * (H.mean(axis=0) ** 2).sum() / (H**2).sum())
    assert stage_quotients(L, {"flat": np.ones((40, 2))})[0].rayleigh_centred == 0


def test_single_precision_is_summed_in_double():
    n = 100_000
    H = np.full((n, 20), 0.1, dtype=np.float32)
    H[0] = 0.2
    L = sp.csr_array(sp.eye_array(n))
    assert rayleigh_quotient(L, H) == pytest.approx(1, rel=1e-7)


def test_mistakes_are_named():
    with pytest.raises(DataError, match="zero"):
        rayleigh_quotient(PATH, np.zeros(3))
    with pytest.raises(DataError, match="one row per node"):
        dirichlet_energy(PATH, np.zeros((4, 2)))
    with pytest.raises(ParameterError, match="full spectrum"):
        spectral_energy(sp.eye_array(5000), np.zeros(5000))
