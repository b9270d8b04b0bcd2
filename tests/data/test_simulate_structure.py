"""Does the economy look like the chain it stands for? Marginals and kinds of actors, and the years one by one."""

from __future__ import annotations

import numpy as np
import pytest
from worlds import simulated

from btcnb.data import Transactions, sample_from_coinbase
from btcnb.data import chain_measures as chain
from btcnb.data.simulator.parameters import (
    ERAS,
    P2PKH,
    P2SH_MULTISIG,
    P2SH_P2WPKH,
    P2WPKH,
    P2WSH_MULTISIG,
    era_of,
    numbers,
)

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


# the years ----------------------------------------------------------------------------------------------------------

ECONOMIES = {
    "2019": (("train1", 0), ("train1", 1), ("train1", 2)),
    "2020": (("train2", 0), ("valid", 0), ("train2", 1)),
    "2021": (("train3", 0), ("test", 0), ("test", 1)),
}
"""Three simulated economies of each year: interval and seed."""
OUTPUT_TYPES = tuple(chain.type_name("outputs", name) for name in chain.SHOWN_TYPES)
INPUT_TYPES = tuple(chain.type_name("inputs", name) for name in chain.SHOWN_TYPES)
NOTES = tuple(chain.op_return_name(number) for number in (2, 3))
ROUND = tuple(chain.round_name(zeros) for zeros in chain.ZEROS)


@pytest.fixture(scope="module")
def measured() -> dict[str, list[dict[str, float]]]:
    return {
        year: [chain.chain_measures(simulated("quick", split, seed)) for split, seed in economies]
        for year, economies in ECONOMIES.items()
    }


def test_blocks_belong_to_their_year() -> None:
    first_of_2020, first_of_2021 = 610_691, 663_913
    assert era_of(first_of_2020 - 1).year == era_of(481_824).year == "2019"
    assert era_of(first_of_2020).year == era_of(first_of_2021 - 1).year == "2020"
    assert era_of(first_of_2021).year == era_of(900_000).year == "2021"
    assert tuple(ERAS) == chain.YEARS


@pytest.mark.parametrize("year", chain.YEARS)
def test_shares_of_an_era_are_shares(year: str) -> None:
    era = ERAS[year]
    kinds, shares = era.marks()
    assert len(set(kinds)) == 16
    assert shares.sum() == pytest.approx(1.0)
    real = chain.real_chain(year)
    segwit = sum(share for kind, share in zip(kinds, shares, strict=True) if kind.segwit)
    assert 100 * segwit == pytest.approx(real[chain.MARKS[3]], abs=0.01)
    version = sum(share for kind, share in zip(kinds, shares, strict=True) if kind.version == 1)
    assert 100 * version == pytest.approx(real[chain.MARKS[0]], abs=0.01)
    for has in (True, False):
        assert era.scripts(has)[1].sum() == pytest.approx(1.0)
        assert (era.scripts(has)[1] >= 0).all()
    assert set(era.scripts(False)[0]) == {P2PKH, P2SH_MULTISIG}
    assert set(era.scripts(True)[0]) == {P2SH_P2WPKH, P2WPKH, P2WSH_MULTISIG}
    assert (np.diff(era.roundness()) <= 0).all()


@pytest.mark.parametrize("year", chain.YEARS)
def test_a_thousand_script_types_stand_for_what_customers_pay_in(year: str) -> None:
    types, measured = ERAS[year].customer_scripts(), chain.real_chain(year)
    assert len(types) == 1000
    scripts = (P2PKH, P2SH_P2WPKH, P2WPKH, P2WSH_MULTISIG)
    shares = np.array([measured[chain.type_name("inputs", name)] for name in chain.SHOWN_TYPES])
    assert [(types == script).mean() for script in scripts] == pytest.approx(shares / shares.sum(), abs=0.002)


@pytest.mark.parametrize("year", chain.YEARS)
@pytest.mark.parametrize(
    ("names", "mean", "single"),
    [
        (chain.SHAPES, 6.0, 8.0),
        (chain.MARKS, 6.0, 10.0),
        (NOTES, 3.0, 4.0),
        (ROUND, 6.0, 8.0),
        ((chain.PAID_BACK,), 6.0, 8.0),
        (OUTPUT_TYPES, 6.0, 8.0),
        (INPUT_TYPES, 9.0, 12.0),
    ],
)
def test_simulated_years_look_like_real_blocks(
    measured: dict[str, list[dict[str, float]]], year: str, names: tuple[str, ...], mean: float, single: float
) -> None:
    """Points of per cent, at size quick: the mean of three economies, and each of them.

    Types of inputs are the weakest: simulated exchanges sweep addresses of all types. The longest tails (99th
    percentiles) and reuse within a block depend on the size of blocks and are not held here.
    """
    real = chain.real_chain(year)
    far = {}
    for name in names:
        apart = np.array([found[name] - real[name] for found in measured[year]])
        if abs(apart.mean()) > mean or np.abs(apart).max() > single:
            far[name] = np.round(apart, 1).tolist()
    assert not far


def test_the_years_differ_the_way_real_ones_do(measured: dict[str, list[dict[str, float]]]) -> None:
    """From 2019 to 2021: more SegWit, fewer tokens and timestamps, more transactions with one output, less round."""
    names = (chain.MARKS[3], chain.MARKS[0], *NOTES, chain.SHAPES[0], OUTPUT_TYPES[0], OUTPUT_TYPES[2], ROUND[0])
    first, last = (chain.real_chain(year) for year in ("2019", "2021"))
    for name in names:
        before, after = (np.mean([found[name] for found in measured[year]]) for year in ("2019", "2021"))
        assert np.sign(after - before) == np.sign(last[name] - first[name]), name
        assert abs(after - before) > 0.5 * abs(last[name] - first[name]), name
