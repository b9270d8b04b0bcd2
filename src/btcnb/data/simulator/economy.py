"""The clock of the economy: found everybody, then let them act block by block."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from tqdm import tqdm

from btcnb.data.simulator.coinjoins import CoinJoins
from btcnb.data.simulator.config import SimulationConfig
from btcnb.data.simulator.exchanges import Exchanges
from btcnb.data.simulator.joint import Lightning, run_small_coinjoins
from btcnb.data.simulator.ledger import Ledger
from btcnb.data.simulator.parameters import FILE, MECHANISM_NUMBER, Dial, Era, era_of, numbers
from btcnb.data.simulator.services import DataWriters, Merchants, Pools
from btcnb.data.simulator.spending import execute
from btcnb.data.simulator.tables import to_transactions
from btcnb.data.simulator.users import USERS, Users
from btcnb.data.simulator.wallets import Registry, of_program, wallet_habits, with_marks, with_mechanisms
from btcnb.data.simulator.world import Money, Orders, World
from btcnb.data.transactions import Transactions
from btcnb.store.reads import note_read


def simulate(config: SimulationConfig | None = None, progress: bool = False) -> Transactions:
    """Simulate a Bitcoin economy and return its transactions with the full truth about owners, change and CoinJoins.

    Amounts balance exactly: inputs = outputs + fee, each coinbase = subsidy + fees of its block, no output is spent
    twice or before it exists. Inputs that spend coins from before the first block have `spent_output` = -1, with hash,
    address and value known. The same config gives the same bytes, in any process. Without argument: the preset
    "quick".

    progress: show a bar that counts blocks. Interrupted (Ctrl-C) it stops within a block and leaves nothing behind.
    """
    config = SimulationConfig.preset("quick") if config is None else config
    note_read(FILE)
    with tqdm(total=config.blocks, desc="simulating", unit=" blocks", disable=not progress) as bar:
        bar.refresh()  # founding everybody takes a while: show that work has begun
        economy = Economy(config)
        for _ in range(config.blocks):
            economy.block()
            bar.update()
    return to_transactions(economy.world)


class Economy:
    """All actors and the world they share."""

    def __init__(self, config: SimulationConfig) -> None:
        rng = np.random.default_rng([config.seed, config.start_block])  # no two intervals share an economy
        registry, era, dial = Registry(), era_of(config.start_block), Dial(config.disorder)
        self.users = Users(config, rng, registry, dial)
        self.exchanges = Exchanges(config, rng, registry, dial)
        self.pools = Pools(config, rng, registry)
        tills = np.array([exchange.vault.till for exchange in self.exchanges.all])
        self.merchants = Merchants(config, rng, registry, dial, tills)
        self.data_writers = DataWriters(config, rng, registry, era)
        self.coinjoins = CoinJoins(config, registry)
        self.users.register_second(registry)
        self.lightning = Lightning(self.users, rng, registry, dial)
        ledger = _ledger(config, rng, registry, era)
        account = rng.choice(config.exchanges, size=config.users, p=self.exchanges.share).astype(np.int64)
        self.world = World(
            config=config,
            rng=rng,
            registry=registry,
            ledger=ledger,
            money=Money(rng, config.price_usd, era.roundness()),
            orders=Orders(rng, config.fee_rate),
            customer_exchange=account,
            customer_address=ledger.new_addresses(self.exchanges.deposit_wallets[account]),
            customer_wallet=self.exchanges.deposit_wallets[account],
            rate=config.fee_rate,
            era=era,
            dial=dial,
            times=_times(config),
        )
        self.users.settle(self.world)
        self.exchanges.settle(self.world)
        self.pools.settle(self.world)
        self.merchants.settle(self.world, self.exchanges.deposit_wallets)
        self.data_writers.settle(self.world)
        self.coinjoins.settle(self.world, self.users, self.exchanges.deposit_wallets)

    def block(self) -> None:
        """Everybody acts once; then the next block begins."""
        world, ledger = self.world, self.world.ledger
        first = ledger.num_transactions
        self.pools.mine(world)
        self.coinjoins.run(world)
        run_small_coinjoins(world, self.users)
        self.lightning.run(world)
        world.money.next_block()
        world.next_rate()
        _new_software(world, self.users.number)
        world.orders = Orders(world.rng, world.rate)
        self.pools.plan(world)
        self.users.plan(world, self.merchants)
        winners = self.users.draw(world, world.rng.poisson(self.merchants.bets_won * world.busy))
        self.merchants.plan(world, winners)
        self.data_writers.plan(world)
        self.coinjoins.plan(world)
        self.exchanges.plan(world)
        if len(world.orders):
            execute(ledger, world.orders.table())
        fees = int(ledger.state.tx["fee"][first : ledger.num_transactions].sum())
        self.pools.close(world, fees)
        world.keep_pace()
        ledger.height += 1


def _ledger(config: SimulationConfig, rng: np.random.Generator, registry: Registry, era: Era) -> Ledger:
    """The ledger with everybody's habits."""
    programs, mechanisms = np.array(registry.wallet_program), np.array(registry.wallet_mechanism)
    habits = wallet_habits(rng, era, programs, np.array(registry.wallet_weight))
    keepers = np.array(registry.wallet_keeper)
    ledger = Ledger(rng, programs, with_mechanisms(habits, mechanisms), keepers, mechanisms, era.customer_scripts())
    ledger.state.wallet_reuse[mechanisms == MECHANISM_NUMBER["fixed-change"]] = USERS.fixed_change_reuse
    ledger.height = config.start_block
    return ledger


def _times(config: SimulationConfig) -> npt.NDArray[np.int64]:
    """Unix seconds of each block, shape (blocks,)."""
    rng = np.random.default_rng([config.seed, config.start_block, 1])
    waits = rng.exponential(numbers("clock").block_seconds, config.blocks)
    return config.start_time + np.cumsum(np.maximum(1, np.rint(waits)).astype(np.int64))


def _new_software(world: World, users: int) -> None:
    """Some wallets change software: from now on other marks and addresses of another type."""
    number = world.rng.poisson(world.dial("new-software") * users / world.config.blocks)
    wallet = np.unique(world.rng.integers(users, size=number))
    wallet = wallet[~of_program("marked", np.array(world.registry.wallet_program)[wallet])]
    habits = world.ledger.state.habits
    if len(wallet):
        habits[wallet] = with_marks(world.rng, world.era, habits[wallet], np.ones(len(wallet)))
