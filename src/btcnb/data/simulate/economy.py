"""The clock of the economy: found everybody, then let them act block by block."""

from __future__ import annotations

import numpy as np
from tqdm import tqdm

from btcnb.data.simulate.actors.anchors import Anchors
from btcnb.data.simulate.actors.exchanges import Exchanges
from btcnb.data.simulate.actors.merchants import Merchants
from btcnb.data.simulate.actors.pools import Pools
from btcnb.data.simulate.actors.users import Users
from btcnb.data.simulate.amounts import Money
from btcnb.data.simulate.config import SimulationConfig
from btcnb.data.simulate.ledger import Ledger
from btcnb.data.simulate.mixes.schedule import CoinJoins
from btcnb.data.simulate.orders import Orders
from btcnb.data.simulate.tables import to_transactions
from btcnb.data.simulate.world import Registry, Withdrawals, World
from btcnb.data.transactions import Transactions
from btcnb.gates import flag, instance

BETS_WON = 0.03
"""Winners paid by betting sites in a block, as a multiple of the number of transactions."""


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
        registry = Registry()
        self.users = Users(config, rng, registry)
        self.exchanges = Exchanges(config, registry)
        self.pools = Pools(config, registry)
        self.merchants = Merchants(config, registry)
        self.anchors = Anchors(registry)
        self.coinjoins = CoinJoins(config, registry)
        ledger = Ledger(rng, np.array(registry.wallet_program, dtype=np.int64))
        ledger.height = config.start_block
        account = rng.choice(config.exchanges, size=config.users, p=self.exchanges.share).astype(np.int64)
        self.world = World(
            config=config,
            rng=rng,
            registry=registry,
            ledger=ledger,
            money=Money(rng, config.price_usd),
            withdrawals=Withdrawals(),
            orders=Orders(rng, config.fee_rate),
            customer_exchange=account,
            customer_address=ledger.new_addresses(self.exchanges.deposit_wallets[account]),
            rate=config.fee_rate,
        )
        self.users.settle(self.world)
        self.exchanges.settle(self.world)
        self.pools.settle(self.world)
        self.merchants.settle(self.world, self.exchanges.deposit_wallets)
        self.anchors.settle(self.world)
        self.coinjoins.settle(self.world, self.users, self.exchanges.deposit_wallets)

    def block(self) -> None:
        """Everybody acts once; then the next block begins."""
        world, ledger = self.world, self.world.ledger
        first = ledger.num_transactions
        self.pools.mine(world)
        self.coinjoins.run(world)
        world.rate = _next_rate(world)
        world.orders = Orders(world.rng, world.rate)
        self.pools.plan(world)
        self.users.plan(world, self.merchants)
        winners = self.users.draw(world, world.rng.poisson(BETS_WON * world.config.transactions_per_block))
        self.merchants.plan(world, winners)
        self.anchors.plan(world)
        self.coinjoins.plan(world)
        self.exchanges.plan(world)
        if len(world.orders):
            ledger.execute(world.orders.table())
        fees = int(ledger.book.tx[first : ledger.num_transactions, 6].sum())
        self.pools.close(world, fees)
        ledger.height += 1


def _next_rate(world: World) -> float:
    """A fee rate that wanders around the typical one."""
    pull = 0.9 * np.log(world.rate / world.config.fee_rate)
    return float(np.clip(world.config.fee_rate * np.exp(pull + world.rng.normal(0.0, 0.15)), 2.0, 2_000.0))
