"""Encoders that were shown CoinJoins: the paper's training with its repulsion term, on CoinJoins of other economies.

Appendix "CoinJoin Hard-Negative Training": besides the three training graphs there are graphs around CoinJoins, and
every step pushes pairs of their inputs apart. The paper takes care that these CoinJoins are not those of the test.
The same wallets take part in many rounds, so that is not enough: ours come from economies that share no transaction, no
address and no owner with the ones on which anything is judged.

    repelled(recipe)                          # all five protocols
    repelled(recipe, without="whirlpool")     # one protocol left out

Further CoinJoins of the teaching economies, those of the validation interval, steer: the loss that lowers the learning
rate and picks the epoch is the one that is trained (see `valid_coinjoins` of `btcnb.learn.train`).

What a run of a sweep measures (`mixing`): the encoder of world i on CoinJoins of mixing world i + 200 (Table 3). So
five seeds vary model and economy, and the five evaluation sets vary the draw, which is all that the paper's five seeds
vary. `coinjoin_trial` says what the numbers are called. Besides, of every encoder that is judged on all protocols:

    distance.positive.pN, …    percentiles of cosine distances, ordinary test graph: pairs of one heuristic cluster, and
    distance.negative.pN, …    of two
    distance.entity_same.pN, … the same of entity labels in local graphs: pairs of one name, and
    distance.entity_two.pN, …  of two; with the inputs of CoinJoins, the five curves of the paper's figures
    place.coinjoin             where the median of input pairs lies on the way from the positives' to the negatives'
    price.DP, price.NMI, price.ARI, price.owner_ARI    the paper's scores on the ordinary test graph, and ARI of owners
    price.entity.NAME.bACC     balanced accuracy on entity labels (average linkage, silhouette), %; of trained encoders
    taught_by, steered_by      graphs around CoinJoins that taught the encoder, and that steered its training; 0 without
    taught.PROTOCOL            those that taught, by protocol
    best_epoch, repulsion      the epoch that was kept, and λ times the repulsion in its validation loss
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from btcnb.cluster import ari, scored_nodes
from btcnb.cluster.evaluate import evaluation
from btcnb.data import AddressGraph, Source, Transactions, build_graph, load_graph, load_transactions
from btcnb.data.judging.entity_pairs import interval_config
from btcnb.errors import ParameterError
from btcnb.experiments.coinjoin import (
    PAPER_WIDTH,
    PER_PROTOCOL,
    PROTOCOLS,
    FeatureSpread,
    Mix,
    draw_mixes,
    mixing_source,
    percentiles,
    surroundings,
)
from btcnb.experiments.coinjoin_trial import mixing_trial
from btcnb.experiments.pairs import PAPER_TRANSACTIONS, TRANSACTIONS, Numbers, cosine, entity_trial, judged_source
from btcnb.experiments.recipe import Job, Recipe, baseline
from btcnb.experiments.stages import TRAINING, StageTimer, coarse, trained, training_graph
from btcnb.learn import CoinJoinGraph, Encoder, Run, TrainConfig, embed, prepare, train
from btcnb.store import kept

IntArray = npt.NDArray[np.int64]

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


def mixing(job: Job, repulsion: bool = False, without: str = "") -> Numbers:
    """An encoder on CoinJoins of an economy that it has never seen, with distances and its scores elsewhere.

    repulsion: whether CoinJoins teach it repulsion; without: a protocol that does not, which alone is judged then
    """
    methods = ("trained",) if repulsion else METHODS
    if job.method not in methods:
        problem = f"CoinJoins are judged with an encoder that the measure {job.measure!r} can make"
        raise ParameterError(f"{problem}, and {job.method!r} is none; take {' or '.join(methods)}.")
    timer, source = StageTimer(), job.recipe.source
    standard = job.method == "trained" and not repulsion
    with timer("graphs"):
        txs = load_transactions(judged_economy(source), INTERVAL, sampled=False)
        graphs = [load_graph(source, role) for role in TRAINING] if standard else []
    with timer("train"):
        recipe = job.recipe if job.method == "trained" else baseline(job.recipe, job.method)
        run = repelled(recipe, without) if repulsion else trained(recipe)
    timer.seconds["train"] = float(run.record["seconds"])  # also where the store had it
    with timer("local"):
        usual = _usual(run.model, graphs) if standard else None
        number, width = JUDGED.get(source.size, PER_PROTOCOL), width_of(source)
        only = (without,) if without else PROTOCOLS
        trial = mixing_trial(run.model, txs, number, job.seed, width=width, only=only, usual=usual)
    numbers = trial.numbers() | _lesson(run)
    numbers["graphs_per_second"] = len(trial.distances) / timer.seconds["local"]
    if not without:
        with timer("price"):
            numbers |= price(job, run.model)
        ends = [numbers[f"distance.{kind}.median"] for kind in ("coinjoin", "positive", "negative")]
        numbers["place.coinjoin"] = position(*ends)  # type: ignore[arg-type]
    return numbers | timer.record() | {"data": txs.fingerprint()}


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


def _usual(model: Encoder, graphs: Sequence[AddressGraph]) -> FeatureSpread:
    """The features of the training graphs as the encoder read them."""
    config = model.config
    ready = (prepare(g, config.symmetrise, config.edge_features, config.landmarks, unit=config.unit) for g in graphs)
    return FeatureSpread.of([each.x.numpy() for each in ready])


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
        numbers |= percentiles(f"distance.{kind}", cosine(rows, pairs))
    return numbers if job.method == "untrained" else numbers | _entity_price(job, model)  # nobody asks for its price


def _entity_price(job: Job, model: Encoder) -> Numbers:
    source = job.recipe.source
    txs = load_transactions(judged_source(source), INTERVAL, sampled=False)
    wanted = TRANSACTIONS.get(source.size, PAPER_TRANSACTIONS)
    trial = entity_trial(model, txs, wanted, job.seed, linkages=("average",))
    found = trial.numbers()
    numbers: Numbers = {f"price.entity.{name.split('.')[0]}.bACC": found[f"{name}.bACC"] for name in ENTITY_ROWS}
    for kind in ("same", "two"):
        far = trial.distances[f"{kind} joined"] + trial.distances[f"{kind} apart"]
        numbers |= percentiles(f"distance.entity_{kind}", far)
    return numbers


def position(middle: float | None, low: float | None, high: float | None) -> float | None:
    """Where `middle` lies on the way from `low` (0) to `high` (1); None where one is missing or both ends coincide."""
    if middle is None or low is None or high is None or low == high:
        return None
    return (middle - low) / (high - low)


def ordinary_pairs(labels: IntArray, number: int, rng: np.random.Generator) -> tuple[IntArray, IntArray]:
    """Random pairs of one cluster and of two, (k, 2) each, k at most `number`.

    Of one: an address drawn uniformly among those with company, and one of its company. Of two: two addresses drawn
    uniformly; those that happen to share a cluster are left out.
    """
    found = np.unique(labels, return_inverse=True)[1]
    size = np.bincount(found)
    order, start = np.argsort(found, kind="stable"), np.concatenate([[0], np.cumsum(size)[:-1]])
    place = np.empty(len(found), dtype=np.int64)
    place[order] = np.arange(len(found)) - start[found[order]]  # position inside the own cluster
    company = np.flatnonzero(size[found] > 1)
    a = rng.choice(company, number) if len(company) else np.empty(0, dtype=np.int64)
    step = rng.integers(1, size[found[a]]) if len(a) else a
    b = order[start[found[a]] + (place[a] + step) % size[found[a]]]
    two = rng.integers(len(found), size=(number, 2))
    return np.stack([a, b], axis=1), two[found[two[:, 0]] != found[two[:, 1]]]
