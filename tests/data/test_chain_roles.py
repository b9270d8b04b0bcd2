"""A real chain in five roles: which block goes where, what is imputed, which price, what two roles share."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from builders import BTC, chain
from raw_blocks import COIN, SIGNATURE, In, Tx, block, key, p2pkh, push, sha256d

from btcnb.data import ROLES, build_graph, write_etl
from btcnb.data.intervals import SPLITS
from btcnb.data.sources import (
    BLOCKS,
    CUTS,
    Chain,
    chain_at_hand,
    chain_facts,
    chain_graph,
    chain_transactions,
    shared_between,
)
from btcnb.errors import DataError, ParameterError

DATA = Path(os.environ.get("BTCNB_REAL_DATA") or "no-real-data")
SMALL = (12, 14, 16, 18)
"""Cuts of the chain below: blocks 11, 12, …, 19."""


@pytest.fixture
def small(tmp_path: Path) -> Chain:
    """One payment a block, 11 to 19; `a` pays in the first block and again in the last."""
    story = chain(start_block=11)
    for height in range(11, 20):
        payer = "a" if height in (11, 19) else f"p{height}"
        story.pay([(payer, 10 * BTC)], {f"q{height}": 4 * BTC, f"c{height}": 6 * BTC})
    write_etl(story.build(), tmp_path / "txs.jsonl")
    return Chain(str(tmp_path / "txs.jsonl"), SMALL)


def test_a_block_at_a_cut_belongs_to_the_later_role(small: Chain) -> None:
    assert small.role_of(np.array([1, 11, 12, 13, 14, 17, 18, 99])).tolist() == [0, 0, 1, 1, 2, 3, 4, 4]
    heights = [chain_transactions(small, role).transactions["block_number"].tolist() for role in ROLES]
    assert heights == [[11], [12, 13], [14, 15], [16, 17], [18, 19]]
    assert len(chain_transactions(small)) == 9


def test_roles_share_no_transaction_but_may_share_addresses(small: Chain) -> None:
    """`a` pays in train1 and in test, whose two payments have six addresses."""
    shared = shared_between(small)
    assert len(shared) == 10 and not shared["transactions"].any()
    told = shared[shared["addresses"] > 0]
    assert told[["first", "second", "addresses"]].to_numpy().tolist() == [["train1", "test", 1]]
    assert told["of_second"].tolist() == [pytest.approx(1 / 6)]


def test_a_graph_is_that_of_all_transactions_of_the_role_at_the_roles_price(small: Chain) -> None:
    graph = chain_graph(small, "test")
    whole = build_graph(chain_transactions(small, "test"), price_usd=small.price("test"))
    assert graph.fingerprint() == whole.fingerprint() and graph.meta["price_usd"] == small.price("test")
    facts = chain_facts(small, "test")
    assert (facts["first_block"], facts["last_block"], facts["blocks"], facts["transactions"]) == (18, 19, 2, 2)
    assert (facts["nodes"], facts["edges"], facts["imputed"], facts["data"]) == (6, 4, 0.0, graph.fingerprint())


def test_each_role_has_the_price_of_the_papers_interval_in_its_heights() -> None:
    """In time the paper's intervals stand train1, train2, valid, train3, test; ours are cut in order of time."""
    inside = dict(zip(ROLES, ("train1", "train2", "valid", "train3", "test"), strict=True))
    for role, name in inside.items():
        assert Chain("x").price(role) == SPLITS[name].price_usd
    starts = sorted(split.start_block for split in SPLITS.values())
    assert Chain("x").role_of(np.array(starts)).tolist() == [0, 1, 2, 3, 4]
    assert Chain("x", SMALL).price("test") == SPLITS["train1"].price_usd, "the nearest, where none is inside"


def test_unknown_values_of_raw_blocks_are_imputed_and_the_share_is_told(tmp_path: Path) -> None:
    """Every block has a payment of 10 from two coins that lie outside: they are given 5 each, whatever they were."""
    for number, height in enumerate((610_000, *CUTS)):
        outside = tuple(In(bytes([number + 1]) * 32, i, push(SIGNATURE, key(2 * number + i + 1))) for i in range(2))
        one = block(
            height,
            sha256d(bytes([number])),
            Tx(outside, ((10 * COIN, p2pkh(key(40 + number))),)),
            to=p2pkh(key(60 + number)),
        )
        (tmp_path / one.file).write_bytes(one.raw())
    real = Chain(str(tmp_path))
    txs = chain_transactions(real, "test")
    assert txs.inputs["value"].tolist() == [5 * COIN, 5 * COIN] and txs.inputs["imputed"].all()
    assert "10 of 10 inputs imputed" in txs.source
    assert chain_facts(real, "test")["imputed"] == 1.0
    assert chain_graph(real, "test").edges["total_sent"].tolist() == [5 * COIN, 5 * COIN]


def test_what_cannot_be_cut_into_five_roles_is_refused(tmp_path: Path) -> None:
    story = chain(start_block=11).pay([("a", 5)], {"b": 5}).pay([("c", 5)], {"d": 5})
    write_etl(story.build(), tmp_path / "two.jsonl")
    with pytest.raises(DataError, match="holds 2 blocks, too few for five roles"):
        chain_transactions(Chain(str(tmp_path / "two.jsonl")), "test")
    for height in range(3, 8):
        story.pay([(f"e{height}", 5)], {f"f{height}": 5})
    write_etl(story.build(), tmp_path / "seven.jsonl")
    with pytest.raises(DataError, match=r"none for the role train2 \(blocks 11 to 17"):
        chain_transactions(Chain(str(tmp_path / "seven.jsonl")), "test")


def test_bad_chains_roles_and_folders_are_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for cuts in ((1, 2, 3), (1, 2, 2, 3), (1, 2, 3, 0), (1.0, 2, 3, 4), [1, 2, 3, 4]):
        with pytest.raises(ParameterError, match="cuts"):
            Chain("x", cuts)  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="role is 'all'"):
        chain_graph(Chain("x"), "all")
    monkeypatch.setenv("BTCNB_REAL_DATA", str(tmp_path))
    with pytest.raises(DataError, match=f"{BLOCKS}: folder: is not at hand; set BTCNB_REAL_DATA"):
        chain_at_hand()
    (tmp_path / BLOCKS).mkdir()
    assert chain_at_hand() == Chain(str(tmp_path / BLOCKS))
    with pytest.raises(DataError):
        chain_transactions(chain_at_hand())


@pytest.mark.skipif(not (DATA / BLOCKS).is_dir(), reason=f"no {BLOCKS} at {DATA}; set BTCNB_REAL_DATA to their folder")
def test_the_real_blocks_fall_into_five_roles() -> None:
    """Counted by hand from the files' names: 67 heights, of which ten are 685,000 and more."""
    heights = np.array([int(path.name.split("-")[0]) for path in (DATA / BLOCKS).iterdir()])
    assert np.bincount(Chain("x").role_of(heights)).tolist() == [16, 11, 13, 17, 10]
