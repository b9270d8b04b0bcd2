"""Pinned numbers: what the package computes today, as literal values.

A change of code that moves one of them is a fault until it is explained. The functions above the tables compute; the
tables hold what they gave when the numbers were pinned. Print new tables with `python tests/test_pins.py` after a
change that is meant to move them, and say in the commit why they moved.

Integers and simulated data are exact on every machine. Trained weights depend on the rounding of the machine's matrix
products: on a machine that rounds like the one of the pins, scores agree to 1e-6; elsewhere to `OTHER_ROUNDING`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pprint import pformat
from typing import Any

import numpy as np
import pandas as pd
import pytest

from btcnb.cluster import (
    ari,
    cut_forest,
    cut_gap,
    cut_inconsistency,
    cut_silhouette,
    dendrogram_purity,
    dendrogram_purity_sampled,
    dendrograms,
    linkage,
    refine,
    silhouette,
    silhouette_levels,
)
from btcnb.data import (
    ROLES,
    AddressGraph,
    Source,
    Transactions,
    detect_coinjoins,
    features,
    heuristic_merges,
    load_graph,
    load_transactions,
)
from btcnb.data.change_votes import change_votes
from btcnb.experiments import recipe, trained
from btcnb.experiments.measures import measure
from btcnb.experiments.recipe import Job

SIZES, SEEDS = ("tiny", "quick"), (1, 2)
ENCODERS = ("gat", "gcn", "sage", "mlp")
BASELINES = ("untrained", "gae", "dgi", "features", "leiden", "louvain")
METHODS = ("average", "ward", "complete", "single")
SCORES = ("DP", "NMI", "AMI", "ARI", "threshold", "clusters", "best_loss")
COUNTS = ("TP", "FP", "FN", "TN")
OTHER_ROUNDING = 0.03
"""How far scores of a tiny run may move where matrix products round differently."""


def digest(parts: Iterable[Any]) -> str:
    """A digest of arrays, columns and texts by value; floats count to four decimals."""
    whole = hashlib.sha256()
    for part in parts:
        values = np.asarray(part)
        if values.dtype.kind in "OUT":
            content = "\n".join(map(str, values.tolist())).encode()
        elif values.dtype.kind == "f":
            content = (np.round(values.astype(np.float64), 4) + 0.0).tobytes()
        else:
            content = values.astype(np.int64).tobytes()
        whole.update(f"{values.shape} {len(content)}\n".encode() + content)
    return whole.hexdigest()[:16]


def columns(table: pd.DataFrame) -> list[Any]:
    return [part for name in table.columns for part in ([name], table[name].to_numpy())]


def of_transactions(txs: Transactions) -> str:
    """Transactions with their truth."""
    assert txs.truth is not None
    known = txs.truth
    tables = [columns(table) for table in (txs.transactions, txs.inputs, txs.outputs, known.entities)]
    truth = [known.owner, known.label, known.coinjoin, known.change, known.mechanism]
    return digest([*(part for table in tables for part in table), txs.addresses, *truth])


def of_graph(graph: AddressGraph) -> str:
    tables = [columns(table) for table in (graph.nodes, graph.edges, graph.clusters)]
    return digest([*(part for table in tables for part in table), graph.truth, graph.addresses])


def of_world(size: str, seed: int, role: str) -> tuple[str, str, str]:
    """Digests of a role's interval, of its graph and of the graph's features."""
    source = Source.of("simulated", size=size, seed=seed)
    graph = load_graph(source, role)
    return of_transactions(load_transactions(source, role, sampled=False)), of_graph(graph), digest([features(graph)])


def of_run(name: str) -> dict[str, float]:
    """Scores of a tiny run of an encoder or of a baseline, and its losses."""
    encoder = name if name in ENCODERS else "gat"
    made = recipe(Source.of("simulated", size="tiny", seed=1), seed=1, encoder=encoder)
    numbers = measure(Job(name, 1, made, "trained" if name in ENCODERS else name))
    found = {score: float(numbers[score]) for score in SCORES if score in numbers}  # type: ignore[arg-type]
    if name in ENCODERS:
        history = trained(made).history
        found |= {f"train_loss_{epoch}": loss for epoch, loss in enumerate(history["train_loss"], 1)}
        found |= {f"valid_loss_{epoch}": loss for epoch, loss in enumerate(history["valid_loss"], 1)}
    return {score: round(value, 9) for score, value in found.items() if np.isfinite(value)}


def rounding() -> str:
    """A digest of the bits of two matrix products: equal where machines round alike."""
    import torch

    rng = np.random.default_rng(0)
    A, B = rng.normal(size=(300, 128)).astype(np.float32), rng.normal(size=(128, 64)).astype(np.float32)
    torch_product = (torch.from_numpy(A) @ torch.from_numpy(B)).numpy()
    return hashlib.sha256((A @ B).tobytes() + torch_product.tobytes()).hexdigest()[:16]


def fixed_rows(n: int = 600) -> tuple[Any, Any]:
    """Unit rows (n, 16) around n / 50 centres, forty of them repeated, and the centre of each."""
    rng = np.random.default_rng(5)
    labels = rng.integers(n // 50, size=n)
    X = rng.normal(size=(n // 50, 16))[labels] + 0.75 * rng.normal(size=(n, 16))
    X[-40:], labels[-40:] = X[:40], labels[:40]
    return X / np.linalg.norm(X, axis=1, keepdims=True), labels


def of_trees() -> dict[str, dict[str, float]]:
    """Heights, flat partitions, cuts, purity and silhouettes of fixed rows, for each linkage."""
    X, labels = fixed_rows()
    found = {}
    for method in METHODS:
        Z = linkage(X, method)
        weights = np.linspace(1.0, 2.0, len(Z))
        threshold = cut_silhouette(X, Z)
        levels = silhouette_levels(X, Z)
        forest = dendrograms(X, labels % 4, method)
        refined = refine(X, labels % 4, method=method)
        numbers = {
            "sum": (Z[:, 2] * weights).sum(),
            "root": Z[-1, 2],
            "median": np.median(Z[:, 2]),
            "silhouette": threshold,
            "gap": cut_gap(Z),
            "inconsistency": cut_inconsistency(Z, 1.0),
            "purity": dendrogram_purity(Z, labels),
            "purity by pairs": dendrogram_purity(Z, labels, weighting="pair"),
            "purity sampled": dendrogram_purity_sampled(Z, labels, 1000, 3)[0],
            "best level": levels.score.max(),
            "all levels": levels.score.sum(),
            "silhouette of labels": silhouette(X, labels),
            "refined λ": refined.threshold,
            "refined clusters": len(np.unique(refined.partition)),
            "refined ARI": ari(labels, refined.partition),
            "forest cut": len(np.unique(cut_forest(forest, forest.merges[:, 2], 0.4))),
            "suspicious": len(refined.suspicious),
        }
        found[method] = {name: round(float(value), 9) for name, value in numbers.items()}
    return found


def of_large_tree() -> dict[str, float]:
    """The same of 6,000 rows, too many for one distance matrix per tree, by average linkage."""
    X, labels = fixed_rows(6000)
    Z = linkage(X)
    forest = dendrograms(X, labels % 4)
    refined = refine(X, labels % 4)
    numbers = {
        "sum": (Z[:, 2] * np.linspace(1.0, 2.0, len(Z))).sum(),
        "root": Z[-1, 2],
        "silhouette": cut_silhouette(X, Z),
        "purity": dendrogram_purity(Z, labels),
        "best level": np.nanmax(silhouette_levels(X, Z, best_only=True).score),
        "silhouette of labels": silhouette(X, labels),
        "forest": forest.merges[:, 2].sum(),
        "refined λ": refined.threshold,
        "refined clusters": len(np.unique(refined.partition)),
    }
    return {name: round(float(value), 9) for name, value in numbers.items()}


def of_entity_pairs() -> dict[str, float]:
    """Table 2's four counts (%) of the heuristics and of the hybrid, in one tiny world."""
    made = recipe(Source.of("simulated", size="tiny", seed=1), seed=1)
    numbers = measure(Job("gat", 1, made, "trained", "entity"))
    rows = ("heuristics", "gnn.average.silhouette", "hybrid.average.silhouette")
    return {f"{row}.{count}": round(float(numbers[f"{row}.{count}"]), 9) for row in rows for count in COUNTS}  # type: ignore[arg-type]


