"""The detectors on real mixes. Skipped where the files are not at hand (set BTCNB_REAL_DATA to their folder)."""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from btcnb.data import Transactions, coinjoin_refusals, detect_coinjoins
from btcnb.data.coinjoin import FITTED
from btcnb.data.coinjoin.lists import Listed, read_lists
from btcnb.data.coinjoin.scores import fit, score_lists
from btcnb.data.readers import read_bitcoin_core, read_dumplings

FOLDER = Path(os.environ.get("BTCNB_REAL_DATA") or "no-real-data") / "dumplings"
pytestmark = pytest.mark.skipif(
    not FOLDER.is_dir(), reason="no real CoinJoins at hand: set BTCNB_REAL_DATA to the folder that holds dumplings/"
)
WHIRLPOOL = "whirlpool-2024-03.zip"
WASABI = "wasabi-2018-and-wasabi2-2024-05.zip"
OTHER = "joinmarket-2024-06.zip"
LATER = "wasabi1-2021.zip"
LISTS = ("dumplings", "bitcoin-core-regtest", "regtest-wallets")


def counted(archive: str, name: str, rules: str) -> Counter[str]:
    return Counter(detect_coinjoins(load(archive, name), rules).tolist())


def load(archive: str, name: str) -> Transactions:
    if not (FOLDER / archive).exists():
        pytest.skip(f"{archive} is not at hand in {FOLDER}")
    return read_dumplings(FOLDER / archive, name)


def test_whirlpool_mixes():
    published = counted(WHIRLPOOL, "SamouraiCoinJoins", "published")
    assert published == {"whirlpool": 155, "joinmarket": 1_248}  # surge cycles pass for JoinMarket
    assert counted(WHIRLPOOL, "SamouraiCoinJoins", "improved") == {"whirlpool": 1_403}


def test_whirlpool_entries():
    """151 of the 900 listed are mixes themselves: eight or fewer in, as many out, all worth a pool."""
    txs = load(WHIRLPOOL, "SamouraiTx0s")
    improved = Counter(detect_coinjoins(txs, "improved").tolist())
    assert improved == {"whirlpool-tx0": 749, "whirlpool": 151}
    values = txs.outputs.groupby("tx")["value"].agg(["nunique", "min"])
    mixes = (values["nunique"] == 1) & values["min"].isin([100_000, 1_000_000, 5_000_000, 50_000_000])
    assert mixes.sum() == 151
    assert counted(WHIRLPOOL, "SamouraiTx0s", "published")["whirlpool-tx0"] == 711


def test_wasabi_1_mixes():
    assert counted(WASABI, "WasabiCoinJoins", "published") == {"wasabi1.0": 80, "joinmarket": 72}
    assert counted(WASABI, "WasabiCoinJoins", "improved") == {"wasabi1.0": 152}


def test_wasabi_2_mixes():
    """Two of the 35 listed spend one address only: not CoinJoins."""
    txs = load(WASABI, "Wasabi2CoinJoins")
    assert Counter(detect_coinjoins(txs, "published").tolist()) == {"wasabi2": 27, "": 8}
    found = detect_coinjoins(txs, "improved")
    assert Counter(found.tolist()) == {"wasabi2": 33, "": 2}
    senders = txs.inputs.groupby("tx")["address"].nunique()
    assert senders[found == ""].tolist() == [1, 1]


def test_wasabi_1_mixes_of_2021_and_the_joinmarkets_among_them():
    """Five of the 98 are shuffled where the coordinator sorts, and have one change for all or all but one of ten."""
    txs = load(LATER, "WasabiCoinJoins")
    assert Counter(detect_coinjoins(txs, "published").tolist()) == {"wasabi1.0": 45, "wasabi1.1": 52, "joinmarket": 1}
    found = detect_coinjoins(txs, "improved")
    assert Counter(found.tolist()) == {"wasabi1.1": 93, "joinmarket": 5}
    ascending = txs.outputs.groupby("tx")["value"].apply(lambda values: values.is_monotonic_increasing).to_numpy()
    assert (ascending == (found == "wasabi1.1")).all()
    told = coinjoin_refusals(txs)
    assert set(told.loc[told["published"] == "wasabi1.0", "reason"]) >= {"written in JoinMarket's shape"}


