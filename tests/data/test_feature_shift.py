"""Distances between graphs before and after scaling."""

from dataclasses import replace

import numpy as np
import pytest

from btcnb.data import load_splits
from btcnb.data.feature_shift import dollar_correlation, feature_shift


@pytest.fixture(scope="module")
def graph():
    return load_splits("tiny", names=["train1"])["train1"]


def times(graph, factor):
    """The same graph with every amount multiplied: another price."""
    amounts = [name for name in graph.nodes if "sent" in name or "received" in name]
    return replace(graph, nodes=graph.nodes.assign(**{name: graph.nodes[name] * factor for name in amounts}))


def test_a_graph_is_no_distance_from_itself(graph):
    table = feature_shift({"one": graph, "other": graph})
    assert (table[["before", "after"]].to_numpy() == 0).all()
    assert table["kind"].value_counts().to_dict() == {"amounts": 6, "block numbers": 4, "counts": 4}


def test_another_price_is_a_shift_and_scaling_takes_it_away(graph):
    table = feature_shift({"one": graph, "other": times(graph, 1000.0)})
    amounts = table[table["kind"] == "amounts"]
    assert (amounts["before"] > 0.2).all()
    assert (amounts["after"] < 0.001).all()
    assert (table.loc[table["kind"] != "amounts", ["before", "after"]].to_numpy() == 0).all()


def test_one_graph_alone_is_compared_with_nothing(graph):
    assert feature_shift({"one": graph})[["before", "after"]].isna().all().all()


def test_dollars_are_copies_of_satoshi_until_the_price_makes_them_dust(graph):
    assert dollar_correlation(graph) > 0.9
    cheap = replace(graph, meta={**graph.meta, "price_usd": 1e-3})  # log(1 + x) is linear in such dust
    assert dollar_correlation(cheap) < dollar_correlation(graph)
    assert np.isnan(dollar_correlation(replace(graph, meta={**graph.meta, "price_usd": None})))
