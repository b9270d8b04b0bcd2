"""Geometry of the figures about clusters."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import pytest

from btcnb.book.cluster_pictures import (
    cliques_in_a_ring,
    edge_lines,
    principal_plane,
    scatter_clusters,
    spectral_plane,
)
from btcnb.theory import ideal_adjacency, laplacian, spectral_embedding


def test_each_cluster_gets_a_look_of_its_own():
    plt.switch_backend("agg")
    figure, ax = plt.subplots()
    scatter_clusters(ax, np.zeros((4, 2)), [0, 0, 1, 9], s=5)
    colours = [tuple(entry.get_facecolor()[0]) for entry in ax.collections]
    assert [len(entry.get_offsets()) for entry in ax.collections] == [2, 1, 1]
    assert colours[0] != colours[1] == colours[2]  # the tenth starts again with the second look
    plt.close(figure)


def test_cliques_lie_around_their_middles():
    place = cliques_in_a_ring(3, 20).reshape(3, 20, 2)
    middles = place.mean(axis=1)
    assert np.allclose(np.linalg.norm(middles, axis=1), 1) and np.allclose(middles[0], (0, 1))
    assert np.allclose(np.linalg.norm(place - middles[:, None], axis=2), 0.5)


def test_edges_are_one_line_with_gaps():
    line = edge_lines(np.array([[0.0, 0], [1, 0], [1, 1]]), [0, 1], [1, 2])
    assert line.shape == (2, 6) and np.isnan(line[:, [2, 5]]).all()
    assert line[:, [0, 1, 3, 4]].T.tolist() == [[0, 0], [1, 0], [1, 0], [1, 1]]


@pytest.mark.parametrize("clusters", [2, 3, 5])
def test_the_plane_shows_clusters_as_points_that_face_the_drawing(clusters):
    labels = np.repeat(np.arange(clusters), 6)
    U = spectral_embedding(laplacian(ideal_adjacency(labels)), clusters)
    place = cliques_in_a_ring(clusters, 6)
    flat = spectral_plane(U, place)
    assert flat.shape == (6 * clusters, 2)
    assert np.allclose(flat, np.repeat(flat[::6], 6, axis=0), atol=1e-9)
    if clusters == 3:  # the whole picture fits the plane: same triangle, same way up
        middles = place.reshape(3, 6, 2).mean(axis=1)
        assert np.allclose(flat[::6], np.sqrt(2 / 6) / np.sqrt(3) * middles, atol=1e-6)


def test_principal_components_keep_distances_of_a_plane():
    rng = np.random.default_rng(0)
    points = rng.normal(size=(30, 2))
    turned = points @ np.linalg.qr(rng.normal(size=(5, 2)))[0].T + 3
    flat = principal_plane(turned)
    assert np.allclose(np.linalg.norm(flat[:, None] - flat, axis=2), np.linalg.norm(points[:, None] - points, axis=2))