def test_joinmarket_and_what_is_listed_beside_it():
    """All that is refused falls short of the protocol; most of it pays with dust, in order, from several types."""
    txs = load(OTHER, "OtherCoinJoins")
    assert Counter(detect_coinjoins(txs, "published").tolist()) == {"joinmarket": 106, "wasabi1.0": 1, "": 460}
    assert Counter(detect_coinjoins(txs, "improved").tolist()) == {"joinmarket": 53, "wasabi1.1": 1, "": 513}
    told = coinjoin_refusals(txs)
    refused = told[told["improved"] == ""]
    assert refused["tx"].nunique() == 53
    assert refused["reason"].value_counts()["amount below the dust threshold"] > 40


@pytest.fixture(scope="module")
def lists() -> list[Listed]:
    root = FOLDER.parent
    return read_lists(root / name for name in LISTS if (root / name).is_dir())


def test_whatever_the_published_rules_recognise_ours_recognise_or_say_why(lists):
    for listed in lists:
        published, improved = (detect_coinjoins(listed.mixes, rules) != "" for rules in ("published", "improved"))
        told = coinjoin_refusals(listed.mixes)
        refused = told[told["improved"] == ""]
        assert set(refused["tx"]) == set(np.flatnonzero(published & ~improved)), listed[:2]
        if listed.protocols not in ((), ("joinmarket",)):  # lists whose protocol is known
            assert refused.empty, listed[:2]


def test_no_list_of_known_protocol_needs_input_values_to_be_recognised(lists):
    for listed in lists:
        if listed.protocols in ((), ("joinmarket",)):
            continue
        known = detect_coinjoins(listed.mixes, "improved")
        inputs = listed.mixes.inputs.assign(value=np.int64(-1))
        blind = detect_coinjoins(replace(listed.mixes, inputs=inputs), "improved")
        lost = ((known != "") & (blind == "")).sum()
        assert lost <= 0.02 * len(known), listed[:2]  # order of inputs is evidence for the smallest Wasabi 2 rounds


def test_the_constants_are_what_the_lists_give(lists):
    if len({listed.archive for listed in lists}) < 6:
        pytest.skip("not all lists are at hand")
    assert fit(lists) == pytest.approx(FITTED, rel=0.01)


@pytest.mark.parametrize(
    ("archive", "name"),
    [(WHIRLPOOL, "SamouraiPostMixTxs"), (WASABI, "Wasabi2PostMixTxs"), (OTHER, "OtherCoinJoinPostMixTxs")],
)
def test_ours_never_names_more_ordinary_spends_than_theirs(archive, name):
    """Spends from mixes are mostly ordinary; those with as many different amounts as outputs certainly are."""
    txs = load(archive, name)
    ordinary = txs.outputs.groupby("tx")["value"].agg(lambda values: values.nunique() == len(values)).to_numpy()
    published, improved = (detect_coinjoins(txs, rules)[ordinary] for rules in ("published", "improved"))
    assert (improved != "").sum() <= (published != "").sum()
    assert (improved != "").mean() < 0.005


def test_small_rounds_of_real_wallets_on_a_private_chain():
    """Ten Wasabi 2 wallets, rounds of 13 to 31 inputs: too small for the published rule, unmistakable in structure."""
    archive = FOLDER.parent / "bitcoin-core-regtest" / "wasabi2-run.zip"
    if not archive.exists():
        pytest.skip(f"{archive.name} is not at hand")
    txs = read_bitcoin_core(archive)
    crowded = (txs.inputs.groupby("tx").size() >= 3) & (txs.outputs.groupby("tx").size() >= 5)
    found = detect_coinjoins(txs, "improved")
    assert set((found != "").nonzero()[0]) == set(crowded[crowded].index)
    assert set(found) == {"", "wasabi2"}
    assert set(detect_coinjoins(txs, "published")) == {""}


def test_the_record_in_the_repository_is_what_the_files_give():
    record = pd.read_csv(Path(__file__).parents[2] / "results" / "coinjoin_detectors.csv", keep_default_na=False)
    scored = score_lists(FOLDER.parent / name for name in LISTS if (FOLDER.parent / name).is_dir())
    common = set(scored["archive"]) & set(record["archive"])
    if not common:
        pytest.skip("none of the recorded archives is at hand")
    scored, record = (table[table["archive"].isin(common)].reset_index(drop=True) for table in (scored, record))
    pd.testing.assert_frame_equal(scored, record, check_dtype=False)
