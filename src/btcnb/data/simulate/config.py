"""What a simulated chain is made of: one frozen dataclass, four named sizes, the paper's five block intervals."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, fields, replace

from btcnb.errors import ParameterError
from btcnb.store import storable


@dataclass(frozen=True)
class Split:
    """A block interval of the paper's dataset table, with its start date and the price of one bitcoin on that day."""

    start_block: int
    start_time: int  # unix seconds, midnight UTC of the first day
    price_usd: float  # interpolated between the two nearest days of the authors' price table


SPLITS: dict[str, Split] = {
    "train1": Split(599_000, 1_570_838_400, 8_435.84),  # 2019-10-12
    "train2": Split(624_000, 1_585_785_600, 6_578.19),  # 2020-04-02
    "train3": Split(674_000, 1_615_334_400, 53_537.82),  # 2021-03-10
    "valid": Split(649_000, 1_600_473_600, 10_815.53),  # 2020-09-19
    "test": Split(699_000, 1_630_713_600, 49_249.50),  # 2021-09-04
}
"""The five graphs of the paper. Each real interval is 1,000 blocks long; a preset may simulate fewer."""


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
    wasabi2: float = 0.02
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
    start_block: int = 599_000
    """Height of the first block; decides the block subsidy."""
    start_time: int = 1_570_838_400
    """Unix seconds of the first block."""
    blocks: int = 400
    """Number of blocks."""
    transactions_per_block: int = 75
    """Expected number of transactions in a block, about 2,300 on the real chain."""
    price_usd: float = 8_435.84
    """USD for one bitcoin; payments are thought in USD, so it decides amounts."""
    fee_rate: float = 20.0
    """Typical fee rate in satoshi per virtual byte."""
    users: int = 5_000
    """Private persons, each with one wallet."""
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
    wasabi_peers: tuple[int, int] = (20, 45)
    """Fewest and most participants of a Wasabi 1 round."""
    wasabi2_inputs: tuple[int, int] = (50, 80)
    """Fewest and most inputs of a Wasabi 2 round."""
    whirlpool_surge: float = 0.25
    """Share of Whirlpool mixes with 6 to 10 participants instead of 5."""
    privacy_share: float = 0.12
    """Share of users who own a CoinJoin wallet."""

    def __post_init__(self) -> None:
        _check(self)

    @classmethod
    def preset(cls, size: str = "quick", *, seed: int = 0, split: str = "train1") -> SimulationConfig:
        """A chain of a named size ("tiny", "quick", "standard", "paper") over one of the paper's five intervals."""
        if size not in _SIZES:
            raise ParameterError(f"size is {size!r}, but must be one of {', '.join(_SIZES)}.")
        if split not in SPLITS:
            raise ParameterError(f"split is {split!r}, but must be one of {', '.join(SPLITS)}.")
        interval = SPLITS[split]
        return replace(
            _SIZES[size],
            seed=seed,
            split=split,
            start_block=interval.start_block,
            start_time=interval.start_time,
            price_usd=interval.price_usd,
        )


def _check(config: SimulationConfig) -> None:
    if not isinstance(config.split, str):
        raise ParameterError(f"split is {config.split!r}, but must be a name.")
    _whole("seed", config.seed, 0, 2**63 - 1)
    _whole("start_block", config.start_block, 481_824, 6_929_999)  # SegWit is assumed active; a subsidy is assumed left
    _whole("start_time", config.start_time, 0, 2**33)
    _whole("blocks", config.blocks, 1, 100_000)
    _whole("transactions_per_block", config.transactions_per_block, 5, 20_000)
    _whole("users", config.users, 50, 50_000_000)
    _whole("exchanges", config.exchanges, 2, 10_000)
    _whole("pools", config.pools, 1, 1_000)
    _whole("merchants", config.merchants, 1, 1_000_000)
    _whole("largest_batch", config.largest_batch, 3, 2_500)
    _whole("largest_consolidation", config.largest_consolidation, 2, 650)
    _real("price_usd", config.price_usd, 1.0, 1e8)
    _real("fee_rate", config.fee_rate, 1.0, 1_000.0)
    for share in ("label_share", "whirlpool_surge", "privacy_share"):
        _real(share, getattr(config, share), 0.0, 1.0)
    if not isinstance(config.coinjoins, CoinJoinRates):
        raise ParameterError(f"coinjoins is {config.coinjoins!r}, but must be a CoinJoinRates.")
    for rate in fields(config.coinjoins):
        _real(f"coinjoins.{rate.name}", getattr(config.coinjoins, rate.name), 0.0, 10.0)
    for name, least, most in (("wasabi_peers", 5, 150), ("wasabi2_inputs", 50, 400)):
        pair = getattr(config, name)
        if not (isinstance(pair, tuple) and len(pair) == 2):
            raise ParameterError(f"{name} is {pair!r}, but must be a pair (fewest, most).")
        _whole(f"{name}[0]", pair[0], least, most)
        _whole(f"{name}[1]", pair[1], pair[0], most)


def _whole(name: str, value: object, low: int, high: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise ParameterError(f"{name} is {value!r}, but must be a whole number from {low:,} to {high:,}.")


def _real(name: str, value: object, low: float, high: float) -> None:
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if not number or not math.isfinite(float(value)) or not low <= float(value) <= high:  # type: ignore[arg-type]
        raise ParameterError(f"{name} is {value!r}, but must be a number from {low:g} to {high:g}.")


_SIZES: dict[str, SimulationConfig] = {
    "tiny": SimulationConfig(
        blocks=180,
        transactions_per_block=11,
        users=500,
        exchanges=10,
        pools=2,
        merchants=8,
        largest_batch=60,
        largest_consolidation=40,
        wasabi_peers=(10, 20),
        wasabi2_inputs=(50, 60),
        privacy_share=0.3,
    ),
    "quick": SimulationConfig(),
    "standard": SimulationConfig(
        blocks=1_000,
        transactions_per_block=150,
        users=20_000,
        exchanges=60,
        pools=10,
        merchants=150,
        largest_batch=800,
        largest_consolidation=350,
        wasabi_peers=(40, 100),
        wasabi2_inputs=(50, 150),
    ),
    "paper": SimulationConfig(
        blocks=1_000,
        transactions_per_block=600,
        users=72_000,
        exchanges=120,
        pools=14,
        merchants=400,
        largest_batch=2_000,
        largest_consolidation=600,
        wasabi_peers=(50, 100),
        wasabi2_inputs=(50, 200),
    ),
}
