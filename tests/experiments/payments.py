"""Small chains of payments whose change later common inputs reveal, for the tests of change forests."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "data"))

from builders import Chain, chain, groups, ids

from btcnb.data import Transactions

__all__ = ["Chain", "chain", "chain_of", "groups", "ids", "payments"]

PAID, KEPT = 1_000_000, 123_457
HEIGHT = 600_000


def payments(number: int, each: int = 1, story: Chain | None = None, name: str = "u", truth: bool = True) -> Chain:
    """`number` users make `each` payments to a shop: a round amount, and change that they later spend with other coins.

    Users write version 2, shops version 1. The change comes first in every second payment. A user's payments make one
    cluster of senders.
    """
    story = chain(start_block=HEIGHT) if story is None else story
    for user in range(number):
        for turn in range(each):
            me, shop, change = (f"{name}{user}", f"{name}{user}s{turn}", f"{name}{user}c{turn}")
            first = (user + turn) % 2
            outputs = {change: KEPT, shop: PAID} if first else {shop: PAID, change: KEPT}
            story.pay([(me, PAID + KEPT)], outputs, change=1 - first if truth else -1)
            story.pay(shop, {f"{shop}x": PAID}, version=1)
            story.pay([change, (me, 7)], {f"{me}z{turn}": KEPT + 7})
    return story


def chain_of(number: int, each: int = 1, name: str = "u") -> Transactions:
    return payments(number, each, name=name).build()
