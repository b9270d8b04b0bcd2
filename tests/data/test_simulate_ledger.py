"""The ledger, order by order: small wallets whose coins, change and fees can be followed by hand."""

from __future__ import annotations

import numpy as np
import pytest

from btcnb.data.simulator.ledger import Ledger, hash_word
from btcnb.data.simulator.parameters import CHANGE_TO_MAIN, MECHANISM_NUMBER, P2WPKH, PROGRAM_NUMBER, SELECT_BEST
from btcnb.data.simulator.spending import LEAST_OUTPUT, OP_RETURN, PAYJOIN, SWEEP, execute
from btcnb.data.simulator.wallets import SEQUENCE_FINAL, SEQUENCE_LOCKTIME, SEQUENCE_RBF
from btcnb.data.simulator.world import Orders

HEIGHT = 600_000


class Town:
    """Two wallets: 0 (the payer, with the given program and coins) and 1 (the payee)."""

    def __init__(self, program: str, coins: list[int], payee: str = "web-legacy", rate: float = 10.0) -> None:
        programs = np.array([PROGRAM_NUMBER[program], PROGRAM_NUMBER[payee]], dtype=np.int64)
        self.ledger = Ledger(np.random.default_rng(0), programs)
        self.ledger.height = HEIGHT
        self.ledger.endow(self.ledger.receive_addresses(np.zeros(len(coins), dtype=np.int64)), np.array(coins))
        self.orders = Orders(np.random.default_rng(1), rate)

    def run(self) -> list[bool]:
        return [bool(done) for done in execute(self.ledger, self.orders.table())]

    def transaction(self, tx: int = 0) -> dict[str, int]:
        row = self.ledger.state.tx[tx]
        return {name: int(row[name]) for name in row.dtype.names}

    def spent(self) -> list[int]:
        return self.ledger.state.input_coin[: self.ledger.state.counts[2]].tolist()

    def outputs(self, tx: int = 0) -> list[tuple[int, int]]:
        """(wallet, value) of each output."""
        state = self.ledger.state
        rows = [c for c in range(int(state.counts[1])) if state.coin_tx[c] == tx]
        return [(int(state.address_wallet[state.coin_address[c]]), int(state.coin_value[c])) for c in rows]

    def habit(self, name: str, value: int) -> None:
        """Give the payer's program another habit."""
        self.ledger.state.habits[name][self.ledger.state.wallet_habits[0]] = value


def test_a_payment_spends_the_smallest_sufficient_coin_and_returns_change() -> None:
    town = Town("hardware-wrapped", [900_000, 200_000, 500_000])
    town.habit("selection", SELECT_BEST)
    town.orders.pay(0, wallet=1, value=150_000)
    assert town.run() == [True]
    assert town.spent() == [1]
    tx = town.transaction()
    assert town.outputs() == [(1, 150_000), (0, 200_000 - 150_000 - tx["fee"])]
    assert tx["change"] == 1  # this program puts the change last
    assert town.ledger.balance.tolist() == [900_000 + 500_000 + 50_000 - tx["fee"], 150_000]
    assert town.ledger.coins.tolist() == [3, 1]


