"""Repulsion taught by earlier CoinJoins of lists: who teaches, who steers, and that nothing later is in it."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from builders import chain
from real_coinjoins import REAL, REGTEST, Chain, lesson, repelled_by_lists, seen, split_by_time

from btcnb.data import Source, Transactions
from btcnb.errors import DataError, ParameterError
from btcnb.experiments import recipe
from btcnb.learn import TrainConfig

CONFIG = TrainConfig(epochs=1, steps_per_epoch=1, anchors=16)
ROUNDS = 12


@cache
def story() -> Transactions:
    """Twelve rounds of four, one a block; an output of each is an input of the next, and one is paid on."""
    told = chain().pay(["r0", "x0", "y0", "z0"], {"r1": 9, "p0": 9, "q0": 9, "s0": 9})
    for i in range(1, ROUNDS):
        told = told.pay([f"r{i}", f"x{i}", f"y{i}", f"z{i}"], {f"r{i + 1}": 9, f"p{i}": 9, f"q{i}": 9, f"s{i}": 9})
        told = told.pay(f"p{i}", {f"shop{i}": 5, f"c{i}": 4})
    return told.build()


def listed(archive: str = "one", kind: str = REAL, protocol: str = "wasabi2") -> Chain:
    inputs = np.bincount(story().inputs["tx"].to_numpy())
    return Chain(kind, archive, protocol, story(), np.flatnonzero(inputs == 4), False)


def hashes(txs: Transactions, ids: np.ndarray) -> list[str]:
    return txs.transactions["hash"].to_numpy()[ids].tolist()


def test_of_twelve_rounds_five_teach_one_steers_and_six_judge() -> None:
    """Four fifths of the six early ones are 4.8, so five; the cut chain ends with the sixth round."""
    mine, split = listed(), split_by_time(listed())
    early, late = mine.halves()["early"], mine.halves()["late"]
    assert (len(early), len(late), len(split.teaching), len(split.steering)) == (6, 6, 5, 1)
    told = hashes(split.txs, split.teaching) + hashes(split.txs, split.steering)
    assert told == hashes(mine.txs, early), "the same transactions, in order of time"
    names = split.txs.transactions["hash"].tolist()
    assert names == mine.txs.transactions["hash"].tolist()[: early[-1] + 1]
    assert not set(names) & set(hashes(mine.txs, late))


def test_a_later_coinjoin_of_the_same_second_is_not_in_the_cut_chain() -> None:
    txs = story()
    same = txs.transactions.assign(block_timestamp=7)
    split = split_by_time(listed()._replace(txs=replace(txs, transactions=same)))
    assert not set(split.txs.transactions["hash"]) & set(hashes(txs, listed().halves()["late"]))
    assert len(split.txs) == len(txs) - 6, "payments of that second stay"


def test_what_another_list_calls_later_does_not_teach() -> None:
    """The third round is late in a list of its own: it neither teaches nor surrounds what does."""
    mine = listed()
    third = mine.mixes[2]
    split = split_by_time(mine, later=hashes(mine.txs, mine.mixes[2:3]))
    assert hashes(mine.txs, np.array([third]))[0] not in set(split.txs.transactions["hash"])
    assert len(split.teaching) + len(split.steering) == 5
    other = mine._replace(archive="two", mixes=mine.mixes[[1, 2]])
    given = lesson([mine, other], CONFIG, most=10)
    assert given.taught == {"wasabi2": 4 + 1}, "four of five early ones, and the second round once more"


def test_graphs_that_teach_hold_the_inputs_of_their_coinjoin() -> None:
    given = lesson([listed()], CONFIG, most=3)
    assert (len(given.teaching), len(given.steering), given.too_large) == (3, 1, 0)
    assert given.taught == {"wasabi2": 3}
    assert all(len(each.inputs) == 4 for each in (*given.teaching, *given.steering))
    assert not {"r8", "x8", "p8"} & given.addresses, "nothing of the later half"


def test_wallets_known_or_not_only_real_lists_teach() -> None:
    given = lesson([listed(kind=REGTEST)], CONFIG)
    assert not given.teaching and not given.taught
    with pytest.raises(DataError, match="0 CoinJoins teach"):
        repelled_by_lists(recipe(Source(size="tiny", seed=1), 1, epochs=1), given)


def test_surroundings_that_are_too_large_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("btcnb.experiments.coinjoin_trial.MOST_ADDRESSES", 3)
    given = lesson([listed()], CONFIG, most=10)
    assert (len(given.teaching), len(given.steering), given.too_large) == (0, 0, 6)


def test_what_was_seen_is_counted_by_address() -> None:
    """Rounds are tied by r alone: of the later inputs only r6, made by the sixth round, was around to be seen."""
    mine = listed()
    early = {name for i in range(6) for name in (f"r{i}", f"x{i}", f"y{i}", f"z{i}")} | {"r6"}
    given = lesson([mine], CONFIG, most=10)._replace(addresses=frozenset(early))
    assert seen(given, mine) == pytest.approx(100 / 24)
    assert np.isnan(seen(given, mine._replace(mixes=mine.mixes[:1]))), "one round has no later half"


def test_lists_with_too_few_are_told() -> None:
    alone = listed()._replace(mixes=listed().mixes[:1])
    given = lesson([alone], CONFIG)
    assert (len(given.teaching), len(given.steering)) == (1, 0)
    none = listed()._replace(mixes=np.empty(0, dtype=np.int64))
    assert lesson([none], CONFIG).teaching == []
    with pytest.raises(DataError, match="1 CoinJoins teach and 0 steer"):
        repelled_by_lists(recipe(Source(size="tiny", seed=1), 1, epochs=1), given)
    with pytest.raises(ParameterError, match="most"):
        lesson([alone], CONFIG, most=0)


def test_an_encoder_taught_by_lists_is_one_of_its_own() -> None:
    mine = recipe(Source(size="tiny", seed=1), 1, epochs=1)
    given = lesson([listed()], mine.train, most=4)
    run = repelled_by_lists(mine, given)
    assert run.record["coinjoin_training_graphs"] == 4 and run.record["taught.wasabi2"] == 4
    assert run.record["coinjoin_validation_graphs"] == 1
    assert run.history["train_loss"].iloc[0] > 1
