"""Examples are found in whatever transactions are at hand; geometry of clusters, neighbourhoods and trees."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from btcnb.book.drawings import (
    GREY,
    cliques_in_a_ring,
    draw_neighbourhood,
    draw_tree,
    edge_lines,
    example_payment,
    neighbourhood,
    owner_names,
    payer_shades,
    plain_shape,
    scatter_clusters,
    spectral_plane,
    uneven_payment,
)
from btcnb.data import AddressGraph, Source, load_transactions
from btcnb.data.graph import EDGE_COLUMNS, NODE_COLUMNS
from btcnb.theory import ideal_adjacency, laplacian, spectral_embedding

sys.path.insert(0, str(Path(__file__).parents[1] / "data"))
from builders import BTC, chain, ids


@pytest.fixture(scope="module")
def simulated():
    return load_transactions(Source(size="tiny"), "train1", sampled=False)


def test_with_truth_a_round_payment_is_shown(simulated):
    tx = example_payment(simulated)
    change = simulated.truth.change[tx]
    paid = simulated.outputs.loc[simulated.outputs["tx"] == tx, "value"].tolist()
    assert len(paid) == 2
    assert paid[1 - change] % 100_000 == 0


def test_without_truth_any_payment_of_that_shape_will_do(simulated):
    blind = replace(simulated, truth=None)
    tx = example_payment(blind)
    assert plain_shape(blind, 2, 2)[tx]
    assert set(payer_shades(blind, tx, "blue", "orange")) == {GREY}
    assert owner_names(blind)[0] == blind.addresses[0]


def test_a_chain_of_coinbases_has_an_example_too():
    txs = chain().coinbase(to="a", value=BTC).coinbase(to="b", value=BTC).build()
    assert example_payment(txs) in (0, 1)
    assert set(payer_shades(txs, 0, "blue", "orange")) == {GREY}


def test_owners_give_names_and_colours():
    txs = chain().pay(["a", "a2"], {"shop": BTC, "a3": BTC}).owners(ann="a a2 a3", shop="shop").build()
    shades = payer_shades(txs, 0, "blue", "orange")
    assert {name: shades[place] for name, place in ids(txs).items()} == {
        "a": "blue", "a2": "blue", "a3": "blue", "shop": "orange"
    }  # fmt: skip
    assert len(np.unique(owner_names(txs).astype(str))) == 2
    assert plain_shape(txs, 2, 2).tolist() == [True]


def test_an_uneven_payment_shows_how_inputs_share_an_output():
    even = chain().pay([("a", 5), ("b", 5)], {"c": 4, "d": 6})
    assert uneven_payment(even.build()) == 0
    assert uneven_payment(even.pay([("e", 9), ("f", 3)], {"g": 4, "h": 8}).build()) == 1
    assert uneven_payment(chain().pay(["a", "b"], {"c": 4}).build()) is None


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


def path_graph(n: int, edges: list[tuple[int, int]]) -> AddressGraph:
    nodes = pd.DataFrame({name: np.zeros(n, dtype=np.int64) for name in NODE_COLUMNS}).assign(node_id=np.arange(n))
    table = pd.DataFrame({name: np.zeros(len(edges), dtype=np.int64) for name in EDGE_COLUMNS})
    table[["a", "b"]] = edges
    return AddressGraph(nodes, table, pd.DataFrame({"node_id": np.arange(n), "alias": np.arange(n)}))


GRAPH = path_graph(6, [(0, 1), (1, 2), (2, 3), (3, 4), (5, 1), (5, 2), (2, 1)])


def test_members_come_first_then_their_immediate_neighbours():
    drawn = neighbourhood(GRAPH, [2, 1])
    assert drawn.nodes.tolist() == [1, 2, 0, 3, 5] and drawn.members == 2 and drawn.left_out == 0
    # every edge between drawn nodes that touches the cluster, once, whatever its direction
    named = {tuple(sorted(drawn.nodes[list(edge)].tolist())) for edge in drawn.edges}
    assert named == {(0, 1), (1, 2), (2, 3), (1, 5), (2, 5)} and len(drawn.edges) == 5
    assert np.array_equal(drawn.place, neighbourhood(GRAPH, [1, 2]).place)


def test_of_many_neighbours_the_best_connected_are_drawn():
    drawn = neighbourhood(GRAPH, [1, 2], most=1)
    assert drawn.nodes.tolist() == [1, 2, 5] and drawn.left_out == 2


def test_groups_differ_in_colour_and_shape_and_only_members_are_numbered():
    fig, ax = plt.subplots()
    draw_neighbourhood(ax, neighbourhood(GRAPH, [1, 2]), [0, 1])
    assert [text.get_text() for text in ax.texts] == ["0", "1"]
    outside, first, second = ax.collections
    assert len(outside.get_offsets()) == 3 and len(first.get_offsets()) == len(second.get_offsets()) == 1
    assert first.get_facecolor().tolist() != second.get_facecolor().tolist()
    assert len(first.get_paths()[0].vertices) != len(second.get_paths()[0].vertices)
    plt.close(fig)


def test_merges_above_the_threshold_are_dashed_and_leaves_keep_their_colours() -> None:
    _, ax = plt.subplots()
    tree = np.array([[0, 2, 0.1, 2], [1, 3, 0.6, 3]])
    order = draw_tree(ax, tree, 0.5, ["red", "blue", "green"], list("abc"))
    assert order == [1, 0, 2] and [label.get_text() for label in ax.get_xticklabels()] == ["b", "a", "c"]
    merges = {line.get_ydata()[1]: line for line in ax.lines[:2]}
    assert merges[0.1].get_linestyle() == "-" and merges[0.6].get_linestyle() == "--"
    assert merges[0.1].get_xdata().tolist() == [1, 1, 2, 2] and merges[0.6].get_xdata().tolist() == [0, 0, 1.5, 1.5]
    plt.close("all")
