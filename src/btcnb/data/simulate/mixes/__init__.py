"""What several people sign together: CoinJoins with their real denominations, round sizes, fees and order; channels."""

from btcnb.data.coinjoin import PROTOCOLS

NAMES = ("", *PROTOCOLS)
"""What the ledger's numbers stand for: a transaction stores the position, 0 where it is no CoinJoin."""
