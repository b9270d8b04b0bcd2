"""One job in, flat numbers out: what each number is, for every measure and every method, on economies of size tiny."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import ClassVar

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from btcnb.cluster import ari, dendrogram_purity, evaluate, linkage, nmi, refine, scored_nodes
from btcnb.cluster.evaluate import evaluation
from btcnb.data import DEFAULT_RULES, Source, load_clusters, load_graph, load_linked_twice
from btcnb.errors import BtcnbError, ParameterError
from btcnb.experiments import baseline, coarse, compare, embeddings, measures, recipe, scores, stages, trained
from btcnb.experiments.measures import measure
from btcnb.experiments.panel import effective_rank, far_lookalikes, side_by_side
from btcnb.experiments.quality import THRESHOLDS, quality
from btcnb.experiments.recipe import METHODS, NO_EMBEDDING, Job
from btcnb.experiments.refine import Refiner, refined
from btcnb.experiments.stages import StageTimer
from btcnb.learn import prepare
from btcnb.store.kept import entries

DATA = Source(size="tiny", seed=3)
RECIPE = recipe(DATA, seed=3)
AGREEMENT = {"clusters", "NMI", "AMI", "ARI", "owner_NMI", "owner_AMI", "owner_ARI", "precision", "recall"}
EVALUATED = {"nodes", "scored_nodes", "zero_rows", "communities", "threshold", "DP", "DP_sampled", "DP_sampled_error"}
EVALUATED |= {"purity_error"}
TRAINING = {"epochs_run", "best_epoch", "best_loss", "valid_loss", "seconds_per_step", "seconds.train", "peak_mb.train"}
THOROUGH = {f"{name}_degree_{degree}" for name in ("NMI", "ARI", "clusters") for degree in (0, 1, 3)}
THOROUGH |= {"labels_per_node_degree_0", "labels_per_node_degree_2", "NMI_largest_shift", "ARI_largest_shift"}
THOROUGH |= {"whole_DP", "far_cosine", "far_cosine_any", "far_pairs"}
ASKED = {"scores": ("scores",), "thorough": ("scores", (("thorough", True),)), "refinement": ("refinement",)}
"""Measures of the test graph; those of entity labels, which look at another economy, have tests of their own."""
EMBEDDING = tuple(name for name in METHODS if name not in NO_EMBEDDING)


@pytest.fixture(scope="module", autouse=True)
def own_store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BTCNB_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(scope="module")
def found(own_store: None) -> dict[tuple[str, str], measures.Numbers]:
    """The numbers of every measure on the test graph with every method that it can be asked for."""
    return {
        (name, method): measure(Job("row", 3, RECIPE, method, *ASKED[name]))
        for name in ASKED
        for method in (EMBEDDING if name == "refinement" else METHODS)
    }


def lasting(numbers: measures.Numbers) -> measures.Numbers:
    """What does not depend on the machine; None for NaN, so that equal is equal."""
    kept = {name: value for name, value in numbers.items() if not name.startswith(("seconds", "peak_mb"))}
    return {name: None if isinstance(value, float) and math.isnan(value) else value for name, value in kept.items()}


def known(numbers: measures.Numbers, names: set[str]) -> dict[str, float]:
    return {name: float(numbers[name]) for name in names}  # type: ignore[arg-type]


# --- seconds and memory ---


class Process:
    """A process of as many megabytes as one says, which notes what it was seen with."""

    megabytes = 64.0
    seen: ClassVar[set[float]] = set()

    def memory_info(self) -> Process:
        return self

    @property
    def rss(self) -> float:
        Process.seen.add(Process.megabytes)
        return Process.megabytes * stages.MEGABYTE


@pytest.fixture
def process(monkeypatch: pytest.MonkeyPatch) -> type[Process]:
    monkeypatch.setattr(stages.psutil, "Process", Process)
    monkeypatch.setattr(Process, "megabytes", 64.0)
    monkeypatch.setattr(Process, "seen", set())
    return Process


def test_stages_add_up_and_keep_the_highest_memory(process: type[Process], monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter([0.0, 1.5, 10.0, 10.25, 20.0, 22.0])
    monkeypatch.setattr(stages.time, "perf_counter", lambda: next(clock))
    watch = StageTimer()
    with watch("train"):
        process.megabytes = 100.0
    process.megabytes = 80.0
    with watch("embed"):
        pass
    with watch("train"):
        pass
    assert watch.record() == {
        "seconds.train": 3.5,
        "seconds.embed": 0.25,
        "peak_mb.train": 100.0,
        "peak_mb.embed": 80.0,
    }


def test_memory_that_is_given_back_before_the_stage_ends_counts(process: type[Process]) -> None:
    watch = StageTimer()
    with watch("train"):
        process.megabytes = 500.0
        while 500.0 not in process.seen:
            time.sleep(0.001)
        process.megabytes = 64.0
    assert watch.peak_mb == {"train": 500.0}


def test_a_stage_that_fails_is_timed_all_the_same() -> None:
    watch = StageTimer()
    with pytest.raises(BtcnbError, match="no"), watch("train"):
        raise BtcnbError("no.")
    assert watch.record().keys() == {"seconds.train", "peak_mb.train"}


# --- small measurements ---


def test_the_effective_rank_counts_directions() -> None:
    """Singular values 3 and 1 are shares of 3/4 and 1/4: their entropy is log 4 - 3/4 log 3."""
    assert effective_rank(np.eye(5)) == pytest.approx(5.0)
    assert effective_rank(np.eye(5)[:3]) == pytest.approx(3.0)
    assert effective_rank(np.tile([0.6, 0.8, 0.0], (7, 1))) == pytest.approx(1.0, abs=1e-5)
    assert effective_rank([[3.0, 0.0], [0.0, 1.0]]) == pytest.approx(4 / 3**0.75)
    assert effective_rank(np.zeros((4, 2))) == 0.0


@given(st.integers(0, 10**6), st.integers(1, 20), st.integers(1, 6))
def test_the_effective_rank_against_singular_values(seed: int, n: int, d: int) -> None:
    X = np.random.default_rng(seed).normal(size=(n, d))
    values = np.linalg.svd(X, compute_uv=False)
    share = values / values.sum()
    ours = effective_rank(X)
    assert ours == pytest.approx(math.exp(-(share * np.log(share)).sum()), rel=1e-4)
    assert 1 - 1e-6 <= ours <= min(n, d) * (1 + 1e-4)
    assert effective_rank(7.0 * X) == pytest.approx(ours, rel=1e-4)


def test_side_by_side_by_hand() -> None:
    """Cosines 0 and 0.6 of two embeddings become 0.3, whatever the lengths of rows."""
    one = np.array([[2.0, 0.0], [0.0, 5.0]], dtype=np.float32)
    other = np.array([[1.0, 0.0], [3.0, 4.0]], dtype=np.float32)
    both = side_by_side([one, other])
    assert both.shape == (2, 4) and both.dtype == np.float32
    assert both @ both.T == pytest.approx(np.array([[1.0, 0.3], [0.3, 1.0]]))


@given(st.integers(0, 10**6), st.lists(st.integers(1, 5), min_size=1, max_size=4))
def test_distances_side_by_side_are_means(seed: int, widths: list[int]) -> None:
    rng = np.random.default_rng(seed)
    parts = [rng.normal(size=(8, width)).astype(np.float32) for width in widths]
    unit = [part / np.linalg.norm(part, axis=1, keepdims=True) for part in parts]
    both = side_by_side(parts)
    assert both @ both.T == pytest.approx(np.mean([rows @ rows.T for rows in unit], axis=0), abs=1e-5)
    blind = [parts[0] * (np.arange(8) > 0)[:, None], *parts[1:]]
    assert not side_by_side(blind)[0, : widths[0]].any(), "a row of zeros stays one"
    assert np.isfinite(side_by_side(blind)).all()


# --- jobs ---


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"method": "node2vec"}, "method is 'node2vec', but must be one of 'trained'"),
        ({"seed": -1}, "seed is -1"),
        ({"recipe": DATA}, "recipe is"),
        ({"row": 3}, "row is 3"),
        *(
            ({"measure": "refinement", "method": method}, f"needs an embedding, but the method '{method}' has none")
            for method in ("louvain", "leiden", "shuffled")
        ),
    ],
)
def test_jobs_that_nobody_can_run_are_refused(changes: dict[str, object], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        replace(Job("row", 3, RECIPE), **changes)  # type: ignore[arg-type]


def test_a_job_that_measures_something_unknown_is_refused_before_anything_runs() -> None:
    with pytest.raises(ParameterError, match="there is no measure 'beauty'; there are scores"):
        measure(Job("row", 3, RECIPE, measure="beauty"))


# --- every measure, every method ---


def test_numbers_are_flat_and_say_whose_they_are(found: dict[tuple[str, str], measures.Numbers]) -> None:
    mark = load_graph(DATA, "test").fingerprint()
    for (name, method), numbers in found.items():
        assert numbers["data"] == mark, (name, method)
        assert {"seconds.graphs", "peak_mb.graphs"} <= numbers.keys()
        for key, value in numbers.items():
            assert isinstance(value, float | int | str | np.floating | np.integer), (name, method, key)
            assert not key.startswith(("seconds.", "peak_mb.")) or value >= 0, (name, method, key)


def test_every_method_has_the_scores_that_it_can_have(found: dict[tuple[str, str], measures.Numbers]) -> None:
    for method in METHODS:
        numbers = found["scores", method]
        assert numbers.keys() >= AGREEMENT, method
        assert bool(numbers.keys() >= EVALUATED) == (method in EMBEDDING), method
        assert ("DP" in numbers) == (method in EMBEDDING), method
        assert ("rank" in numbers) == (method not in ("louvain", "leiden")), method
        assert bool(numbers.keys() >= TRAINING) == (method not in ("louvain", "leiden", "features")), method
        assert ("resolution" in numbers) == (method in ("louvain", "leiden")), method


def test_thorough_numbers_are_the_scores_and_more(found: dict[tuple[str, str], measures.Numbers]) -> None:
    for method in METHODS:
        few, many = lasting(found["scores", method]), lasting(found["thorough", method])
        assert {name: many[name] for name in few} == few, method
        assert many.keys() - few.keys() == (THOROUGH if method in EMBEDDING else set()), method


def test_the_same_job_gives_the_same_numbers(
    found: dict[tuple[str, str], measures.Numbers],
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With everything kept, and in a store of its own where all is made anew."""
    for method in ("trained", "shuffled", "louvain", "agreeing"):
        assert lasting(measure(Job("other name", 3, RECIPE, method))) == lasting(found["scores", method]), method
    monkeypatch.setenv("BTCNB_CACHE", str(tmp_path_factory.mktemp("another")))
    for name in ("thorough", "refinement"):
        assert lasting(measure(Job("row", 3, RECIPE, "trained", *ASKED[name]))) == lasting(found[name, "trained"]), name


