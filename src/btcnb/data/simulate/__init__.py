"""A simulated Bitcoin economy with known owners: `simulate(config)`."""

from btcnb.data.simulate.config import CoinJoinRates, SimulationConfig
from btcnb.data.simulate.economy import simulate

__all__ = ["CoinJoinRates", "SimulationConfig", "simulate"]
