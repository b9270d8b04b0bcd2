"""Does the economy look like the chain it stands for? Marginals, labels, percolation, kinds of actors."""

from __future__ import annotations

import numpy as np
import pytest
from worlds import simulated

from btcnb.data import Transactions, sample_from_coinbase, simulate
from btcnb.data.chain_measures import MARKS, PAID_BACK, SHAPES, chain_measures, real_chain
from btcnb.data.simulator.parameters import ERAS, numbers

TOLERANCE = 6.0
"""Points of per cent by which shares may differ from those of real blocks: a chain of a hundredth of the size."""


@pytest.fixture(scope="module")
def quick() -> Transactions:
    return simulated("quick")


@pytest.fixture(scope="module")
def counts(quick: Transactions) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Inputs and outputs per transaction, and which are ordinary (no coinbase)."""
    return (
        np.diff(quick.input_offsets()),
        np.diff(quick.output_offsets()),
        ~quick.transactions["is_coinbase"].to_numpy(),
    )


def test_the_default_is_the_preset_quick(quick: Transactions) -> None:
    assert quick.fingerprint() == simulate().fingerprint()


def test_the_shares_of_real_blocks_of_its_year(quick: Transactions) -> None:
    """The published shares cover the whole history of the chain; those of 2019, its year, are further than that from
    them in SegWit and tokens. `test_eras.py` looks at all years."""
    measured, real = chain_measures(quick), real_chain("2019")
    names = (*SHAPES, *MARKS, PAID_BACK)
    assert {name: measured[name] for name in names} == pytest.approx(
        {name: real[name] for name in names}, abs=TOLERANCE
    )


def test_payments_are_as_round_as_on_the_real_chain(quick: Transactions) -> None:
    """Trailing zeros of the payment in ordinary two-output transactions whose change is known."""
    assert quick.truth is not None and quick.truth.change is not None
    two = np.flatnonzero(
        (np.diff(quick.output_offsets()) == 2) & (quick.truth.change >= 0) & (quick.truth.mechanism == "")
    )
    rows = quick.output_offsets()[two]
    payment = quick.outputs["value"].to_numpy()[rows + 1 - quick.truth.change[two]]
    change = quick.outputs["value"].to_numpy()[rows + quick.truth.change[two]]
    paying = payment > 0
    aimed = ERAS["2019"].roundness()
    shares = [(payment[paying] % 10**digits == 0).mean() for digits in numbers("amounts").round_digits]
    assert shares[:4] == pytest.approx(aimed[:4], abs=0.1)
    assert (np.diff(shares) <= 0).all()
    assert (change % 1_000 == 0).mean() < 0.02


def test_the_tail_is_long(counts: tuple[np.ndarray, np.ndarray, np.ndarray]) -> None:
    inputs, outputs, ordinary = counts
    assert outputs.max() > 100
    assert inputs.max() >= 200
    top = np.sort(inputs[ordinary])[::-1]
    assert top[: len(top) // 50].sum() > 0.3 * top.sum()  # the largest 2 % hold much of all inputs
    assert ((inputs > 20) & (outputs > 5)).sum() > 50  # many inputs and many outputs at once


def test_every_kind_of_actor_pays(quick: Transactions) -> None:
    assert quick.truth is not None
    payers = quick.truth.owner[quick.inputs["address"].to_numpy()]
    kinds = set(quick.truth.entities["kind"].to_numpy()[payers])
    assert kinds == {"user", "exchange", "custodian", "pool", "merchant", "processor", "service", "coordinator"}


def test_peel_chains_run_long(quick: Transactions) -> None:
    """Follow change through one-input, two-output transactions: some chains have twenty links and more."""
    assert quick.truth is not None and quick.truth.change is not None
    inputs, outputs = np.diff(quick.input_offsets()), np.diff(quick.output_offsets())
    peel = (inputs == 1) & (outputs == 2) & (quick.truth.change >= 0)
    spender, change = quick.spent_by(), quick.output_offsets()[:-1] + quick.truth.change
    length = np.zeros(len(quick), dtype=np.int64)
    for tx in np.flatnonzero(peel)[::-1]:  # children stand later in the chain
        child = spender[change[tx]]
        length[tx] = 1 + (length[child] if child >= 0 else 0)
    assert length.max() >= 20


def test_the_label_share_is_kept() -> None:
    for share in (0.0, 0.3, 1.0):
        txs = simulated("tiny", label_share=share, disorder=0.0)
        assert txs.truth is not None and txs.truth.label is not None
        kind = txs.truth.entities["kind"].to_numpy()[txs.truth.owner]
        labelled = txs.truth.label != ""
        assert not labelled[kind == "user"].any()
        assert labelled[kind != "user"].mean() == pytest.approx(share, abs=0.03)
        names = txs.truth.entities["name"].to_numpy()[txs.truth.owner]
        assert (txs.truth.label[labelled] == names[labelled]).all()


def test_coins_of_a_coinbase_spread_through_the_economy(quick: Transactions) -> None:
    """A coinbase early in the interval reaches thousands of transactions within 15 steps."""
    coinbases = np.flatnonzero(quick.transactions["is_coinbase"].to_numpy())
    reached = [len(sample_from_coinbase(quick, coinbase=int(tx))) for tx in coinbases[:100:10]]
    assert np.median(reached) > 3_000


def test_wallets_hand_out_fresh_addresses_and_reuse_others(quick: Transactions) -> None:
    paid = quick.outputs["address"].to_numpy()
    times = np.bincount(paid[paid >= 0], minlength=quick.num_addresses)
    assert (times == 1).sum() > 0.5 * (times > 0).sum()
    assert times.max() > 100  # a public hot address
