"""Do groups of nodes hang together? Pieces of induced subgraphs, and stand-ins of the same degree as a control.

The paper expects the addresses of one user to form connected subgraphs (Section 4.1) and to lie close together
(Section 5.1). In a graph with hubs a busy node is close to everything, so groups are compared with groups of the same
sizes, and of the same degrees, that have nothing else in common.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from btcnb import gates
from btcnb.errors import ParameterError
from btcnb.theory.laplacians import IntArray, as_edge_index

CLASS = 20
"""Nodes from which a stand-in is drawn, at least: where fewer have the same degree, the nearest degrees join them."""


def weak_components(edge_index: npt.ArrayLike, num_nodes: int) -> IntArray:
    """Per node the number of its component, edges (2, E) taken in both directions."""
    edges = as_edge_index(edge_index, num_nodes)
    ones = np.ones(edges.shape[1])
    matrix = coo_array((ones, (edges[0], edges[1])), shape=(num_nodes, num_nodes))
    return connected_components(matrix, directed=False)[1].astype(np.int64)


def group_pieces(edge_index: npt.ArrayLike, groups: npt.ArrayLike) -> pd.DataFrame:
    """Per group with two or more nodes: size, pieces (components of its induced subgraph), largest (share of the group
    in its largest piece), connected. Indexed by group.

    groups: (N,) number of each node's group; negative: in none.
    """
    codes = _whole("groups", groups)
    edges = as_edge_index(edge_index, len(codes))
    inside = edges[:, (codes[edges[0]] == codes[edges[1]]) & (codes[edges[0]] >= 0)]
    piece = weak_components(inside, len(codes))
    member = codes >= 0
    sizes = pd.DataFrame({"group": codes[member], "piece": piece[member]}).value_counts().reset_index(name="size")
    found = sizes.groupby("group")["size"].agg(size="sum", pieces="count", largest="max")
    found = found[found["size"] >= 2]
    return found.assign(largest=found["largest"] / found["size"], connected=found["pieces"] == 1)


def degree_stand_ins(degree: npt.ArrayLike, nodes: npt.ArrayLike, seed: int, least: int = CLASS) -> IntArray:
    """For each entry of `nodes` another node of the same degree, drawn uniformly and independently.

    Where fewer than `least` nodes have that degree, those of the nearest ranks by degree join the draw, so that hubs
    get other hubs as stand-ins. A node never stands in for itself.
    """
    degrees, wanted = _whole("degree", degree), _whole("nodes", nodes)
    gates.whole("least", least, "[2, inf)")
    if wanted.size and not 0 <= wanted.min() <= wanted.max() < len(degrees):
        raise ParameterError(f"nodes must lie between 0 and {len(degrees) - 1}.")
    if len(degrees) < 2:
        raise ParameterError("degree has fewer than two entries, so no node has a stand-in.")
    order = np.argsort(degrees, kind="stable")
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    ranked, own = degrees[order], rank[wanted]
    low, high = (np.searchsorted(ranked, degrees[wanted], side=side) for side in ("left", "right"))
    half = min(least, len(degrees)) // 2
    few = high - low < min(least, len(degrees))
    start = np.clip(own - half, 0, max(len(degrees) - 2 * half, 0))
    low = np.where(few, np.minimum(low, start), low)
    high = np.where(few, np.maximum(high, np.minimum(start + 2 * half, len(degrees))), high)
    drawn = low + np.random.default_rng(seed).integers(0, high - low - 1)  # one fewer: the node itself is skipped
    return order[drawn + (drawn >= own)]


def degree_matched_groups(degree: npt.ArrayLike, groups: npt.ArrayLike, seed: int) -> IntArray:
    """Groups of the same sizes and (nearly) the same degrees with members dealt anew: memberships change hands among
    `CLASS` nodes of neighbouring degree rank. Nodes in no group stay there.
    """
    degrees, codes = _whole("degree", degree), _whole("groups", groups)
    if len(degrees) != len(codes):
        raise ParameterError(f"degree has {len(degrees)} entries, groups {len(codes)}; they must have one per node.")
    rng = np.random.default_rng(seed)
    members = np.flatnonzero(codes >= 0)
    tie = rng.permutation(len(members))  # nodes of one degree stand in random order
    ranked = members[np.lexsort((tie, degrees[members]))]
    block = np.arange(len(ranked)) // CLASS
    shuffled = ranked[np.lexsort((rng.random(len(ranked)), block))]
    dealt = codes.copy()
    dealt[ranked] = codes[shuffled]
    return dealt


def _whole(name: str, values: npt.ArrayLike) -> IntArray:
    return gates.array(name, values, 1, "iu").astype(np.int64)
