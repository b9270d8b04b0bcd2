"""Entity labels: no leak between training and judging, the trial against the plain protocol, controls, bad input."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from btcnb.data import ROLES, Source, Transactions, Truth, load_transactions
from btcnb.data.judging.entity_pairs import entity_counts, entity_graphs, local_heuristics, pair_counts
from btcnb.errors import DataError, ParameterError
from btcnb.experiments import pairs as module
from btcnb.experiments import recipe, trained
from btcnb.experiments.local import HEURISTICS
from btcnb.experiments.measures import Numbers, measure
from btcnb.experiments.pairs import (
    FURTHER,
    FURTHER_WORLD,
    HYBRID,
    INTERVAL,
    DrawnPairs,
    Trial,
    cosine,
    counts_by_draw,
    encoder_of,
    entity_trial,
    heuristic_pairs,
    judged_source,
    moments,
    pair_scores,
    random_split,
    separation,
    undefined_draws,
)
from btcnb.experiments.recipe import Job
from btcnb.learn import Encoder

sys.path.insert(0, str(Path(__file__).parents[1] / "data"))
from builders import chain

DATA = Source(size="tiny", seed=3)
RECIPE = recipe(DATA, seed=3)


@pytest.fixture(scope="module", autouse=True)
def own_store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BTCNB_CACHE", str(tmp_path_factory.mktemp("cache")))
        patch.setattr(module, "FURTHER", {})  # a forest takes longer than all the rest; it has a test of its own
        yield


@pytest.fixture(scope="module")
def model(own_store: None) -> Encoder:
    return trained(RECIPE).model


@pytest.fixture(scope="module")
def judged(own_store: None) -> Transactions:
    return load_transactions(judged_source(DATA), INTERVAL, sampled=False)


@pytest.fixture(scope="module")
def trial(model: Encoder, judged: Transactions) -> Trial:
    return entity_trial(model, judged, 25, seed=3, linkages=("average",))


@pytest.fixture(scope="module")
def table(own_store: None) -> Numbers:
    return measure(Job("row", 3, RECIPE, "trained", "entity", (("table", True),)))


# --- leakage ---


def test_no_transaction_address_or_owner_is_shared_by_training_and_judging(judged: Transactions) -> None:
    """Economies are drawn with seeds of their own, so an owner is an economy's: what could betray one is its keys."""
    seeds = {DATA.economy(role).seed for role in ROLES}
    assert judged_source(DATA).economy(INTERVAL).seed not in seeds
    owned = set(judged.addresses[judged.truth.owner >= 0])
    hashes = set(judged.transactions["hash"])
    for role in ROLES:
        seen = load_transactions(DATA, role, sampled=False)
        assert not hashes & set(seen.transactions["hash"]), role
        assert not set(judged.addresses) & set(seen.addresses), role
        assert not owned & set(seen.addresses[seen.truth.owner >= 0]), role
        spent = set(seen.inputs["spent_transaction_hash"].dropna())
        assert not hashes & spent, role


def test_every_world_is_judged_on_another_one() -> None:
    """Also none that another seed of the grids is trained on; and no two economies are drawn with one seed."""
    seeds = [Source(seed=seed).economy(role).seed for seed in range(1, 21) for role in ROLES]
    seeds += [judged_source(Source(seed=seed)).economy(INTERVAL).seed for seed in range(1, 21)]
    assert len(set(seeds)) == len(seeds) == 120
    judged_on = {judged_source(Source(seed=seed)).seed for seed in range(1, 21)}
    assert judged_on == {seed + FURTHER_WORLD for seed in range(1, 21)}
    assert not judged_on & set(range(1, 21))
    own = Source(kind="etl", paths=("x.parquet",))
    assert judged_source(own) == own


# --- counts ---


def test_heuristics_are_those_of_the_plain_protocol(trial: Trial, judged: Transactions) -> None:
    plain = entity_counts(judged, transactions=25, seed=3, cluster=local_heuristics(judged))
    numbers = trial.numbers()
    for kind in ("TP", "FP", "FN", "TN", "bACC", "F1"):
        assert numbers[f"heuristics.{kind}"] == pytest.approx(plain.mean[kind])
    assert numbers["pairs"] == plain.mean["pairs"] and numbers["transactions"] == plain.transactions == 25


