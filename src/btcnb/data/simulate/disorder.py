"""The ways in which heuristics fail, each with a name, a rate and where it comes from; one dial scales them together.

A rate is a share (of wallets, services or labels) or a number of transactions, as a multiple of those in a block. At
`disorder` 0 none of them happens, at 1 they happen at the rates below, at 2 twice as often. A transaction remembers the
mechanism that wrote it (`Truth.mechanism`), so that every false merge can be traced.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Mechanism:
    """One way to fail."""

    name: str
    rate: float
    of: str
    """What the rate is a share of."""
    source: str
    """Where the rate comes from."""
    words: str
    """What happens, and which rule it misleads."""


FITTED = "fitted to the heuristics' own counts on labelled pairs; no published rate"
KNOWN = "known to happen; no published rate, kept small"

MECHANISMS: tuple[Mechanism, ...] = (
    Mechanism(
        "fixed-change",
        0.12,
        "user wallets",
        "precision of change guesses, .95 to .96 (Möser and Narayanan's notebooks)",
        "change always goes to one address, so that a fresh payee looks like the change",
    ),
    Mechanism(
        "fee-from-payee",
        0.12,
        "user wallets and exchanges that pay one by one",
        "FPR of the round-value votes, .005 to .012 (the same notebooks)",
        "the fee is taken from the payment: the change stays round and the payment does not",
    ),
    Mechanism(
        "overspending",
        0.03,
        "user wallets",
        "FPR of the optimal-change votes, .02 to .03 (the same notebooks)",
        "old coins are spent along with every payment, so that the smaller output is the payment",
    ),
    Mechanism(
        "home-change",
        0.08,
        "exchanges below the largest three",
        "superclusters that swallow 41 to 61 % of tagged services (the same notebooks); " + FITTED,
        "withdrawals leave one by one from deposits, change returns to one hot address: the payee looks like change",
    ),
    Mechanism(
        "fresh-deposits",
        0.5,
        "deposits",
        "freshness of payments in the ground truth (the same notebooks)",
        "a deposit address of its own for every deposit: fresh, used once, as change is",
    ),
    Mechanism(
        "shared-custody",
        0.45,
        "exchanges below the largest three",
        FITTED,
        "one custodian keeps the coins of several brands and spends them together",
    ),
    Mechanism(
        "payment-processor",
        0.4,
        "shops with invoices",
        FITTED,
        "a processor collects for many shops and spends their invoices together",
    ),
    Mechanism(
        "hosted-address",
        0.25,
        "shops and sites",
        FITTED,
        "a public address is a deposit address at an exchange, which sweeps it with its customers'",
    ),
    Mechanism("payjoin", 0.004, "transactions", KNOWN, "the payee adds a coin of its own to the payment"),
    Mechanism(
        "key-import",
        0.004,
        "transactions",
        "Mt. Gox, left out of the ground truth for imported keys (the same notebooks); " + KNOWN,
        "keys that were bought, found or stolen are swept together with coins of one's own",
    ),
    Mechanism(
        "lightning",
        0.006,
        "transactions",
        KNOWN,
        "a channel is opened by one and closed to two: an output of the close belongs to somebody else",
    ),
    Mechanism("small-coinjoin", 0.004, "transactions", KNOWN, "two or three people mix, with amounts no rule knows"),
    Mechanism(
        "new-software",
        0.15,
        "wallets within the interval",
        KNOWN,
        "a wallet changes software half-way: other marks, other script type",
    ),
    Mechanism("second-wallet", 0.3, "users", KNOWN, "a second wallet that no transaction ties to the first"),
    Mechanism(
        "other-change-type",
        0.08,
        "user wallets",
        "FPR of the address-type vote, .03 (the same notebooks)",
        "change of another script type than the coins spent",
    ),
    Mechanism("label-alias", 0.35, "labelled services", FITTED, "one service under two or three names"),
    Mechanism("label-stale", 0.03, "labelled addresses", KNOWN, "a label that names somebody else"),
    Mechanism(
        "label-bias",
        1.5,
        "spread of coverage (standard deviation of its logarithm)",
        FITTED,
        "some services are labelled densely, most hardly at all",
    ),
)
"""All of them. The first eight write transactions through habits of wallets, the next four are transactions of their
own, then come habits that only hide owners, and labels."""

NAMES = ("", *(mechanism.name for mechanism in MECHANISMS))
"""What the ledger's numbers stand for: a transaction stores the position, 0 where it is ordinary."""
NUMBER = {name: position for position, name in enumerate(NAMES)}
_COUNTED = ("transactions", "spread of coverage (standard deviation of its logarithm)")
_SHARES = {mechanism.name for mechanism in MECHANISMS if mechanism.of not in _COUNTED}


class Dial:
    """The rates at one setting of the dial."""

    def __init__(self, disorder: float) -> None:
        self.disorder = disorder
        self._rate = {mechanism.name: mechanism.rate for mechanism in MECHANISMS}

    def __call__(self, name: str) -> float:
        """The rate of a mechanism; a share is at most 1."""
        rate = self.disorder * self._rate[name]
        return min(1.0, rate) if name in _SHARES else rate
