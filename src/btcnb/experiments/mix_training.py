"""Encoders that were shown CoinJoins: the paper's training with its repulsion term, on CoinJoins of other economies.

Appendix "CoinJoin Hard-Negative Training": besides the three training graphs there are graphs around CoinJoins, and
every step pushes pairs of their inputs apart. The paper takes care that these CoinJoins are not those of the test.
The same wallets take part in many rounds, so that is not enough: ours come from economies that share no transaction, no
address and no owner with the ones on which anything is judged.

    repelled(recipe)                          # all five protocols
    repelled(recipe, without="whirlpool")     # one protocol left out

Further CoinJoins of the teaching economies, those of the validation interval, steer: the loss that lowers the learning
rate and picks the epoch is the one that is trained (see `valid_coinjoins` of `btcnb.learn.train`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from btcnb import gates
from btcnb.data import Source, Transactions, build_graph, load_transactions
from btcnb.data.judging.entity_pairs import interval_config
from btcnb.errors import ParameterError
from btcnb.experiments.mixes import PAPER_WIDTH, PROTOCOLS, Mix, draw_mixes, mixing_source, surroundings
from btcnb.experiments.recipe import Recipe
from btcnb.experiments.stages import TRAINING, training_graph
from btcnb.learn import CoinJoinGraph, Run, TrainConfig, prepare, train
from btcnb.store import kept

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


def judged_economy(source: Source) -> Source:
    """The economy full of CoinJoins on which encoders of a source are judged."""
    return _economy(source, JUDGED_WORLD)


def teaching_economy(source: Source) -> Source:
    """The economies full of CoinJoins, one for each role, from which encoders of a source learn repulsion."""
    return _economy(source, TEACHING_WORLD)


def width_of(source: Source) -> int:
    """Transactions a step of the search for surroundings follows."""
    return WIDTH.get(gates.instance("source", source, Source).size, PAPER_WIDTH)


def _economy(source: Source, further: int) -> Source:
    source = gates.instance("source", source, Source)
    if not source.simulated:
        raise ParameterError("economies full of CoinJoins are simulated; give a simulated source.")
    return mixing_source(source.seed + further, source.size, source.disorder)


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
    if without:
        gates.choice("without", without, PROTOCOLS)
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
    recipe = gates.instance("recipe", recipe, Recipe)
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
    told = {f"taught.{name}": names[name] for name in taught(without)}  # fewer than asked for where a chain has fewer
    told |= {"coinjoin_training_graphs": len(shown[TRAINING]), "coinjoin_validation_graphs": len(shown[STEERING])}
    return replace(run, record=run.record | told)