def test_all_rows_are_scored_on_the_same_pairs(trial: Trial) -> None:
    positive = trial.counts[HEURISTICS][:, [0, 2]].sum(axis=1)
    for name, counts in trial.counts.items():
        assert np.array_equal(counts[:, [0, 2]].sum(axis=1), positive), name
    assert trial.random[:, [0, 2]].sum(axis=1) == pytest.approx(positive)


def test_counts_of_all_clusterings_at_once_are_those_of_one_at_a_time(trial: Trial, judged: Transactions) -> None:
    """Heuristics, everybody alone and everybody together, by `pair_counts`, draw by draw."""
    heuristics = local_heuristics(judged)
    total = np.zeros((3, 5, 4), dtype=np.int64)
    for graph in trial.graphs:
        number = graph.txs.num_addresses
        labels = np.stack([heuristics(graph.txs), np.arange(number), np.zeros(number, dtype=np.int64)])
        found = counts_by_draw(labels, DrawnPairs.of(graph))
        drawn = list(zip(graph.pairs, graph.same, strict=True))
        assert np.array_equal(found, [[pair_counts(each, *pairs) for pairs in drawn] for each in labels])
        total += found
    assert np.array_equal(total[0], trial.counts[HEURISTICS])
    assert not total[1, :, :2].any() and not total[2, :, 2:].any()


def test_a_draw_that_a_graph_has_no_pairs_for_counts_nothing() -> None:
    pairs, same, draw = np.array([[0, 1], [1, 2]]), np.array([True, False]), np.array([0, 2])
    found = counts_by_draw(np.array([[0, 0, 0], [0, 0, 1]]), DrawnPairs(pairs, same, draw, 3))
    assert found.tolist() == [[[1, 0, 0, 0], [0] * 4, [0, 1, 0, 0]], [[1, 0, 0, 0], [0] * 4, [0, 0, 0, 1]]]


def test_refinement_only_parts(trial: Trial) -> None:
    for name, counts in trial.counts.items():
        if name.startswith("hybrid"):
            assert (counts[:, :2] <= trial.counts[HEURISTICS][:, :2]).all(), name


def test_random_splits_lose_as_many_true_positives_as_the_hybrid(trial: Trial) -> None:
    assert np.array_equal(trial.random[:, 2], trial.counts[HYBRID][:, 2])
    assert np.array_equal(trial.random[:, 0], trial.counts[HYBRID][:, 0])
    assert (trial.random[:, 1] <= trial.counts[HEURISTICS][:, 1] + 1e-9).all()


def test_the_large_graph_is_scored_on_the_same_pairs(trial: Trial, judged: Transactions) -> None:
    truth = trial.in_large_graph({"truth": judged.truth.owner, "all": np.zeros(judged.num_addresses, dtype=np.int64)})
    base = trial.counts[HEURISTICS]
    assert np.array_equal(truth["large.all"][:, 0], base[:, 0] + base[:, 2])
    assert (truth["large.all"][:, 2:] == 0).all()
    right = truth["large.truth"][:, [0, 3]].sum() / truth["large.truth"].sum()
    assert right > 0.75, "labels err, but seldom"


def test_what_is_left_out_is_told(trial: Trial, judged: Transactions) -> None:
    assert trial.totals["candidates"] + trial.totals["too_few_labels"] == len(judged)
    assert trial.totals["one_node_graphs"] == sum(graph.txs.num_addresses < 2 for graph in trial.graphs)
    assert len(trial.graphs) == trial.totals["transactions"] == 25


def test_distances_of_pairs_are_kept_by_kind(trial: Trial) -> None:
    base = trial.counts[HEURISTICS].sum(axis=0)
    sizes = [len(trial.distances[kind]) for kind in module.KINDS[:4]]
    assert sizes == [base[0], base[2], base[1], base[3]]
    assert all(-1e-6 <= far <= 2 + 1e-6 for values in trial.distances.values() for far in values)


def test_heuristic_pairs_by_hand() -> None:
    labels = np.array([0, 0, 1, 2, 2, 2])
    same, two = heuristic_pairs(labels, np.random.default_rng(0))
    assert len(same) == 5 and (labels[same[:, 0]] == labels[same[:, 1]]).all() and (same[:, 0] != same[:, 1]).all()
    assert len(two) and (labels[two[:, 0]] != labels[two[:, 1]]).all()
    same, two = heuristic_pairs(np.zeros(1, dtype=np.int64), np.random.default_rng(0))
    assert same.shape == two.shape == (0, 2)