def of_votes() -> dict[str, Any]:
    """Change votes, CoinJoin labels and links of the heuristics on one simulated interval."""
    txs = load_transactions(Source.of("simulated", size="quick", seed=1), "test", sampled=False)
    votes = change_votes(txs)
    links = heuristic_merges(txs)
    joins = {rules: detect_coinjoins(txs, rules=rules) for rules in ("improved", "published")}
    return {
        "votes": digest([votes.tx, votes.votes, votes.both_spent]),
        "votes for output 1": int((votes.votes == 1).sum()),
        **{f"coinjoins, {rules}": digest([names]) for rules, names in joins.items()},
        **{
            f"{rules} {name}": int((names == name).sum())
            for rules, names in joins.items()
            for name in sorted(set(names))
        },
        "links": len(links),
        "links by rule": {str(rule): int(number) for rule, number in links["rule"].value_counts().sort_index().items()},
        "link table": digest([links["tx"], links["rule"].astype(str), links["address_a"], links["address_b"]]),
    }


WORLDS = {
    ("tiny", 1, "train1"): ("1e98c15d1e7051ef", "192bff0fba95d067", "0c2866035311273b"),
    ("tiny", 1, "train2"): ("5682cf034eea5691", "cf84f1a2fffbfde7", "64c5c8f7d90b2947"),
    ("tiny", 1, "train3"): ("cb897cf347a63a81", "984effd58201e2db", "020b8f2035b28339"),
    ("tiny", 1, "valid"): ("53b78a13aa4757e9", "610297abc95f475f", "f4c06f62a6ba884e"),
    ("tiny", 1, "test"): ("ca02b45bdbb0b0bc", "b0eb2ef181a0d467", "c892ac25e2483b49"),
    ("tiny", 2, "train1"): ("f76793bdb4670344", "f0ba84726e6fa20d", "6da6390e965b3e8e"),
    ("tiny", 2, "train2"): ("d1cad9cd09ccb39e", "e32959f6520f8914", "bf2cc1f9092ccc44"),
    ("tiny", 2, "train3"): ("2d0ff65289320137", "c1321ee2691c8acf", "47038eb8751d44c1"),
    ("tiny", 2, "valid"): ("65b6f47ad265bc69", "aa8f1c4a1234cf40", "2f4528a2a67cc8fa"),
    ("tiny", 2, "test"): ("62a56cf3be564b0d", "46ac9a307df0eaec", "a8766b1cdc3bc3bf"),
    ("quick", 1, "train1"): ("417e29826344b236", "cd040762ace11a5e", "ee0785be5c4834a1"),
    ("quick", 1, "train2"): ("504706230a8618c2", "1881d8a4f1f0bdbd", "3ee88efe11dbeacd"),
    ("quick", 1, "train3"): ("56c0bd9a2ed6697e", "90ec3d40b58e177a", "6fee554dcff0bffd"),
    ("quick", 1, "valid"): ("e2311fd138bad59b", "0b6b57e8e82f9614", "2c8944a1106d8089"),
    ("quick", 1, "test"): ("ff34ba0b7f6999cc", "31150aea6ba31a8a", "851af65daeda51ef"),
    ("quick", 2, "train1"): ("5d73daf0e72ed595", "f6d424051dcf9959", "7f747f8fa94a1f08"),
    ("quick", 2, "train2"): ("0e05e69998d0fb52", "faa045b499d2668f", "8188fc1cd56df607"),
    ("quick", 2, "train3"): ("9e9f01b00f114810", "0ae1af0aeaf828a7", "b688189c89cc93ef"),
    ("quick", 2, "valid"): ("a6d4a55227067ed3", "74f06c3dcb438c24", "06067b542706feb7"),
    ("quick", 2, "test"): ("3f020e76ab2b2730", "cdf3ab64eb6ac720", "de811d7215ae0ae4"),
}
RUNS = {
    "gat": {
        "DP": 0.931243048,
        "NMI": 0.550616236,
        "AMI": 0.35652763,
        "ARI": 0.179987202,
        "threshold": 0.130523495,
        "clusters": 21.0,
        "best_loss": 0.68591857,
        "train_loss_1": 0.900088787,
        "train_loss_2": 0.877789408,
        "train_loss_3": 0.664253354,
        "valid_loss_1": 0.877929956,
        "valid_loss_2": 0.823658347,
        "valid_loss_3": 0.68591857,
    },
    "gcn": {
        "DP": 0.947743274,
        "NMI": 0.585873904,
        "AMI": 0.375996885,
        "ARI": 0.141376837,
        "threshold": 0.08706637,
        "clusters": 30.0,
        "best_loss": 0.567465782,
        "train_loss_1": 1.147123039,
        "train_loss_2": 0.614900112,
        "train_loss_3": 0.589277506,
        "valid_loss_1": 0.59592545,
        "valid_loss_2": 0.614144146,
        "valid_loss_3": 0.567465782,
    },
    "sage": {
        "DP": 0.951078322,
        "NMI": 0.608961043,
        "AMI": 0.408200769,
        "ARI": 0.195552281,
        "threshold": 0.215456315,
        "clusters": 38.0,
        "best_loss": 0.468333215,
        "train_loss_1": 0.872877121,
        "train_loss_2": 0.573242277,
        "train_loss_3": 0.536567479,
        "valid_loss_1": 0.536979735,
        "valid_loss_2": 0.511530951,
        "valid_loss_3": 0.468333215,
    },
    "mlp": {
        "DP": 0.967549182,
        "NMI": 0.614587957,
        "AMI": 0.430653671,
        "ARI": 0.212637484,
        "threshold": 0.264337581,
        "clusters": 28.0,
        "best_loss": 0.574103773,
        "train_loss_1": 1.334499776,
        "train_loss_2": 0.790133268,
        "train_loss_3": 0.964550674,
        "valid_loss_1": 0.658847272,
        "valid_loss_2": 0.582163662,
        "valid_loss_3": 0.574103773,
    },
    "untrained": {
        "DP": 0.948173785,
        "NMI": 0.549931411,
        "AMI": 0.356389397,
        "ARI": 0.179955815,
        "threshold": 0.061132007,
        "clusters": 20.0,
    },
    "gae": {
        "DP": 0.929808986,
        "NMI": 0.519478297,
        "AMI": 0.310678892,
        "ARI": 0.127386758,
        "threshold": 0.134568886,
        "clusters": 22.0,
        "best_loss": 0.673267275,
    },
    "dgi": {
        "DP": 0.962274012,
        "NMI": 0.606347104,
        "AMI": 0.417209739,
        "ARI": 0.210788486,
        "threshold": 0.15735719,
        "clusters": 27.0,
        "best_loss": 0.575395405,
    },
    "features": {
        "DP": 0.964076967,
        "NMI": 0.610783167,
        "AMI": 0.412177996,
        "ARI": 0.196368943,
        "threshold": 0.51508474,
        "clusters": 35.0,
    },
    "leiden": {"NMI": 0.497163837, "AMI": 0.297714447, "ARI": 0.148311159, "clusters": 14.0},
    "louvain": {"NMI": 0.494091858, "AMI": 0.294475329, "ARI": 0.14594997, "clusters": 13.0},
}
TREES = {
    "average": {
        "sum": 248.344139864,
        "root": 1.067988806,
        "median": 0.223468471,
        "silhouette": 0.667946957,
        "gap": 1.02324477,
        "inconsistency": 0.961666911,
        "purity": 0.917063299,
        "purity by pairs": 0.921366522,
        "purity sampled": 0.922962664,
        "best level": 0.394728853,
        "all levels": 108.565977501,
        "silhouette of labels": 0.425641395,
        "refined λ": 0.778875913,
        "refined clusters": 12.0,
        "refined ARI": 0.924442291,
        "forest cut": 77.0,
        "suspicious": 8.0,
    },
    "ward": {
        "sum": 922.041181314,
        "root": 12.179157286,
        "median": 0.730741876,
        "silhouette": 4.793996798,
        "gap": 11.007854081,
        "inconsistency": 0.983209458,
        "purity": 0.918820308,
        "purity by pairs": 0.923287169,
        "purity sampled": 0.905424941,
        "best level": 0.412344159,
        "all levels": 123.341577361,
        "silhouette of labels": 0.425641395,
        "refined λ": 4.886424493,
        "refined clusters": 11.0,
        "refined ARI": 0.923805977,
        "forest cut": 552.0,
        "suspicious": 7.0,
    },
    "complete": {
        "sum": 329.27671905,
        "root": 1.862676131,
        "median": 0.249979743,
        "silhouette": 1.267595407,
        "gap": 1.352710832,
        "inconsistency": 1.007915525,
        "purity": 0.890127065,
        "purity by pairs": 0.896599979,
        "purity sampled": 0.884277297,
        "best level": 0.391104682,
        "all levels": 111.79680062,
        "silhouette of labels": 0.425641395,
        "refined λ": 1.298012486,
        "refined clusters": 12.0,
        "refined ARI": 0.942938922,
        "forest cut": 156.0,
        "suspicious": 8.0,
    },
    "single": {
        "sum": 160.822073406,
        "root": 0.423770906,
        "median": 0.16968506,
        "silhouette": 0.116237754,
        "gap": 0.393558304,
        "inconsistency": 0.873769263,
        "purity": 0.702499609,
        "purity by pairs": 0.700793478,
        "purity sampled": 0.706272632,
        "best level": 0.14756896,
        "all levels": -15.039469742,
        "silhouette of labels": 0.425641395,
        "refined λ": 0.282346857,
        "refined clusters": 34.0,
        "refined ARI": 0.650240176,
        "forest cut": 7.0,
        "suspicious": 30.0,
    },
}
LARGE_TREE = {
    "sum": 2346.031932726,
    "root": 1.033264028,
    "silhouette": 0.568434151,
    "purity": 0.705217504,
    "best level": 0.228113606,
    "silhouette of labels": 0.276458409,
    "forest": 1464.098471233,
    "refined λ": 0.606990763,
    "refined clusters": 145.0,
}
ENTITY_PAIRS = {
    "heuristics.TP": 65.135135135,
    "heuristics.FP": 13.783783784,
    "heuristics.FN": 10.540540541,
    "heuristics.TN": 10.540540541,
    "gnn.average.silhouette.TP": 50.27027027,
    "gnn.average.silhouette.FP": 8.783783784,
    "gnn.average.silhouette.FN": 25.405405405,
    "gnn.average.silhouette.TN": 15.540540541,
    "hybrid.average.silhouette.TP": 57.837837838,
    "hybrid.average.silhouette.FP": 10.810810811,
    "hybrid.average.silhouette.FN": 17.837837838,
    "hybrid.average.silhouette.TN": 13.513513514,
}
VOTES = {
    "votes": "f0ffb5d9317e15ad",
    "votes for output 1": 57778,
    "coinjoins, improved": "7b488c2337278f9b",
    "coinjoins, published": "a3f0559a7a6796a9",
    "improved ": 31842,
    "improved joinmarket": 11,
    "improved wasabi1.0": 10,
    "improved wasabi1.1": 4,
    "improved wasabi2": 2,
    "improved whirlpool": 31,
    "improved whirlpool-tx0": 25,
    "published ": 31665,
    "published joinmarket": 144,
    "published wasabi1.0": 10,
    "published wasabi1.1": 4,
    "published wasabi2": 2,
    "published whirlpool": 19,
    "published whirlpool-tx0": 81,
    "links": 87102,
    "links by rule": {"change": 3887, "common_input": 80647, "forced_merge": 860, "round_value": 1708},
    "link table": "204ec5d0c4a0d511",
}
ROUNDING = "035f32fd8649c623"


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("role", ROLES)
def test_simulated_transactions_graphs_and_features(size: str, seed: int, role: str) -> None:
    assert of_world(size, seed, role) == WORLDS[size, seed, role]


