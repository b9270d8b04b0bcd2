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
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from btcnb import gates
from btcnb.cluster import ari, scored_nodes
from btcnb.cluster.evaluate import evaluation
from btcnb.data import AddressGraph, Source, Transactions, build_graph, load_graph, load_transactions
from btcnb.data.judging.entity_pairs import interval_config
from btcnb.errors import ParameterError
from btcnb.experiments.coinjoin import (
    PAPER_WIDTH,
    PER_PROTOCOL,
    PROTOCOLS,
    Mix,
    Usual,
    draw_mixes,
    mixing_source,
    mixing_trial,
    ordinary_pairs,
    percentiles,
    position,
    surroundings,
)
from btcnb.experiments.pairs import PAPER_TRANSACTIONS, TRANSACTIONS, Numbers, cosine, entity_trial, judged_source
from btcnb.experiments.recipe import Job, Recipe, baseline
from btcnb.experiments.stages import TRAINING, StageTimer, coarse, trained, training_graph
from btcnb.learn import CoinJoinGraph, Encoder, Run, TrainConfig, embed, prepare, train
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


INTERVAL = "test"
"""The interval whose CoinJoins judge; those of the three training intervals (of another world) teach."""
JUDGED = {"tiny": 4, "quick": 20}
"""CoinJoins of each protocol in an evaluation set, by size; elsewhere the paper's 100."""
METHODS = ("trained", "untrained")
ORDINARY_PAIRS = 20_000
"""Pairs of the ordinary test graph, of each kind, whose distances are kept."""
SCORES = {"DP": "purity", "NMI": "nmi", "ARI": "ari"}
"""The paper's scores, and what an evaluation calls them."""
ENTITY_ROWS = ("heuristics", "gnn.average.silhouette", "hybrid.average.silhouette")


def mixing(job: Job) -> Numbers:
    """An encoder with the standard loss (or untrained) on CoinJoins, with distances and its scores elsewhere."""
    recipe = job.recipe if _checked(job) == "trained" else baseline(job.recipe, job.method)
    return _measured(job, lambda: trained(recipe), priced=True, shifted=job.method == "trained")


def mixing_repelled(job: Job) -> Numbers:
    """The same with the encoder that was taught repulsion by CoinJoins of all five protocols."""
    _checked(job, METHODS[:1])
    return _measured(job, lambda: repelled(job.recipe), priced=True)


def mixing_without_joinmarket(job: Job) -> Numbers:
    """The encoder that was taught repulsion by four protocols, JoinMarket left out; judged on JoinMarket alone."""
    _checked(job, METHODS[:1])
    return _measured(job, lambda: repelled(job.recipe, "joinmarket"), only=("joinmarket",))


def mixing_without_whirlpool(job: Job) -> Numbers:
    """The same, Whirlpool left out."""
    _checked(job, METHODS[:1])
    return _measured(job, lambda: repelled(job.recipe, "whirlpool"), only=("whirlpool",))


def _checked(job: Job, methods: tuple[str, ...] = METHODS) -> str:
    gates.instance("job", job, Job)
    if job.method not in methods:
        problem = f"CoinJoins are judged with an encoder that the measure {job.measure!r} can make"
        raise ParameterError(f"{problem}, and {job.method!r} is none; take {' or '.join(methods)}.")
    return job.method


def _measured(
    job: Job,
    run: Callable[[], Run],
    *,
    only: Sequence[str] = PROTOCOLS,
    priced: bool = False,
    shifted: bool = False,
) -> Numbers:
    laps, source = StageTimer(), job.recipe.source
    with laps("graphs"):
        txs = load_transactions(judged_economy(source), INTERVAL, sampled=False)
        graphs = [load_graph(source, role) for role in TRAINING] if shifted else []
    with laps("train"):
        made = run()
    laps.seconds["train"] = float(made.record["seconds"])  # also where the store had it
    with laps("local"):
        usual = _usual(made.model, graphs) if shifted else None
        number, width = JUDGED.get(source.size, PER_PROTOCOL), width_of(source)
        trial = mixing_trial(made.model, txs, number, job.seed, width=width, only=only, usual=usual)
    numbers = trial.numbers() | _lesson(made)
    numbers["graphs_per_second"] = len(trial.distances) / laps.seconds["local"]
    if priced:
        with laps("price"):
            numbers |= price(job, made.model)
        ends = [numbers[f"distance.{kind}.median"] for kind in ("coinjoin", "positive", "negative")]
        numbers["place.coinjoin"] = position(*ends)  # type: ignore[arg-type]
    return numbers | laps.record() | {"data": txs.fingerprint()}


def _lesson(run: Run) -> Numbers:
    """What the encoder was shown of CoinJoins, and which epoch was kept."""
    record = run.record
    numbers: Numbers = {name: int(value) for name, value in record.items() if name.startswith("taught.")}
    numbers |= {
        "taught_by": int(record.get("coinjoin_training_graphs", 0)),
        "steered_by": int(record.get("coinjoin_validation_graphs", 0)),
        "best_epoch": int(record["best_epoch"]),
    }
    return numbers | ({"repulsion": float(record["best_repulsion"])} if "best_repulsion" in record else {})


def _usual(model: Encoder, graphs: Sequence[AddressGraph]) -> Usual:
    """The features of the training graphs as the encoder read them."""
    config = model.config
    ready = (prepare(g, config.symmetrise, config.edge_features, config.landmarks, unit=config.unit) for g in graphs)
    return Usual.of([each.x.numpy() for each in ready])


def price(job: Job, model: Encoder) -> Numbers:
    """What an encoder does away from CoinJoins: distances and scores on the ordinary test graph, entity labels."""
    recipe = job.recipe
    graph = load_graph(recipe.source, "test")
    rows = embed(model, graph)
    found = evaluation(rows, graph, partition=coarse(recipe), config=recipe.cluster, seed=job.seed, progress=False)
    scored = scored_nodes(graph, recipe.cluster.min_degree)
    numbers: Numbers = {f"price.{name}": found.record[key] for name, key in SCORES.items()}
    if graph.truth is not None:
        numbers["price.owner_ARI"] = ari(graph.truth[scored], found.partition[scored])
    same, two = ordinary_pairs(graph.labels(), ORDINARY_PAIRS, np.random.default_rng([job.seed, 17]))
    for kind, pairs in (("positive", same), ("negative", two)):
        spread = percentiles(cosine(rows, pairs).tolist())
        numbers |= {f"distance.{kind}.{name}": value for name, value in spread.items()}
    return numbers if job.method == "untrained" else numbers | _entity_price(job, model)  # nobody asks for its price


def _entity_price(job: Job, model: Encoder) -> Numbers:
    source = job.recipe.source
    txs = load_transactions(judged_source(source), INTERVAL, sampled=False)
    wanted = TRANSACTIONS.get(source.size, PAPER_TRANSACTIONS)
    trial = entity_trial(model, txs, wanted, job.seed, linkages=("average",), cuts=("silhouette",))
    found = trial.numbers()
    numbers: Numbers = {f"price.entity.{name.split('.')[0]}.bACC": found[f"{name}.bACC"] for name in ENTITY_ROWS}
    for kind in ("same", "two"):
        spread = percentiles(trial.distances[f"{kind} joined"] + trial.distances[f"{kind} apart"])
        numbers |= {f"distance.entity_{kind}.{name}": value for name, value in spread.items()}
    return numbers