# --- the measurement ---


def test_a_record_has_the_whole_table_and_the_controls(table: Numbers) -> None:
    ways = [f"{kind}.{way}.{cut}" for kind in ("gnn", "hybrid") for way in ("average", "ward", "complete")
            for cut in ("silhouette", "inconsistency", "inconsistency-height", "gap")]  # fmt: skip
    for name in (HEURISTICS, *ways, "random", "large.heuristics", f"large.{HYBRID}", "large.gnn.average.silhouette"):
        shares = [table[f"{name}.{kind}"] for kind in ("TP", "FP", "FN", "TN")]
        assert sum(shares) == pytest.approx(100), name  # type: ignore[arg-type]
        assert 0 <= float(table[f"{name}.bACC"]) <= 100  # type: ignore[arg-type]
    for name in ("auc.all", "auc.apart", "auc.heuristic"):
        assert 0 <= float(table[name]) <= 1  # type: ignore[arg-type]
    assert table["transactions"] == module.TRANSACTIONS["tiny"] and table["data"]


def test_the_short_measurement_is_part_of_the_long_one(table: Numbers) -> None:
    few = measure(Job("row", 3, RECIPE, measure="entity"))
    for name, value in few.items():
        if not name.startswith(("seconds", "peak_mb", "graphs_per")):
            assert table[name] == value, name
    untrained = measure(Job("row", 3, RECIPE, "untrained", "entity"))
    assert untrained["heuristics.bACC"] == few["heuristics.bACC"], "the same pairs"
    assert untrained["auc.all"] != few["auc.all"]


