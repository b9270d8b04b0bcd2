"""Economies full of CoinJoins, and encoders that were shown them: the paper's training with its repulsion term.

Appendix "CoinJoin Hard-Negative Training": besides the three training graphs there are graphs around CoinJoins, and
every step pushes pairs of their inputs apart. The paper takes care that these CoinJoins are not those of the test.
The same wallets take part in many rounds, so that is not enough: ours come from economies that share no transaction, no
address and no owner with the ones on which anything is judged.

    repelled(recipe)                          # all five protocols
    repelled(recipe, without="whirlpool")     # one protocol left out

Further CoinJoins of the teaching economies, those of the validation interval, steer: the loss that lowers the learning
rate and picks the epoch is the one that is trained (see `valid_coinjoins` of `btcnb.learn.train`).

What `mixing_economy` says of a judged economy, whatever encoder will be judged on it:

    own.share, own.pooled          % of input pairs of a CoinJoin that have one owner: mean over CoinJoins, all pairs
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

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pandas as pd

from btcnb.data import Source, Transactions, build_graph, heuristic_clusters, load_transactions
from btcnb.data.coinjoin import detect_coinjoins
from btcnb.data.judging.entity_pairs import interval_config
from btcnb.errors import ParameterError
from btcnb.experiments.coinjoin import (
    PAPER_WIDTH,
    PER_PROTOCOL,
    PROTOCOLS,
    Mix,
    draw_mixes,
    inputs_of,
    known_mixes,
    mixing_source,
    owners,
    surroundings,
)
from btcnb.experiments.pairs import Numbers
from btcnb.experiments.recipe import Job, Recipe
from btcnb.experiments.stages import TRAINING, StageTimer, training_graph
from btcnb.learn import CoinJoinGraph, Run, TrainConfig, prepare, train
from btcnb.store import kept

IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]

JUDGED_WORLD, TEACHING_WORLD = 200, 300
"""The encoder of world i is judged on CoinJoins of mixing world i + 200, and taught by those of i + 300."""
TEACHING = {"tiny": 2, "quick": 10}
"""CoinJoins of each protocol that each of the three teaching economies gives, by size: 30 and 150 graphs in all. The
fourth, whose CoinJoins steer, gives as many."""
PAPER_TEACHING = 67
"""Elsewhere: as many as make the paper's 1,000 graphs."""
STEERING = ("valid",)
"""The role whose CoinJoins are validated on: never one that teaches, and of no judged economy."""
WIDTH = {"tiny": 4, "quick": 4}
"""Transactions that a step of the search for surroundings follows, by size; elsewhere the paper's 100.

The neighbours of a CoinJoin are CoinJoins, most of all in an economy full of them: with 100 a step the surroundings of
a Wasabi round at size quick have 35,000 addresses and 3 million edges, more than a whole test graph of that size."""
INTERVAL = "test"
"""The interval whose CoinJoins judge; those of the three training intervals (of another world) teach."""
JUDGED = {"tiny": 4, "quick": 20}
"""CoinJoins of each protocol in an evaluation set, by size; elsewhere the paper's 100."""


def judged_economy(source: Source) -> Source:
    """The economy full of CoinJoins on which encoders of a source are judged."""
    return _economy(source, JUDGED_WORLD)


def teaching_economy(source: Source) -> Source:
    """The economies full of CoinJoins, one for each role, from which encoders of a source learn repulsion."""
    return _economy(source, TEACHING_WORLD)


def _economy(source: Source, further: int) -> Source:
    if not source.simulated:
        raise ParameterError("economies full of CoinJoins are simulated; give a simulated source.")
    return mixing_source(source.seed + further, source.size, source.disorder)


def width_of(source: Source) -> int:
    """Transactions a step of the search for surroundings follows."""
    return WIDTH.get(source.size, PAPER_WIDTH)


def teaching_chains(source: Source, roles: Sequence[str] = TRAINING) -> Iterator[Transactions]:
    """The whole intervals from which teaching CoinJoins are drawn, one for each role."""
    for role in roles:
        yield load_transactions(teaching_economy(source), role, sampled=False)


