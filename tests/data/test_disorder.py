"""Each way in which heuristics fail: that it happens, does what it says, and does not happen in a tidy world."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import pytest
from worlds import Alone, payers_differ, simulated

from btcnb.data import SCRIPT_TYPES, detect_coinjoins
from btcnb.data.coinjoin import PROTOCOLS
from btcnb.data.heuristics import heuristic_merges
from btcnb.data.judging.links import marked
from btcnb.data.simulator.parameters import MECHANISM_NAMES, MECHANISM_NUMBER, MECHANISMS, Dial

OF_STRANGERS = {
    "shared-custody",
    "payment-processor",
    "hosted-address",
    "payjoin",
    "key-import",
    "small-coinjoin",
}
"""Mechanisms that put coins of several owners into one transaction."""
WRITES = OF_STRANGERS | {
    "fixed-change",
    "fee-from-payee",
    "overspending",
    "home-change",
    "lightning",
    "other-change-type",
}
"""Mechanisms that a transaction can be known for; the others are habits of people, and labels."""


def test_every_mechanism_says_what_it_is_and_where_its_rate_comes_from() -> None:
    assert len({mechanism.name for mechanism in MECHANISMS}) == len(MECHANISMS)
    assert all(mechanism.rate > 0 and mechanism.of and mechanism.source and mechanism.words for mechanism in MECHANISMS)
    assert set(MECHANISM_NAMES) > WRITES
    assert MECHANISM_NUMBER[""] == 0


def test_the_dial_scales_all_rates_and_caps_shares() -> None:
    for mechanism in MECHANISMS:
        assert Dial(0.0)(mechanism.name) == 0.0
        assert Dial(1.0)(mechanism.name) == mechanism.rate
        assert Dial(0.5)(mechanism.name) == pytest.approx(0.5 * mechanism.rate)
    assert Dial(3.0)("shared-custody") == 1.0  # a share: 1.35 would be more than everybody
    assert Dial(3.0)("label-bias") == pytest.approx(4.5)  # a spread
    assert Dial(3.0)("payjoin") == pytest.approx(0.012)  # a number of transactions


# --- habits of wallets ---


def test_fixed_change_goes_to_one_address(monkeypatch: pytest.MonkeyPatch) -> None:
    world = Alone(monkeypatch, "fixed-change", 0.5)
    addresses = defaultdict(list)
    for tx in world.found():
        if world.change[tx] >= 0:
            change = world.change_output(tx)
            addresses[change["owner"]].append(change["address"])
    assert max(map(len, addresses.values())) >= 5
    assert all(len(set(told)) == 1 for told in addresses.values())


def test_fee_from_payee_leaves_round_change(monkeypatch: pytest.MonkeyPatch) -> None:
    world = Alone(monkeypatch, "fee-from-payee", 0.5)
    two = [tx for tx in world.found() if world.change[tx] >= 0 and len(world.outputs(tx)) == 2]
    paid = np.array([world.payment_output(tx)["value"] for tx in two])
    fee = world.txs.transactions["fee"].to_numpy()[two]
    assert len(two) > 100
    assert ((paid + fee) % 1_000 == 0).mean() > 0.2  # what the payer had in mind
    assert (paid % 1_000 == 0).mean() < 0.05  # what the payee gets


def test_overspending_takes_two_coins_where_there_are_two(monkeypatch: pytest.MonkeyPatch) -> None:
    world = Alone(monkeypatch, "overspending", 0.5)
    inputs = np.diff(world.txs.input_offsets())
    paying = [tx for tx in world.found() if world.change[tx] >= 0]
    payers = world.payer_wallets()
    balance = _coins_before(world)
    assert len(paying) > 50
    several = [tx for tx in paying if balance[tx][int(payers[tx][0])] >= 2]
    assert len(several) > 20
    assert all(inputs[tx] >= 2 for tx in several)
    ordinary = (world.mechanism == "") & (world.change >= 0)
    assert (inputs[paying] >= 2).mean() > 2 * (inputs[ordinary] >= 2).mean()


def _coins_before(world: Alone) -> dict[int, dict[int, int]]:
    """Per transaction of the mechanism and payer: coins that had been in its wallet since an earlier block.

    Coins from before the first block are counted from when they are spent, so the count is a lower bound.
    """
    state = world.economy.world.ledger.state
    coins, rows = int(state.counts[1]), int(state.counts[2])
    wallet = state.address_wallet[state.coin_address[:coins]]
    spent = np.full(coins, np.iinfo(np.int64).max)
    spent[state.input_coin[:rows]] = state.input_tx[:rows]
    before = {}
    for tx in world.found():
        payer = int(wallet[state.input_coin[np.searchsorted(state.input_tx[:rows], tx)]])
        ready = (wallet == payer) & (state.coin_block[:coins] < state.tx["block"][tx]) & (spent >= tx)
        before[tx] = {payer: int((ready & (state.coin_address[:coins] >= 0)).sum())}
    return before


def test_home_change_returns_to_the_one_hot_address_of_an_exchange(monkeypatch: pytest.MonkeyPatch) -> None:
    world = Alone(monkeypatch, "home-change", 0.3)
    home, spent = defaultdict(set), defaultdict(set)
    for tx in world.found():
        inputs = world.inputs(tx)
        assert set(inputs["kind"]) == {"exchange"}
        assert inputs["owner"].nunique() == 1
        assert len(world.outputs(tx)) <= 2  # one by one
        spent[inputs["owner"].iloc[0]] |= set(inputs["address"])
        if world.change[tx] >= 0:
            home[world.change_output(tx)["owner"]].add(world.change_output(tx)["address"])
    assert home
    assert all(len(addresses) == 1 for addresses in home.values())
    assert max(map(len, spent.values())) > 20  # deposits


@pytest.mark.parametrize("rate", [0.0, 1.0])
def test_fresh_deposits_have_an_address_each(monkeypatch: pytest.MonkeyPatch, rate: float) -> None:
    world = Alone(monkeypatch, "fresh-deposits", rate)
    outputs, inputs = world.txs.outputs, world.txs.inputs
    payer = world.truth.owner[inputs["address"].to_numpy()[np.minimum(world.txs.input_offsets()[:-1], len(inputs) - 1)]]
    rows = np.flatnonzero(outputs["address"].to_numpy() >= 0)
    ordinary = ~world.txs.transactions["is_coinbase"].to_numpy()
    payee = world.kind[world.truth.owner[outputs["address"].to_numpy()[rows]]]
    tx = outputs["tx"].to_numpy()[rows]
    paid_in = rows[ordinary[tx] & (world.kind[payer[tx]] == "user") & (payee == "exchange")]
    customer, address = payer[outputs["tx"].to_numpy()[paid_in]], outputs["address"].to_numpy()[paid_in]
    times = np.bincount(outputs["address"].to_numpy()[rows], minlength=world.txs.num_addresses)
    assert len(paid_in) > 300
    if rate:
        assert (times[address] == 1).all()
    else:  # everybody has one address at the exchange
        assert len(np.unique(np.stack([customer, address]), axis=1).T) == len(np.unique(customer))
        assert (times[address] > 1).mean() > 0.5


def test_other_change_type_holds_two_types(monkeypatch: pytest.MonkeyPatch) -> None:
    world = Alone(monkeypatch, "other-change-type", 0.5)
    found = [tx for tx in world.found() if world.change[tx] >= 0]
    assert len(found) > 100
    owners = {int(world.change_output(tx)["owner"]) for tx in found}
    outputs, change = world.txs.outputs, world.change[world.txs.outputs["tx"].to_numpy()]
    shown = outputs[outputs["address"] >= 0].assign(
        owner=np.append(world.truth.owner, -1)[outputs["address"]][outputs["address"] >= 0],
        is_change=(outputs["index"].to_numpy() == change)[outputs["address"] >= 0],
    )
    compared = 0
    for _, rows in shown[shown["owner"].isin(owners)].groupby("owner"):
        as_change, received = (set(rows.loc[rows["is_change"] == flag, "script_type"]) for flag in (True, False))
        assert len(as_change) == 1
        assert not as_change & received
        compared += bool(received)
    assert compared > 10


def test_new_software_leaves_other_marks(monkeypatch: pytest.MonkeyPatch) -> None:
    users, marks = 400, ["version", "locktime", "rbf", "script"]
    world = Alone(monkeypatch, "new-software", 1.0)
    assert not world.found()
    after = world.economy.world.ledger.state.habits[:users]
    changed = np.any([after[mark] != world.habits[:users][mark] for mark in marks], axis=0)
    assert 0.3 < changed.mean() < 0.7  # 1 - 1/e = 63 % are asked, and some draw what they have
    versions = _versions_of_users(world)
    assert sum(len(seen) > 1 for seen in versions.values()) > 10


def test_without_new_software_a_wallet_keeps_its_marks(monkeypatch: pytest.MonkeyPatch) -> None:
    world = Alone(monkeypatch, "new-software", 0.0)
    assert np.array_equal(world.economy.world.ledger.state.habits, world.habits)
    versions = _versions_of_users(world)
    assert len(versions) > 100
    assert all(len(seen) == 1 for seen in versions.values())


def _versions_of_users(world: Alone) -> dict[int, set[int]]:
    """Versions of the transactions of each user's wallet."""
    seen = defaultdict(set)
    version = world.txs.transactions["version"].to_numpy()
    for tx, wallets in enumerate(world.payer_wallets()):
        if len(wallets) and wallets[0] < world.config.users:
            seen[int(wallets[0])].add(int(version[tx]))
    return seen