def test_scores_are_those_of_the_stages(found: dict[tuple[str, str], measures.Numbers]) -> None:
    names = {"purity": "DP", "nmi": "NMI", "ari": "ARI", "clusters": "clusters", "threshold": "threshold"}
    names |= {"purity_sampled": "DP_sampled", "nodes": "nodes", "scored_nodes": "scored_nodes"}
    for method in ("trained", "untrained", "gae", "dgi"):
        numbers = found["scores", method]
        stages = scores(RECIPE if method == "trained" else baseline(RECIPE, method))
        assert {name: numbers[ours] for name, ours in names.items()} == {name: stages[name] for name in names}, method
        assert numbers["purity_error"] == abs(float(numbers["DP"]) - float(numbers["DP_sampled"]))


def test_communities_are_those_of_the_comparison(found: dict[tuple[str, str], measures.Numbers]) -> None:
    table = compare(RECIPE, ("louvain", "leiden"))
    for method, name in (("louvain", "Louvain"), ("leiden", "Leiden")):
        assert known(found["scores", method], {"NMI", "ARI"}) == table.loc[name, ["NMI", "ARI"]].to_dict()


def test_the_numbers_of_an_embedding_by_hand(found: dict[tuple[str, str], measures.Numbers]) -> None:
    numbers, graph, X = found["thorough", "trained"], load_graph(DATA, "test"), embeddings(RECIPE)
    flat = evaluation(X, graph, partition=coarse(RECIPE), seed=3).partition
    labels, scored = graph.labels(), graph.degree() >= 2
    owned = quality(flat[scored], graph.truth[scored])
    assert known(numbers, {"owner_NMI", "owner_ARI", "precision", "recall", "clusters", "rank"}) == {
        "owner_NMI": owned.nmi,
        "owner_ARI": owned.ari,
        "precision": owned.precision,
        "recall": owned.recall,
        "clusters": owned.clusters,
        "rank": effective_rank(X),
    }
    for degree in (0, 1, 3):
        mask = graph.degree() >= degree
        assert numbers[f"NMI_degree_{degree}"] == nmi(labels[mask], flat[mask])
        assert numbers[f"ARI_degree_{degree}"] == ari(labels[mask], flat[mask])
        assert numbers[f"clusters_degree_{degree}"] == len(set(flat[mask]))
    assert numbers["labels_per_node_degree_0"] == len(set(labels)) / len(labels)
    assert numbers["labels_per_node_degree_2"] == len(set(labels[scored])) / scored.sum()
    sizes = {label: (labels[scored] == label).sum() for label in set(labels[scored])}
    rest = scored & (labels != max(sizes, key=lambda label: (sizes[label], -label)))
    shift = abs(nmi(labels[rest], flat[rest]) - nmi(labels[scored], flat[scored]))
    assert numbers["NMI_largest_shift"] == pytest.approx(shift)
    assert numbers["whole_DP"] == pytest.approx(dendrogram_purity(linkage(X), labels, scored), abs=1e-9)
    assert known(numbers, {"far_cosine", "far_cosine_any", "far_pairs"}) == far_lookalikes(X, graph, 3)