def test_a_further_clustering_is_two_rows_of_the_record(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(module.FURTHER, "alone", lambda recipe, chain: lambda txs: np.arange(txs.num_addresses))
    numbers = measure(Job("row", 3, RECIPE, measure="entity"))
    assert numbers["alone.TP"] == numbers["alone.FP"] == 0.0
    assert numbers["hybrid_on_alone.bACC"] == numbers["alone.bACC"] == 50.0


def test_moser_and_narayanan_stand_in_the_table_with_what_they_decide_in_the_whole_chain(judged: Transactions) -> None:
    """A piece's labels are those of the whole chain's decisions on its own transactions; a rival is refined too."""
    from btcnb.experiments.change_forest import ForestConfig, train_forest
    from btcnb.experiments.moser import change_decisions
    from btcnb.experiments.moser_measure import entity_clusterings

    makers = dict(FURTHER)
    assert set(makers) == {"moser"}
    rival = makers["moser"](RECIPE, judged)
    roles = ("train1", "train2", "train3", "valid")
    forest = train_forest([load_transactions(DATA, role, sampled=False) for role in roles], ForestConfig(seed=3))
    whole = entity_clusterings(judged, forest, change_decisions(judged, forest))["moser"]
    graphs = list(entity_graphs(judged, transactions=6, draws=1, seed=3))
    for graph in graphs:
        assert np.array_equal(rival(graph.txs), whole(graph))
    with pytest.raises(DataError, match="is not in the chain that was judged"):
        rival(load_transactions(DATA, INTERVAL, sampled=False).select(np.arange(30)))
    found = entity_trial(trained(RECIPE).model, judged, 6, 3, draws=1, linkages=("average",), further={"moser": rival})
    assert found.counts["moser"].sum() == found.counts["hybrid_on_moser"].sum() == found.counts[HEURISTICS].sum()
    joined = found.counts["hybrid_on_moser"][:, :2].sum() <= found.counts["moser"][:, :2].sum()
    assert joined, "refinement only splits"


def test_methods_without_an_encoder_are_refused() -> None:
    for method in ("louvain", "features", "shuffled", "agreeing"):
        with pytest.raises(ParameterError, match="is none; take trained, untrained"):
            encoder_of(Job("row", 3, RECIPE, method, "entity"))


def test_chains_without_labels_or_pairs_are_refused(model: Encoder) -> None:
    with pytest.raises(DataError, match=r"truth\.label"):
        entity_trial(model, chain().pay("a", {"b": 5}).build())
    txs = chain().pay("a", {"b": 5}).build()
    label = np.where(txs.addresses == "a", "exchange", "").astype(object)
    one = replace(txs, truth=Truth(owner=np.full(txs.num_addresses, -1), label=label))
    with pytest.raises(DataError, match="no transaction has two labelled addresses"):
        entity_trial(model, one)


def test_pairs_of_one_kind_only_have_no_balanced_accuracy(model: Encoder) -> None:
    txs = chain().pay(["a", "b"], {"x": 5}).build()
    label = np.where(np.isin(txs.addresses, ["a", "b"]), "exchange", "").astype(object)
    named = replace(txs, truth=Truth(owner=np.full(txs.num_addresses, -1), label=label))
    numbers = entity_trial(model, named, linkages=("average",), price_usd=9_000.0).numbers()
    assert numbers["heuristics.TP"] == 100.0 and numbers["heuristics.bACC"] is None
    assert numbers["undefined_draws"] == 5 and numbers["fall.FP"] is None and numbers["auc.all"] is None


def test_a_chain_outside_of_the_papers_intervals_has_no_price_unless_one_is_given(judged: Transactions) -> None:
    """Encoders that never saw dollars are judged without; the measurement hands the source's price on."""
    from btcnb.experiments.local import price_and_rules

    elsewhere = chain(start_block=5).pay(["a", "b"], {"x": 5, "y": 6}).pay("x", {"a": 2, "z": 3}).build()
    label = np.where(np.isin(elsewhere.addresses, ["a", "b", "x"]), "exchange", "").astype(object)
    named = replace(elsewhere, truth=Truth(owner=np.full(elsewhere.num_addresses, -1), label=label))
    plain = Encoder(RECIPE.train, 14, 0).eval()
    assert entity_trial(plain, named, linkages=("average",)).totals["transactions"] == 2
    with pytest.raises(ParameterError, match="20 features per node, but the model was made for 14"):
        entity_trial(plain, named, linkages=("average",), price_usd=9_000.0)
    assert price_and_rules(named)[0] is None and price_and_rules(named, 77.0)[1].price_usd == 77.0
    price, rules = price_and_rules(judged)
    assert price == rules.price_usd == DATA.economy(INTERVAL).price_usd


def test_another_process_finds_the_same_numbers(table: Numbers) -> None:
    program = (
        "from btcnb.data import Source; from btcnb.experiments.recipe import Job, recipe\n"
        "from btcnb.experiments.measures import measure\n"
        "found = measure(Job('row', 3, recipe(Source(size='tiny', seed=3), seed=3), measure='entity'))\n"
        "print(repr([found[name] for name in ('hybrid.average.silhouette.bACC', 'random.FP', 'auc.apart', 'data')]))"
    )
    told = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    wanted = [table[name] for name in (f"{HYBRID}.bACC", "random.FP", "auc.apart", "data")]
    assert told.strip() == repr(wanted)


# --- scores of labelled pairs ---


def test_a_toy_labelling_by_hand() -> None:
    """Addresses a a a b b c of three names, clusters 0 0 1 1 2 2: of six pairs three are joined, one rightly."""
    clusters = np.array([0, 0, 1, 1, 2, 2])
    names = np.array(list("aaabbc"))
    pairs = np.array([[0, 1], [0, 2], [2, 3], [3, 4], [4, 5], [1, 5]])
    same = names[pairs[:, 0]] == names[pairs[:, 1]]
    counts = pair_counts(clusters, pairs, same)
    assert counts.tolist() == [1, 2, 2, 1]  # joined: 01 right, 23 and 45 wrong; apart: 02 and 34 wrong, 15 right
    numbers = pair_scores("toy", counts[None, :])
    assert [numbers[f"toy.{kind}"] for kind in ("TP", "FP", "FN", "TN")] == pytest.approx(
        [100 / 6, 200 / 6, 200 / 6, 100 / 6]
    )
    assert numbers["toy.bACC"] == pytest.approx(100 * (1 / 3 + 1 / 3) / 2)
    assert numbers["toy.F1"] == pytest.approx(100 * (2 / 6 + 2 / 6) / 2)
    assert numbers["toy.bACC_sd"] is None, "one draw has no spread"


def test_means_and_spreads_are_over_draws() -> None:
    numbers = pair_scores("x", np.array([[1, 0, 1, 2], [2, 0, 0, 2]]))
    assert numbers["x.TP"] == pytest.approx((25 + 50) / 2)
    assert numbers["x.bACC"] == pytest.approx((75 + 100) / 2)
    assert numbers["x.bACC_sd"] == pytest.approx(np.std([75, 100], ddof=1))


def test_a_draw_without_pairs_of_one_kind_has_no_balanced_accuracy_and_is_counted() -> None:
    counts = np.array([[3, 0, 1, 0], [1, 1, 1, 1], [0, 0, 0, 0]])
    numbers = pair_scores("x", counts)
    assert undefined_draws(counts) == 2
    assert numbers["x.bACC"] == 50.0, "of the one draw that has both kinds"
    assert numbers["x.TP"] == pytest.approx((75 + 25) / 2), "a draw without any pair has no shares"
    only = pair_scores("x", counts[:1])
    assert only["x.bACC"] is None and only["x.F1"] is None and only["x.TP"] == 75.0
    assert pair_scores("x", np.empty((0, 4)))["x.TP"] is None


def test_a_random_split_by_hand() -> None:
    """Positive pairs part at 0.2 and 0.6, negative ones at 0.1, 0.5 and 0.9."""
    before = np.array([2, 3, 4, 5])
    positive, negative = np.array([0.6, 0.2]), np.array([0.5, 0.1, 0.9])
    assert random_split(before, 0, positive, negative).tolist() == [2, 3, 4, 5]
    assert random_split(before, 1, positive, negative).tolist() == [1, 2, 5, 6]  # by 0.2 one negative pair is gone
    assert random_split(before, 2, positive, negative).tolist() == [0, 1, 6, 7]  # by 0.6 two are


def test_pairs_that_part_together_are_interpolated() -> None:
    """Two positive pairs share the address that leaves at 0.4; one of the two negative pairs is gone by then."""
    split = random_split(np.array([2, 2, 0, 0]), 1, np.array([0.4, 0.4]), np.array([0.3, 0.8]))
    assert split.tolist() == [1, 1.5, 1, 0.5]


@given(st.integers(0, 10**6), st.integers(1, 30), st.integers(0, 30))
def test_random_splits_lose_what_they_are_told_and_wrong_pairs_in_proportion(seed: int, tp: int, fp: int) -> None:
    rng = np.random.default_rng(seed)
    lost = int(rng.integers(tp + 1))
    before = np.array([tp, fp, 3, 4])
    after = random_split(before, lost, rng.random(tp), rng.random(fp))
    assert after[2] == 3 + lost and after[0] == tp - lost
    assert after.sum() == pytest.approx(before.sum())
    assert 0 <= after[1] <= fp


def test_on_average_random_splits_part_both_kinds_alike() -> None:
    rng = np.random.default_rng(0)
    gone = [40 - random_split(np.array([40, 40, 0, 0]), 10, rng.random(40), rng.random(40))[1] for _ in range(400)]
    assert np.mean(gone) == pytest.approx(10, abs=0.6)


def test_a_pair_parts_when_the_first_of_the_two_leaves() -> None:
    leaving = np.array([0.5, 0.1, 0.9])
    assert moments(leaving, np.array([[0, 1], [0, 2], [2, 2]])).tolist() == [0.1, 0.5, 0.9]


def test_separation_by_hand() -> None:
    """Distances of pairs of one name 0.1 and 0.3, of two 0.2 and 0.4: three of four comparisons are right."""
    assert separation([0.1, 0.3, 0.2, 0.4], [True, True, False, False]) == 0.75
    assert separation([0.1, 0.2], [True, True]) is None and separation([], []) is None


def test_cosine_distances_by_hand() -> None:
    rows = np.array([[1.0, 0.0], [0.6, 0.8], [0.0, 1.0]], dtype=np.float32)
    assert cosine(rows, np.array([[0, 1], [0, 2], [1, 1]])) == pytest.approx([0.4, 1.0, 0.0], abs=1e-6)
    assert cosine(rows, np.empty((0, 2), dtype=np.int64)).shape == (0,)


def test_rounding_has_no_order() -> None:
    """Copies of one row that rounding has moved are equal, and far from a row that differs in the fifth digit."""
    row = np.array([0.6, 0.8], dtype=np.float32)
    rows = np.stack([row, row * np.float32(1 + 1e-7), row * np.float32(1 - 2e-7), np.array([0.61, 0.7924])])
    found = cosine(rows, np.array([[0, 1], [1, 2], [0, 2], [0, 3]]))
    assert found[:3].tolist() == [0.0, 0.0, 0.0] and found[3] == pytest.approx(7.84e-5, rel=0.2)
