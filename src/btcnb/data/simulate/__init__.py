"""A simulated Bitcoin economy with known owners: `simulate(config)`."""

from btcnb.data.simulate.config import SPLITS, CoinJoinRates, SimulationConfig, Split
from btcnb.data.simulate.economy import simulate

__all__ = ["SPLITS", "CoinJoinRates", "SimulationConfig", "Split", "simulate"]
