"""Separation and perfect cuts against SciPy and scikit-learn; the lemma by hand and on thousands of graphs."""

from __future__ import annotations

from collections import Counter
from math import sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.spatial.distance import pdist, squareform
from sklearn.metrics import adjusted_rand_score
from small_graphs import two_cliques_and_a_bridge

from btcnb.theory import (
    Separation,
    best_cut,
    condition_end,
    ideal_adjacency,
    ideal_laplacian,
    laplacian,
    lemma,
    lemma_margin,
    same_partition,
    sample_pair_distances,
    separation,
    spectral_embedding,
)
from btcnb.theory.examples import dented_clique, perturbed_graphs
from btcnb.theory.laplacian import laplacian_stack
from btcnb.theory.lemma import lemma_batch, separation_stack

FORMS = ("printed", "proof", "sharp")
KINDS = [(False, False), (True, False), (True, True)]
SIZES = [(8, 8, 8), (12, 6, 2, 1), (2, 2, 2), (10, 3, 1, 1, 1), (9,), (1, 1, 1, 1)]


def test_four_points_on_a_line():
    X, labels = np.array([[0.0], [1], [3], [4.5]]), [7, 7, 9, 9]
    found = separation(X, labels)
    assert (found.intra_max, found.inter_min, found.gap) == (1.5, 2, 0.5) and found.separable
    assert not separation(X, [7, 9, 7, 9]).separable


def test_one_cluster_and_only_singletons():
    X = np.array([[0.0], [1], [3]])
    assert separation(X, [0, 0, 0]).inter_min == np.inf and separation(X, [0, 0, 0]).separable
    assert separation(X, [0, 1, 2]).intra_max == 0 and separation(X, [0, 1, 2]).separable
    assert not separation(np.zeros((2, 1)), [0, 1]).separable  # two clusters on one point cannot be told apart


@settings(deadline=None, max_examples=30)
@given(st.integers(2, 40), st.integers(1, 9), st.sampled_from(["euclidean", "cosine"]), st.integers(0, 999))
def test_separation_is_the_extreme_of_all_pairs_in_blocks_of_any_size(n, block, metric, seed):
    rng = np.random.default_rng(seed)
    X, labels = rng.standard_normal((n, 3)), rng.integers(0, 3, n)
    distance, (i, j) = pdist(X, metric), np.triu_indices(n, 1)
    same = labels[i] == labels[j]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lemma, "BLOCK", block)
        found = separation(X, labels, metric=metric)
    assert found.intra_max == pytest.approx(max(distance[same], default=0.0))
    assert found.inter_min == pytest.approx(min(distance[~same], default=np.inf))


def test_a_zero_row_is_at_cosine_distance_one():
    X = [[0.0, 0.0], [1.0, 0.0], [-1.0, 0.0]]
    assert separation(X, [0, 0, 1], metric="cosine") == Separation(1.0, 1.0)
    assert separation(X, [0, 1, 2], metric="cosine") == Separation(0.0, 1.0)


@settings(deadline=None, max_examples=60)
@given(st.integers(0, 10_000), st.sampled_from(["single", "average", "complete"]), st.floats(0.02, 0.98))
def test_separated_clusters_are_cut_perfectly_anywhere_between_r_and_s(seed, method, where):
    """The perfect-cut criterion of the paper, for its three linkages, at any threshold strictly between r and s."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 4, 25)
    centres = 4.0 * np.eye(4)
    X = centres[labels] + rng.uniform(-0.8, 0.8, (25, 4))
    found = separation(X, labels)
    if not found.separable or len(np.unique(labels)) < 2:
        return
    Z = linkage(X, method)
    cut = fcluster(Z, found.intra_max + where * found.gap, "distance")
    assert adjusted_rand_score(labels, cut) == 1.0
    assert best_cut(Z, labels).perfect


def test_ward_can_miss_separated_clusters():
    """Ward's height grows with size, so separation is not enough: 40 points within 1 and two points 1.05 apart."""
    big = np.linspace(0, 1, 40)[:, None]
    X = np.concatenate([big, [[2.05], [3.1]]])
    labels = np.repeat([0, 1, 2], [40, 1, 1])
    assert separation(X, labels).separable
    assert best_cut(linkage(X, "average"), labels).perfect
    assert not best_cut(linkage(X, "ward"), labels).perfect


