"""Repulsion taught by real CoinJoins: by the earlier half of every list, so that the later half can judge.

    chains = list(real_chains(folder))
    given = lesson(chains, recipe.train)               # graphs around early CoinJoins
    run = repelled_by_lists(recipe, given)             # the recipe's encoder, taught repulsion by them
    judged(run.model, chain, halves=("late",))
    seen(given, chain)                                 # how much of the later half stood in a graph that taught

Of an earlier half the first four fifths teach and the rest steers: validation is later than teaching and earlier than
judging. The contrastive loss still learns from simulated graphs, for the lists hold no ordinary payments. Surroundings
of early CoinJoins are cut out of the chain as it was then; no later CoinJoin of any list is in them. Wallets stay the
same over time, and a list tells nobody's wallet: addresses can be counted (`seen`), owners cannot.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from btcnb import gates
from btcnb.data import Transactions
from btcnb.errors import DataError
from btcnb.experiments.mix_training import coinjoin_graph
from btcnb.experiments.mixes import IntArray, Mix, surroundings
from btcnb.experiments.mixing_trial import fits
from btcnb.experiments.real_mixes import REAL, WIDTH, Chain, inputs_of
from btcnb.experiments.recipe import Recipe
from btcnb.experiments.stages import TRAINING, training_graph
from btcnb.learn import CoinJoinGraph, Run, TrainConfig, train

MOST = 30
"""CoinJoins of each list that teach, at most; a quarter as many steer."""
TEACHING_SHARE = 0.8
"""Share of an earlier half that may teach; what is left of it steers."""


class Lesson(NamedTuple):
    """Graphs around early real CoinJoins, and what they hold."""

    teaching: list[CoinJoinGraph]
    steering: list[CoinJoinGraph]
    taught: dict[str, int]  # graphs that teach, by protocol
    too_large: int  # CoinJoins left out because of their surroundings, see `fits`
    addresses: frozenset[str]  # of all graphs that teach


class Split(NamedTuple):
    """The earlier half of a list inside the chain as it was then: ids of those that may teach, and steer."""

    txs: Transactions
    teaching: IntArray
    steering: IntArray


def split_by_time(chain: Chain, later: Iterable[str] = ()) -> Split:
    """Cut a chain after its earlier half.

    later: hashes of transactions that must not be in it, such as later CoinJoins of other lists
    """
    halves, txs = gates.instance("chain", chain, Chain).halves(), chain.txs
    early, late = halves["early"], halves["late"]
    if not len(early):
        return Split(txs, early, early)
    time = txs.transactions["block_timestamp"].to_numpy()
    names = txs.transactions["hash"].to_numpy(dtype=object)
    before = (time <= time[early].max()) & ~np.isin(names, list(later))
    before[late] = False  # a later CoinJoin of the same second
    place = np.asarray(np.cumsum(before) - 1, dtype=np.int64)  # ids in the cut chain
    kept = place[early[before[early]]]
    first = int(np.ceil(TEACHING_SHARE * len(kept)))
    return Split(txs.select(before), kept[:first], kept[first:])


def lesson(chains: Sequence[Chain], config: TrainConfig, most: int = MOST, seed: int = 0) -> Lesson:
    """Graphs around early CoinJoins of all real lists, prepared for an encoder with these settings.

    most: CoinJoins of each list that teach, drawn at random from those that may; a quarter as many steer
    """
    number, seed = gates.whole("most", most, "[1, inf)"), gates.whole("seed", seed, "[0, 2147483647]")
    listed = [chain for chain in gates.items("chains", chains) if chain.kind == REAL]
    later = {name for chain in listed for name in _hashes(chain, "late")}
    graphs: dict[str, list[CoinJoinGraph]] = {"teaching": [], "steering": []}
    taught: Counter[str] = Counter()
    addresses: set[str] = set()
    too_large = 0
    for place, chain in enumerate(listed):
        split = split_by_time(chain, later)
        for part, ids, wanted in (
            ("teaching", split.teaching, number),
            ("steering", split.steering, -(-number // 4)),
        ):
            rng = np.random.default_rng([seed, place, part == "steering"])
            chosen = np.sort(rng.choice(ids, min(wanted, len(ids)), replace=False))
            for mix in _around(split.txs, chosen, seed):
                if not fits(mix):
                    too_large += 1
                    continue
                graphs[part].append(coinjoin_graph(split.txs, mix, config))
                if part == "teaching":
                    taught[chain.protocol] += 1
                    addresses |= set(mix.piece.txs.addresses.tolist())
    return Lesson(graphs["teaching"], graphs["steering"], dict(taught), too_large, frozenset(addresses))


def repelled_by_lists(recipe: Recipe, given: Lesson) -> Run:
    """The encoder of a recipe, trained on its simulated graphs, with repulsion of real CoinJoins."""
    recipe, given = gates.instance("recipe", recipe, Recipe), gates.instance("given", given, Lesson)
    if not given.teaching or not given.steering:
        problem = f"{len(given.teaching)} CoinJoins teach and {len(given.steering)} steer"
        raise DataError("lists", "earlier halves", problem, "give lists with at least four CoinJoins")
    graphs = [training_graph(recipe.source, role, recipe.supervision) for role in TRAINING]
    valid = training_graph(recipe.source, "valid", recipe.supervision)
    run = train(recipe.train, graphs, valid, given.teaching, valid_coinjoins=given.steering, progress=False)
    told = {f"taught.{name}": number for name, number in given.taught.items()} | {"too_large": given.too_large}
    told |= {"coinjoin_training_graphs": len(given.teaching), "coinjoin_validation_graphs": len(given.steering)}
    return replace(run, record=run.record | told)


def seen(given: Lesson, chain: Chain) -> float:
    """% of the distinct inputs of a chain's later CoinJoins that occur in a graph that taught; NaN without any."""
    spent = inputs_of(chain.txs, chain.halves()["late"])
    if not spent:
        return float("nan")
    names = chain.txs.addresses[np.unique(np.concatenate(spent))]
    return float(100 * np.mean([str(name) in given.addresses for name in names]))


def _hashes(chain: Chain, half: str) -> list[str]:
    return [str(name) for name in chain.txs.transactions["hash"].to_numpy()[chain.halves()[half]]]


def _around(txs: Transactions, chosen: IntArray, seed: int) -> Iterator[Mix]:
    return surroundings(txs, chosen, seed, width=WIDTH) if len(chosen) else iter(())
