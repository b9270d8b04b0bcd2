"""The book's graphs: right intervals, right prices, the same graph in every process, one economy each."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest

from btcnb import paper
from btcnb.data import heuristic_clusters
from btcnb.data.sources import ROLES, load_split, load_split_transactions, load_splits, split_config
from btcnb.errors import ParameterError


@pytest.fixture(scope="module", autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BTCNB_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(scope="module")
def graphs(_own_cache):
    return load_splits("tiny", seed=3)


def test_five_valid_graphs_in_the_papers_intervals(graphs) -> None:
    table = paper.table("dataset").set_index("split")
    assert tuple(graphs) == ROLES
    for name, graph in graphs.items():
        graph.validated(name)
        assert graph.meta["start_block"] == table.loc[name, "start_block"]
        assert graph.edges["reveal"].min() >= graph.meta["start_block"]
        assert graph.edges["last_seen"].max() <= graph.meta["end_block"] <= table.loc[name, "end_block"]
        assert graph.meta["source"].startswith("simulated")
        assert graph.truth is not None


def test_every_split_is_an_economy_of_its_own(graphs) -> None:
    assert len({split_config(name, "tiny", 3).seed for name in ROLES}) == 5
    for one in graphs:
        for other in graphs:
            if one < other:
                assert not set(graphs[one].addresses) & set(graphs[other].addresses)


def test_graph_and_sampled_transactions_belong_together(graphs) -> None:
    txs = load_split_transactions("valid", "tiny", seed=3, sampled=True)
    graph = graphs["valid"]
    assert graph.meta["transactions"] == len(txs)
    assert np.array_equal(graph.addresses, txs.addresses[graph.nodes["node_id"]])
    chain = load_split_transactions("valid", "tiny", seed=3)
    assert set(txs.transactions["hash"]) < set(chain.transactions["hash"])


def test_heuristics_that_see_the_interval_merge_more(graphs) -> None:
    """Every merge of the common-input rule in the sample happens in the interval too."""
    wide = load_split("valid", "tiny", seed=3, scope="interval")
    assert wide.labels().max() < graphs["valid"].labels().max()
    txs = load_split_transactions("valid", "tiny", seed=3, sampled=True)
    chain = load_split_transactions("valid", "tiny", seed=3)
    narrow = heuristic_clusters(txs, rules=("common_input",))
    broad = heuristic_clusters(txs, rules=("common_input",), context=chain)
    pairs = np.unique(np.stack([narrow, broad]), axis=1)
    assert len(pairs[0]) == narrow.max() + 1, "each cluster of the sample lies in one cluster of the interval"


def test_same_seed_same_graph_in_another_process(graphs, tmp_path) -> None:
    code = "from btcnb.data.sources import load_split; print(load_split('test', 'tiny', 3).fingerprint())"
    own = {**os.environ, "BTCNB_CACHE": str(tmp_path), "PYTHONHASHSEED": "5"}
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=own)
    assert answer.stdout.strip() == graphs["test"].fingerprint()
    assert load_split("test", "tiny", seed=4).fingerprint() != graphs["test"].fingerprint()


def test_unknown_names_are_refused() -> None:
    with pytest.raises(ParameterError, match="split is 'train9'"):
        load_splits("tiny", names=("train9",))
    with pytest.raises(ParameterError, match="size is 'huge'"):
        load_splits("huge", names=("train1",))
    with pytest.raises(ParameterError, match="scope is 'all'"):
        load_split("train1", "tiny", 3, scope="all")  # type: ignore[arg-type]