def test_second_wallets_are_never_spent_with_the_first(monkeypatch: pytest.MonkeyPatch) -> None:
    world = Alone(monkeypatch, "second-wallet", 0.5)
    entity = np.array(world.economy.world.registry.wallet_entity)
    used = defaultdict(set)
    for wallets in world.payer_wallets():
        if len(wallets) and world.kind[entity[wallets[0]]] == "user":
            assert len(set(wallets.tolist())) == 1
            used[int(entity[wallets[0]])].add(int(wallets[0]))
    both = [owner for owner, wallets in used.items() if len(wallets) == 2]
    assert len(both) > 20
    assert max(map(len, used.values())) == 2
    assert {int(owner) for owner in np.flatnonzero(world.economy.users.second >= 0)} >= set(both)


# --- who keeps whose coins ---


def test_shared_custody_spends_coins_of_several_brands(monkeypatch: pytest.MonkeyPatch) -> None:
    world = Alone(monkeypatch, "shared-custody", 0.8)
    found = world.found()
    inputs = [world.inputs(tx) for tx in found]
    assert all(set(rows["kind"]) <= {"exchange", "custodian"} for rows in inputs)
    brands = [rows.loc[rows["kind"] == "exchange", "owner"].nunique() for rows in inputs]
    assert sum(number > 1 for number in brands) > 20
    assert np.flatnonzero(payers_differ(world.txs)).tolist() == [
        tx for tx, rows in zip(found, inputs, strict=True) if rows["owner"].nunique() > 1
    ]


