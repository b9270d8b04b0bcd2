"""Whatever is passed to learning and theory, the answer is a result or an error of ours: no other exception."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from planted import planted
from scipy.cluster.hierarchy import linkage

from btcnb import gates, learn, theory
from btcnb.errors import BtcnbError, DataError, ParameterError
from btcnb.learn import CoinJoinGraph, Encoder, NeighbourSampler, PreparedGraph, Run, TrainConfig, TupleSampler
from btcnb.learn.sampler import draw_batch
from btcnb.theory import batches, examples

NAN, INF = float("nan"), float("inf")
JUNK = (
    *(None, True, False, "text", "", b"bytes", object(), {}, {"a": 1}, [], (), [[]], [None], ["a", "b"], [[1], [1, 2]]),
    *(NAN, INF, -INF, 1e308, -1e308, 1e-320, 1.5, -1, 0, 1, 2, 2**31, 2**63, -(2**70), 10**30, 10**400, 1j),
    *(np.float64(NAN), np.int8(-1), np.bool_(True), np.array(3), np.array(["x", "y"]), np.array([1, None])),
    *(np.array([NAN, 1.0]), np.full((6, 2), NAN), np.full((6, 6), INF), np.zeros((0, 3)), np.zeros((2, 2, 2))),
    *(np.zeros((2, 0), int), np.full((2, 4), 99), np.full((2, 4), -1), np.zeros((6, 6)), np.ones((6, 5)), np.arange(6)),
    *(np.full(6, 2**62), np.zeros(6), np.ones((6, 2), complex), np.array([0, 0, 9, 9, 9, 9]), np.ones((5, 4)) * 3),
    *(
        torch.zeros(0),
        torch.full((4, 3), NAN),
        torch.ones(4, 3, requires_grad=True),
        torch.ones(2, 3, dtype=torch.int8),
    ),
    *(sp.csr_array((3, 4)), sp.csr_array(np.full((6, 6), NAN)), lambda *_: None, np.random.default_rng(0), int),
    *((3, 1), (NAN, 2), ("a", "b"), (15, 5), range(3), slice(None), float, "auto", "cpu", "meta", "\0", "no/such"),
)
SMALL = TrainConfig(
    heads=2, hidden=4, output=4, anchors=8, fanout=(3, 2), epochs=1, steps_per_epoch=1, valid_steps=1, num_negatives=2
)

LABELS = np.array([0, 0, 0, 1, 1, 2])
EDGES = np.array([[0, 1, 2, 3, 4, 0], [1, 2, 3, 4, 5, 5]])
A = theory.adjacency(EDGES, 6)
L = theory.laplacian(A)
X = np.random.default_rng(0).normal(size=(6, 3))
FILTER = theory.gcn_filter(2)
IDEAL = theory.ideal_laplacian(LABELS)
U = theory.spectral_embedding(L, 3)
ROWS = torch.nn.functional.normalize(torch.ones(4, 3), dim=-1)


def small_graph(**options: Any) -> PreparedGraph:
    return planted(clusters=3, size=4, features=3, **options)


GRAPH = small_graph()
MODEL = Encoder(SMALL, 3)
RUN = learn.train(SMALL, GRAPH, progress=False)
SAMPLER = NeighbourSampler(GRAPH, (3, 2))
TUPLES = TupleSampler(GRAPH.labels)
RNG = np.random.default_rng(0)

Call = tuple[Callable[..., Any], dict[str, Any]]

THEORY: dict[str, Call] = {
    "adjacency": (theory.adjacency, {"edge_index": EDGES, "num_nodes": 6}),
    "laplacian": (theory.laplacian, {"A": A, "normalised": True, "self_loops": False}),
    "IdealLaplacian": (theory.IdealLaplacian, {"labels": LABELS, "normalised": True, "self_loops": False}),
    "ideal_laplacian": (theory.ideal_laplacian, {"labels": LABELS, "normalised": True, "self_loops": False}),
    "ideal_adjacency": (theory.ideal_adjacency, {"labels": LABELS}),
    "operator_norm": (theory.operator_norm, {"S": L, "tolerance": 1e-9, "seed": 0}),
    "difference": (theory.difference, {"L": L, "ideal": IDEAL}),
    "laplacian_distance": (theory.laplacian_distance, {"L": L, "ideal": IDEAL, "tolerance": 1e-9}),
    "smallest_eigenpairs": (theory.smallest_eigenpairs, {"L": L, "k": 2, "tolerance": 0.0, "seed": 0}),
    "spectral_embedding": (theory.spectral_embedding, {"L": L, "k": 2, "seed": 0}),
    "principal_angles": (theory.principal_angles, {"U": U, "V": U[:, ::-1]}),
    "lemma_margin": (theory.lemma_margin, {"A": A, "labels": LABELS, "normalised": False, "form": "sharp"}),
    "lemma_margin_at": (theory.lemma_margin_at, {"distance": 0.5, "ideal": IDEAL, "form": "proof"}),
    "theorem_margin": (
        theory.theorem_margin,
        {"A": A, "labels": LABELS, "X": X, "response": FILTER, "W": np.eye(3), "normalised": True, "form": "optimal"},
    ),
    "split_spectrum": (theory.split_spectrum, {"L": L, "k": 3, "response": FILTER}),
    "PolynomialFilter": (theory.PolynomialFilter, {"coefficients": (1.0, 0.5), "upper": 2.0}),
    "PolynomialFilter()": (FILTER, {"eigenvalues": np.linspace(0, 2, 5)}),
    "PolynomialFilter.apply": (FILTER.apply, {"L": L, "X": X}),
    "PolynomialFilter.extreme": (FILTER.extreme, {"low": 0.5, "high": 2.0}),
    "gcn_filter": (theory.gcn_filter, {"layers": 2, "upper": 2.0}),
    "step_filter": (theory.step_filter, {"cutoff": 0.5, "upper": 2.0, "degree": 5, "damped": True}),
    "stop_band_filter": (theory.stop_band_filter, {"stop": 0.5, "upper": 2.0, "degree": 5}),
    "learned_filter": (theory.learned_filter, {"L": L, "X": X, "target": X, "degree": 2, "upper": 9.0}),
    "linearised_gnn": (theory.linearised_gnn, {"L": L, "X": X, "W": np.eye(3), "response": FILTER}),
    "cut_ratio": (theory.cut_ratio, {"edge_index": EDGES, "labels": LABELS, "band": (2, 4), "endpoints": "both"}),
    "cut_ratio_by_size": (theory.cut_ratio_by_size, {"edge_index": EDGES, "labels": LABELS, "bands": ((2, 3), (3, 4))}),
    "band_subgraph": (
        theory.band_subgraph,
        {"edge_index": EDGES, "labels": LABELS, "band": (2, 4), "endpoints": "either"},
    ),
    "cut_ratio_test": (
        theory.cut_ratio_test,
        {"edge_index": EDGES, "labels": LABELS, "share": 0.5, "trials": 5, "seed": 0},
    ),
    "predicted_z": (theory.predicted_z, {"edge_index": EDGES, "labels": LABELS, "share": 0.5}),
    "cantelli": (theory.cantelli, {"z": -1.0}),
    "dirichlet_energy": (theory.dirichlet_energy, {"L": L, "H": X}),
    "rayleigh_quotient": (theory.rayleigh_quotient, {"L": L, "H": X, "centred": True}),
    "stage_quotients": (theory.stage_quotients, {"L": L, "stages": {"input": X}}),
    "spectral_energy": (theory.spectral_energy, {"L": L, "H": X}),
    "separation": (theory.separation, {"X": X, "labels": LABELS, "metric": "cosine", "block": 4}),
    "pair_distances": (theory.pair_distances, {"X": X, "labels": LABELS, "metric": "euclidean", "block": 4}),
    "sample_pair_distances": (theory.sample_pair_distances, {"X": X, "labels": LABELS, "pairs": 9, "seed": 0}),
    "best_cut": (theory.best_cut, {"Z": linkage(X), "labels": LABELS}),
    "perturbed_graphs": (
        batches.perturbed_graphs,
        {"labels": LABELS, "flips": 2, "batch": 3, "weight": 0.5, "rng": RNG},
    ),
    "laplacian_stack": (batches.laplacian_stack, {"A": np.ones((2, 6, 6)), "normalised": True, "self_loops": True}),
    "separation_stack": (batches.separation_stack, {"H": np.stack([X, X]), "labels": LABELS}),
    "lemma_batch": (batches.lemma_batch, {"A": np.ones((2, 6, 6)), "labels": LABELS, "normalised": True}),
    "theorem_batch": (
        batches.theorem_batch,
        {"L": L.toarray(), "labels": LABELS, "XW": np.stack([X, X]), "response": np.linspace(1, 0.1, 6), "M": 0.1},
    ),
    "two_cliques_and_a_bridge": (examples.two_cliques_and_a_bridge, {"size": 3, "weight": 1.0}),
    "printed_theorem_counterexample": (examples.printed_theorem_counterexample, {"beta": 0.5, "sigma": 0.6}),
    "leakage_family": (examples.leakage_family, {"size": 5, "beta": 1e-3, "share": 0.9}),
    "dented_clique": (examples.dented_clique, {"size": 5}),
}
LEARN: dict[str, Call] = {
    "TrainConfig": (TrainConfig, dict(vars(SMALL))),
    "TrainConfig.from_json": (TrainConfig.from_json, {"text": SMALL.to_json()}),
    "Encoder": (Encoder, {"config": SMALL, "in_channels": 3, "edge_channels": 0}),
    "Encoder()": (MODEL, {"x": GRAPH.x, "edge_index": GRAPH.edge_index(), "edge_attr": None, "degree": None}),
    "Encoder.plain": (MODEL.plain, {"x": GRAPH.x, "edge_index": GRAPH.edge_index(), "edge_attr": None, "degree": None}),
    "Encoder.from_store": (Encoder.from_store, {"parts": MODEL.to_store()}),
    "Run": (Run.from_store, {"parts": RUN.to_store()}),
    "NeighbourSampler": (NeighbourSampler, {"graph": GRAPH, "fanout": (3, 2), "seed": 0}),
    "NeighbourSampler.sample": (SAMPLER.sample, {"seeds": np.arange(3), "seed": 1}),
    "neighbour_sampler": (
        learn.neighbour_sampler,
        {"graph": GRAPH, "fanout": (3, 2), "seed": 0, "backend": "numba"},
    ),
    "draw_batch": (draw_batch, {"sampler": SAMPLER, "graph": GRAPH, "seeds": np.arange(3), "seed": 0}),
    "PreparedGraph": (
        PreparedGraph,
        {key: getattr(GRAPH, key) for key in ("x", "indptr", "source", "edge_attr", "labels")},
    ),
    "prepare": (learn.prepare, {"graph": GRAPH, "symmetrise": True, "edge_features": False, "landmarks": 0}),
    "prepare_arrays": (
        learn.prepare_arrays,
        {"x": X, "edge_index": EDGES, "labels": LABELS, "edge_attr": np.ones((6, 2)), "symmetrise": True},
    ),
    "TupleSampler": (TupleSampler, {"labels": LABELS, "alpha": 0.5, "negatives": "uniform"}),
    "Tuples": (TUPLES.draw, {"anchors": 4, "num_negatives": 2, "rng": RNG}),
    "TupleSampler.negative_probabilities": (TUPLES.negative_probabilities, {"cluster": 0}),
    "baseline_config": (learn.baseline_config, {"name": "gae", "config": SMALL}),
    "info_nce": (
        learn.info_nce,
        {
            "anchor": ROWS,
            "positive": ROWS,
            "negatives": torch.ones(4, 2, 3),
            "tau": 0.1,
            "reduction": "mean",
            "robustness": 0.5,
        },
    ),
    "coinjoin_repulsion": (
        learn.coinjoin_repulsion,
        {"anchor": ROWS, "other": ROWS, "tau": 0.1, "graph": torch.tensor([0, 0, 1, 1])},
    ),
    "embed": (learn.embed, {"model": MODEL, "graph": GRAPH, "edges_per_block": 10}),
    "layer_outputs": (learn.layer_outputs, {"model": MODEL, "graph": GRAPH}),
    "load_model": (learn.load_model, {"path": "no/such/run"}),
    "train": (
        learn.train,
        {"config": SMALL, "graphs": [GRAPH], "valid": GRAPH, "coinjoins": (), "resume": False, "progress": False},
    ),
    "CoinJoinGraph": (
        lambda graph, inputs: learn.train(SMALL, GRAPH, coinjoins=[CoinJoinGraph(graph, inputs)], progress=False),
        {"graph": GRAPH, "inputs": np.arange(3)},
    ),
}
CALLS = {**THEORY, **LEARN}
ELSEWHERE = {"communities", "tune_resolution"}
"""Public names of learning that have tests of their own kind beside them."""


def test_every_public_function_is_tried():
    public = {name for module in (theory, learn) for name in module.__all__ if callable(getattr(module, name))}
    results = {name for name in public if inspect.isclass(getattr(theory, name, None)) and name not in CALLS}
    assert all(hasattr(getattr(theory, name), "__dataclass_fields__") for name in results)  # made by us, not by callers
    assert public - results - ELSEWHERE <= set(CALLS)


@pytest.mark.parametrize("name", [name for name in CALLS if name != "load_model"])
def test_the_calls_work_as_they_stand(name):
    function, arguments = CALLS[name]
    function(**arguments)


@pytest.mark.parametrize("name", list(CALLS))
def test_each_argument_may_be_anything(name):
    function, arguments = CALLS[name]
    for key in arguments:
        for value in JUNK:
            attempt(function, {**arguments, key: value})


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_several_arguments_may_be_anything(data):
    function, arguments = CALLS[data.draw(st.sampled_from(list(CALLS)))]
    changed = data.draw(st.dictionaries(st.sampled_from(list(arguments)), st.sampled_from(JUNK), min_size=1))
    attempt(function, {**arguments, **changed})


scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5)
nested = st.recursive(scalars, lambda inner: st.lists(inner, max_size=4), max_leaves=12)


@settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_values_of_any_shape_are_accepted_or_refused(data):
    names = [name for name in CALLS if name not in ("TrainConfig", "train")]  # a million epochs are no mistake
    function, arguments = CALLS[data.draw(st.sampled_from(names))]
    key = data.draw(st.sampled_from(list(arguments)))
    attempt(function, {**arguments, key: data.draw(nested)})


@settings(max_examples=200, deadline=None)
@given(st.sampled_from(list(vars(SMALL))), nested)
def test_a_configuration_holds_what_its_types_say(name, value):
    try:
        made = TrainConfig(**{**vars(SMALL), name: value})
    except BtcnbError:
        return
    assert type(getattr(made, name)) is type(getattr(SMALL, name))
    assert made == made == TrainConfig.from_json(made.to_json())  # no NaN inside


@pytest.mark.parametrize(
    "changes",
    [
        {"temperature": INF},
        {"temperature": NAN},
        {"num_negatives": 0},
        {"rotation": "random"},
        {"epochs": True},
        {"epochs": 2.0},
        {"symmetrise": 1},
        {"learning_rate": "0.1"},
        {"fanout": "15"},
        {"fanout": (15, True)},
        {"device": "abacus"},
        {"device": 3},
        {"device": "cuda", "convolutions": "compiled"},
    ],
    ids=str,
)
def test_settings_of_another_type_or_range_are_named(changes):
    with pytest.raises(ParameterError, match=next(iter(changes))):
        TrainConfig(**changes)


def test_numpy_numbers_are_numbers():
    config = TrainConfig(epochs=np.int64(3), alpha=np.float32(0.5), weight_decay=0, fanout=[np.int32(4)])
    assert (type(config.epochs), type(config.alpha), type(config.weight_decay)) == (int, float, float)
    assert config.fanout == (4,) and config == TrainConfig.from_json(config.to_json())


@pytest.mark.parametrize("text", ["", "[0 1]", "0, 1", "[0, 1, 2]"])
def test_intervals_that_cannot_be_read_are_refused(text):
    with pytest.raises(ParameterError, match="interval"):
        gates.real("x", 1.0, text)


def test_gates_say_what_is_wrong():
    assert gates.real("x", -INF, "[-inf, 0)") == -INF and gates.whole("k", np.uint8(3), "[1, 3]") == 3
    with pytest.raises(ParameterError, match=r"x is inf, but must lie in \[0, inf\)"):
        gates.real("x", INF, "[0, inf)")
    with pytest.raises(ParameterError, match="k is True, but must be a whole number"):
        gates.whole("k", True)
    with pytest.raises(DataError, match="row 1, column 0 is nan"):
        gates.array("X", [[0.0], [NAN]], 2)


def attempt(function: Callable[..., Any], arguments: dict[str, Any]) -> None:
    """Call it; only a result or an error of ours may come back."""
    try:
        with np.errstate(all="ignore"):
            function(**arguments)
    except BtcnbError as error:
        assert str(error).endswith(".") or len(str(error)) > 10
    except Exception as error:
        shown = {key: value for key, value in arguments.items() if any(value is junk for junk in JUNK)}
        raise AssertionError(f"{type(error).__name__}: {error} from {shown!r}") from error
