"""CoinJoins with their surroundings: whose inputs a clustering should keep apart, and whether it does.

    chain = load_transactions(mixing_source(world=3), "test", sampled=False)
    drawn = draw_mixes(chain, per_protocol=100, sets=5)          # which CoinJoins, in which evaluation set
    for mix in surroundings(chain, drawn.transactions): ...      # each with its local chain
    apart(mix, labels)                                           # pairs of inputs kept apart, and by truth

Section "CoinJoin Transaction Labels": the inputs of a CoinJoin "are expected to belong to distinct entities", so all
pairs are negative and a clustering is right where it parts them. Simulated owners tell that this is not quite so: a
wallet may bring several coins. Pairs of one wallet are therefore counted as well, apart from the others.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from btcnb import gates, sizes
from btcnb.data import Source, Transactions
from btcnb.data.sampling import Surroundings
from btcnb.data.simulator.config import CoinJoinRates
from btcnb.data.transactions import Piece
from btcnb.errors import DataError

IntArray = npt.NDArray[np.int64]

PROTOCOLS = ("joinmarket", "wasabi1.0", "wasabi1.1", "wasabi2", "whirlpool")
"""The five of the paper; the transactions that prepare a Whirlpool mix have one owner and are none."""
PER_PROTOCOL, SETS = 100, 5
PAPER_WIDTH = 100
"""Transactions that a step of the search for surroundings follows, at most (Appendix A.1.2)."""
MIXING, PRIVACY, WASABI2 = 20.0, 0.5, 0.02
"""An economy full of CoinJoins: 20 times the rates, half of the users with a CoinJoin wallet, more Wasabi 2 rounds. At
size quick it has at least 145 of each protocol."""


class Drawn(NamedTuple):
    """CoinJoins that were drawn: ids (m,), protocols (m,), and in which sets each one is, bool (sets, m)."""

    transactions: IntArray
    protocol: npt.NDArray[np.str_]
    member: npt.NDArray[np.bool_]
    short: dict[str, int]  # protocols with fewer CoinJoins than were asked for, and how many they have
    unpaired: int  # CoinJoins of these protocols with fewer than two distinct inputs, which have no pair


class Mix(NamedTuple):
    """A CoinJoin with its surroundings; `inputs` are the distinct addresses that it spends from, local ids (k,)."""

    transaction: int  # id in the whole chain
    piece: Piece
    inputs: IntArray


class Apart(NamedTuple):
    """Pairs of inputs of one CoinJoin: all, and those with two owners and with one (0 where owners are unknown)."""

    pairs: int
    apart: int
    strangers: int  # pairs of two owners
    strangers_apart: int
    own: int  # pairs of one owner
    own_together: int


def mixing_source(world: int, size: str = "quick", disorder: float = 1.0) -> Source:
    """Economies full of CoinJoins, one for each role: none shares a user with another, or with the book's others."""
    gates.choice("size", size, sizes.names())
    rates = CoinJoinRates(wasabi2=WASABI2)
    fields = {**sizes.size(size).simulation, "mixing": MIXING, "privacy_share": PRIVACY, "coinjoins": rates}
    return Source(size=size, seed=world, simulation=tuple(sorted(fields.items())), disorder=disorder)


def draw_mixes(
    txs: Transactions,
    per_protocol: int = PER_PROTOCOL,
    sets: int = SETS,
    seed: int = 0,
    protocols: Sequence[str] = PROTOCOLS,
) -> Drawn:
    """Draw evaluation sets: `per_protocol` CoinJoins of each protocol, without repetition inside a set.

    Sets may share CoinJoins, as the paper's five draws may. A protocol with fewer gives all it has, in every set, and
    is named in `short`. CoinJoins with fewer than two distinct input addresses have no pair: they are never drawn, and
    counted in `unpaired`.
    """
    gates.instance("txs", txs, Transactions)
    number, times = gates.whole("per_protocol", per_protocol, "[1, inf)"), gates.whole("sets", sets, "[1, 1000]")
    wanted = [gates.choice("a protocol", name, PROTOCOLS) for name in gates.items("protocols", protocols)]
    known = None if txs.truth is None else txs.truth.coinjoin
    if known is None:
        raise DataError(txs.source, "truth.coinjoin", "is missing", "simulate, or detect CoinJoins first")
    several = _distinct_inputs(txs) >= 2
    chosen: list[tuple[str, IntArray, npt.NDArray[np.bool_]]] = []
    short = {}
    unpaired = int((np.isin(np.asarray(known), wanted) & ~several).sum())
    for name in wanted:
        found = np.flatnonzero((np.asarray(known) == name) & several)
        if len(found) < number:
            short[name] = len(found)
        stream = PROTOCOLS.index(name)  # what is drawn of a protocol does not depend on the others
        rng = np.random.default_rng([gates.whole("seed", seed, "[0, 2147483647]"), 23, stream])
        member = np.zeros((times, len(found)), dtype=bool)
        for row in member:
            row[rng.choice(len(found), min(number, len(found)), replace=False)] = True
        used = member.any(axis=0)
        chosen.append((name, found[used], member[:, used]))
    ids = np.concatenate([each for _, each, _ in chosen]).astype(np.int64)
    if not len(ids):
        problem = f"no transaction is a CoinJoin of {', '.join(wanted)} with two inputs"
        raise DataError(txs.source, "truth.coinjoin", problem, "simulate more blocks, or with more mixing")
    order = np.argsort(ids, kind="stable")
    protocol = np.concatenate([np.full(len(each), name) for name, each, _ in chosen])
    member = np.concatenate([each for *_, each in chosen], axis=1)[:, order]
    return Drawn(ids[order], protocol[order], member, short, unpaired)