def test_what_training_says_of_itself(found: dict[tuple[str, str], measures.Numbers]) -> None:
    record, numbers = trained(RECIPE).record, found["scores", "trained"]
    for name in ("epochs_run", "best_epoch", "best_loss", "valid_loss"):
        assert numbers[name] == record[name]
    assert numbers["seconds.train"] == pytest.approx(record["seconds"], abs=1e-4)
    assert numbers["seconds_per_step"] == record["seconds"] / (3 * 2), "three epochs of two steps"
    untrained = found["scores", "untrained"]
    assert untrained["epochs_run"] == 0
    assert np.isnan([float(untrained["best_loss"]), float(untrained["seconds_per_step"])]).all()


def test_shuffled_clusters_know_nothing(found: dict[tuple[str, str], measures.Numbers]) -> None:
    shuffled, real = found["scores", "shuffled"], found["scores", "trained"]
    assert abs(float(shuffled["ARI"])) < 0.02 and abs(float(shuffled["owner_ARI"])) < 0.02
    assert abs(float(shuffled["AMI"])) < 0.05 < float(shuffled["NMI"]), "NMI rewards many clusters, even senseless ones"
    assert float(real["ARI"]) > 0.2


def test_features_need_no_training(
    found: dict[tuple[str, str], measures.Numbers],
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    graph = load_graph(DATA, "test")
    monkeypatch.setattr(measures, "trained", lambda _: pytest.fail("nobody is to be trained"))
    job = Job("row", 3, replace(RECIPE, train=replace(RECIPE.train, landmarks=4)), "features")
    numbers = measure(job)
    x = prepare(graph, landmarks=4).x.numpy()
    expected = evaluate(x, graph, partition=coarse(RECIPE), seed=3)
    assert (numbers["DP"], numbers["NMI"]) == (expected["purity"], expected["nmi"])
    assert numbers["rank"] == effective_rank(x)
    assert numbers["DP"] != found["scores", "features"]["DP"], "landmarks are features too"
    assert not numbers.keys() & TRAINING


def test_encoders_that_agree_are_three_side_by_side(found: dict[tuple[str, str], measures.Numbers]) -> None:
    on_inputs = replace(RECIPE, supervision=("common_input",))
    X = side_by_side([embeddings(each) for each in (RECIPE, on_inputs, baseline(RECIPE, "untrained"))])
    expected = evaluate(X, load_graph(DATA, "test"), partition=coarse(RECIPE), seed=3)
    numbers = found["scores", "agreeing"]
    assert (numbers["DP"], numbers["NMI"], numbers["ARI"]) == (expected["purity"], expected["nmi"], expected["ari"])
    assert sum(entry.function.endswith("._trained") for entry in entries()) >= 5, "they share what is kept"


def test_another_smallest_degree_scores_other_nodes() -> None:
    numbers = measure(Job("row", 3, recipe(DATA, seed=3, min_degree=3)))
    assert numbers["scored_nodes"] == scored_nodes(load_graph(DATA, "test"), 3).sum()


# --- refinement ---


def test_refinement_has_every_cut_for_every_kind_of_leaf(found: dict[tuple[str, str], measures.Numbers]) -> None:
    cuts = ["lambda", "random", "local", "silhouette", *(f"at.{threshold:.2f}" for threshold in THRESHOLDS)]
    for method in EMBEDDING:
        numbers = found["refinement", method]
        for head in ("", "inputs.", "twice."):
            assert {f"{head}{name}.{score}" for name in cuts for score in ("ari", "precision", "clusters")} <= (
                numbers.keys()
            )
            assert {f"{head}flags.auc", f"{head}parts.purity", f"{head}example.collapsed"} <= numbers.keys()
            assert numbers[f"{head}silhouette.threshold"] in THRESHOLDS


def test_refinement_by_hand(found: dict[tuple[str, str], measures.Numbers]) -> None:
    """The paper's way, and the same with leaves of addresses that were spent together, or that two payments link."""
    numbers, graph, X = found["refinement", "trained"], load_graph(DATA, "test"), embeddings(RECIPE)
    labels, owners = graph.labels(), graph.truth
    before = quality(labels, owners)
    assert (numbers["heuristics.ari"], numbers["heuristics.precision"]) == (before.ari, before.precision)
    paper = refine(X, labels, progress=False)
    after = quality(paper.partition, owners)
    assert numbers["lambda.threshold"] == paper.threshold
    names = ("ari", "precision", "recall", "ami", "clusters")
    assert [numbers[f"lambda.{name}"] for name in names] == [getattr(after, name) for name in names]
    assert numbers["at.0.30.ari"] == quality(refine(X, labels, 0.3, progress=False).partition, owners).ari
    leaves = {"inputs": load_clusters(DATA, "test", ("common_input",)), "twice": load_linked_twice(DATA, "test")}
    for units, groups in leaves.items():
        cut = refined(X, labels, Refiner("inputs", "fixed", 0.3), groups, progress=False).partition
        assert numbers[f"{units}.at.0.30.ari"] == quality(cut, owners).ari
        assert numbers[f"{units}.at.0.30.clusters"] == len(set(cut))


def test_a_random_cut_of_the_same_sizes_is_worse(found: dict[tuple[str, str], measures.Numbers]) -> None:
    numbers = found["refinement", "trained"]
    assert numbers["random.clusters"] == numbers["lambda.clusters"]
    assert float(numbers["random.precision"]) < float(numbers["lambda.precision"])


def test_the_encoder_of_other_labels_is_judged_on_the_same_clusters() -> None:
    usual, other = (
        measure(Job("row", 3, replace(RECIPE, supervision=rules), measure="refinement"))
        for rules in (DEFAULT_RULES, ("common_input",))
    )
    assert usual["heuristics.ari"] == other["heuristics.ari"] and usual["data"] == other["data"]
    assert usual["lambda.ari"] != other["lambda.ari"]