@pytest.mark.parametrize("name", [*ENCODERS, *BASELINES])
def test_tiny_runs(name: str) -> None:
    assert of_run(name) == pytest.approx(RUNS[name], abs=tolerance(), rel=5 * tolerance())


def test_trees_cuts_purity_and_silhouettes() -> None:
    found = of_trees()
    for method in METHODS:
        assert found[method] == pytest.approx(TREES[method], abs=1e-6), method
    assert of_large_tree() == pytest.approx(LARGE_TREE, abs=1e-6)


def test_four_counts() -> None:
    assert of_entity_pairs() == pytest.approx(ENTITY_PAIRS, abs=100 * tolerance())


def test_votes_coinjoins_and_links() -> None:
    assert of_votes() == VOTES


def tolerance() -> float:
    return 1e-6 if rounding() == ROUNDING else OTHER_ROUNDING


def main() -> None:
    """Print the tables anew."""
    worlds = {(size, seed, role): of_world(size, seed, role) for size in SIZES for seed in SEEDS for role in ROLES}
    tables = {
        "WORLDS": worlds,
        "RUNS": {name: of_run(name) for name in (*ENCODERS, *BASELINES)},
        "TREES": of_trees(),
        "LARGE_TREE": of_large_tree(),
        "ENTITY_PAIRS": of_entity_pairs(),
        "VOTES": of_votes(),
        "ROUNDING": rounding(),
    }
    for name, table in tables.items():
        print(f"{name} = {pformat(table, width=118, sort_dicts=False)}")


if __name__ == "__main__":
    main()
