"""The shape of each CoinJoin protocol, checked against what its software does, on one chain that is full of them."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest
from worlds import simulated

from btcnb.data import SCRIPT_TYPES, CoinJoinRates, SimulationConfig, Transactions, simulate
from btcnb.data.simulator.coinjoins import DENOMINATIONS, POOL_FEES, POOLS

RATES = CoinJoinRates(joinmarket=0.6, wasabi10=0.2, wasabi11=0.2, wasabi2=0.2, whirlpool=0.5, whirlpool_tx0=0.3)
NATIVE = SCRIPT_TYPES.index("witness_v0_keyhash")
NULLDATA = SCRIPT_TYPES.index("nulldata")


@dataclass(frozen=True)
class Mix:
    """One CoinJoin: values, owners and scripts per input and per output, in order."""

    tx: int
    in_value: np.ndarray
    in_owner: np.ndarray
    in_script: np.ndarray
    in_source: np.ndarray  # output row, or a negative number for coins from before the first block
    out_value: np.ndarray
    out_owner: np.ndarray  # -1 for OP_RETURN
    out_script: np.ndarray

    def equal(self) -> tuple[int, int]:
        """The most frequent output value and how often it occurs (the larger value on a tie)."""
        values, counts = np.unique(self.out_value, return_counts=True)
        best = np.lexsort((values, counts))[-1]
        return int(values[best]), int(counts[best])


@pytest.fixture(scope="module")
def chain() -> Transactions:
    config = SimulationConfig.preset("tiny", split="train3")
    busy = replace(config, transactions_per_block=25)  # so that everybody also pays now and then
    return simulate(replace(busy, users=1_500, coinjoins=RATES, whirlpool_surge=0.4))


@pytest.fixture(scope="module")
def mixes(chain: Transactions) -> dict[str, list[Mix]]:
    assert chain.truth is not None and chain.truth.coinjoin is not None
    ins, outs = chain.input_offsets(), chain.output_offsets()
    owner = np.append(chain.truth.owner, -1)
    found: dict[str, list[Mix]] = {}
    for tx in np.flatnonzero(chain.truth.coinjoin != ""):
        i, o = chain.inputs.iloc[ins[tx] : ins[tx + 1]], chain.outputs.iloc[outs[tx] : outs[tx + 1]]
        source = i["spent_output"].to_numpy()
        maker = np.where(source >= 0, chain.outputs["tx"].to_numpy()[source], -1 - np.arange(len(source)))
        mix = Mix(
            int(tx),
            i["value"].to_numpy(),
            owner[i["address"]],
            i["script_type"].to_numpy(),
            maker,
            o["value"].to_numpy(),
            owner[o["address"]],
            o["script_type"].to_numpy(),
        )
        found.setdefault(str(chain.truth.coinjoin[tx]), []).append(mix)
    return found


def test_all_protocols_run(mixes: dict[str, list[Mix]]) -> None:
    expected = {"joinmarket", "wasabi1.0", "wasabi1.1", "wasabi2", "whirlpool", "whirlpool-tx0"}
    assert set(mixes) == expected
    assert all(len(rounds) >= 5 for rounds in mixes.values()), {name: len(rounds) for name, rounds in mixes.items()}


def test_participants_are_distinct_users_of_the_economy(chain: Transactions, mixes: dict[str, list[Mix]]) -> None:
    assert chain.truth is not None
    kind = chain.truth.entities["kind"].to_numpy()
    ordinary = chain.truth.coinjoin == ""  # type: ignore[operator]
    rows = ordinary[chain.inputs["tx"].to_numpy()]
    payers = set(chain.truth.owner[chain.inputs["address"].to_numpy()[rows]])
    for name, rounds in mixes.items():
        peers = {owner for mix in rounds for owner in mix.in_owner}
        assert all(kind[owner] == "user" for owner in peers)
        assert len(peers & payers) > 0.3 * len(peers), f"{name}: its users also pay in ordinary transactions"


def test_joinmarket(mixes: dict[str, list[Mix]]) -> None:
    sweeps = 0
    for mix in mixes["joinmarket"]:
        peers = len(set(mix.in_owner))
        amount, count = mix.equal()
        assert 5 <= peers <= 11
        assert count == peers
        assert amount >= 100_000
        assert set(mix.out_owner[mix.out_value == amount]) == set(mix.in_owner)
        assert len(mix.out_value) in (2 * peers, 2 * peers - 1)
        sweeps += len(mix.out_value) == 2 * peers - 1
        gains = [_gain(mix, owner) for owner in sorted(set(mix.in_owner))]
        assert sum(gain > 0 for gain in gains) == peers - 1  # every maker earns, the taker pays
        assert (mix.in_script == NATIVE).all()  # after November 2020
    assert sweeps


def _gain(mix: Mix, owner: int) -> int:
    return int(mix.out_value[mix.out_owner == owner].sum() - mix.in_value[mix.in_owner == owner].sum())


def test_joinmarket_was_wrapped_and_version_1_before_november_2020() -> None:
    config = SimulationConfig.preset("tiny", split="train1")
    txs = simulate(replace(config, coinjoins=CoinJoinRates(0.3, 0, 0, 0, 0, 0)))
    assert txs.truth is not None and txs.truth.coinjoin is not None
    assert set(txs.truth.coinjoin) == {"", "joinmarket"}  # a rate of zero switches a protocol off
    found = np.flatnonzero(txs.truth.coinjoin == "joinmarket")
    assert len(found) > 3
    assert (txs.transactions.loc[found, "version"] == 1).all()
    assert (txs.transactions.loc[found, "lock_time"] == 0).all()
    scripts = txs.inputs.loc[txs.inputs["tx"].isin(found), "script_type"]
    assert (scripts == SCRIPT_TYPES.index("scripthash")).all()


@pytest.mark.parametrize("name", ["wasabi1.0", "wasabi1.1"])
def test_wasabi_1(chain: Transactions, mixes: dict[str, list[Mix]], name: str) -> None:
    assert chain.truth is not None
    kind = chain.truth.entities["kind"].to_numpy()
    higher = 0
    for mix in mixes[name]:
        peers, inputs = np.unique(mix.in_owner, return_counts=True)
        base, count = mix.equal()
        assert 10 <= len(peers) <= 20
        assert inputs.max() <= 7
        assert count == len(peers)
        assert abs(base - 10_000_000) <= 1_000_000
        assert set(mix.out_owner[mix.out_value == base]) == set(peers)
        coordinator = kind[mix.out_owner] == "coordinator"
        assert coordinator.sum() <= 1
        assert (mix.out_value[coordinator] > 30_000).all()
        assert (mix.in_script == NATIVE).all()
        doubled = (mix.out_value == 2 * base).sum()
        if name == "wasabi1.0":
            assert doubled == 0
            assert len(mix.out_value) <= 2 * len(peers) + 1
        else:
            assert doubled != 1  # nobody stands alone on a level
            higher += doubled
    assert (higher > 0) == (name == "wasabi1.1")


def test_wasabi_1_1_is_sorted_by_amount(mixes: dict[str, list[Mix]]) -> None:
    for mix in mixes["wasabi1.1"]:
        assert (np.diff(mix.in_value) <= 0).all()
        assert (np.diff(mix.out_value) <= 0).all()


def test_wasabi_2(mixes: dict[str, list[Mix]]) -> None:
    for mix in mixes["wasabi2"]:
        inputs = np.unique(mix.in_owner, return_counts=True)[1]
        assert 50 <= len(mix.in_value) <= 60
        assert inputs.max() <= 10
        assert mix.in_value.min() >= 5_000
        assert np.isin(mix.out_value, DENOMINATIONS).mean() > 0.8
        assert (np.diff(mix.in_value) <= 0).all()
        assert (np.diff(mix.out_value) <= 0).all()


def test_whirlpool_mix(mixes: dict[str, list[Mix]]) -> None:
    sizes = set()
    for mix in mixes["whirlpool"]:
        value = int(mix.out_value[0])
        assert value in POOLS
        assert (mix.out_value == value).all()
        assert len(mix.in_value) == len(mix.out_value) == len(set(mix.in_owner)) == len(set(mix.in_source))
        assert set(mix.in_owner) == set(mix.out_owner)
        surplus = mix.in_value - value
        assert ((surplus >= 0) & (surplus <= 9_500)).all()
        assert (surplus > 0).sum() >= 2  # premix coins, which pay the miner
        assert (surplus == 0).sum() >= 1  # remixes, which pay nothing
        sizes.add(len(mix.in_value))
    assert 5 in sizes
    assert sizes <= set(range(5, 11))
    assert len(sizes) > 1  # surge cycles


def test_whirlpool_tx0(chain: Transactions, mixes: dict[str, list[Mix]]) -> None:
    assert chain.truth is not None
    kind = chain.truth.entities["kind"].to_numpy()
    for mix in mixes["whirlpool-tx0"]:
        assert len(set(mix.in_owner)) == 1
        user = mix.in_owner[0]
        assert (mix.out_script == NULLDATA).sum() == 1
        assert (np.diff(mix.out_value) >= 0).all()  # BIP 69
        coordinator = (mix.out_owner >= 0) & (kind[mix.out_owner] == "coordinator")
        fee = int(mix.out_value[coordinator].item())
        pool = next(i for i, flat in enumerate(POOL_FEES) if fee in (flat, int(0.85 * flat)))
        premix = (mix.out_value > POOLS[pool]) & (mix.out_value <= POOLS[pool] + 9_500) & (mix.out_owner == user)
        assert 1 <= premix.sum() <= (25 if pool == 0 else 70)
        assert len(np.unique(mix.out_value[premix])) == 1
        assert len(mix.out_value) - premix.sum() - 2 in (0, 1)  # the change is optional


def test_premix_coins_come_from_a_tx0(chain: Transactions, mixes: dict[str, list[Mix]]) -> None:
    assert chain.truth is not None and chain.truth.coinjoin is not None
    sources = {
        str(chain.truth.coinjoin[source])
        for mix in mixes["whirlpool"]
        for source, value in zip(mix.in_source, mix.in_value, strict=True)
        if source >= 0 and value > mix.out_value[0]
    }
    assert sources == {"whirlpool-tx0"}


@pytest.fixture(scope="module")
def full() -> Transactions:
    """An economy made for CoinJoins: half of its people mix, twenty times as often."""
    return simulated("quick", "test", mixing=20.0, privacy_share=0.5, coinjoins=CoinJoinRates(wasabi2=0.02))


def test_an_economy_made_for_coinjoins_has_a_hundred_of_each(full: Transactions) -> None:
    assert full.truth is not None and full.truth.coinjoin is not None
    names, counts = np.unique(full.truth.coinjoin.astype(str), return_counts=True)
    assert set(names) == {"", "joinmarket", "wasabi1.0", "wasabi1.1", "wasabi2", "whirlpool", "whirlpool-tx0"}
    assert counts.min() >= 100, dict(zip(names, counts, strict=True))


def test_rounds_of_wasabi_2_are_as_large_as_real_ones(full: Transactions) -> None:
    """Median of 190 inputs in real rounds; wallets register several coins, at most ten."""
    assert full.truth is not None and full.truth.coinjoin is not None
    rounds = np.flatnonzero(full.truth.coinjoin == "wasabi2")
    inputs = np.diff(full.input_offsets())[rounds]
    assert inputs.min() >= 120 and inputs.max() <= 260
    assert np.median(inputs) == pytest.approx(190, abs=15)
    rows = full.inputs[full.inputs["tx"].isin(rounds)]
    brought = rows.groupby(["tx", full.truth.owner[rows["address"]]]).size()
    assert brought.max() <= 10
    assert brought.mean() > 1.5
    assert (brought > 1).mean() > 0.3


def test_mixing_scales_all_protocols() -> None:
    """Expected numbers at tiny: mixing times the rates, summed over 180 blocks; a Poisson number of rounds, some of
    which find too few peers."""
    found = {}
    for mixing in (0.0, 1.0, 4.0):
        truth = simulated("tiny", mixing=mixing).truth
        assert truth is not None and truth.coinjoin is not None
        found[mixing] = int((truth.coinjoin != "").sum())
    assert found[0.0] == 0
    assert 2 * found[1.0] < found[4.0] < 6 * found[1.0]