def test_a_payment_processor_spends_invoices_of_several_shops(monkeypatch: pytest.MonkeyPatch) -> None:
    world = Alone(monkeypatch, "payment-processor", 0.9)
    found = world.found()
    assert len(found) >= 5
    for tx in found:
        inputs, outputs = world.inputs(tx), world.outputs(tx)
        assert set(inputs["kind"]) <= {"merchant", "processor"}
        assert inputs["owner"].nunique() > 1
        assert set(outputs["kind"]) <= {"exchange", "processor"}  # shops are paid at their accounts
        values = outputs.loc[outputs["kind"] == "exchange", "value"]
        assert len(values) >= 1 and values.nunique() == 1


def test_a_hosted_address_is_swept_with_those_of_customers(monkeypatch: pytest.MonkeyPatch) -> None:
    world = Alone(monkeypatch, "hosted-address", 0.5)
    found = world.found()
    inputs = [world.inputs(tx) for tx in found]
    assert len(found) > 20
    assert all("merchant" in set(rows["kind"]) <= {"merchant", "exchange"} for rows in inputs)
    together = [rows for rows in inputs if "exchange" in set(rows["kind"])]
    assert len(together) > 10
    assert set(np.flatnonzero(payers_differ(world.txs))) <= set(found)
    hosted = {owner for rows in inputs for owner in rows.loc[rows["kind"] == "merchant", "owner"]}
    assert hosted and not hosted & _merchants_who_pay(world)


