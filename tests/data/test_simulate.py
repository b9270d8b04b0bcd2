"""The simulated chain as a whole: exact accounting, sound truth, the same bytes for the same seed, refused nonsense."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import fields, replace
from itertools import combinations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from worlds import simulated

from btcnb.data import SCRIPT_TYPES, CoinJoinRates, SimulationConfig, Transactions, simulate
from btcnb.data.intervals import SPLITS, subsidy
from btcnb.data.simulator.world import AMOUNTS, Money
from btcnb.errors import ParameterError

DUST = 546
NULLDATA = SCRIPT_TYPES.index("nulldata")

configs = st.builds(
    lambda seed, split, size, blocks, price, rates, label, disorder, mixing: replace(
        SimulationConfig.preset("tiny", seed=seed, split=split),
        transactions_per_block=size,
        blocks=blocks,
        price_usd=price,
        coinjoins=rates,
        label_share=label,
        disorder=disorder,
        mixing=mixing,
    ),
    seed=st.integers(0, 2**40),
    split=st.sampled_from(sorted(SPLITS)),
    size=st.integers(5, 25),
    blocks=st.integers(1, 115),
    price=st.floats(100.0, 200_000.0),
    rates=st.builds(CoinJoinRates, *[st.sampled_from([0.0, 0.1, 0.5]) for _ in fields(CoinJoinRates)]),
    label=st.floats(0.0, 1.0),
    disorder=st.sampled_from([0.0, 0.5, 1.0, 2.0, 10.0]),
    mixing=st.sampled_from([0.0, 1.0, 4.0]),
)


@pytest.fixture(scope="module")
def tiny() -> Transactions:
    return simulated("tiny")


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(configs)
def test_every_satoshi_is_accounted_for(config: SimulationConfig) -> None:
    assert_sound(simulate(config), config)


def assert_sound(txs: Transactions, config: SimulationConfig) -> None:
    table, inputs, outputs = txs.transactions, txs.inputs, txs.outputs
    coinbase = table["is_coinbase"].to_numpy()
    fee, block = table["fee"].to_numpy(), table["block_number"].to_numpy()
    paid_in, paid_out = totals(inputs, len(txs)), totals(outputs, len(txs))

    # inputs = outputs + fee, and somebody pays for every transaction
    assert (paid_in[~coinbase] == paid_out[~coinbase] + fee[~coinbase]).all()
    assert (fee[~coinbase] > 0).all()
    # one coinbase a block, first, worth subsidy + fees
    assert np.array_equal(block[coinbase], np.arange(config.start_block, config.start_block + config.blocks))
    assert (table["index"].to_numpy()[coinbase] == 0).all()
    fees = np.zeros(config.blocks, dtype=np.int64)
    np.add.at(fees, block - config.start_block, fee)
    assert (paid_out[coinbase] == subsidy(block[coinbase]) + fees).all()

    # nothing is spent twice, before it exists, with another value or by another address
    spent, spender = inputs["spent_output"].to_numpy(), inputs["tx"].to_numpy()
    inside = spent >= 0
    maker = outputs["tx"].to_numpy()[spent[inside]]
    assert len(np.unique(spent[inside])) == inside.sum()
    assert (maker < spender[inside]).all()
    for column in ("value", "address", "script_type"):
        assert (outputs[column].to_numpy()[spent[inside]] == inputs[column].to_numpy()[inside]).all()
    assert (outputs["index"].to_numpy()[spent[inside]] == inputs["spent_output_index"].to_numpy()[inside]).all()
    # a coinbase rests for a hundred blocks
    assert (block[spender[inside]] - block[maker] >= 100)[coinbase[maker]].all()
    # coins from before the first block carry a hash of their own, the others do not
    outside = inputs["spent_transaction_hash"].notna().to_numpy()
    assert np.array_equal(outside, ~inside)
    assert not inputs["spent_transaction_hash"][outside].isin(table["hash"]).any()
    assert not inputs.loc[outside, ["spent_transaction_hash", "spent_output_index"]].duplicated().any()

    # only OP_RETURN outputs hold nothing; all others are above the dust limit
    nulldata = outputs["script_type"].to_numpy() == NULLDATA
    assert (outputs["value"].to_numpy()[nulldata] == 0).all()
    assert (outputs["address"].to_numpy()[nulldata] == -1).all()
    assert (outputs["value"].to_numpy()[~nulldata] > DUST).all()
    assert (outputs["address"].to_numpy()[~nulldata] >= 0).all()


def totals(side: object, number: int) -> np.ndarray:
    total = np.zeros(number, dtype=np.int64)
    np.add.at(total, side["tx"].to_numpy(), side["value"].to_numpy())  # type: ignore[index]
    return total


def test_hashes_and_addresses_are_distinct_and_openly_simulated(tiny: Transactions) -> None:
    hashes = tiny.transactions["hash"]
    assert hashes.is_unique
    assert hashes.str.fullmatch(r"[0-9a-f]{64}").all()
    assert len(set(tiny.addresses)) == tiny.num_addresses
    assert all(address.startswith("sim") for address in tiny.addresses)


def test_every_address_in_the_book_occurs(tiny: Transactions) -> None:
    used = np.union1d(tiny.inputs["address"].to_numpy(), tiny.outputs["address"].to_numpy())
    assert np.array_equal(used[used >= 0], np.arange(tiny.num_addresses))


def test_the_prefix_of_an_address_tells_its_script(tiny: Transactions) -> None:
    prefix = {"pubkeyhash": "simP2PKH", "scripthash": "simP2SH", "witness_v0_keyhash": "sim1q"}
    for script, start in prefix.items():
        rows = tiny.outputs[tiny.outputs["script_type"] == SCRIPT_TYPES.index(script)]
        assert len(rows)
        assert all(address.startswith(start) for address in tiny.addresses[rows["address"].unique()])


@pytest.mark.parametrize("disorder", [0.0, 1.0, 2.0])
def test_change_returns_to_its_owner(disorder: float) -> None:
    """To whoever spends: where several own the inputs, to one of them, or to the custodian who keeps their coins."""
    txs = simulated("tiny", disorder=disorder)
    assert txs.truth is not None and txs.truth.change is not None and txs.truth.coinjoin is not None
    owner, change = txs.truth.owner, txs.truth.change
    with_change = np.flatnonzero(change >= 0)
    assert len(with_change) > 0.5 * len(txs)
    payer = owner[txs.inputs["address"].to_numpy()[txs.input_offsets()[with_change]]]
    back = owner[txs.outputs["address"].to_numpy()[txs.output_offsets()[with_change] + change[with_change]]]
    kept = np.isin(txs.truth.mechanism, ["shared-custody", "payment-processor", "hosted-address", "payjoin"])
    assert (payer == back)[~kept[with_change]].all()
    keepers = {"custodian", "processor", "exchange"}
    assert set(txs.truth.entities["kind"].to_numpy()[back[payer != back]]) <= keepers | {"user"}
    assert (txs.truth.coinjoin[with_change] == "").all()


def test_segwit_shows_in_the_size(tiny: Transactions) -> None:
    """A transaction without a SegWit input has no witness, one with a native SegWit input has."""
    native = np.zeros(len(tiny), dtype=bool)
    maybe = np.zeros(len(tiny), dtype=bool)
    kind, tx = tiny.inputs["script_type"].to_numpy(), tiny.inputs["tx"].to_numpy()
    native[
        tx[np.isin(kind, [SCRIPT_TYPES.index("witness_v0_keyhash"), SCRIPT_TYPES.index("witness_v0_scripthash")])]
    ] = 1
    maybe[tx[kind == SCRIPT_TYPES.index("scripthash")]] = 1
    light = (tiny.transactions["size"] > tiny.transactions["virtual_size"]).to_numpy()
    assert light[native].all()
    assert not light[~native & ~maybe].any()


def test_the_same_seed_gives_the_same_bytes_in_another_process(tiny: Transactions) -> None:
    code = (
        "from btcnb.data import simulate, SimulationConfig as C;"
        "from dataclasses import replace; tiny = C.preset('tiny');"
        "print(simulate(tiny).fingerprint(), simulate(C.preset('tiny', seed=1)).fingerprint(),"
        "simulate(replace(tiny, disorder=2.0, mixing=4.0)).fingerprint())"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    same, other, wild = run.stdout.split()
    assert same == tiny.fingerprint()
    assert wild == simulated("tiny", disorder=2.0, mixing=4.0).fingerprint()
    assert len({same, other, wild}) == 3


def test_splits_differ_in_height_price_and_content() -> None:
    chains = {split: simulated("tiny", split) for split in SPLITS}
    heights = {split: int(txs.transactions["block_number"].iloc[0]) for split, txs in chains.items()}
    assert heights == {"train1": 599_000, "train2": 624_000, "train3": 674_000, "valid": 649_000, "test": 699_000}
    assert subsidy(599_000) == 1_250_000_000
    assert subsidy(699_000) == 625_000_000
    for one, other in combinations(chains.values(), 2):
        assert not set(one.transactions["hash"]) & set(other.transactions["hash"])
        assert not set(one.addresses) & set(other.addresses)


@pytest.mark.parametrize("disorder", [0.0, 1.0, 2.0])
@pytest.mark.parametrize("size", ["tiny", "quick"])
def test_there_are_about_as_many_transactions_as_wanted(size: str, disorder: float) -> None:
    config = SimulationConfig.preset(size)
    wanted = config.blocks * config.transactions_per_block
    assert 0.85 * wanted < len(simulated(size, disorder=disorder)) < 1.15 * wanted


@pytest.mark.parametrize("size", ["tiny", "quick"])
def test_ids_of_addresses_tell_nothing_about_owners(size: str) -> None:
    """Neighbouring ids belong to one owner as often as random pairs do, within four standard errors."""
    txs = simulated(size)
    assert txs.truth is not None
    owner = txs.truth.owner
    counts = np.bincount(owner).astype(np.float64)
    expected = (counts * (counts - 1)).sum() / (len(owner) * (len(owner) - 1))
    found = (owner[1:] == owner[:-1]).mean()
    assert found == pytest.approx(expected, abs=4 * np.sqrt(expected * (1 - expected) / len(owner)))


def test_the_price_moves_as_much_in_a_day_as_it_should() -> None:
    moves = []
    for seed in range(400):
        money = Money(np.random.default_rng(seed), 10_000.0, np.zeros(6))
        for _ in range(144):
            money.next_block()
        moves.append(np.log(money.satoshi_per_usd / 10_000.0))
    assert np.std(moves) == pytest.approx(AMOUNTS.daily_volatility, rel=0.15)
    assert np.mean(moves) == pytest.approx(0.0, abs=0.007)  # four standard errors


def test_people_sleep() -> None:
    """Blocks near two in the afternoon (UTC) hold more than those near two at night."""
    table = simulated("quick").transactions
    blocks = table.groupby("block_number").agg(size=("hash", "size"), time=("block_timestamp", "first"))
    hour = blocks["time"].to_numpy() / 3600.0 % 24.0
    day, night = (blocks["size"].to_numpy()[np.abs((hour - at + 12) % 24 - 12) < 4].mean() for at in (14.0, 2.0))
    assert day > 1.15 * night  # the swing is ±20 %, averaged over eight hours ±17 %, with payouts that never sleep


def test_provenance_says_that_the_data_is_simulated(tiny: Transactions) -> None:
    assert tiny.source.startswith("simulated")
    assert "seed 0" in tiny.source


@pytest.mark.parametrize(
    ("changes", "name"),
    [
        ({"seed": -1}, "seed"),
        ({"seed": 1.5}, "seed"),
        ({"blocks": True}, "blocks"),
        ({"users": 3}, "users"),
        ({"price_usd": float("nan")}, "price_usd"),
        ({"fee_rate": "high"}, "fee_rate"),
        ({"label_share": 1.2}, "label_share"),
        ({"wasabi_peers": (60, 20)}, "wasabi_peers"),
        ({"wasabi2_inputs": 50}, "wasabi2_inputs"),
        ({"coinjoins": {"whirlpool": -1.0}}, "coinjoins.whirlpool"),
        ({"start_block": 100}, "start_block"),
    ],
)
def test_nonsense_is_refused_by_name(changes: dict[str, object], name: str) -> None:
    with pytest.raises(ParameterError, match=name.replace(".", r"\.")):
        SimulationConfig(**changes)  # type: ignore[arg-type]


def test_unknown_sizes_and_splits_are_refused() -> None:
    with pytest.raises(ParameterError, match="'tiny', 'quick', 'standard', 'paper'"):
        SimulationConfig.preset("huge")
    with pytest.raises(ParameterError, match="train1"):
        SimulationConfig.preset("tiny", split="train9")


def test_progress_is_shown_on_request_and_changes_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    config = SimulationConfig.preset("tiny")
    quiet = simulate(config)
    assert capsys.readouterr().err == ""
    assert simulate(config, progress=True).fingerprint() == quiet.fingerprint()
    shown = capsys.readouterr().err
    bars = [line for line in shown.splitlines() if line]
    assert " 0/180 " in bars[0] and " 180/180 " in bars[-1]
