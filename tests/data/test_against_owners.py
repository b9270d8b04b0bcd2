"""Partitions against owners: counts that one can check by hand, and brute force over all pairs."""

from itertools import combinations

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from btcnb.data.components import components
from btcnb.data.judging.owners import against_owners, owners_in, pair_scores, pieces_per_owner
from btcnb.errors import ParameterError

LABELS = np.array([0, 0, 0, 1, 1, 2, 3])
OWNER = np.array([7, 7, 8, 8, 8, 9, -1])  # nobody knows who owns the last one


def test_a_partition_of_six_known_addresses():
    row = against_owners(LABELS, OWNER)
    assert row == {
        "clusters": 3,
        "largest": 3 / 6,
        "collapsed": 1,
        "in_collapsed": 3 / 6,
        "most_owners": 2,
        "precision": 2 / 4,  # right pairs: two of owner 7, two of owner 8; together: three and one
        "recall": 2 / 4,
    }
    assert pieces_per_owner(LABELS, OWNER) == 4 / 3
    assert owners_in(LABELS, OWNER).loc[0].tolist() == [3, 2]


partitions = st.integers(1, 12).flatmap(
    lambda n: st.tuples(*(st.lists(st.integers(low, 3), min_size=n, max_size=n) for low in (0, -1)))
)


@given(partitions)
def test_pairs_are_counted_as_brute_force_counts_them(given_pair):
    labels, owner = (np.array(values) for values in given_pair)
    known = list(combinations(np.flatnonzero(owner >= 0), 2))
    together = [labels[i] == labels[j] for i, j in known]
    same = [owner[i] == owner[j] for i, j in known]
    right = sum(a and b for a, b in zip(together, same, strict=True))
    precision, recall = pair_scores(labels, owner)
    assert np.array_equal(precision, right / sum(together) if sum(together) else np.nan, equal_nan=True)
    assert np.array_equal(recall, right / sum(same) if sum(same) else np.nan, equal_nan=True)


@given(st.integers(1, 10).flatmap(lambda n: st.lists(st.tuples(*[st.integers(0, n - 1)] * 2)).map(lambda e: (n, e))))
def test_components_are_those_of_networkx_numbered_by_their_lowest_member(case):
    number, pairs = case
    graph = nx.Graph(pairs)
    graph.add_nodes_from(range(number))
    a, b = (np.array([pair[side] for pair in pairs], dtype=np.int64) for side in (0, 1))
    expected = sorted((sorted(part) for part in nx.connected_components(graph)), key=lambda part: part[0])
    labels = components(number, a, b)
    assert [np.flatnonzero(labels == label).tolist() for label in range(labels.max() + 1)] == expected


def test_nothing_known_gives_no_score():
    row = against_owners(np.array([0, 0]), np.array([-1, -1]))
    assert np.isnan([row["largest"], row["precision"], row["recall"]]).all()
    assert row["clusters"] == row["collapsed"] == row["most_owners"] == 0


def test_labels_and_owners_belong_to_the_same_addresses():
    with pytest.raises(ParameterError, match="3 labels stand against 2 owners"):
        against_owners(np.zeros(3, dtype=int), np.zeros(2, dtype=int))
