"""Whatever is handed to the public functions: they give a result or a `BtcnbError`, never another exception."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from builders import BTC, chain
from hypothesis import given, settings
from hypothesis import strategies as st

from btcnb.data import (
    AddressGraph,
    CoinJoinRates,
    HeuristicConfig,
    SimulationConfig,
    build_graph,
    edge_features,
    features,
    landmark_nodes,
    landmarks,
    sample_around,
    sample_from_coinbase,
)
from btcnb.data.components import UnionFind
from btcnb.data.features import scale_column
from btcnb.data.graph import EDGE_COLUMNS, NODE_COLUMNS
from btcnb.data.landmarks import landmark_distances
from btcnb.errors import BtcnbError, DataError

TXS = (
    chain()
    .coinbase("pool")
    .pay("pool", {"a": BTC, "change": 49 * BTC})
    .pay([("a", BTC), ("b", 5)], {"c": BTC // 2, "d": BTC // 2})
    .pay([("c", BTC // 2), ("d", BTC // 2)], {"e": BTC})
    .build()
)
GRAPH = build_graph(TXS, price_usd=8_000.0)

junk = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 9),
    st.sampled_from([-(2**70), 2**31, 2**63 - 1, 2**63, 10**400]),
    st.floats(),
    st.sampled_from(["", "a", "sample", "proportional", "common_input", "\x00", "-1"]),
    st.just(b"bytes"),
    st.complex_numbers(),
    st.sampled_from([np.int64(-1), np.float32("nan"), np.bool_(True), np.datetime64("NaT"), pd.NA, pd.NaT]),
    st.builds(np.array, st.lists(st.floats(), max_size=9)),
    st.builds(np.array, st.lists(st.integers(-(2**62), 2**62), max_size=9)),
    st.lists(st.one_of(st.none(), st.text(max_size=2), st.floats()), max_size=9),
    st.just([[1, 2], [3]]),
    st.just({"graph": 3}),
    st.just(pd.DataFrame({"a": [1.5, None]})),
    st.just(object()),
)

CALLS: dict[str, tuple[Callable[..., Any], dict[str, Any]]] = {
    "build_graph": (
        build_graph,
        {
            "txs": TXS,
            "labels": None,
            "price_usd": None,
            "split_value": "equal",
            "flow": "net",
            "extremes": "transfer",
            "keep_isolated": True,
            "start_block": None,
            "end_block": None,
        },
    ),
    "features": (
        features,
        {
            "graph": GRAPH,
            "usd": None,
            "price_usd": None,
            "clip": True,
            "percentiles": (5.0, 95.0),
            "blocks": "relative",
        },
    ),
    "edge_features": (edge_features, {"graph": GRAPH, "usd": True, "price_usd": 1.0, "percentiles": (0, 100)}),
    "scale_column": (scale_column, {"values": np.arange(4.0), "percentiles": (0, 100), "clip": False}),
    "landmarks": (landmarks, {"graph": GRAPH, "k": 2, "symmetrize": True, "normalise": "minmax"}),
    "landmark_nodes": (landmark_nodes, {"graph": GRAPH, "k": 2}),
    "landmark_distances": (landmark_distances, {"graph": GRAPH, "nodes": np.array([0]), "symmetrize": False}),
    "sample_from_coinbase": (
        sample_from_coinbase,
        {
            "txs": TXS,
            "seed": 0,
            "depth": 3,
            "max_expanded": 5,
            "coinbase": None,
            "at_least": 1,
            "keep_unexpanded": False,
            "start_block": None,
            "end_block": None,
        },
    ),
    "sample_around": (
        sample_around,
        {"txs": TXS, "seeds": [0], "depth": 2, "max_expanded": 3, "seed": 0, "keep_unexpanded": True},
    ),
    "UnionFind": (UnionFind, {"size": 3}),
    "union": (UnionFind(5).union, {"a": [0], "b": [1]}),
    "HeuristicConfig": (HeuristicConfig, vars(HeuristicConfig())),
    "SimulationConfig": (SimulationConfig, vars(SimulationConfig())),
    "preset": (SimulationConfig.preset, {"size": "tiny", "seed": 0, "split": "train1"}),
    "rates": (lambda rate: SimulationConfig(coinjoins=CoinJoinRates(joinmarket=rate)), {"rate": 0.1}),
}


@pytest.mark.parametrize("labels", [[[1, 2], [3]], [[1], [2]], [1.5] * 7, "1234567", {}, [None] * 7])
def test_labels_that_are_no_list_of_whole_numbers_are_named(labels: Any) -> None:
    with pytest.raises(DataError, match="labels"):
        build_graph(TXS, labels=labels)


@pytest.mark.parametrize("changes", [{"split": "\ud800"}, {"split": "x" * 201}, {"start_time": 2**32 - 1}])
def test_a_simulation_that_could_not_be_written_down_is_refused_at_once(changes: dict[str, Any]) -> None:
    with pytest.raises(BtcnbError, match=next(iter(changes))):
        SimulationConfig(**changes)


columns = st.one_of(
    st.none(),
    st.sampled_from([-1, 0, 7, 10**6, 2**62, 1.5, float("nan"), float("inf"), -float("inf")]),
    st.sampled_from(["text", None, pd.NA, b"bytes", True, 1j, 10**30]).map(lambda value: [value]),
)
"""None: the column is missing; a number or a value in a list: the whole column holds it."""


def with_column(graph: AddressGraph, table: str, name: str, junk: Any) -> AddressGraph:
    changed = getattr(graph, table).drop(columns=name)
    if junk is not None:
        value = junk[0] if isinstance(junk, list) else junk
        changed[name] = pd.Series([value] * len(changed), dtype=object if isinstance(junk, list) else None)
    return replace(graph, **{table: changed})


@settings(deadline=None, max_examples=200)
@given(st.sampled_from(NODE_COLUMNS[1:]), st.sampled_from(EDGE_COLUMNS[2:]), columns)
def test_features_of_damaged_tables(node: str, edge: str, junk: Any) -> None:
    for function, table, name in ((features, "nodes", node), (edge_features, "edges", edge)):
        try:
            assert np.isfinite(function(with_column(GRAPH, table, name, junk))).all()
        except DataError as error:
            assert name in str(error)


@settings(deadline=None)
@given(st.sampled_from("ab"), st.integers(-(2**40), 2**40))
def test_compiled_searches_never_see_unknown_nodes(side: str, node: int) -> None:
    """An edge to a node outside the table is refused; a known one is found."""
    edges = GRAPH.edges.copy()
    edges.loc[0, side] = node
    damaged = replace(GRAPH, edges=edges)
    if 0 <= node < GRAPH.num_nodes:
        assert landmarks(damaged, 1).shape == (GRAPH.num_nodes, 1)
    else:
        with pytest.raises(BtcnbError):
            landmarks(damaged, 1)


@pytest.mark.parametrize("name", CALLS)
@settings(deadline=None, max_examples=200)
@given(data=st.data())
def test_any_argument_gives_a_result_or_an_error_of_ours(name: str, data: st.DataObject) -> None:
    function, arguments = CALLS[name]
    chosen = data.draw(st.sets(st.sampled_from(sorted(arguments)), min_size=1, max_size=2))
    given_ = arguments | {argument: data.draw(junk, label=argument) for argument in chosen}
    try:
        function(**given_)
    except BtcnbError as error:
        assert len(str(error)) > 10
