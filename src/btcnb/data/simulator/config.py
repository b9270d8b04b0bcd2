"""What a simulated chain is made of: one configuration; its named sizes stand in `btcnb.sizes`."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from btcnb.configuration import Real, Whole, configuration
from btcnb.data.intervals import FIRST, SPLITS
from btcnb.errors import ParameterError
from btcnb.gates import choice, instance
from btcnb.sizes import size as named_size

Rate = Annotated[Real, Field(ge=0, le=10)]
Share = Annotated[Real, Field(ge=0, le=1)]


@configuration
class CoinJoinRates:
    """Expected number of transactions per block, per protocol (0 switches a protocol off).

    The protocols did not all run in the same years (Wasabi 2 starts at block 741,213, Whirlpool's surge cycles in
    2023). They run side by side here so that every detector has something to find in every interval.
    """

    joinmarket: Rate = 0.04
    wasabi10: Rate = 0.02
    wasabi11: Rate = 0.02
    wasabi2: Rate = 0.005
    whirlpool: Rate = 0.08
    whirlpool_tx0: Rate = 0.05


@configuration
class SimulationConfig:
    """Everything `simulate` depends on: the same config gives the same bytes."""

    seed: Annotated[Whole, Field(ge=0, lt=2**63)] = 0
    """Source of all randomness."""
    split: Annotated[str, Field(max_length=200)] = "train1"
    """Name of the interval, for provenance."""
    start_block: Annotated[Whole, Field(ge=481_824, le=6_929_999)] = FIRST.start_block
    """Height of the first block; decides the block subsidy. SegWit is active and a subsidy is left."""
    start_time: Annotated[Whole, Field(ge=0, le=4 * 10**9)] = FIRST.start_time
    """Unix seconds of the first block; the time of a block has 32 bits, also that of the last one."""
    blocks: Annotated[Whole, Field(ge=1, le=100_000)] = 400
    """Number of blocks."""
    transactions_per_block: Annotated[Whole, Field(ge=5, le=20_000)] = 75
    """Expected number of transactions in a block, about 2,300 on the real chain."""
    price_usd: Annotated[Real, Field(ge=1, le=1e8)] = FIRST.price_usd
    """USD for one bitcoin; payments are thought in USD, so it decides amounts."""
    fee_rate: Annotated[Real, Field(ge=1, le=1_000)] = FIRST.fee_rate
    """Typical fee rate in satoshi per virtual byte."""
    disorder: Rate = 1.0
    """The dial of all mechanisms that mislead heuristics: 0 a tidy world, 1 the calibrated one, 2 twice as bad."""
    users: Annotated[Whole, Field(ge=50, le=50_000_000)] = 5_000
    """Private persons, each with a wallet or two."""
    exchanges: Annotated[Whole, Field(ge=2, le=10_000)] = 30
    """Exchanges, their sizes falling like 1/rank."""
    pools: Annotated[Whole, Field(ge=1, le=1_000)] = 6
    """Mining pools, their hash rates falling like 1/rank."""
    merchants: Annotated[Whole, Field(ge=1, le=1_000_000)] = 40
    """Shops, payment processors and betting sites."""
    label_share: Share = 0.3
    """Share of the addresses of services that are publicly labelled with their owner's name."""
    largest_batch: Annotated[Whole, Field(ge=3, le=2_500)] = 400
    """Most recipients of one batched payment."""
    largest_consolidation: Annotated[Whole, Field(ge=2, le=650)] = 200
    """Most inputs of one consolidation."""
    coinjoins: CoinJoinRates = Field(default_factory=CoinJoinRates)
    """How often each CoinJoin protocol runs."""
    mixing: Annotated[Real, Field(ge=0, le=100)] = 1.0
    """Multiple of these rates: raise it for an economy full of CoinJoins."""
    wasabi_peers: tuple[Whole, Whole] = (20, 45)
    """Fewest and most participants of a Wasabi 1 round, from 5 to 150."""
    wasabi2_inputs: tuple[Whole, Whole] = (120, 260)
    """Fewest and most inputs of a Wasabi 2 round, from 50 to 400; real rounds of 2024 have a median of 190."""
    whirlpool_surge: Share = 0.25
    """Share of Whirlpool mixes with 6 to 10 participants instead of 5."""
    privacy_share: Share = 0.10
    """Share of users who own a CoinJoin wallet."""

    def __post_init__(self) -> None:
        for name, least, most in (("wasabi_peers", 5, 150), ("wasabi2_inputs", 50, 400)):
            low, high = getattr(self, name)
            if not least <= low <= high <= most:
                raise ParameterError(f"{name} is {(low, high)}, but must be (fewest, most) between {least} and {most}.")

    @classmethod
    def preset(cls, size: str = "quick", *, seed: int = 0, split: str = "train1") -> SimulationConfig:
        """A chain of a named size ("tiny", "quick", "standard", "paper") over one of the paper's five intervals."""
        instance("size", size, str)
        choice("split", split, SPLITS)
        return cls(seed=seed, split=split, **vars(SPLITS[split]), **named_size(size).simulation)
