"""Every public function of every room is tried with malformed input: a result or an error of ours, nothing else.

Rooms with tables of their own are named in `ELSEWHERE`, with the file; everything else stands in `CALLS`. A public name
that is in neither fails here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from matplotlib.figure import Figure

from btcnb import book, cluster, data, experiments, learn, paper, theory
from btcnb.data import AddressGraph, Node, Source, Transactions, Truth
from btcnb.errors import BtcnbError

TESTS = Path(__file__).parents[1]
ROOMS = {
    "data": (data, data.__all__),
    "cluster": (cluster, cluster.__all__),
    "learn": (learn, learn.__all__),
    "theory": (theory, theory.__all__),
    "experiments": (experiments, experiments.__all__),
    "book": (book, dir(book)),
    "paper": (paper, paper.__all__),
}
READERS = "read_bitcoin_core read_dumplings read_etl read_release read_release_splits read_wallet_owners"
ELSEWHERE = {
    "cluster/test_gate.py": cluster.__all__,
    "learn/test_malformed_input.py": [*learn.__all__, *theory.__all__],
    "data/test_readers_malformed.py": READERS.split(),
    "data/test_fetch_malformed.py": ["fetch_release"],
    "data/test_fetch_blocks.py": ["fetch_blocks"],
    "data/test_readers_blocks.py": ["read_blocks"],
    "data/test_labels.py": ["read_labels"],
    "data/test_gates.py": [
        "heuristic_clusters",
        "heuristic_merges",
        "linked_twice",
        "detect_coinjoins",
        "coinjoin_rules",
        "build_graph",
        "features",
        "edge_features",
        "landmarks",
        "landmark_nodes",
        "sample_from_coinbase",
        "sample_around",
        "simulate",
        "calibration",
        "HeuristicConfig",
        "SimulationConfig",
        "CoinJoinRates",
    ],
}
MADE_BY_US = {
    "MissingOutputsWarning": "a warning",
    "Markup": "book.markup makes it",
    "kept": "decorates functions; tests/store",
}


@pytest.fixture(scope="module", autouse=True)
def own_store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BTCNB_CACHE", str(tmp_path_factory.mktemp("cache")))
        patch.chdir(tmp_path_factory.mktemp("work"))
        yield


TINY = Source(size="tiny", seed=3)
RECIPE = experiments.recipe(TINY)
# small, so that a graph made of anything is refused or read in no time
TXS = data.simulate(data.SimulationConfig.preset("tiny"))
GRAPH = data.build_graph(TXS)
FRAME = pd.DataFrame({"a": [1.5, np.nan], "b": ["x", None]})
ROW = book.Row("edges", 3, 4.5)
VERDICT = book.Verdict("it holds", "partly", "3 of 4")
LABELS = pd.DataFrame({"address": [str(TXS.addresses[0])], "label": ["alice"], "confidence": [""]})
COUNTS = {"tp": 40.0, "fp": 20.0, "fn": 15.0, "tn": 25.0}

CALLS: dict[str, tuple[Callable[..., Any], dict[str, Any]]] = {
    "data.AddressGraph": (
        lambda **parts: AddressGraph(**parts).validated("graph"),
        {name: getattr(GRAPH, name) for name in ("nodes", "edges", "clusters", "truth", "addresses", "meta")},
    ),
    "data.Node": (Node, {"url": "http://127.0.0.1:1", "user": "", "timeout": 1.0, "retries": 0, "backoff": 0.0}),
    "data.Source": (Source, {name: getattr(TINY, name) for name in vars(TINY)}),
    "data.Transactions": (
        Transactions,
        {name: getattr(TXS, name) for name in ("transactions", "inputs", "outputs", "addresses", "truth", "source")},
    ),
    "data.Truth": (
        lambda **parts: Transactions(TXS.transactions, TXS.inputs, TXS.outputs, TXS.addresses, Truth(**parts)),
        {name: getattr(TXS.truth, name) for name in ("owner", "entities", "label", "coinjoin", "change")},
    ),
    "data.attach_labels": (data.attach_labels, {"txs": TXS, "labels": LABELS}),
    "data.coinjoin_refusals": (data.coinjoin_refusals, {"txs": TXS}),
    "data.local_samples": (lambda **given: list(data.local_samples(**given)), {"txs": TXS, "seeds": [1, 2]}),
    "data.attach_wallets": (data.attach_wallets, {"txs": TXS, "owners": {str(TXS.addresses[0]): "alice"}}),
    "data.edge_feature_names": (data.edge_feature_names, {"usd": True}),
    "data.feature_names": (data.feature_names, {"usd": False}),
    "data.load_clusters": (data.load_clusters, {"source": TINY, "role": "test", "rules": ("common_input",)}),
    "data.load_graph": (data.load_graph, {"source": TINY, "role": "test"}),
    "data.load_graphs": (data.load_graphs, {"source": TINY, "roles": ("test",)}),
    "data.load_linked_twice": (data.load_linked_twice, {"source": TINY, "role": "test"}),
    "data.load_split": (data.load_split, {"split": "test", "size": "tiny", "seed": 3, "scope": "sample"}),
    "data.load_splits": (data.load_splits, {"size": "tiny", "seed": 3, "names": ("test",), "scope": "sample"}),
    "data.load_split_transactions": (
        data.load_split_transactions,
        {"split": "test", "size": "tiny", "seed": 3, "sampled": True},
    ),
    "data.load_transactions": (data.load_transactions, {"source": TINY, "role": "test", "sampled": True}),
    "data.write_etl": (data.write_etl, {"txs": TXS, "path": "out.json", "sidecar": True}),
    "data.write_release": (data.write_release, {"graph": GRAPH, "path": "release", "format": "csv"}),
    "experiments.Recipe": (experiments.Recipe, {name: getattr(RECIPE, name) for name in vars(RECIPE)}),
    "experiments.recipe": (experiments.recipe, {"source": TINY, "seed": 1, "cluster": None, "supervision": ["change"]}),
    "experiments.baseline": (experiments.baseline, {"recipe": RECIPE, "name": "gae"}),
    "experiments.trained": (experiments.trained, {"recipe": RECIPE}),
    "experiments.coarse": (experiments.coarse, {"recipe": RECIPE, "role": "test"}),
    "experiments.embeddings": (experiments.embeddings, {"recipe": RECIPE, "role": "test"}),
    "experiments.forest": (experiments.forest, {"recipe": RECIPE, "role": "test"}),
    "experiments.scores": (experiments.scores, {"recipe": RECIPE, "role": "test"}),
    "experiments.community_baseline": (
        experiments.community_baseline,
        {"source": TINY, "method": "louvain", "seed": 0, "role": "test"},
    ),
    "experiments.compare": (experiments.compare, {"recipe": RECIPE, "methods": ("trained",), "role": "test"}),
    "book.Row": (
        lambda **row: book.in_the_paper([book.Row(**row)]),
        {"quantity": "q", "paper": 1, "ours": 2.5, "note": ""},
    ),
    "book.Verdict": (
        lambda **parts: book.verdicts([book.Verdict(**parts)]),
        {
            "claim": "c",
            "verdict": "partly",
            "evidence": "e",
            "where": "s",
            "numbers": (1.0,),
            "sample": 3,
            "id": "C001",
        },
    ),
    "book.Look": (
        lambda **parts: book.first_look([book.Look(**parts)], lambda _: None),
        {"id": "C060", "holds": [True, False], "evidence": "e"},
    ),
    "book.first_look": (
        lambda looks: book.first_look(looks, lambda _: None),
        {"looks": [book.Look("C060", [True], "e")]},
    ),
    "book.count": (book.count, {"many": 3, "what": "part"}),
    "book.check": (book.check, {"name": "ex-04-ward", "answer": ([0.0, 1.0, 2.0], [0, 0, 1])}),
    "book.solved": (book.solved, {"name": "ex-14-draws", "answer": "no", "wrong": "yes"}),
    "book.data_source": (book.data_source, {"source": "text"}),
    "book.escape": (book.escape, {"text": "<b>"}),
    "book.glue": (book.glue, {"key": "k", "value": 1.5, "form": "{:.1f}"}),
    "book.in_the_paper": (book.in_the_paper, {"rows": [ROW], "title": "In the paper"}),
    "book.judged": (lambda ids: book.judged(ids, lambda _: None), {"ids": ["C001", "C060"]}),
    "book.mark_paper": (book.mark_paper, {"ax": Figure().subplots(), "x": 1.0, "y": None, "label": "paper"}),
    "book.markup": (lambda text: book.escape(book.markup(text)), {"text": "*x*"}),
    "book.number": (book.number, {"value": 1.5, "form": "{:.2f}"}),
    "book.open_chapter": (
        book.open_chapter,
        {"name": "01_transactions", "learn": ["one"], "prerequisites": ["two"]},
    ),
    "book.plot_style": (book.plot_style, {}),
    "book.power_of_ten": (book.power_of_ten, {"value": 3e-8}),
    "book.real_data": (book.real_data, {"name": "nothing"}),
    "book.recipe": (book.recipe, {"one": RECIPE}),
    "book.record": (book.record, {"kind": "note", "value": 3}),
    "book.results": (book.results, {"name": "benchmarks/linkage"}),
    "book.show": (book.show, {"markdown": "x", "fallback": "<p>x</p>"}),
    "book.table": (
        book.table,
        {"frame": FRAME, "caption": "c", "name": "tbl-x", "formats": {"a": "{:.1f}"}, "index": False},
    ),
    "book.verdicts": (book.verdicts, {"items": [VERDICT]}),
    "book.whose": (book.whose, {"data": TINY}),
    "paper.balanced_accuracy": (paper.balanced_accuracy, COUNTS),
    "paper.claim": (paper.claim, {"id": "C060"}),
    "paper.claims": (paper.claims, {}),
    "paper.judge": (lambda claim: paper.judge(claim, lambda _: None), {"claim": paper.claim("C060")}),
    "paper.macro_f1": (paper.macro_f1, COUNTS),
    "paper.paper_words": (paper.paper_words, {"claim": paper.claim("C060")}),
    "paper.rule_words": (paper.rule_words, {"rule": paper.claim("C060").rule}),
    "paper.disagreements": (paper.disagreements, {}),
    "paper.table": (paper.table, {"name": "theory_checks"}),
    "paper.tables": (paper.tables, {}),
    "paper.value": (paper.value, {"name": "theory_checks", "column": "value", "quantity": "cut ratio overall"}),
}


NAN = float("nan")
JUNK = (
    *(None, True, False, "", "text", "\0", "../../secret", "x" * 300, b"bytes", object(), {}, {"a": 1}, {1: []}),
    *(NAN, float("inf"), -1, 0, 1, 1.5, 2**31, 2**63, 10**400, 1j, [], [None], [[1], [1, 2]], (), ("a",), (1, 2)),
    *(np.array(3), np.array([NAN]), np.zeros((2, 0)), np.array(["x"]), np.array([1, None]), pd.NA, pd.NaT, int, len),
    *(np.arange(4), FRAME, FRAME[:0], FRAME["a"], GRAPH, TINY, RECIPE, iter(()), range(3), "{:d}", "{0!z}", "{", "{x}"),
    *("<svg onload=x>", "\ud800", "${7*7}", Path("nowhere"), np.datetime64("NaT"), VERDICT, ROW),
)


def attempt(name: str, arguments: dict[str, Any]) -> None:
    function, _ = CALLS[name]
    try:
        function(**arguments)
    except BtcnbError as error:
        assert 10 < len(str(error)) < 1000
    except Exception as error:
        shown = {
            key: type(value).__name__ + " " + ascii(value)[:60] for key, value in arguments.items() if _junk(value)
        }
        raise AssertionError(f"{name}: {type(error).__name__}: {ascii(error)[:200]} from {shown}") from error


def _junk(value: Any) -> bool:
    return any(value is each for each in JUNK)


def public() -> set[str]:
    return {
        f"{room}.{name}" for room, (module, names) in ROOMS.items() for name in names if callable(getattr(module, name))
    }


def test_every_public_function_is_tried_somewhere() -> None:
    elsewhere = {name for names in ELSEWHERE.values() for name in names}
    missing = {name for name in public() - set(CALLS) if name.partition(".")[2] not in elsewhere | set(MADE_BY_US)}
    assert not missing
    assert set(CALLS) <= public()


@pytest.mark.parametrize("file", ELSEWHERE)
def test_what_is_said_to_be_tried_elsewhere_is(file: str) -> None:
    text = (TESTS / file).read_text(encoding="utf-8")
    if "__all__" not in text:  # those that list all of a room hold themselves to it
        assert not [name for name in ELSEWHERE[file] if name not in text]


@pytest.mark.parametrize("name", CALLS)
def test_the_calls_work_as_they_stand(name: str) -> None:
    CALLS[name][0](**CALLS[name][1])


@pytest.mark.parametrize("half", [0, pytest.param(1, marks=pytest.mark.nightly)])
@pytest.mark.parametrize("name", CALLS)
def test_each_argument_may_be_anything(name: str, half: int) -> None:
    """Every second value by day, others for each argument, and the rest by night."""
    for place, key in enumerate(CALLS[name][1]):
        for value in JUNK[(half + place) % 2 :: 2]:
            attempt(name, CALLS[name][1] | {key: value})
    plt.close("all")


scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.binary(max_size=3)
nested = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=6,
)
HEAVY = {"data.load_split", "data.load_splits", "data.load_split_transactions", "experiments.recipe", "data.Source"}
HEAVY |= {"data.load_graph", "data.load_graphs", "data.load_transactions", "data.load_clusters"}
HEAVY |= {"data.load_linked_twice"}
"""Another seed or size is no mistake, and takes its time."""


@settings(max_examples=200, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_values_of_any_shape_are_accepted_or_refused(draw: st.DataObject) -> None:
    name = draw.draw(st.sampled_from([name for name in CALLS if CALLS[name][1] and name not in HEAVY]))
    key = draw.draw(st.sampled_from(sorted(CALLS[name][1])))
    attempt(name, CALLS[name][1] | {key: draw.draw(nested)})
    plt.close("all")