@settings(deadline=None, max_examples=40)
@given(
    st.integers(2, 30),
    st.integers(1, 30),
    st.integers(0, 999),
    st.sampled_from(["single", "average", "complete", "ward"]),
)
def test_best_cut_is_the_best_of_all_cuts(n, clusters, seed, method):
    rng = np.random.default_rng(seed)
    X, labels = np.round(rng.standard_normal((n, 2)), 1), rng.integers(0, clusters, n)  # rounding makes ties
    Z = linkage(X, method)
    thresholds = np.concatenate([[-1.0], Z[:, 2]])
    scores = [adjusted_rand_score(labels, fcluster(Z, t, "distance")) for t in thresholds]
    found = best_cut(Z, labels)
    assert found.rand_index == pytest.approx(max(scores), abs=1e-9)
    if found.threshold > 0:
        own = adjusted_rand_score(labels, fcluster(Z, found.threshold, "distance"))
        assert own == pytest.approx(found.rand_index, abs=1e-9)


def naive_cut(Z, labels):
    """The best cut by trying every height with SciPy and scikit-learn."""
    heights = np.unique(Z[:, 2])
    between = (heights[:-1] + heights[1:]) / 2
    thresholds = np.concatenate([[heights[0] / 2], between, heights[-1:]])
    scores = [adjusted_rand_score(labels, fcluster(Z, t, "distance")) for t in thresholds]
    best = int(np.argmax(np.round(scores, 12)))  # the lowest of equally good cuts
    return thresholds[best], scores[best]


@pytest.mark.parametrize("clusters", [2, 30, 300])
def test_best_cut_of_many_points_is_the_naive_one(clusters):
    rng = np.random.default_rng(clusters)
    labels = rng.integers(0, clusters, 300)
    X = rng.standard_normal((clusters, 8))[labels] + 0.6 * rng.standard_normal((300, 8))
    Z = linkage(X, "average")
    threshold, score = naive_cut(Z, labels)
    found = best_cut(Z, labels)
    assert found.threshold == pytest.approx(threshold) and found.rand_index == pytest.approx(score)


def test_a_chain_of_labels_costs_n_log_n_count_moves(monkeypatch):
    """Each merge adds one point to a group with many labels: a pass over the larger side would make n²/2 steps."""
    n, moved = 400, 0

    class Counted(Counter):
        def items(self):
            nonlocal moved
            moved += len(self)
            return super().items()

        def values(self):
            nonlocal moved
            moved += len(self)
            return super().values()

    monkeypatch.setattr(lemma, "Counter", Counted)
    first = np.concatenate([[0], np.arange(n, 2 * n - 2)])
    Z = np.column_stack([first, np.arange(1, n), np.arange(1.0, n), np.arange(2, n + 1)])
    assert best_cut(Z, np.arange(n)).perfect
    assert n - 1 <= moved <= 2 * n * np.log2(n)


def test_names_do_not_matter_and_splits_do():
    assert same_partition([1, 1, 2, 3], [7, 7, 0, 1])
    assert not same_partition([1, 1, 2, 2], [1, 1, 1, 1])
    assert not same_partition([1, 1, 1, 1], [1, 1, 2, 2])
    assert not same_partition([1, 1, 2, 2], [1, 2, 1, 2])


