"""What a simulated chain is made of: one frozen dataclass; its named sizes stand in `btcnb.sizes`."""

from __future__ import annotations

from dataclasses import dataclass, field, fields

from btcnb.data.checks import real, whole
from btcnb.data.intervals import FIRST, SPLITS
from btcnb.errors import ParameterError
from btcnb.gates import choice, instance, text
from btcnb.sizes import size as named_size
from btcnb.store import storable


@storable("coinjoin-rates")
@dataclass(frozen=True)
class CoinJoinRates:
    """Expected number of transactions a block, per protocol (0 switches a protocol off).

    The protocols did not all run in the same years (Wasabi 2 starts at block 741,213, Whirlpool's surge cycles in
    2023). They run side by side here so that every detector has something to find in every interval.
    """

    joinmarket: float = 0.04
    wasabi10: float = 0.02
    wasabi11: float = 0.02
    wasabi2: float = 0.005
    whirlpool: float = 0.08
    whirlpool_tx0: float = 0.05


@storable("simulation")
@dataclass(frozen=True)
class SimulationConfig:
    """Everything `simulate` depends on: the same config gives the same bytes."""

    seed: int = 0
    """Source of all randomness."""
    split: str = "train1"
    """Name of the interval, for provenance."""
    start_block: int = FIRST.start_block
    """Height of the first block; decides the block subsidy."""
    start_time: int = FIRST.start_time
    """Unix seconds of the first block."""
    blocks: int = 400
    """Number of blocks."""
    transactions_per_block: int = 75
    """Expected number of transactions in a block, about 2,300 on the real chain."""
    price_usd: float = FIRST.price_usd
    """USD for one bitcoin; payments are thought in USD, so it decides amounts."""
    fee_rate: float = FIRST.fee_rate
    """Typical fee rate in satoshi per virtual byte."""
    disorder: float = 1.0
    """The dial of `disorder.MECHANISMS`: 0 a tidy world, 1 the calibrated one, 2 twice as bad."""
    users: int = 5_000
    """Private persons, each with a wallet or two."""
    exchanges: int = 30
    """Exchanges, their sizes falling like 1/rank."""
    pools: int = 6
    """Mining pools, their hash rates falling like 1/rank."""
    merchants: int = 40
    """Shops, payment processors and betting sites."""
    label_share: float = 0.3
    """Share of the addresses of services that are publicly labelled with their owner's name."""
    largest_batch: int = 400
    """Most recipients of one batched payment."""
    largest_consolidation: int = 200
    """Most inputs of one consolidation."""
    coinjoins: CoinJoinRates = field(default_factory=CoinJoinRates)
    """How often each CoinJoin protocol runs."""
    mixing: float = 1.0
    """Multiple of these rates: raise it for an economy full of CoinJoins."""
    wasabi_peers: tuple[int, int] = (20, 45)
    """Fewest and most participants of a Wasabi 1 round."""
    wasabi2_inputs: tuple[int, int] = (120, 260)
    """Fewest and most inputs of a Wasabi 2 round; real rounds of 2024 have a median of 190."""
    whirlpool_surge: float = 0.25
    """Share of Whirlpool mixes with 6 to 10 participants instead of 5."""
    privacy_share: float = 0.10
    """Share of users who own a CoinJoin wallet."""

    def __post_init__(self) -> None:
        _check(self)

    @classmethod
    def preset(cls, size: str = "quick", *, seed: int = 0, split: str = "train1") -> SimulationConfig:
        """A chain of a named size ("tiny", "quick", "standard", "paper") over one of the paper's five intervals."""
        instance("size", size, str)
        choice("split", split, SPLITS)
        return cls(seed=seed, split=split, **vars(SPLITS[split]), **named_size(size).simulation)


def _check(config: SimulationConfig) -> None:
    text("split", config.split, 200)
    whole("seed", config.seed, 0, 2**63 - 1)
    whole("start_block", config.start_block, 481_824, 6_929_999)  # SegWit is assumed active; a subsidy is assumed left
    whole("start_time", config.start_time, 0, 4 * 10**9)  # a block's time has 32 bits, also that of the last block
    whole("blocks", config.blocks, 1, 100_000)
    whole("transactions_per_block", config.transactions_per_block, 5, 20_000)
    whole("users", config.users, 50, 50_000_000)
    whole("exchanges", config.exchanges, 2, 10_000)
    whole("pools", config.pools, 1, 1_000)
    whole("merchants", config.merchants, 1, 1_000_000)
    whole("largest_batch", config.largest_batch, 3, 2_500)
    whole("largest_consolidation", config.largest_consolidation, 2, 650)
    real("price_usd", config.price_usd, 1.0, 1e8)
    real("fee_rate", config.fee_rate, 1.0, 1_000.0)
    real("disorder", config.disorder, 0.0, 10.0)
    real("mixing", config.mixing, 0.0, 100.0)
    for share in ("label_share", "whirlpool_surge", "privacy_share"):
        real(share, getattr(config, share), 0.0, 1.0)
    instance("coinjoins", config.coinjoins, CoinJoinRates)
    for rate in fields(config.coinjoins):
        real(f"coinjoins.{rate.name}", getattr(config.coinjoins, rate.name), 0.0, 10.0)
    for name, least, most in (("wasabi_peers", 5, 150), ("wasabi2_inputs", 50, 400)):
        pair = getattr(config, name)
        if not (isinstance(pair, tuple) and len(pair) == 2):
            raise ParameterError(f"{name} is {pair!r}, but must be a pair (fewest, most).")
        whole(f"{name}[0]", pair[0], least, most)
        whole(f"{name}[1]", pair[1], pair[0], most)