def _merchants_who_pay(world: Alone) -> set[int]:
    """Merchants who spend their coins themselves."""
    entity = np.array(world.economy.world.registry.wallet_entity)
    wallets = world.payer_wallets()
    payers = {int(entity[wallets[tx][0]]) for tx in np.flatnonzero(world.mechanism == "") if len(wallets[tx])}
    return {payer for payer in payers if world.kind[payer] == "merchant"}


# --- transactions of their own ---


def test_payjoin_has_a_coin_of_the_payee_among_its_inputs(monkeypatch: pytest.MonkeyPatch) -> None:
    world = Alone(monkeypatch, "payjoin", 0.1)
    assert len(world.found()) > 30
    assert np.flatnonzero(payers_differ(world.txs)).tolist() == world.found()
    for tx in world.found():
        inputs, outputs = world.inputs(tx), world.outputs(tx)
        payee = outputs["owner"].iloc[1 - int(world.change[tx])] if world.change[tx] >= 0 else outputs["owner"].iloc[0]
        brought = inputs.loc[inputs["owner"] == payee, "value"]
        assert inputs["owner"].nunique() == 2
        assert len(brought) == 1
        assert outputs.loc[outputs["owner"] == payee, "value"].sum() > brought.sum()  # its coin comes back with more
        payer = (set(inputs["owner"]) - {payee}).pop()
        paid = (
            inputs.loc[inputs["owner"] == payer, "value"].sum() - outputs.loc[outputs["owner"] == payer, "value"].sum()
        )
        gained = outputs.loc[outputs["owner"] == payee, "value"].sum() - brought.sum()
        assert paid == gained + world.txs.transactions["fee"].iloc[tx]


def test_imported_keys_are_swept_with_ones_own(monkeypatch: pytest.MonkeyPatch) -> None:
    world = Alone(monkeypatch, "key-import", 0.1)
    assert len(world.found()) > 30
    assert np.flatnonzero(payers_differ(world.txs)).tolist() == world.found()
    givers = set()
    for tx in world.found():
        inputs, outputs = world.inputs(tx), world.outputs(tx)
        assert len(outputs) == 1
        taker = outputs["owner"].iloc[0]
        assert world.kind[taker] == "user"
        assert (inputs["owner"] != taker).sum() == 1
        givers |= set(inputs.loc[inputs["owner"] != taker, "kind"])
    assert givers >= {"user", "merchant"}