def test_sampled_pairs_follow_the_exact_distribution():
    rng = np.random.default_rng(0)
    labels = np.repeat([0, 1, 2, 3], [30, 20, 9, 1])
    X = np.eye(4)[labels] + 0.3 * rng.standard_normal((60, 4))
    inside, between = sample_pair_distances(X, labels, 20_000, seed=3)
    everything = squareform(pdist(X, "cosine"))
    same = labels[:, None] == labels[None]
    company = same & ~np.eye(60, dtype=bool)
    expected_inside = np.mean([everything[i, company[i]].mean() for i in range(59)])
    expected_between = np.mean([everything[i, ~same[i]].mean() for i in range(60)])
    assert inside.mean() == pytest.approx(expected_inside, rel=0.02)
    assert between.mean() == pytest.approx(expected_between, rel=0.02)
    assert inside.max() <= everything[company].max() + 1e-12 and between.min() >= everything[~same].min() - 1e-12
    again = sample_pair_distances(X, labels, 20_000, seed=3)
    np.testing.assert_array_equal(inside, again[0])


def test_two_cliques_and_a_bridge_by_hand():
    A, labels = two_cliques_and_a_bridge(5)
    margin = lemma_margin(A, labels)
    assert (margin.k, margin.S_max) == (2, 5)
    assert margin.distance == pytest.approx(2) and margin.eigengap == 5
    assert margin.left == margin.M == pytest.approx(4 * 2 * (4 / 5) * 2)
    assert margin.right == pytest.approx(1 / sqrt(10)) and not margin.holds
    proof = lemma_margin(A, labels, form="proof")
    assert proof.left == pytest.approx(4 * 2 * 2 / 5)
    sharp = lemma_margin(A, labels, form="sharp")
    assert sharp.left == pytest.approx(4 / 5) and sharp.right == pytest.approx(1 / sqrt(5)) and not sharp.holds


def test_unequal_clusters_use_the_two_largest():
    labels = np.repeat([0, 1, 2], [9, 4, 2])
    margin = lemma_margin(ideal_adjacency(labels), labels, form="sharp")
    assert margin.right == pytest.approx(sqrt((1 / 9 + 1 / 4) / 2))
    assert margin.distance == pytest.approx(0, abs=1e-12) and margin.holds
    assert margin.inter_bound == pytest.approx(sqrt(1 / 9 + 1 / 4)) and margin.intra_bound == pytest.approx(0, abs=1e-9)


def test_one_bridge_between_cliques_satisfies_the_sharp_form_from_17_nodes_on():
    """2ε/g = 4/S < 1/√S if and only if S > 16; the printed form stays far away."""
    for size, expected in ((16, False), (17, True)):
        A, labels = two_cliques_and_a_bridge(size)
        assert lemma_margin(A, labels, form="sharp").holds is expected
        assert not lemma_margin(A, labels).holds


@pytest.mark.parametrize("sizes", SIZES, ids=str)
@pytest.mark.parametrize("kind", KINDS, ids=["unnormalised", "normalised", "self-loops"])
def test_no_form_is_ever_violated(sizes, kind):
    """Over 50,000 perturbed graphs in all. The printed form is a theorem for the first two Laplacians."""
    labels = np.repeat(np.arange(len(sizes)), sizes)
    rng = np.random.default_rng(7)
    tested = dict.fromkeys(FORMS, 0)
    for weight in (1e-3, 0.01, 0.05, 0.2, 1.0):
        for flips in (1, 2, 5):
            batch = lemma_batch(
                perturbed_graphs(labels, flips, 200, weight=weight, rng=rng),
                labels,
                normalised=kind[0],
                self_loops=kind[1],
            )
            for form in FORMS:
                if (kind, form) != ((True, True), "printed"):  # the printed constant is not claimed for self-loops
                    assert batch.violations(form) == 0
                tested[form] += int(batch.holds[form].sum())
    assert min(tested.values()) > 200  # the conditions do hold often enough for this to be a test


