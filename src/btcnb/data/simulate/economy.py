"""The clock of the economy: found everybody, then let them act block by block."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from tqdm import tqdm

from btcnb.data.simulate.actors.anchors import Anchors, Tokens
from btcnb.data.simulate.actors.exchanges import Exchanges
from btcnb.data.simulate.actors.merchants import Merchants
from btcnb.data.simulate.actors.pools import Pools
from btcnb.data.simulate.actors.users import Users
from btcnb.data.simulate.amounts import Money
from btcnb.data.simulate.config import SimulationConfig
from btcnb.data.simulate.disorder import NUMBER as MECHANISM
from btcnb.data.simulate.disorder import Dial
from btcnb.data.simulate.eras import Era, era_of
from btcnb.data.simulate.habits import careless, marked, wallet_habits
from btcnb.data.simulate.ledger import Ledger
from btcnb.data.simulate.mixes import small
from btcnb.data.simulate.mixes.lightning import Lightning
from btcnb.data.simulate.mixes.schedule import CoinJoins
from btcnb.data.simulate.orders import Orders
from btcnb.data.simulate.programs import PROGRAMS
from btcnb.data.simulate.tables import to_transactions
from btcnb.data.simulate.world import Registry, Withdrawals, World
from btcnb.data.transactions import Transactions
from btcnb.gates import flag, instance

BETS_WON = 0.03
"""Winners paid by betting sites in a block, as a multiple of the number of transactions."""
BLOCK_SECONDS = 600.0
FIXED_CHANGE_REUSE = 450
"""Per mille: how often a wallet with one change address hands out its last receiving address again."""


def simulate(config: SimulationConfig | None = None, progress: bool = False) -> Transactions:
    """Simulate a Bitcoin economy and return its transactions with the full truth about owners, change and CoinJoins.

    Amounts balance exactly: inputs = outputs + fee, each coinbase = subsidy + fees of its block, no output is spent
    twice or before it exists. Inputs that spend coins from before the first block have `spent_output` = -1, with hash,
    address and value known. The same config gives the same bytes, in any process. Without argument: the preset
    "quick".

    progress: show a bar that counts blocks. Interrupted (Ctrl-C) it stops within a block and leaves nothing behind.
    """
    config = SimulationConfig.preset("quick") if config is None else config
    instance("config", config, SimulationConfig)
    flag("progress", progress)
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
        tills = np.array([exchange.till.wallet for exchange in self.exchanges.all])
        self.merchants = Merchants(config, rng, registry, dial, tills)
        self.anchors, self.tokens = Anchors(registry, era), Tokens(config, rng, registry, era)
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
            withdrawals=Withdrawals(),
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
        self.anchors.settle(self.world)
        self.tokens.settle(self.world)
        self.coinjoins.settle(self.world, self.users, self.exchanges.deposit_wallets)

    def block(self) -> None:
        """Everybody acts once; then the next block begins."""
        world, ledger = self.world, self.world.ledger
        first = ledger.num_transactions
        self.pools.mine(world)
        self.coinjoins.run(world)
        small.run(world, self.users)
        self.lightning.run(world)
        world.money.next_block()
        world.rate = _next_rate(world)
        _new_software(world, self.users.number)
        world.orders = Orders(world.rng, world.rate)
        self.pools.plan(world)
        self.users.plan(world, self.merchants)
        winners = self.users.draw(world, world.rng.poisson(BETS_WON * world.busy))
        self.merchants.plan(world, winners)
        self.anchors.plan(world)
        self.tokens.plan(world)
        self.coinjoins.plan(world)
        self.exchanges.plan(world)
        if len(world.orders):
            ledger.execute(world.orders.table())
        fees = int(ledger.book.tx[first : ledger.num_transactions, 6].sum())
        self.pools.close(world, fees)
        world.keep_pace()
        ledger.height += 1


def _ledger(config: SimulationConfig, rng: np.random.Generator, registry: Registry, era: Era) -> Ledger:
    """The ledger with everybody's habits."""
    programs, mechanisms = np.array(registry.wallet_program), np.array(registry.wallet_mechanism)
    rows = wallet_habits(rng, era, programs, np.array(registry.wallet_weight))
    keepers = np.array(registry.wallet_keeper)
    ledger = Ledger(rng, programs, careless(rows, mechanisms), keepers, mechanisms, era.customer_scripts())
    ledger.book.wallet_reuse[mechanisms == MECHANISM["fixed-change"]] = FIXED_CHANGE_REUSE
    ledger.height = config.start_block
    return ledger


def _times(config: SimulationConfig) -> npt.NDArray[np.int64]:
    """Unix seconds of each block, shape (blocks,)."""
    waits = np.random.default_rng([config.seed, config.start_block, 1]).exponential(BLOCK_SECONDS, config.blocks)
    return config.start_time + np.cumsum(np.maximum(1, np.rint(waits)).astype(np.int64))


def _new_software(world: World, users: int) -> None:
    """Some wallets change software: from now on other marks and addresses of another type."""
    number = world.rng.poisson(world.dial("new-software") * users / world.config.blocks)
    wallet = np.unique(world.rng.integers(users, size=number))
    rows = world.ledger.book.programs
    own = ~np.array([program.marked for program in PROGRAMS])[np.array(world.registry.wallet_program)[wallet]]
    wallet = wallet[own]
    if len(wallet):
        rows[wallet] = marked(world.rng, world.era, rows[wallet], np.ones(len(wallet)))


def _next_rate(world: World) -> float:
    """A fee rate that wanders around the typical one."""
    pull = 0.9 * np.log(world.rate / world.config.fee_rate)
    return float(np.clip(world.config.fee_rate * np.exp(pull + world.rng.normal(0.0, 0.15)), 2.0, 2_000.0))