def test_lightning_channels_open_to_a_shared_script_and_close_to_two(monkeypatch: pytest.MonkeyPatch) -> None:
    world = Alone(monkeypatch, "lightning", 0.2, blocks=120, transactions_per_block=25)
    shared = SCRIPT_TYPES.index("witness_v0_scripthash")
    maker = world.txs.outputs["tx"].to_numpy()
    opens, closes = set(), []
    for tx in world.found():
        inputs, outputs = world.inputs(tx), world.outputs(tx)
        first = int(inputs["spent_output"].iloc[0])
        if first >= 0 and int(maker[first]) in opens and inputs["script_type"].iloc[0] == shared:
            closes.append((len(inputs), inputs["owner"].iloc[0], outputs))
        else:
            opens.add(tx)
            assert outputs["script_type"].iloc[0] == shared
            assert inputs["owner"].nunique() == 1
            assert set(outputs["owner"]) == set(inputs["owner"])  # the shared output counts as the opener's
    assert len(opens) > 30 and len(closes) > 10
    assert all(number == 1 and opener in set(rows["owner"]) for number, opener, rows in closes)
    two = [rows for _, _, rows in closes if rows["owner"].nunique() == 2]
    assert len(two) >= 5
    assert len(two) < len(closes)  # some are closed before anything was paid


def test_small_coinjoins_are_named_by_no_published_rule(monkeypatch: pytest.MonkeyPatch) -> None:
    world = Alone(monkeypatch, "small-coinjoin", 0.1)
    found = world.found()
    assert len(found) > 50
    assert np.flatnonzero(payers_differ(world.txs)).tolist() == found
    assert set(detect_coinjoins(world.txs, rules="published")[found]) == {""}
    sizes = set()
    for tx in found:
        inputs, outputs = world.inputs(tx), world.outputs(tx)
        sizes.add(inputs["owner"].nunique())
        assert set(inputs["owner"]) == set(outputs["owner"])
        assert (outputs.groupby("owner").size() == 2).all()
    assert sizes == {2, 3}


# --- all together ---


@pytest.mark.parametrize("size", ["tiny", "quick"])
def test_in_a_tidy_world_none_of_them_happens(size: str) -> None:
    txs = simulated(size, disorder=0.0)
    assert txs.truth is not None and txs.truth.mechanism is not None and txs.truth.coinjoin is not None
    assert set(txs.truth.mechanism) == {""}
    assert set(txs.truth.coinjoin[payers_differ(txs)]) <= set(PROTOCOLS) - {"whirlpool-tx0"}
    assert not set(txs.truth.entities["kind"]) & {"custodian", "processor"}


def test_all_that_write_transactions_do_so_at_the_calibrated_setting() -> None:
    txs = simulated("quick")
    assert txs.truth is not None and txs.truth.mechanism is not None
    assert set(txs.truth.mechanism) == {""} | WRITES


@pytest.mark.parametrize("disorder", [1.0, 2.0])
def test_every_mixture_of_owners_has_its_name(disorder: float) -> None:
    """Inputs of several owners: a CoinJoin, or a mechanism that explains it."""
    txs = simulated("quick", disorder=disorder)
    assert txs.truth is not None and txs.truth.mechanism is not None and txs.truth.coinjoin is not None
    outside = payers_differ(txs) & (txs.truth.coinjoin == "")
    assert set(txs.truth.mechanism[outside]) == OF_STRANGERS
    assert set(txs.truth.mechanism[txs.truth.coinjoin != ""]) == {""}
    always = np.isin(txs.truth.mechanism, ["payjoin", "key-import", "small-coinjoin"])
    assert payers_differ(txs)[always].all()


def test_wrong_merges_grow_with_disorder() -> None:
    """Economies with the same seed, at three settings of the dial."""
    wrong = np.array([[_wrong(disorder, seed) for disorder in (0.0, 1.0, 2.0)] for seed in range(4)])
    assert (np.diff(wrong.sum(axis=0)) > 0.3 * wrong.sum(axis=0)[:-1]).all(), wrong
    assert (wrong[:, 2] > wrong[:, 0]).all(), wrong


def _wrong(disorder: float, seed: int) -> int:
    txs = simulated("tiny", seed=seed, disorder=disorder)
    return int(marked(heuristic_merges(txs), txs.truth.owner)["wrong"].sum())