@settings(deadline=None, max_examples=60)
@given(
    st.lists(st.integers(1, 6), min_size=2, max_size=4).filter(lambda sizes: max(sizes) > 1),
    st.sampled_from(KINDS),
    st.floats(1e-3, 0.3),
    st.integers(0, 1000),
)
def test_the_promised_distances_are_kept(sizes, kind, weight, seed):
    """Not only separability: each bound on distances holds, graph by graph, for both correct forms."""
    labels = np.repeat(np.arange(len(sizes)), sizes)
    A = perturbed_graphs(labels, 2, 1, weight=weight, rng=np.random.default_rng(seed))[0]
    U = spectral_embedding(laplacian(A, kind[0], self_loops=kind[1]), len(sizes))
    truth = separation(U, labels)
    for form in ("proof", "sharp"):
        margin = lemma_margin(A, labels, normalised=kind[0], self_loops=kind[1], form=form)
        if form == "proof" or margin.left < 1:
            assert truth.intra_max <= margin.intra_bound + 1e-9
            assert truth.inter_min >= margin.inter_bound - 1e-9


@settings(deadline=None, max_examples=60)
@given(st.integers(2, 5), st.floats(0.01, 0.9), st.integers(0, 1000))
def test_sin_two_theta(k, ratio, seed):
    """sin 2θ ≤ 2ε/g and θ < π/4, for any symmetric perturbation with ε < g/2 (not only those that graphs make)."""
    rng = np.random.default_rng(seed)
    n, gap = 10, 2.0
    base = np.diag(np.concatenate([np.zeros(k), gap + rng.random(n - k)]))
    E = rng.standard_normal((n, n))
    E = (E + E.T) / np.linalg.norm(E + E.T, 2) * ratio * gap / 2
    U = np.linalg.eigh(base + E)[1][:, :k]
    theta = np.arcsin(np.linalg.norm(U[k:], 2))
    assert theta < np.pi / 4 and np.sin(2 * theta) <= ratio + 1e-9


def test_the_sharp_constant_cannot_be_improved_for_symmetric_matrices():
    """Rotate a pair across clusters and a pair inside one as far as sin 2θ = 2ε/g allows: the distances meet at the
    bound."""
    size = 5
    n, gap = 2 * size, float(size)
    labels = np.repeat([0, 1], size)
    mean, contrast = np.ones(n) / sqrt(n), np.repeat([1.0, -1.0], size) / sqrt(n)
    inside = np.zeros(n)
    inside[[0, 1]] = 1 / sqrt(2), -1 / sqrt(2)
    across = np.zeros(n)
    across[[2, n - 1]] = 1.0, -1.0
    across -= contrast * (contrast @ across)
    across /= np.linalg.norm(across)
    for factor, separable in ((0.99, True), (1.01, False)):
        ratio = factor / sqrt(size)  # 2ε/g relative to the sharp threshold √((1/S₁ + 1/S₂)/2) = 1/√S
        epsilon, cosine = ratio * gap / 2, ratio
        sine = sqrt(1 - cosine**2)
        E = np.zeros((n, n))
        for low, high, sign in ((mean, inside, 1), (contrast, across, 1)):
            E += epsilon * cosine * (np.outer(low, low) - np.outer(high, high))
            E += sign * epsilon * sine * (np.outer(low, high) + np.outer(high, low))
        assert np.linalg.norm(E, 2) == pytest.approx(epsilon)
        L = laplacian(ideal_adjacency(labels)).toarray() + E
        assert separation(spectral_embedding(L, 2), labels).separable is separable


def test_printed_constant_never_falls_below_the_proof_for_the_unnormalised_laplacian():
    """(1 − 1/S_max) ≥ 1/2 ≥ 1/S_min, so the printed M is at least the proof's: the printed lemma is conservative."""
    for sizes in SIZES[:-1]:
        labels = np.repeat(np.arange(len(sizes)), sizes)
        A = perturbed_graphs(labels, 2, 1, weight=0.1, rng=np.random.default_rng(0))[0]
        assert lemma_margin(A, labels).M >= lemma_margin(A, labels, form="proof").M - 1e-12
        assert (
            pytest.approx(lemma_margin(A, labels, normalised=True, form="proof").M)
            == lemma_margin(A, labels, normalised=True).M
        )


