"""Recorded CoinJoins: which are read, how they are split and judged; small files by hand, real ones where at hand."""

from __future__ import annotations

import gzip
import json
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from builders import chain
from real_coinjoins import (
    COLUMNS,
    EMULATED,
    REAL,
    REGTEST,
    Chain,
    _marked,
    _signers,
    emulated_wallets,
    inputs_of,
    judged,
    real_chains,
)

from btcnb.book import real_data
from btcnb.data import Source, Transactions
from btcnb.errors import DataError, ParameterError
from btcnb.experiments import recipe
from btcnb.experiments.recipe import baseline
from btcnb.experiments.stages import trained
from btcnb.learn import Encoder


@cache
def model() -> Encoder:
    return trained(baseline(recipe(Source(size="tiny", seed=1), 1, epochs=1), "untrained")).model


def story() -> Transactions:
    """Two rounds, a year apart; w brings two coins to the first one."""
    return (
        chain()
        .pay(["a", "b", "w1", "w2"], {f"o{i}": 9 for i in range(4)})
        .pay("o1", {"shop": 8})
        .pay(["o2", "c"], {"p1": 7, "p2": 7})
        .owners(a="a", b="b", w="w1 w2", c="c o2", s="shop")
        .build()
    )


@pytest.mark.parametrize(("kind", "whole"), [(REGTEST, True), (REAL, False)])
def test_pairs_of_two_rounds_by_hand(kind: str, whole: bool) -> None:
    """Without safeguards all inputs are together: no true negative, and the one pair of w is together. The second
    round has one pair, of c alone. One round stands in each half."""
    found = judged(model(), Chain(kind, "x", "wasabi2", story(), np.array([0, 2]), whole))
    assert list(found.columns) == COLUMNS
    plain = found[found["clustering"] == "heuristics"].set_index("half")
    assert plain["pairs"].tolist() == [6, 1] and plain["own_pairs"].tolist() == [1, 1]
    assert plain["TN"].tolist() == [0.0, 0.0] and plain["own"].tolist() == [100.0, 100.0]
    assert plain.loc["early", "strangers"] == 0.0 and np.isnan(plain.loc["late", "strangers"]), "c is no stranger to c"
    assert {"gnn.average", "hybrid.complete", "safeguarded"} <= set(found["clustering"])
    assert set(found["too_large"]) == {0} and set(found["unpaired"]) == {0}


def test_all_pairs_of_wallets_by_hand() -> None:
    """Known are a, b, w1, w2, c, o2, shop: 21 pairs, two of one wallet. The heuristics join the inputs of each round:
    {a, b, w1, w2} holds five pairs of strangers, {o2, c} none, and nobody else is joined, unless by change."""
    txs = story()
    found = judged(model(), Chain(REGTEST, "x", "wasabi2", txs, np.array([0, 2]), True))
    plain = found[found["clustering"] == "heuristics"]
    assert plain["wallets_together"].tolist() == [100.0, 100.0], "the chain is one graph, whichever half"
    assert plain["wallets_apart"].iloc[0] == pytest.approx(100 * (19 - 5) / 19)
    local = judged(model(), Chain(REAL, "x", "wasabi2", txs, np.array([0, 2]), False))
    assert local["wallets_apart"].isna().all(), "surroundings are no whole chain"


def test_halves_that_are_not_wanted_are_not_judged_and_change_nothing() -> None:
    many = Chain(REGTEST, "x", "wasabi2", story(), np.array([0, 2]), True)
    both, late = judged(model(), many), judged(model(), many, halves=("late",))
    pd.testing.assert_frame_equal(both[both["half"] == "late"].reset_index(drop=True), late)
    with pytest.raises(ParameterError, match="a half"):
        judged(model(), many, halves=("middle",))


def test_surroundings_that_are_too_large_have_a_line_that_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("btcnb.experiments.coinjoin_trial.MOST_ADDRESSES", 3)
    found = judged(model(), Chain(REAL, "x", "wasabi2", story(), np.array([0, 2]), False))
    assert found["too_large"].tolist() == [1, 1] and found["coinjoins"].tolist() == [0, 0]
    assert found["TN"].isna().all()


