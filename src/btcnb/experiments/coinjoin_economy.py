"""What an economy full of CoinJoins is like, whatever encoder will be judged on it: owners, edges, leakage.

own.share, own.pooled          % of input pairs of a CoinJoin that have one owner: mean over CoinJoins, over all pairs
own.share.PROTOCOL
homophily.coinjoin, …others    % of transfers that stay with one owner, in CoinJoins and in other transactions
cut.coinjoin, cut.others       % of transfers between two heuristic clusters (with safeguards: those of training)
leak.inputs, leak.owners       % of the inputs of judged CoinJoins, and of their owners, that occur in graphs around
                               *other* CoinJoins of the same economy
shared.transactions, …addresses, …owners    how many the judged economy has in common with those that teach or steer
unpaired                       CoinJoins with fewer than two distinct input addresses: they are in no share of pairs
detected, detected.PROTOCOL    % of CoinJoins that the published rules recognise
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from btcnb.data import Transactions, heuristic_clusters, load_transactions
from btcnb.data.coinjoin import detect_coinjoins
from btcnb.data.judging.entity_pairs import interval_config
from btcnb.experiments.coinjoin import (
    PAPER_WIDTH,
    PER_PROTOCOL,
    PROTOCOLS,
    draw_mixes,
    inputs_of,
    known_mixes,
    owners,
    surroundings,
)
from btcnb.experiments.pairs import Numbers
from btcnb.experiments.recipe import Job
from btcnb.experiments.repulsion import (
    INTERVAL,
    JUDGED,
    PAPER_TEACHING,
    STEERING,
    TEACHING,
    judged_economy,
    teaching_chains,
    width_of,
)
from btcnb.experiments.stages import TRAINING, StageTimer

IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]


def mixing_economy(job: Job) -> Numbers:
    """The judged economy of a job: no encoder plays a part."""
    timer, source = StageTimer(), job.recipe.source
    with timer("graphs"):
        txs = load_transactions(judged_economy(source), INTERVAL, sampled=False)
        teachers = list(teaching_chains(source, (*TRAINING, *STEERING)))
    with timer("economy"):
        judged = JUDGED.get(source.size, PER_PROTOCOL)
        numbers = owner_numbers(txs) | edge_numbers(txs) | shared(txs, teachers)
        others = 3 * TEACHING.get(source.size, PAPER_TEACHING)
        numbers |= leakage(txs, judged, others, job.seed, width_of(source))
    return numbers | timer.record() | {"data": txs.fingerprint()}


def owner_numbers(txs: Transactions) -> Numbers:
    """Input pairs of one owner, and what the published rules recognise, over all CoinJoins of the chain."""
    known, owner = known_mixes(txs), owners(txs)
    drawn = draw_mixes(txs, per_protocol=len(txs), sets=1)
    share, own, pairs = [], 0, 0
    for inputs in inputs_of(txs, drawn.transactions):
        size = np.unique(owner[inputs], return_counts=True)[1]
        mine, all_ = int((size * (size - 1) // 2).sum()), len(inputs) * (len(inputs) - 1) // 2
        share.append(100 * mine / all_)
        own, pairs = own + mine, pairs + all_
    shares, found = np.array(share), np.asarray(detect_coinjoins(txs, "published"), dtype=str)
    of = np.isin(known, PROTOCOLS)
    numbers: Numbers = {
        "own.share": float(shares.mean()),
        "own.pooled": 100 * own / pairs,
        "detected": float(100 * (found[of] != "").mean()),
        "unpaired": drawn.unpaired,
    }
    for name in PROTOCOLS:
        if (drawn.protocol == name).any():
            numbers[f"own.share.{name}"] = float(shares[drawn.protocol == name].mean())
            numbers[f"detected.{name}"] = float(100 * (found[known == name] != "").mean())
    return numbers


def edge_numbers(txs: Transactions) -> Numbers:
    """Transfers of CoinJoins beside those of other transactions: within owners, and across clusters."""
    owner, mixes = owners(txs), np.isin(known_mixes(txs), PROTOCOLS)
    clusters = heuristic_clusters(txs, config=interval_config(txs))
    numbers: Numbers = {}
    for name, chosen in (("coinjoin", mixes), ("others", ~mixes)):
        numbers[f"homophily.{name}"] = 100 * transfers(txs, owner, chosen).homophily
        numbers[f"cut.{name}"] = 100 * (1 - transfers(txs, clusters, chosen).homophily)
    return numbers


def leakage(txs: Transactions, judged: int, others: int, seed: int = 0, width: int = PAPER_WIDTH) -> Numbers:
    """What separate CoinJoins of one economy share: inputs of `judged` CoinJoins of each protocol that lie in the
    surroundings of `others` more of each protocol, and owners of those inputs. Where a protocol has fewer than both
    together, the judged ones come first."""
    first = draw_mixes(txs, judged, 1, seed).transactions
    owner = owners(txs)
    rest = draw_mixes(txs, judged + others, 1, seed + 1)
    kept = [rest.transactions[(rest.protocol == name) & ~np.isin(rest.transactions, first)] for name in PROTOCOLS]
    other = np.sort(np.concatenate([each[:others] for each in kept]))
    seen = np.zeros(txs.num_addresses, dtype=bool)
    for mix in surroundings(txs, other, seed, width=width):
        seen[mix.piece.addresses] = True
    mine = np.unique(np.concatenate(inputs_of(txs, first)))
    people = np.unique(owner[mine])
    return {
        "leak.inputs": float(100 * seen[mine].mean()),
        "leak.owners": float(100 * np.isin(people, owner[seen]).mean()),
        "leak.others": len(other),
    }


def shared(txs: Transactions, others: list[Transactions]) -> Numbers:
    """What a chain has in common with others: transactions, addresses, and owners (through their addresses)."""
    hashes, addresses = pd.Index(txs.transactions["hash"]), pd.Index(txs.addresses)
    common = [addresses.isin(other.addresses) for other in others]
    people = np.concatenate([owners(txs)[both] for both in common])
    return {
        "shared.transactions": sum(int(hashes.isin(other.transactions["hash"]).sum()) for other in others),
        "shared.addresses": sum(int(both.sum()) for both in common),
        "shared.owners": len(np.unique(people)),
    }


class Transfers(NamedTuple):
    """Transfers from an input address to another output address, counted once in each transaction."""

    all: int
    within: int  # both addresses bear one label

    @property
    def homophily(self) -> float:
        """The share that stays within; NaN without any transfer."""
        return self.within / self.all if self.all else float("nan")


def transfers(txs: Transactions, labels: IntArray, chosen: BoolArray) -> Transfers:
    """Count the transfers of the chosen transactions (T,) by one label per address (A,); negative labels are unknown,
    and transfers from or to them are not counted. Change that comes back to its own address is no edge, so no transfer.
    """
    sides = [_distinct(table, labels, chosen) for table in (txs.inputs, txs.outputs)]
    both = sides[0].merge(sides[1], on=["tx", "address"])  # an address on both sides
    senders, receivers = (side.groupby("tx").size().reindex(range(len(txs)), fill_value=0) for side in sides)
    pairs = int((senders * receivers).sum()) - len(both)
    by_label = [side.groupby(["tx", "label"]).size().rename(name) for side, name in zip(sides, "ab", strict=True)]
    joined = pd.concat(by_label, axis=1, join="inner")
    return Transfers(pairs, int((joined["a"] * joined["b"]).sum()) - len(both))


def _distinct(table: pd.DataFrame, label: IntArray, chosen: BoolArray) -> pd.DataFrame:
    """Distinct (tx, address) of chosen transactions with known labels, and the label."""
    tx, address = (table[name].to_numpy(dtype=np.int64) for name in ("tx", "address"))
    keep = (address >= 0) & np.asarray(chosen, dtype=bool)[tx]
    keep[keep] = label[address[keep]] >= 0
    found = pd.DataFrame({"tx": tx[keep], "address": address[keep]}).drop_duplicates()
    return found.assign(label=label[found["address"].to_numpy()])