def surroundings(
    txs: Transactions, transactions: Iterable[int], seed: int = 0, *, width: int = PAPER_WIDTH
) -> Iterator[Mix]:
    """The local chain of every named transaction (undirected, depth 3, `width` transactions a step), in that order."""
    around = Surroundings.of(txs, max_expanded=width, seed=seed)
    for transaction in transactions:
        piece = around.piece(int(transaction))
        here = int(np.searchsorted(piece.transactions, transaction))
        start = piece.txs.input_offsets()
        address = piece.txs.inputs["address"].to_numpy(dtype=np.int64)[start[here] : start[here + 1]]
        yield Mix(int(transaction), piece, np.unique(address[address >= 0]))


def apart(mix: Mix, labels: npt.NDArray[np.integer]) -> Apart:
    """Count the pairs of inputs of a CoinJoin under one label per local address."""
    found = np.asarray(labels)
    if len(found) != len(mix.piece.addresses):
        problem = f"has {len(found)} entries for {len(mix.piece.addresses)} addresses"
        raise DataError("labels", "length", problem, "give one label per address of the piece")
    mine = found[mix.inputs]
    together, pairs = _pairs_in(mine), _pairs(len(mine))
    truth = mix.piece.txs.truth
    if truth is None:
        return Apart(pairs, pairs - together, 0, 0, 0, 0)
    owner = truth.owner[mix.inputs]
    known = owner >= 0
    own, both = _pairs_in(owner[known]), _pairs_in(owner[known], mine[known])
    strangers = _pairs(int(known.sum())) - own
    strangers_together = _pairs_in(mine[known]) - both
    return Apart(pairs, pairs - together, strangers, strangers - strangers_together, own, both)


def true_negatives(counts: Sequence[Apart], member: npt.NDArray[np.bool_]) -> npt.NDArray[np.float64]:
    """The true-negative rate of each evaluation set, (sets,): the mean over its CoinJoins of the share of pairs apart.

    A CoinJoin of two hundred inputs has four thousand times the pairs of one with three; each counts as one here.
    """
    share = np.array([each.apart / each.pairs for each in counts])
    if member.ndim != 2 or member.shape[1] != len(share):
        raise DataError("member", "shape", f"is {member.shape} for {len(share)} CoinJoins", "give (sets, CoinJoins)")
    number = member.sum(axis=1)
    return np.where(number > 0, (member * share).sum(axis=1) / np.maximum(number, 1), np.nan)


def _pairs(number: int) -> int:
    return number * (number - 1) // 2


def _pairs_in(*labels: npt.NDArray[np.integer]) -> int:
    """Pairs that agree in all the given labels."""
    if not len(labels[0]):
        return 0
    counts = np.unique(np.stack(labels), axis=1, return_counts=True)[1]
    return int((counts * (counts - 1) // 2).sum())


def _distinct_inputs(txs: Transactions) -> IntArray:
    """Distinct known input addresses of every transaction, (T,)."""
    tx, address = (txs.inputs[name].to_numpy(dtype=np.int64) for name in ("tx", "address"))
    known = address >= 0
    pairs = np.unique(np.stack([tx[known], address[known]]), axis=1)
    return np.bincount(pairs[0], minlength=len(txs)).astype(np.int64)