def test_singletons_alone_are_always_separable():
    """S_max = 1: the printed M is 0 whatever the graph, and rightly so, since all n eigenvectors keep all nodes √2
    apart."""
    rng = np.random.default_rng(1)
    A = (rng.random((200, 6, 6)) < 0.5).astype(float)
    A = np.triu(A, 1) + np.swapaxes(np.triu(A, 1), 1, 2)
    labels = np.arange(6)
    assert all(lemma_margin(a, labels, form=form).holds for a in A[:5] for form in FORMS)
    intra, inter = separation_stack(np.linalg.eigh(laplacian_stack(A))[1], labels)
    assert not intra.any()
    np.testing.assert_allclose(inter, sqrt(2))


def test_one_cluster_needs_no_condition():
    A = np.zeros((4, 4))
    A[0, 1] = A[1, 0] = 1.0
    margin = lemma_margin(A, np.zeros(4), form="sharp")
    assert margin.holds and margin.inter_bound == np.inf


def test_any_unweighted_change_is_too_much_for_the_printed_form():
    """An unweighted graph that differs from the ideal has ‖L − L°‖ ≥ √2, so M ≥ 4√k > 1/√(2·S_max)."""
    rng = np.random.default_rng(3)
    for sizes in ((4, 4), (10, 5, 1), (15, 15)):
        labels = np.repeat(np.arange(len(sizes)), sizes)
        for flips in (1, 2, 3, 6):
            batch = lemma_batch(perturbed_graphs(labels, flips, 200, rng=rng), labels)
            assert batch.distance.min() >= sqrt(2) - 1e-9
            assert not batch.holds["printed"].any()


def test_a_one_on_the_diagonal_of_isolated_nodes_breaks_the_lemma():
    """With the zero-row convention the condition holds and the embeddings separate; with a one they do not."""
    A, labels = dented_clique(300)
    margin = lemma_margin(A, labels, normalised=True)
    assert margin.holds
    L = laplacian(A, normalised=True)
    assert separation(spectral_embedding(L, 2), labels).separable
    other, ideal = L.toarray(), laplacian(ideal_adjacency(labels), normalised=True).toarray()
    other[-1, -1] = ideal[-1, -1] = 1.0
    assert np.linalg.norm(other - ideal, 2) == pytest.approx(margin.distance)
    assert not separation(spectral_embedding(other, 2), labels).separable


def test_batches_agree_with_single_margins():
    labels = np.repeat([0, 1, 2], [5, 3, 1])
    A = perturbed_graphs(labels, 3, 20, weight=0.3, rng=np.random.default_rng(5))
    for normalised, loops in KINDS:
        batch = lemma_batch(A, labels, normalised=normalised, self_loops=loops)
        for i, graph in enumerate(A):
            truth = separation(spectral_embedding(laplacian(graph, normalised, self_loops=loops), 3), labels)
            assert truth.intra_max == pytest.approx(batch.intra[i], abs=1e-8)
            for form in FORMS:
                single = lemma_margin(graph, labels, normalised=normalised, self_loops=loops, form=form)
                assert single.left / single.right == pytest.approx(batch.ratio[form][i])


def test_a_condition_ends_where_both_sides_are_equal():
    ideal = ideal_laplacian(np.repeat([0, 1, 2], 5))
    assert condition_end(ideal, "sharp") == pytest.approx(5 * np.sqrt(1 / 5) / 2)
    assert condition_end(ideal, "printed") == pytest.approx(1 / (np.sqrt(10) * 4 * np.sqrt(6) * 0.8))
    assert condition_end(ideal_laplacian([0, 1, 2]), "printed") == np.inf


def test_one_edge_between_cliques_is_at_distance_two_from_each_condition():
    for size in (5, 17):
        A, labels = two_cliques_and_a_bridge(size)
        for form in FORMS:
            margin = lemma_margin(A, labels, form=form)
            assert margin.left / margin.right == pytest.approx(2 / condition_end(ideal_laplacian(labels), form))
