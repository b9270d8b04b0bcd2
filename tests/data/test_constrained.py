"""Merging under cannot-links: scenarios by hand, and every small case against a naive reading of the rule."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from btcnb.data.change_votes import constrained_merges
from btcnb.data.change_votes.constrained import BLOCKED, JOINED, MERGED
from btcnb.data.components import components

Edges = list[tuple[int, int]]


def sides(edges: Edges) -> tuple[list[int], list[int]]:
    return [a for a, _ in edges], [b for _, b in edges]


def merged(size: int, merges: Edges, apart: Edges) -> tuple[list[int], list[int]]:
    found = constrained_merges(size, sides(merges), sides(apart))
    return found.labels.tolist(), found.outcome.tolist()


def test_a_direct_cannot_link_blocks_the_merge() -> None:
    assert merged(3, [(0, 1), (1, 2)], [(0, 1)]) == ([0, 1, 1], [BLOCKED, MERGED])


def test_constraints_are_inherited_by_the_united_cluster() -> None:
    """0 and 3 must stay apart: joining 0-1 and 2-3 makes 1-2 impossible too."""
    assert merged(4, [(0, 1), (2, 3), (1, 2)], [(0, 3)]) == ([0, 0, 1, 1], [MERGED, MERGED, BLOCKED])


def test_the_order_of_the_transactions_decides_who_comes_first() -> None:
    apart = [(0, 2)]
    assert merged(3, [(0, 1), (1, 2)], apart) == ([0, 0, 1], [MERGED, BLOCKED])
    assert merged(3, [(1, 2), (0, 1)], apart) == ([0, 1, 1], [MERGED, BLOCKED])


def test_what_is_in_one_cluster_already_is_no_merge() -> None:
    assert merged(3, [(0, 1), (1, 0), (1, 2), (2, 0)], [])[1] == [MERGED, JOINED, MERGED, JOINED]


def test_a_chain_of_wrong_merges_is_stopped_once_between_two_services() -> None:
    """Services 0 and 9; users 1 to 8 in a row between them. Naive merging makes one supercluster of all."""
    row = [(i, i + 1) for i in range(9)]
    assert set(components(10, *sides(row)).tolist()) == {0}
    labels, outcome = merged(10, row, [(0, 9)])
    assert outcome == [MERGED] * 8 + [BLOCKED]
    assert labels == [0] * 9 + [1]


def test_a_link_to_oneself_forbids_nothing() -> None:
    found = constrained_merges(2, ([0], [1]), ([0], [0]))
    assert found.labels.tolist() == [0, 0]
    assert found.counts == {"merged": 1, "joined": 0, "blocked": 0}


def test_nothing_to_do() -> None:
    assert constrained_merges(0, ([], []), ([], [])).labels.tolist() == []
    assert constrained_merges(3, ([], []), ([0], [1])).labels.tolist() == [0, 1, 2]
    assert components(2, [], []).tolist() == [0, 1]


def slow(size: int, merges: Edges, apart: Edges) -> tuple[list[int], list[int]]:
    """The rule read word by word: labels are rewritten at each merge, every constraint is looked at each time."""
    label, outcome = list(range(size)), []
    for a, b in merges:
        if label[a] == label[b]:
            outcome.append(JOINED)
        elif any({label[c], label[d]} == {label[a], label[b]} for c, d in apart):
            outcome.append(BLOCKED)
        else:
            outcome.append(MERGED)
            old, new = label[b], label[a]
            label = [new if each == old else each for each in label]
    order = list(dict.fromkeys(label))
    return [order.index(each) for each in label], outcome


edges = st.lists(st.tuples(st.integers(0, 11), st.integers(0, 11)), max_size=30)


@given(edges, edges)
def test_it_is_what_the_naive_reading_says(merges: Edges, apart: Edges) -> None:
    assert merged(12, merges, apart) == slow(12, merges, apart)


@given(edges, edges)
def test_constraints_hold_refine_the_naive_clusters_and_vanish_without_any(merges: Edges, apart: Edges) -> None:
    labels, _ = merged(12, merges, apart)
    assert all(labels[c] != labels[d] for c, d in apart if c != d)
    loose = components(12, *sides(merges))
    assert all(loose[i] == loose[j] for i in range(12) for j in range(12) if labels[i] == labels[j])
    assert merged(12, merges, [])[0] == loose.tolist()


def test_many_constraints_on_one_cluster_are_no_quadratic_affair() -> None:
    """A service that 50,000 others must not join is merged 50,000 times: sets move, they are not copied."""
    n = 50_000
    service, friends, enemies = 0, np.arange(1, n), np.arange(n, 2 * n)
    found = constrained_merges(2 * n, (np.full(n - 1, service), friends), (np.concatenate([friends, [0]]), enemies))
    assert found.counts == {"merged": n - 1, "joined": 0, "blocked": 0}
    again = constrained_merges(
        2 * n,
        (np.concatenate([np.full(n - 1, service), enemies]), np.concatenate([friends, np.zeros(n, dtype=np.int64)])),
        (np.concatenate([friends, [0]]), enemies),
    )
    assert again.counts["blocked"] == n
