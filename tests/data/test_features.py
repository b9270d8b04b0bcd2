"""Feature preprocessing: the formula by hand, missing values, degenerate columns, dollars."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from btcnb.data import AddressGraph, Source, load_graph
from btcnb.data.features import (
    AMOUNT_COLUMNS,
    dollar_correlations,
    edge_features,
    feature_names,
    feature_shift,
    features,
    scale_column,
)
from btcnb.data.graph import EDGE_COLUMNS, NODE_COLUMNS
from btcnb.errors import ParameterError


def random_graph(number: int = 200, edges: int = 400, seed: int = 0, **meta: Any) -> AddressGraph:
    """A graph whose columns hold heavy-tailed values, every third one missing where it may be."""
    rng = np.random.default_rng(seed)
    nodes = {name: np.floor(rng.lognormal(3, 2, number)) for name in NODE_COLUMNS}
    nodes["node_id"] = np.arange(number) + 1000
    for name in NODE_COLUMNS[5:]:
        nodes[name][::3] = np.nan
        if "transaction" in name:
            nodes[name] += 599_000
    ends = rng.integers(0, number, (2, edges)) + 1000
    table = {name: np.floor(rng.lognormal(3, 2, edges)) for name in EDGE_COLUMNS}
    table |= {"a": ends[0], "b": ends[1]}
    return AddressGraph(
        nodes=pd.DataFrame(nodes),
        edges=pd.DataFrame(table),
        clusters=pd.DataFrame({"node_id": nodes["node_id"], "alias": 0}),
        meta={"price_usd": 8_000.0, "start_block": 599_000, **meta},
    )


def test_scaling_by_hand() -> None:
    """log(1+x) of 0, e−1, e²−1, … is 0, 1, 2, …, 100: the 5th percentile is 5, the 95th 95."""
    values = np.expm1(np.arange(101.0))
    assert np.allclose(scale_column(values), (np.arange(101) - 5) / 90)
    assert np.allclose(scale_column(values, clip=True), np.clip((np.arange(101) - 5) / 90, 0, 1))
    assert np.allclose(scale_column(values, percentiles=(0, 100)), np.arange(101) / 100)


def test_missing_values_are_zero_and_do_not_move_the_percentiles() -> None:
    values = np.expm1(np.arange(101.0))
    holes = np.insert(values, [0, 50, 101], np.nan)
    scaled = scale_column(holes)
    assert (scaled[np.isnan(holes)] == 0).all()
    assert np.allclose(scaled[~np.isnan(holes)], scale_column(values))


def test_degenerate_columns() -> None:
    assert (scale_column(np.full(9, 7.0)) == 0).all(), "a constant column carries nothing"
    assert (scale_column(np.full(9, np.nan)) == 0).all()
    assert scale_column(np.empty(0)).shape == (0,)
    mostly_ones = np.array([1.0] * 99 + [3.0])
    assert np.allclose(scale_column(mostly_ones), [0.0] * 99 + [1.0]), "min and max stand in for equal percentiles"


@given(arrays(np.float64, st.integers(1, 40), elements=st.just(np.nan) | st.integers(0, 21 * 10**14).map(float)))
def test_scaled_values_are_finite_and_keep_the_order(values: np.ndarray) -> None:
    scaled = scale_column(values)
    assert np.isfinite(scaled).all()
    known = ~np.isnan(values)
    order = np.argsort(values[known], kind="stable")
    assert (np.diff(scaled[known][order]) >= 0).all()
    clipped = scale_column(values, clip=True)
    assert ((clipped >= 0) & (clipped <= 1)).all()


def test_columns_names_and_types() -> None:
    graph = random_graph()
    X = features(graph)
    assert X.shape == (200, 20) and X.dtype == np.float32 and np.isfinite(X).all()
    assert features(graph, usd=False).shape == (200, 14)
    names = feature_names()
    assert len(names) == 20
    assert names[:14] == list(NODE_COLUMNS[1:])
    assert names[14:] == [f"{verb}_{kind}_usd" for kind in ("sent", "received") for verb in ("min", "max", "total")]
    for position, name in enumerate(names[:14]):
        values = graph.nodes[name].to_numpy(np.float64) / (1e8 if name in AMOUNT_COLUMNS else 1)
        assert np.allclose(X[:, position], scale_column(values), atol=1e-5)


def test_amounts_are_bitcoins_unless_satoshi_are_asked_for() -> None:
    """0, e−1, e²−1, … bitcoins have logarithms 0, 1, 2, …: equal steps in bitcoins, not in satoshi."""
    graph = random_graph(number=101)
    bitcoins = np.expm1(np.arange(101) / 10)
    graph.nodes["total_sent"] = np.round(bitcoins * 1e8)
    column = feature_names().index("total_sent")
    assert np.allclose(features(graph)[:, column], (np.arange(101) - 5) / 90, atol=1e-6)
    assert np.array_equal(features(graph), features(graph, unit="bitcoin"))
    satoshi = features(graph, unit="satoshi")
    assert np.allclose(satoshi[:, column], scale_column(graph.nodes["total_sent"].to_numpy()), atol=1e-6)
    assert not np.allclose(satoshi[:, column], features(graph)[:, column], atol=0.1)
    same = [position for position, name in enumerate(feature_names()) if name not in AMOUNT_COLUMNS]
    assert np.array_equal(satoshi[:, same], features(graph)[:, same]), "counts, blocks and dollars have no such unit"


def test_dollars_are_taken_at_the_first_day() -> None:
    graph = random_graph()
    column = feature_names().index("total_sent_usd")
    dollars = graph.nodes["total_sent"].to_numpy() * 8_000 / 1e8
    assert np.allclose(features(graph)[:, column], scale_column(dollars), atol=1e-5)
    assert np.allclose(features(random_graph(price_usd=2e4))[:, column], scale_column(dollars * 2.5), atol=1e-5)


def test_a_price_is_needed_for_dollars() -> None:
    graph = random_graph(price_usd=None)
    with pytest.raises(ParameterError, match="price_usd"):
        features(graph, usd=True)
    assert features(graph, usd=False).shape == features(graph).shape == (200, 14)
    with pytest.raises(ParameterError, match="price_usd"):
        edge_features(graph, usd=True)


def test_blocks_absolute_or_relative() -> None:
    graph = random_graph()
    column = feature_names().index("first_transaction_in")
    blocks = graph.nodes["first_transaction_in"].to_numpy()
    absolute, relative = features(graph)[:, column], features(graph, blocks="relative")[:, column]
    assert np.allclose(absolute, scale_column(blocks), atol=1e-4)
    assert np.allclose(relative, scale_column(blocks - 599_000), atol=1e-5)
    others = [i for i in range(20) if "transaction_" not in feature_names()[i] or "total" in feature_names()[i]]
    assert np.array_equal(features(graph)[:, others], features(graph, blocks="relative")[:, others])


def test_without_a_start_relative_blocks_count_from_the_first_edge() -> None:
    """A released graph may hold `start_block: null`."""
    graph = random_graph(start_block=None)
    graph.edges["reveal"] += 599_000
    known = random_graph(start_block=int(graph.edges["reveal"].min()))
    assert np.array_equal(features(graph, blocks="relative"), features(known, blocks="relative"))
    assert np.array_equal(features(replace(graph, edges=graph.edges[:0]), blocks="relative"), features(graph))


def test_each_graph_is_scaled_by_itself() -> None:
    """Amounts ten times as large in one graph: its logs shift, its scaled features hardly do."""
    graph = random_graph()
    larger = graph.nodes.copy()
    larger["total_sent"] = (larger["total_sent"] + 1) * 1_000 - 1  # log(1+x) + log(1000)
    other = AddressGraph(larger, graph.edges, graph.clusters, meta=graph.meta)
    column = feature_names().index("total_sent")
    near = [features(each, unit="satoshi")[:, column] for each in (graph, other)]
    assert np.allclose(*near, atol=1e-5)


def test_edge_features() -> None:
    graph = random_graph()
    X = edge_features(graph)
    assert X.shape == (400, 9) and X.dtype == np.float32
    assert np.allclose(X[:, 2], scale_column(graph.edges["total"].to_numpy(np.float64)), atol=1e-5)
    assert edge_features(graph, usd=False).shape == (400, 6)
    amounts = graph.edges["total_sent"].to_numpy(np.float64)
    assert np.allclose(X[:, 5], scale_column(amounts / 1e8), atol=1e-5)
    assert np.allclose(edge_features(graph, unit="satoshi")[:, 5], scale_column(amounts), atol=1e-5)


# --- what scaling does ---


@pytest.fixture(scope="module")
def graph():
    return load_graph(Source(size="tiny"), "train1")


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


def test_another_price_is_a_shift(graph):
    table = feature_shift({"one": graph, "other": times(graph, 1000.0)})
    assert (table.loc[table["kind"] == "amounts", "before"] > 0.2).all()
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
