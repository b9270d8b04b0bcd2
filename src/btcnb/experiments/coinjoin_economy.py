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

import numpy as np
import numpy.typing as npt

from btcnb.data import Transactions, heuristic_clusters, load_transactions
from btcnb.data.coinjoin import detect_coinjoins
from btcnb.data.judging.entity_pairs import interval_config
from btcnb.errors import DataError
from btcnb.experiments.coinjoin import PAPER_WIDTH, PER_PROTOCOL, PROTOCOLS, draw_mixes, surroundings, transfers
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


def mixing_economy(job: Job) -> Numbers:
    """The judged economy of a job: no encoder plays a part."""
    laps, source = StageTimer(), job.recipe.source
    with laps("graphs"):
        txs = load_transactions(judged_economy(source), INTERVAL, sampled=False)
        teachers = list(teaching_chains(source, (*TRAINING, *STEERING)))
    with laps("economy"):
        judged = JUDGED.get(source.size, PER_PROTOCOL)
        numbers = owner_numbers(txs) | edge_numbers(txs) | shared(txs, teachers)
        others = 3 * TEACHING.get(source.size, PAPER_TEACHING)
        numbers |= leakage(txs, judged, others, job.seed, width_of(source))
    return numbers | laps.record() | {"data": txs.fingerprint()}


def owner_numbers(txs: Transactions) -> Numbers:
    """Input pairs of one owner, and what the published rules recognise, over all CoinJoins of the chain."""
    known, owner = _told(txs)
    drawn = draw_mixes(txs, per_protocol=len(txs), sets=1)
    share, own, pairs = [], 0, 0
    for inputs in _inputs_of(txs, drawn.transactions):
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
    known, owner = _told(txs)
    mixes = np.isin(known, PROTOCOLS)
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
    _, owner = _told(txs)
    first = draw_mixes(txs, judged, 1, seed).transactions
    rest = draw_mixes(txs, judged + others, 1, seed + 1)
    kept = [rest.transactions[(rest.protocol == name) & ~np.isin(rest.transactions, first)] for name in PROTOCOLS]
    other = np.sort(np.concatenate([each[:others] for each in kept]))
    seen = np.zeros(txs.num_addresses, dtype=bool)
    for mix in surroundings(txs, other, seed, width=width):
        seen[mix.piece.addresses] = True
    mine = np.unique(np.concatenate(_inputs_of(txs, first)))
    people = np.unique(owner[mine])
    return {
        "leak.inputs": float(100 * seen[mine].mean()),
        "leak.owners": float(100 * np.isin(people, owner[seen]).mean()),
        "leak.others": len(other),
    }


def shared(txs: Transactions, others: list[Transactions]) -> Numbers:
    """What a chain has in common with others: transactions, addresses, and owners (through their addresses)."""
    numbers: Numbers = {"shared.transactions": 0, "shared.addresses": 0, "shared.owners": 0}
    mine, hashes = set(txs.addresses.tolist()), set(txs.transactions["hash"])
    _, owner = _told(txs)
    place = {address: i for i, address in enumerate(txs.addresses.tolist())}
    people: set[int] = set()
    for other in others:
        both = mine & set(other.addresses.tolist())
        numbers["shared.transactions"] += len(hashes & set(other.transactions["hash"]))  # type: ignore[operator]
        numbers["shared.addresses"] += len(both)  # type: ignore[operator]
        people |= {int(owner[place[address]]) for address in both}
    return numbers | {"shared.owners": len(people)}


def _inputs_of(txs: Transactions, transactions: IntArray) -> list[IntArray]:
    """Distinct known input addresses of each transaction."""
    start, address = txs.input_offsets(), txs.inputs["address"].to_numpy(dtype=np.int64)
    spent = [np.unique(address[start[tx] : start[tx + 1]]) for tx in transactions.tolist()]
    return [each[each >= 0] for each in spent]


def _told(txs: Transactions) -> tuple[npt.NDArray[np.str_], IntArray]:
    """Which CoinJoin each transaction is, "" for none; and the owner of each address."""
    truth = txs.truth
    if truth is None or truth.coinjoin is None:
        raise DataError(txs.source, "truth.coinjoin", "is missing", "simulate, or tell which transactions are mixes")
    return np.asarray(truth.coinjoin, dtype=str), truth.owner
