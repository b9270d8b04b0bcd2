"""A cluster as a graph, and several clusters to choose from."""

from __future__ import annotations

import re

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from btcnb.book.cluster_graph import draw_neighbourhood, neighbourhood, neighbourhood_svg
from btcnb.book.interactive_clusters import Panel, explorer_html
from btcnb.data import AddressGraph
from btcnb.data.graph import EDGE_COLUMNS, NODE_COLUMNS
from btcnb.errors import DataError, ParameterError


def path_graph(n: int, edges: list[tuple[int, int]]) -> AddressGraph:
    nodes = pd.DataFrame({name: np.zeros(n, dtype=np.int64) for name in NODE_COLUMNS}).assign(node_id=np.arange(n))
    table = pd.DataFrame({name: np.zeros(len(edges), dtype=np.int64) for name in EDGE_COLUMNS})
    table[["a", "b"]] = edges
    return AddressGraph(nodes, table, pd.DataFrame({"node_id": np.arange(n), "alias": np.arange(n)}))


# 0 - 1 - 2 - 3 - 4, and 5 that pays 1 and 2
GRAPH = path_graph(6, [(0, 1), (1, 2), (2, 3), (3, 4), (5, 1), (5, 2), (2, 1)])
TREE = np.array([[0, 1, 0.4, 2]])


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


def test_members_outside_the_graph_are_refused():
    for members in ([], [6], [-1]):
        with pytest.raises(DataError, match="positions of nodes"):
            neighbourhood(GRAPH, np.array(members, dtype=int))


def test_groups_differ_in_colour_and_shape_and_only_members_are_numbered():
    fig, ax = plt.subplots()
    draw_neighbourhood(ax, neighbourhood(GRAPH, [1, 2]), [0, 1])
    assert [text.get_text() for text in ax.texts] == ["0", "1"]
    outside, first, second = ax.collections
    assert len(outside.get_offsets()) == 3 and len(first.get_offsets()) == len(second.get_offsets()) == 1
    assert first.get_facecolor().tolist() != second.get_facecolor().tolist()
    assert len(first.get_paths()[0].vertices) != len(second.get_paths()[0].vertices)
    plt.close(fig)


def test_the_graph_is_painted_like_the_leaves_of_its_tree():
    page = neighbourhood_svg(neighbourhood(GRAPH, [1, 2]), [1, 0], ["a <b>", "c"])
    assert re.findall(r'data-leaf="(\d)"', page) == ["1", "0"]
    assert "a &lt;b&gt;" in page and "<b>" not in page


def test_an_explorer_lists_its_clusters_loads_nothing_and_stands_without_scripts():
    panels = [Panel(f"cluster <{i}>", TREE, ["owner a", "owner b"], neighbourhood(GRAPH, [1, 2])) for i in range(2)]
    page = explorer_html(panels, cut=0.3)
    assert not re.search(r"(src|href)=|https?://", page)
    assert page.count("<option") == 2 and "cluster &lt;1&gt;" in page and page.count('class="panel"') == 2
    assert "hidden" not in page.split("<script>")[0]
    assert page.count('class="node"') == 4
    with pytest.raises(ParameterError, match="empty"):
        explorer_html([], 0.3)
