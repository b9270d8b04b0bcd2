"""Distances between graphs before and after scaling."""

from dataclasses import replace

import numpy as np
import pytest

from btcnb.data import load_splits
from btcnb.data.features import AMOUNT_COLUMNS, dollar_correlations, feature_shift


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
    assert table["kind"].value_counts().to_dict() == {
        "amounts": 6,
        "dollars": 6,
        "block numbers": 4,
        "counts": 4,
    }
    unpriced = replace(graph, meta={**graph.meta, "price_usd": None})
    assert "dollars" not in set(feature_shift({"one": graph, "other": unpriced})["kind"])


def test_another_price_is_a_shift_and_scaling_takes_it_away(graph):
    """In satoshi: there the logarithm is one. In bitcoins small amounts are hardly bent, and a factor is no shift."""
    table = feature_shift({"one": graph, "other": times(graph, 1000.0)}, unit="satoshi")
    amounts = table[table["kind"] == "amounts"]
    assert (amounts["before"] > 0.2).all()
    assert (amounts["after"] < 0.001).all()
    assert (table.loc[table["kind"].isin(["counts", "block numbers"]), ["before", "after"]].to_numpy() == 0).all()


def test_dollars_undo_a_price_that_bitcoins_cannot(graph):
    """The same payments in dollars at a hundredfold price: amounts shift, dollars do not."""
    dear = times(graph, 0.01)
    dear = replace(dear, meta={**graph.meta, "price_usd": 100 * graph.meta["price_usd"]})
    table = feature_shift({"one": graph, "other": dear}).groupby("kind")[["before", "after"]].mean()
    assert np.allclose(table.loc["dollars"], 0, atol=1e-6)
    assert (table.loc["amounts"] > 0.05).all(), "in bitcoins the scaled columns bend differently"


def test_one_graph_alone_is_compared_with_nothing(graph):
    assert feature_shift({"one": graph})[["before", "after"]].isna().all().all()


def with_amounts(graph, satoshi, price_usd):
    """The graph's first nodes, with these amounts in all six columns."""
    nodes = graph.nodes.head(len(satoshi)).assign(**dict.fromkeys(AMOUNT_COLUMNS, np.asarray(satoshi)))
    return replace(graph, nodes=nodes, meta={**graph.meta, "price_usd": price_usd})


def test_dollars_repeat_satoshi_but_not_bitcoins(graph):
    """From 10⁵ to 10⁸ satoshi at 10,000 dollars: log(1+x) is a logarithm of satoshi and of dollars, not of bitcoins."""
    cents = np.logspace(5, 8, 50)
    table = dollar_correlations(with_amounts(graph, cents, 10_000.0))
    assert list(table.index) == list(AMOUNT_COLUMNS) and set(table) == {"bitcoin", "satoshi"}
    assert (table["satoshi"] > 0.999).all()
    by_hand = np.corrcoef(np.log1p(cents / 1e8), np.log1p(cents / 1e4))[0, 1]
    assert np.allclose(table["bitcoin"], by_hand, atol=1e-5) and by_hand < 0.9


def test_a_dollar_that_is_a_bitcoin_is_its_twin(graph):
    table = dollar_correlations(with_amounts(graph, np.logspace(5, 12, 50), 1.0))
    assert np.allclose(table["bitcoin"], 1.0) and (table["satoshi"] < 0.99).all()


def test_missing_amounts_do_not_count(graph):
    known = np.logspace(5, 8, 50)
    with_holes = np.concatenate([known, np.full(30, np.nan)])
    one, other = (dollar_correlations(with_amounts(graph, values, 10_000.0)) for values in (known, with_holes))
    assert np.allclose(one, other)


def test_without_a_price_or_without_spread_there_is_nothing_to_correlate(graph):
    assert dollar_correlations(with_amounts(graph, np.logspace(5, 8, 50), None)).isna().all().all()
    assert dollar_correlations(with_amounts(graph, np.full(50, 1e6), 10_000.0)).isna().all().all()
