"""How often things happen in the simulated economy, whatever the year, and how large payments are.

Set so that the shares of the real chain come out (`chain_measures.py`); what differs from year to year stands in
`eras.py`. Structure only: nothing here is set to a score that an experiment of the paper reports.
"""

from __future__ import annotations

import numpy as np

from btcnb.data.intervals import SATOSHI_PER_BITCOIN

ROUND_DIGITS = np.array([2, 3, 4, 5, 6, 7])
"""Zeros at the end of a payment in satoshi; how often, each era tells."""
USD_ROUND = 0.3
"""Share of the other payments that are a round number of US dollars."""

# Rates per block, as multiples of the number of transactions in a block.
ACTIVE_USERS = 1.05
"""Users who want to pay."""
EXCHANGE_TRANSFERS = 0.15
"""Customers who send coins from one exchange to another."""
HOLDERS = 0.55
"""Customers who withdraw coins to keep them: anybody, not only those who pay often."""
MINER_PAYOUTS = 0.15
"""Miners paid by their pool."""
OLD_DEPOSITS = 2.1
"""Coins that customers sent to exchanges before the first block, per transaction of the interval; spent bit by bit."""

PAYMENT_USD = (150.0, 1.7)
"""Median in USD and spread (standard deviation of the natural logarithm) of payments."""
LEAST_PAYMENT = 5_000
"""Satoshi."""
MOST_PAYMENT = 20 * SATOSHI_PER_BITCOIN
"""Satoshi."""
