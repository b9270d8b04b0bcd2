"""The paper's test with CoinJoins as a measurement: one encoder, CoinJoins of an economy it has never seen.

Section "CoinJoin Transaction Labels" and Table 3. The encoder of world i is judged on mixing world i + 200; one that is
taught repulsion is taught by mixing world i + 300 (see `mix_training`). So five seeds vary model and economy, and the
five evaluation sets vary the draw, which is all that the paper's five seeds vary.

`mixing_trial` says what the numbers of an encoder are called. Besides, of every encoder that is priced:

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

from collections.abc import Callable, Sequence

import numpy as np

from btcnb import gates
from btcnb.cluster import ari, scored_nodes
from btcnb.cluster.evaluate import evaluation
from btcnb.data import AddressGraph, load_graph, load_transactions
from btcnb.errors import ParameterError
from btcnb.experiments.entity import PAPER_TRANSACTIONS, TRANSACTIONS, entity_trial, judged_source
from btcnb.experiments.mix_controls import Usual, ordinary_pairs, percentiles, position
from btcnb.experiments.mix_training import judged_economy, repelled, width_of
from btcnb.experiments.mixes import PER_PROTOCOL, PROTOCOLS
from btcnb.experiments.mixing_trial import mixing_trial
from btcnb.experiments.pair_scores import Numbers, cosine
from btcnb.experiments.recipe import Job, baseline
from btcnb.experiments.stages import TRAINING, StageTimer, coarse, trained
from btcnb.learn import Encoder, Run, embed, prepare

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
