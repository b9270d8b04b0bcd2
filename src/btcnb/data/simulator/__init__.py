"""A simulated Bitcoin economy with known owners: `simulate(config)`."""

from btcnb.data.simulator.config import CoinJoinRates, SimulationConfig
from btcnb.data.simulator.economy import simulate

__all__ = ["CoinJoinRates", "SimulationConfig", "simulate"]