def test_size_and_fee_of_a_wrapped_segwit_payment() -> None:
    town = Town("hardware-wrapped", [200_000])
    town.orders.pay(0, wallet=1, value=100_000)
    town.run()
    tx = town.transaction()
    stripped = 10 + 64 + 34 + 32  # fixed bytes, one input, a legacy output, a wrapped output
    witness = 107 + 2
    assert tx["size"] == stripped + witness
    assert tx["virtual_size"] == -(-(4 * stripped + witness) // 4)
    assert tx["fee"] % tx["virtual_size"] == 0  # a whole number of satoshi per virtual byte


def test_several_small_coins_are_put_together() -> None:
    town = Town("web-legacy", [30_000, 40_000, 50_000, 60_000])
    town.orders.pay(0, wallet=1, value=80_000)
    assert town.run() == [True]
    assert sorted(town.spent()) == [0, 1, 2]  # oldest first


def test_an_order_that_cannot_be_paid_changes_nothing() -> None:
    town = Town("web-legacy", [30_000, 40_000])
    before = [array.copy() for array in town.ledger.state]
    town.orders.pay(0, wallet=1, value=70_000)
    assert town.run() == [False]
    unchanged = [name for name in town.ledger.state._fields if name not in ("picked", "out_address", "out_value")]
    for name, old in zip(town.ledger.state._fields, before, strict=True):
        if name in unchanged:
            assert np.array_equal(getattr(town.ledger.state, name)[: len(old)], old), name


def test_change_below_the_least_output_is_left_to_the_miner() -> None:
    probe = Town("web-legacy", [200_000])
    probe.orders.pay(0, wallet=1, value=100_000)
    probe.run()
    fee = probe.transaction()["fee"]
    town = Town("web-legacy", [100_000 + fee + LEAST_OUTPUT - 1])
    town.orders.pay(0, wallet=1, value=100_000)
    town.run()
    assert town.outputs() == [(1, 100_000)]
    assert town.transaction()["fee"] == fee + LEAST_OUTPUT - 1
    assert town.transaction()["change"] == -1


def test_a_sweep_spends_everything_into_one_output() -> None:
    town = Town("web-legacy", [30_000, 40_000, 50_000])
    town.orders.pay(0, wallet=1, mode=SWEEP, most_inputs=10)
    assert town.run() == [True]
    assert sorted(town.spent()) == [0, 1, 2]
    assert town.outputs() == [(1, 120_000 - town.transaction()["fee"])]
    assert town.ledger.balance[0] == 0


def test_a_companion_coin_joins_the_sweep() -> None:
    town = Town("web-legacy", [30_000, 40_000])
    town.ledger.endow(town.ledger.receive_addresses(np.array([1])), np.array([77_000]))
    town.orders.pay(0, wallet=1, mode=SWEEP, most_inputs=2, companion=1)
    town.run()
    assert sorted(town.spent()) == [0, 1, 2]


def test_mixed_selection_takes_new_and_old_coins() -> None:
    town = Town("deposits", [100_000] * 9)
    town.orders.pay(0, wallet=1, mode=SWEEP, most_inputs=4)
    town.run()
    assert sorted(town.spent()) == [0, 1, 7, 8]  # new, old, old, new


def test_a_fresh_coin_waits_for_its_confirmation() -> None:
    town = Town("web-legacy", [100_000])
    town.orders.pay(0, wallet=1, value=20_000)
    town.run()
    again = Orders(np.random.default_rng(2), 10.0)
    again.pay(0, wallet=1, value=20_000)
    assert not execute(town.ledger, again.table()).any()  # its only coin is the change of this block
    town.ledger.height += 1
    assert execute(town.ledger, again.table()).all()


def test_an_op_return_output_holds_nothing_and_the_rest_returns_to_the_same_address() -> None:
    town = Town("static", [100_000])
    town.orders.pay(0, address=OP_RETURN, value=0)
    town.run()
    state = town.ledger.state
    outputs = [c for c in range(int(state.counts[1])) if state.coin_tx[c] == 0]
    values = {int(state.coin_address[c]): int(state.coin_value[c]) for c in outputs}
    assert values == {-1: 0, int(state.coin_address[0]): 100_000 - town.transaction()["fee"]}


@pytest.mark.parametrize(
    ("program", "version", "locked", "sequence"),
    [
        ("web-legacy", 1, False, SEQUENCE_FINAL),
        ("node-wrapped", 2, True, SEQUENCE_LOCKTIME),
        ("node-segwit", 2, True, SEQUENCE_RBF),
    ],
)
def test_the_fingerprint_of_a_program(program: str, version: int, locked: bool, sequence: int) -> None:
    town = Town(program, [100_000])
    town.orders.pay(0, wallet=1, value=20_000)
    town.run()
    tx = town.transaction()
    assert tx["version"] == version
    assert tx["sequence"] == sequence
    assert (HEIGHT - 100 <= tx["lock_time"] < HEIGHT) if locked else tx["lock_time"] == 0


def test_bip69_orders_inputs_by_hash_and_outputs_by_value() -> None:
    town = Town("phone-spv", [40_000] * 12)
    town.orders.batch(0, np.full(5, 1), np.full(5, -1), np.array([90_000, 20_000, 70_000, 30_000, 50_000]))
    assert town.run() == [True]
    state = town.ledger.state
    words = [int(hash_word(state, state.coin_tx[coin], coin)) for coin in town.spent()]
    assert len(words) > 5
    assert words == sorted(words)
    values = [value for _, value in town.outputs()]
    assert values == sorted(values)
    change = town.transaction()["change"]
    assert town.outputs()[change][0] == 0


# --- habits that mislead heuristics ---


def test_where_the_payee_bears_the_fee_the_change_stays_round() -> None:
    town = Town("hardware-wrapped", [1_000_000])
    town.habit("payee_pays_fee", 1)
    town.orders.pay(0, wallet=1, value=300_000)
    assert town.run() == [True]
    assert town.outputs() == [(1, 300_000 - town.transaction()["fee"]), (0, 700_000)]


def test_a_payee_who_could_not_bear_the_fee_gets_the_stated_amount() -> None:
    town = Town("hardware-wrapped", [1_000_000], rate=30.0)
    town.habit("payee_pays_fee", 1)
    town.orders.pay(0, wallet=1, value=2_000)
    assert town.run() == [True]
    assert town.outputs() == [(1, 2_000), (0, 998_000 - town.transaction()["fee"])]


@pytest.mark.parametrize(("coins", "spent"), [([900_000, 200_000, 500_000], [0, 1]), ([900_000], [0])])
def test_overspending_takes_a_second_coin_if_there_is_one(coins: list[int], spent: list[int]) -> None:
    town = Town("web-legacy", coins)
    town.habit("least_inputs", 2)
    town.orders.pay(0, wallet=1, value=150_000)
    assert town.run() == [True]
    assert sorted(town.spent()) == spent


def test_fixed_change_returns_to_one_address_while_payees_get_fresh_ones() -> None:
    town = Town("web-legacy", [500_000] * 4)
    town.habit("change", CHANGE_TO_MAIN)
    for _ in range(3):
        town.orders.pay(0, wallet=1, value=150_000)
    assert town.run() == [True] * 3
    state = town.ledger.state
    made = np.flatnonzero(state.coin_tx[: state.counts[1]] >= 0)
    owner = state.address_wallet[state.coin_address[made]]
    assert len(set(state.coin_address[made][owner == 0])) == 1


def test_change_of_another_type() -> None:
    town = Town("web-legacy", [500_000])
    town.habit("change_script", P2WPKH)
    town.orders.pay(0, wallet=1, value=150_000)
    town.run()
    state = town.ledger.state
    change = 1 + town.transaction()["change"]  # the one coin from before stands first
    assert state.address_script[state.coin_address[change]] == P2WPKH
    assert state.address_wallet[state.coin_address[change]] == 0


def payjoin(with_coin: bool) -> Town:
    """Wallet 0 pays 50,000 to wallet 1, who may add a coin of 77,000."""
    town = Town("hardware-wrapped", [200_000])
    if with_coin:
        town.ledger.endow(town.ledger.receive_addresses(np.array([1])), np.array([77_000]))
    town.orders.pay(0, wallet=1, value=50_000, mode=PAYJOIN, companion=1, mechanism=MECHANISM_NUMBER["payjoin"])
    assert town.run() == [True]
    return town


def test_in_a_payjoin_the_payee_gets_its_coin_back_on_top() -> None:
    town = payjoin(with_coin=True)
    tx = town.transaction()
    assert sorted(town.spent()) == [0, 1]
    assert town.outputs() == [(1, 127_000), (0, 150_000 - tx["fee"])]
    assert tx["mechanism"] == MECHANISM_NUMBER["payjoin"]


def test_a_payee_without_a_coin_is_just_paid() -> None:
    town = payjoin(with_coin=False)
    tx = town.transaction()
    assert town.outputs() == [(1, 50_000), (0, 150_000 - tx["fee"])]
    assert tx["mechanism"] == 0


def test_whoever_keeps_the_coins_of_an_address_spends_them() -> None:
    """Wallet 1 shows an address of its account with wallet 0, which sweeps it with its own."""
    programs = np.full(3, PROGRAM_NUMBER["web-legacy"], dtype=np.int64)
    town = Town("web-legacy", [])
    town.ledger = Ledger(np.random.default_rng(0), programs, keepers=np.array([0, 0, 2]))
    town.ledger.height = HEIGHT
    town.ledger.endow(town.ledger.receive_addresses(np.array([0, 1])), np.array([60_000, 80_000]))
    assert town.ledger.balance.tolist() == [140_000, 0, 0]
    town.orders.pay(0, wallet=2, mode=SWEEP, most_inputs=10)
    assert town.run() == [True]
    assert sorted(town.spent()) == [0, 1]
    assert town.transaction()["mechanism"] == MECHANISM_NUMBER["hosted-address"]
