"""Features of small graphs without tables are those of `features` and `build_graph`, to the last bit."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from btcnb.data import Source, Transactions, build_graph, features, load_transactions, local_samples
from btcnb.data.features import local_arrays
from btcnb.errors import DataError

sys.path.insert(0, str(Path(__file__).parent))
from builders import BTC, chain


@pytest.fixture(scope="module")
def pieces(tmp_path_factory: pytest.TempPathFactory) -> list[Transactions]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BTCNB_CACHE", str(tmp_path_factory.mktemp("cache")))
        txs = load_transactions(Source(size="tiny", seed=4), "test", sampled=False)
    return list(local_samples(txs, [0, 40, 300, 700], max_expanded=30))


def require_equal(txs: Transactions, price: float | None, unit: str) -> None:
    graph = build_graph(txs, np.arange(txs.num_addresses), price)
    found = local_arrays(txs, price, unit)  # type: ignore[arg-type]
    expected = features(graph, unit=unit)  # type: ignore[arg-type]
    assert found.x.dtype == expected.dtype and np.array_equal(found.x, expected)
    assert np.array_equal(found.edges, graph.edge_index())


@pytest.mark.parametrize("unit", ["bitcoin", "satoshi"])
def test_features_and_edges_are_those_of_the_tables(pieces: list[Transactions], unit: str) -> None:
    for txs in pieces:
        require_equal(txs, 9_000.0, unit)


def test_small_odd_graphs() -> None:
    """A coinbase alone (nobody sends), one payment, change that comes back, equal amounts, an output of nothing."""
    for txs in (
        chain().coinbase("a").build(),
        chain().pay("a", {"b": 5}).build(),
        chain().pay("a", {"a": 2 * BTC, "b": 3 * BTC}).build(),
        chain().pay(["a", "b"], {"c": BTC, "d": BTC}).pay("e", {"c": BTC, "f": BTC}).build(),
        chain().pay("a", {"b": 0, "c": BTC}).build(),
    ):
        for price in (1.0, 60_000.0):
            require_equal(txs, price, "bitcoin")


def test_without_a_price_there_are_no_dollars() -> None:
    txs = chain(start_block=5).pay("a", {"b": 5, "c": 7}).build()
    assert local_arrays(txs, None, "bitcoin").x.shape == (3, 14)
    require_equal(txs, None, "bitcoin")


def test_an_address_that_does_not_occur_is_refused() -> None:
    txs = chain().pay("a", {"b": 5}).build()
    more = replace(txs, addresses=np.append(txs.addresses, "nobody"))
    with pytest.raises(DataError, match="1 of a piece occur in none of its transactions"):
        local_arrays(more, 9_000.0, "bitcoin")