def teaching_mixes(
    source: Source, without: str = "", roles: Sequence[str] = TRAINING
) -> Iterator[tuple[Transactions, str, Mix]]:
    """(chain, protocol, CoinJoin with its surroundings) of every CoinJoin that teaches or, with `STEERING`, steers."""
    protocols = taught(without)
    number = TEACHING.get(source.size, PAPER_TEACHING)
    for role, txs in zip(roles, teaching_chains(source, roles), strict=True):
        seed = (*TRAINING, *STEERING).index(role)
        drawn = draw_mixes(txs, number, 1, seed=seed, protocols=protocols)
        around = surroundings(txs, drawn.transactions, seed=seed, width=width_of(source))
        for name, mix in zip(drawn.protocol, around, strict=True):
            yield txs, str(name), mix


def taught(without: str = "") -> tuple[str, ...]:
    """The protocols that are shown in training."""
    if without and without not in PROTOCOLS:
        raise ParameterError(f"without is {without!r}; take one of {', '.join(PROTOCOLS)}.")
    return tuple(name for name in PROTOCOLS if name != without)


def coinjoin_graph(txs: Transactions, mix: Mix, config: TrainConfig) -> CoinJoinGraph:
    """A CoinJoin's surroundings as training wants them: prepared (most of a table's memory is let go), and the rows of
    its inputs. Clusters play no part in repulsion, so every address is one."""
    local = mix.piece.txs
    graph = build_graph(local, np.arange(local.num_addresses), interval_config(txs).price_usd)
    ready = prepare(graph, config.symmetrise, config.edge_features, config.landmarks, unit=config.unit)
    return CoinJoinGraph(ready, mix.inputs)


def repelled(recipe: Recipe, without: str = "") -> Run:
    """The encoder of a recipe, trained with the repulsion term as well; its settings are those of the recipe."""
    taught(without)
    return _repelled(recipe.source, recipe.train, recipe.supervision, without)


@kept
def _repelled(source: Source, config: TrainConfig, supervision: tuple[str, ...], without: str) -> Run:
    names: Counter[str] = Counter()
    shown: dict[tuple[str, ...], list[CoinJoinGraph]] = {TRAINING: [], STEERING: []}
    for roles, graphs_of in shown.items():
        for txs, name, mix in teaching_mixes(source, without, roles):
            graphs_of.append(coinjoin_graph(txs, mix, config))
            names[name] += roles == TRAINING
    graphs = [training_graph(source, role, supervision) for role in TRAINING]
    valid = training_graph(source, "valid", supervision)
    run = train(config, graphs, valid, shown[TRAINING], valid_coinjoins=shown[STEERING], progress=False)
    counts = {f"taught.{name}": names[name] for name in taught(without)}  # fewer than asked for where a chain has fewer
    counts |= {"coinjoin_training_graphs": len(shown[TRAINING]), "coinjoin_validation_graphs": len(shown[STEERING])}
    return replace(run, record=run.record | counts)


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
        for key, labels in (("homophily", owner), ("cut", clusters)):
            every, within = transfers(txs, labels, chosen)
            share = 100 * within / every if every else float("nan")
            numbers[f"{key}.{name}"] = share if key == "homophily" else 100 - share
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


def transfers(txs: Transactions, labels: IntArray, chosen: BoolArray) -> tuple[int, int]:
    """Transfers of the chosen transactions (T,) from an input address to another output address, each counted once in a
    transaction: all, and those within one label. labels: one per address (A,), negative where unknown; transfers from
    or to unknown ones are not counted. Change that comes back to its own address is no edge, so no transfer.
    """
    sides = [_distinct(table, labels, chosen) for table in (txs.inputs, txs.outputs)]
    both = len(sides[0].merge(sides[1], on=["tx", "address"]))  # an address on both sides
    counts = []
    for columns in (["tx"], ["tx", "label"]):
        senders, receivers = (side.groupby(columns).size() for side in sides)
        counts.append(int(senders.mul(receivers, fill_value=0).sum()) - both)
    return counts[0], counts[1]


def _distinct(table: pd.DataFrame, label: IntArray, chosen: BoolArray) -> pd.DataFrame:
    """Distinct (tx, address) of chosen transactions with known labels, and the label."""
    tx, address = (table[name].to_numpy(dtype=np.int64) for name in ("tx", "address"))
    keep = (address >= 0) & np.asarray(chosen, dtype=bool)[tx]
    keep[keep] = label[address[keep]] >= 0
    found = pd.DataFrame({"tx": tx[keep], "address": address[keep]}).drop_duplicates()
    return found.assign(label=label[found["address"].to_numpy()])