def test_listed_coinjoins_with_one_input_address_are_counted() -> None:
    """The payment of o1 has one input, and nobody can keep that apart from anything."""
    found = _marked(REAL, "x", "wasabi2", story(), np.arange(3))
    assert found.mixes.tolist() == [0, 2] and found.unpaired == 1
    assert set(judged(model(), found)["unpaired"]) == {1}


def test_so_many_are_judged_as_were_asked_for() -> None:
    many = Chain(REGTEST, "x", "wasabi2", story(), np.array([0, 0, 0, 2, 2, 2]), True)
    assert set(judged(model(), many, most=2)["coinjoins"]) == {2}
    none = Chain(REGTEST, "x", "wasabi2", story(), np.empty(0, dtype=np.int64), True)
    assert judged(model(), none).empty
    with pytest.raises(ParameterError, match="most"):
        judged(model(), many, most=0)


def test_signers_by_hand() -> None:
    """a, b and w sign the first, nobody known the second (o1 has no owner), c alone the third (c and o2 are its)."""
    assert _signers(story()).tolist() == [3, 0, 1]


def test_wallets_of_emulated_rounds_are_read_and_broken_files_refused(tmp_path: Path) -> None:
    coin = {"address": "bcrt1qa", "wallet_name": "wallet-1", "value": 5}
    other = {"address": "bcrt1qb", "wallet_name": "wallet-2", "value": 4}
    rounds = {"coinjoins": {"t": {"inputs": {"0": coin}, "outputs": {"0": other}}}}
    path = tmp_path / "rounds.json.gz"
    path.write_bytes(gzip.compress(json.dumps(rounds).encode()))
    assert emulated_wallets(path) == {"bcrt1qa": "wallet-1", "bcrt1qb": "wallet-2"}
    path.write_bytes(gzip.compress(b'{"coinjoins": {"t": {"inputs": {"0": {}}}}}'))
    with pytest.raises(DataError, match="coinjoins"):
        emulated_wallets(path)


def test_an_empty_folder_has_no_lists_and_a_missing_one_is_told(tmp_path: Path) -> None:
    assert list(real_chains(tmp_path)) == []
    with pytest.raises(DataError, match="folder"):
        list(real_chains(tmp_path / "nowhere"))


@pytest.mark.skipif(real_data("regtest-wallets") is None, reason="no recorded CoinJoins at hand: set BTCNB_REAL_DATA")
def test_recorded_lists_are_what_they_are_called() -> None:
    """Dates fit the files' names; 11 % of the input pairs of the larger regtest rounds have one wallet."""
    chains = [each for each in real_chains(real_data()) if each.kind != REAL]
    assert [each.kind for each in chains] == [REGTEST, EMULATED]
    run, emulated = chains
    assert 4 <= len(run.mixes) <= 10, "ten rounds; some have one known signer only"
    assert (len(emulated.mixes), emulated.one_wallet, emulated.unpaired) == (162, 58, 0), "of 220 rounds"
    owners = [emulated.txs.truth.owner[each] for each in inputs_of(emulated.txs, emulated.mixes)]
    assert all(len(np.unique(each)) > 1 for each in owners)
    rounds = pd.Series(run.txs.inputs["tx"]).value_counts()
    outputs = pd.Series(run.txs.outputs["tx"]).value_counts()
    large = [tx for tx in run.mixes if rounds[tx] >= 20 and outputs[tx] >= 20]
    own = pairs = 0
    for tx in large:
        address = run.txs.inputs.loc[run.txs.inputs["tx"] == tx, "address"].to_numpy()
        owner = run.txs.truth.owner[address]
        same = np.triu(owner[:, None] == owner[None], 1)
        own, pairs = own + int(same.sum()), pairs + len(owner) * (len(owner) - 1) // 2
    assert (own, pairs) == (179, 1582)
