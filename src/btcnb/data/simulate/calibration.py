"""Figures of the real chain that the simulated economy is set to, and the rates that bring them about.

Structure only: nothing here is set to a score that an experiment of the paper reports.

Source of the targets: Möser and Narayanan, "Resurrecting Address Clustering in Bitcoin", through the author's public
notebooks (chain to block 689,256). Shares are fractions.
"""

from __future__ import annotations

import numpy as np

TARGET_OUTPUTS = {"1": 0.139, "2": 0.758, "3+": 0.103}
"""Share of transactions with one, two, more outputs (91.1 M, 494.6 M and 67.0 M transactions)."""
TARGET_INPUTS_OF_TWO_OUTPUT = {"1": 0.788, "2": 0.136, "3+": 0.076}
"""Of two-output transactions outside the ground truth: share with one, two, more inputs."""
TARGET_FINGERPRINTS = {"version 1": 0.807, "locktime": 0.246, "rbf": 0.062, "segwit": 0.271}
"""Of the same transactions: share of version 1, with a lock time, signalling RBF, spending a SegWit coin."""
TARGET_DIRECT_REUSE = 103.3 / 494.6
"""Of two-output transactions: share that pays an input address back (change revealed by address reuse)."""

ROUND_DIGITS = np.array([2, 3, 4, 5, 6, 7])
ROUND_AT_LEAST = np.array([0.479, 0.426, 0.380, 0.308, 0.216, 0.107])
"""Share of payments whose satoshi value ends in at least so many zeros: correct plus wrong votes of
power_of_ten_2..7."""
USD_ROUND = 0.3
"""Share of the other payments that are a round number of US dollars."""

# Rates per block, as multiples of the number of transactions in a block.
ACTIVE_USERS = 0.90
"""Users who want to pay."""
EXCHANGE_TRANSFERS = 0.40
"""Customers who send coins from one exchange to another."""
HOLDERS = 0.55
"""Customers who withdraw coins to keep them: anybody, not only those who pay often."""
MINER_PAYOUTS = 0.15
"""Miners paid by their pool."""
ANCHORS = 0.015
"""OP_RETURN transactions of timestamping services."""

OLD_DEPOSITS = 2.1
"""Coins that customers sent to exchanges before the first block, per transaction of the interval; spent bit by bit."""

PAYMENT_USD = (150.0, 1.7)
"""Median in USD and spread (standard deviation of the natural logarithm) of payments."""
LEAST_PAYMENT = 5_000
"""Satoshi."""
MOST_PAYMENT = 20 * 10**8
"""Satoshi."""
