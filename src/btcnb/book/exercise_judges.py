"""Judges of the exercises whose answers follow from the chapter's own variables, in the order of the book.

The judge of `ex-02-deposit` is `ex_02_deposit(answer, …)`; its other arguments are the chapter's variables of these
names. What only one part of the book needs is imported where it is needed: every chapter loads this module.
"""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any, Literal

import numpy as np
import pandas as pd

from btcnb.book.exercises import (
    MisreadError,
    all_hold,
    as_labels,
    as_number,
    as_numbers,
    as_words,
    compare_number,
    compare_numbers,
    compare_partition,
    compare_sets,
    in_order,
)
from btcnb.data import DEFAULT_RULES, build_graph, heuristic_clusters, heuristic_merges
from btcnb.data.intervals import subsidy
from btcnb.data.judging.links import marked
from btcnb.data.judging.owners import against_owners
from btcnb.paper import claims, judge
from btcnb.paper.rules import Value

BTC = 10**8


# Chapter 01


def ex_01_subsidy(answer: Any, block: Any, paid_out: Any, coinbase: Any) -> str:
    created = subsidy(block[coinbase]).sum()
    fees = 100 * (1 - created / paid_out[coinbase].sum())
    return compare_numbers(answer, [float(subsidy(block.min())) / BTC, fees], within=5e-3)


def ex_01_fingerprint(answer: Any, txs: Any, coinbase: Any, alone: Any, n_outputs: Any, sender: Any, kind: Any) -> str:
    rows = np.flatnonzero(~coinbase & alone & (n_outputs == 2))
    version = txs.transactions["version"].to_numpy()[rows]
    locked = txs.transactions["lock_time"].to_numpy()[rows] > 0
    users: dict[tuple[int, bool], set[str]] = {}
    for pair, who in zip(zip(version, locked, strict=True), kind[sender[rows]], strict=True):
        users.setdefault((int(pair[0]), bool(pair[1])), set()).add(who)
    return compare_numbers(answer, [len(users[pair]) for pair in sorted(users)])


def ex_01_peel(answer: Any, n_inputs: Any, n_outputs: Any, parents: Any, children: Any) -> str:
    """A chain is right if its links are peels, each spends the one before, and no chain is longer."""
    chain = [int(as_number(link)) for link in as_numbers(answer, len(list(answer)))]
    peel = (n_inputs == 1) & (n_outputs == 2)
    if not chain or not all(0 <= link < len(peel) for link in chain):
        return "there is no transaction of such a number"
    both = peel[parents] & peel[children]
    spends = set(zip(parents[both].tolist(), children[both].tolist(), strict=True))
    longest = np.ones(len(peel), dtype=int)
    for parent, child in sorted(spends, key=lambda link: link[1]):
        longest[child] = max(longest[child], longest[parent] + 1)
    return all_hold(
        [
            (peel[chain].all(), "a link has not one input and two outputs"),
            (all(link in spends for link in itertools.pairwise(chain)), "a link does not spend its former"),
            (len(chain) >= longest[peel].max(initial=0), "there is a longer one"),
        ]
    )


# Chapter 02


def ex_02_deposit(answer: Any, txs: Any, config: Any) -> str:
    def clusters(*rules: str) -> int:
        return int(heuristic_clusters(txs, rules, config).max()) + 1

    removed = clusters(*DEFAULT_RULES) - clusters(*DEFAULT_RULES, "deposit")
    return compare_numbers(answer, [removed, txs.num_addresses - clusters("deposit")])


def ex_02_round(answer: Any, txs: Any, config: Any, owner: Any) -> str:
    wanted: list[float] = []
    for usd in (0.1, 1.0, 10.0, 100.0):
        fired = marked(heuristic_merges(txs, ["round_value"], replace(config, round_usd=usd)), owner)
        wanted += [len(fired), fired["wrong"].sum()]
    return compare_numbers(answer, wanted)


def ex_02_bound(answer: Any) -> str:
    """A function is tried on numbers that nobody chose."""
    if not callable(answer):
        raise MisreadError("a function is wanted")
    for s, q, m, wrong in np.random.default_rng(2).uniform(0.1, 1, (5, 4)) * [1000, 1, 10_000, 0.1]:
        payers = wrong * q * m
        if words := compare_numbers(answer(s, q, m, wrong), [payers, payers * s]):
            return f"at s = {s:.0f}, q = {q:.2f}, m = {m:.0f}, ε = {wrong:.3f} {words}"
    return ""


def ex_02_coinjoins(answer: Any, txs: Any, config: Any, owner: Any) -> str:
    wanted = []
    for excluded in (True, False):
        found = heuristic_clusters(txs, DEFAULT_RULES, replace(config, exclude_coinjoins=excluded))
        wanted.append(against_owners(found, owner)["most_owners"])
    return compare_numbers(answer, wanted)


def ex_02_dial(answer: Any, dial: Any) -> str:
    words, turns = as_words(answer), dial.loc[[0.0, 2.0], ["precision", "recall"]].diff().iloc[-1]
    wanted = ["rises" if turn > 0 else "falls" for turn in turns]
    right = len(words) == 2 and [word == want for word, want in zip(words, wanted, strict=True)]
    return all_hold(
        [
            (right and set(words) <= {"rises", "falls"}, 'two words are wanted, each "rises" or "falls"'),
            (right and right[0], "look again at precision"),
            (right and right[1], "look again at recall"),
        ]
    )


# Chapter 03


def ex_03_split(answer: Any, graph: Any, sampled: Any) -> str:
    equal = build_graph(sampled, labels=graph.clusters["alias"].to_numpy(), split_value="equal")
    tables = ((graph.nodes, equal.nodes), (graph.edges, equal.edges))
    changed = {name for a, b in tables for name in a if (a[name].fillna(-1) != b[name].fillna(-1)).any()}
    return compare_sets(as_words(answer), {name.casefold() for name in changed})


def ex_03_bound(answer: Any, graphs: Any) -> str:
    return compare_numbers(answer, [(np.bincount(graph.labels()) > 1).sum() for graph in graphs.values()])


def ex_03_usd(answer: Any, raw: Any, graphs: Any) -> str:
    satoshi = {name: np.log1p(values) for name, values in raw.items()}
    dollars = {name: np.log1p(values * graphs[name].meta["price_usd"] / BTC) for name, values in raw.items()}
    alone = min(np.corrcoef(satoshi[name], dollars[name])[0, 1] for name in raw)
    pooled = np.corrcoef(np.concatenate(list(satoshi.values())), np.concatenate(list(dollars.values())))[0, 1]
    return compare_numbers(answer, [alone, pooled], within=1e-4)


def ex_03_hubs(answer: Any, hubs: Any, distance: Any) -> str:
    between = distance[hubs][np.triu_indices(len(hubs), 1)]
    return compare_number(answer, 100 * float((between == 1).mean()), within=0.02)


# Chapter 04


def ex_04_ward(answer: Any) -> str:
    """Any set of points with the wanted property is right."""
    from scipy.cluster.hierarchy import linkage

    from btcnb import theory

    points, owners = answer
    line = np.asarray(points, dtype=float).reshape(-1, 1)
    labels = as_labels(owners, len(line))
    sizes = np.sort(np.bincount(labels))
    return all_hold(
        [
            (len(sizes) == 3 and sizes[1] == 1 < sizes[2], "one large cluster and two single points are wanted"),
            (theory.separation(line, labels).separable, "the points are not separated"),
            (not theory.best_cut(linkage(line, "ward"), labels).perfect, "Ward's tree has a perfect cut"),
        ]
    )


# Chapter 05


def ex_05_stop_band(answer: Any, L: Any, clusters: Any, stop_band: Any) -> str:
    from btcnb import theory

    filters = [theory.stop_band_filter(stop_band[0], stop_band[1], degree) for degree in range(1, 7)]
    leaks = [theory.split_spectrum(L, clusters, each)[1].beta for each in filters]
    return compare_numbers(answer, leaks, within=0.01)


def ex_05_normalise(answer: Any) -> str:
    """Any graph and features with the wanted property are right."""
    from btcnb import theory

    adjacency, labels, features = (np.asarray(part) for part in answer)
    made = theory.linearised_gnn(theory.laplacian(adjacency), features, None, theory.gcn_filter(1))
    euclidean, cosine = (theory.separation(made, labels, metric=metric).separable for metric in ("euclidean", "cosine"))
    return all_hold(
        [
            (euclidean, "the embeddings are not separable by Euclidean distance"),
            (not cosine, "the embeddings are separable after normalising too"),
        ]
    )


# Chapter 06


def ex_06_hub(answer: Any, share: Any, trials: Any, seed: Any) -> str:
    """Right is what keeps the cut ratio, raises the largest degree, and brings z nearer to 0."""
    from btcnb import theory

    before, after, labels = (np.asarray(part) for part in answer)
    largest = [int(np.bincount(edges.ravel()).max()) for edges in (before, after)]
    ratios = [theory.cut_ratio(edges, labels) for edges in (before, after)]
    z = [theory.cut_ratio_test(edges, labels, share=share, trials=trials, seed=seed).z for edges in (before, after)]
    return all_hold(
        [
            (before.shape == after.shape, "edges were added or lost"),
            (abs(ratios[0] - ratios[1]) < 1e-9, "the cut ratio has changed"),
            (largest[1] > largest[0], "there is no hub"),
            (abs(z[1]) < abs(z[0]), "z has not come nearer to 0: move more edges"),
        ]
    )


# Chapter 07


def ex_07_collision(answer: Any, clusters: Any, alpha: Any) -> str:
    """An estimate is right within five standard errors of the difference of two estimates."""
    from btcnb.learn import TupleSampler

    given, draws = as_numbers(answer, 2), 20_000
    said = []
    readings: list[Literal["uniform", "mixture"]] = ["uniform", "mixture"]
    for percent, reading in zip(given, readings, strict=True):
        drawn = TupleSampler(clusters, alpha, reading).draw(draws, 4, np.random.default_rng(99)).negatives
        share = float((np.diff(np.sort(drawn, axis=1), axis=1) > 0).all(axis=1).mean())
        error = 100 * 5 * np.sqrt(2 * max(share * (1 - share), 1e-3) / draws)
        said.append(compare_number(percent, 100 * share, within=error / max(100 * share, 1e-9)))
    return in_order(said)


# Chapter 08


def ex_08_count(answer: Any, model: Any, config: Any) -> str:
    total = sum(p.numel() for p in model.parameters())
    heads, wide = config.heads, config.heads * config.hidden
    fewer = (heads - 1) * (config.output * wide + 2 * config.output)  # what the output heads but one hold
    return compare_numbers(answer, [total, total - fewer], within=1e-9)


def ex_08_sampling(answer: Any, run: Any, graphs: Any, config: Any, X: Any) -> str:
    """Judged by other draws than the reader's, so a group that comes close to the farthest counts as right."""
    from btcnb.learn import prepare

    test = prepare(graphs["test"], unit=config.unit)
    some = np.random.default_rng(5).choice(test.num_nodes, min(500, test.num_nodes), replace=False)
    apart = np.mean([1 - (_sampled(run, test, some, draw) * X["trained"][some]).sum(1) for draw in range(3)], axis=0)
    degree, sources = test.in_degree(), np.split(test.source, test.indptr[1:-1])
    busiest = np.array([degree[sources[node]].max(initial=0) for node in some])
    groups = {"at most 5": (0, 5), "6 to 50": (6, 50), "more than 50": (51, 10**9)}
    here = {name: (busiest >= low) & (busiest <= high) for name, (low, high) in groups.items()}
    means = {name: float(apart[rows].mean()) for name, rows in here.items() if rows.any()}
    far = {name for name, mean in means.items() if mean >= 0.7 * max(means.values())}
    words = as_words(answer)
    return all_hold(
        [
            (len(words) == 1 and words[0] in groups, f"one of {', '.join(groups)} is wanted"),
            (set(words) <= far, "others differ more"),
        ]
    )


def _sampled(run: Any, test: Any, some: Any, draw: int) -> Any:
    import torch

    from btcnb.learn import BatchSampler

    batch = BatchSampler(test, (15, 5)).draw(some, 100 + draw)
    hops = (batch.nodes_per_hop, batch.edges_per_hop)
    with torch.no_grad():
        return run.model(batch.x, batch.edge_index, None, None, *hops).numpy()


# Chapter 09


def ex_09_purity(answer: Any, Z: Any, names: Any) -> str:
    """Several choices share the lowest purity; each of them, and its complement, is right."""
    from btcnb.cluster import dendrogram_purity

    leaves = {word.upper() for word in (list(answer) if isinstance(answer, str) else as_words(answer))}
    if len(leaves) != 3 or not leaves <= set(names):
        raise MisreadError("three different leaves are wanted")

    def purity(chosen: Any) -> float:
        return float(dendrogram_purity(Z, np.isin(names, list(chosen)).astype(int)))

    lowest = min(purity(chosen) for chosen in itertools.combinations(names, 3))
    return "there are labels of a lower purity" if purity(leaves) > lowest + 1e-9 else ""


def ex_09_lambda(answer: Any, result: Any, graph: Any) -> str:
    from btcnb.cluster import cut

    own = dict(zip(result.local["cluster"], result.local["threshold"], strict=True))
    wanted, used = np.zeros(graph.num_nodes, dtype=np.int64), 0
    for label, members, tree in result.forest:
        parts = cut(tree, own.get(label, np.inf)) if len(members) > 1 else np.zeros(1, dtype=np.int64)
        wanted[members] = used + parts
        used += int(parts.max()) + 1
    return compare_partition(answer, wanted)


# Chapter 10


def ex_10_centroid(answer: Any) -> str:
    """Any three points are right whose second merge, of centroids, lies below the first."""
    points = np.asarray(answer, dtype=float)
    if points.ndim != 2 or len(points) != 3:
        raise MisreadError("an array of three rows is wanted")
    unit = points / np.linalg.norm(points, axis=1, keepdims=True)

    def apart(one: Any, other: Any) -> float:
        return float(1 - one @ other / (np.linalg.norm(one) * np.linalg.norm(other)))

    heights = {pair: apart(unit[pair[0]], unit[pair[1]]) for pair in itertools.combinations(range(3), 2)}
    first = min(heights, key=lambda pair: heights[pair])
    third = ({0, 1, 2} - set(first)).pop()
    second = apart(unit[list(first)].sum(axis=0), unit[third])
    before = min(height for pair, height in heights.items() if pair != first)
    return all_hold(
        [
            (second < before, "the union of the closest pair is not nearer to the third than its members were"),
            (second < heights[first], "it is not reducible, but the second merge still lies above the first"),
        ]
    )


# Chapter 11


def ex_11_many(answer: Any, against_default: Any) -> str:
    from scipy import stats

    known = against_default.dropna(subset=["mean"])
    bar = stats.t.ppf(1 - 0.025 / max(len(known), 1), known["n"] - 1) * known["sd"] / np.sqrt(known["n"])
    usual = int(((known["low"] > 0) | (known["high"] < 0)).sum())
    return compare_numbers(answer, [usual, int((known["mean"].abs() > bar).sum())])


# Chapter 12


def ex_12_rank(answer: Any, effective_rank: Any) -> str:
    """The experiment with other random numbers; four thousand rows leave little to chance."""
    wanted, rng = [], np.random.default_rng(12)
    for common in (0.0, 1.0, 5.0, 20.0):
        rows = rng.normal(size=(4_000, 64))
        rows[:, 0] += common
        wanted.append(float(effective_rank(rows / np.linalg.norm(rows, axis=1, keepdims=True))))
    return compare_numbers(answer, wanted, within=0.05)


# Chapter 13


def ex_13_cut(answer: Any, tree: Any, members: Any, owners: Any) -> str:
    from btcnb.cluster import cut, pairwise_scores

    who = pd.factorize(pd.Series(owners[members]).map(str))[0]
    for height in [*np.sort(tree[:, 2])[::-1], -1.0]:
        scores = pairwise_scores(cut(tree, height - 1e-12), who)
        if scores.fp == 0:
            return compare_number(answer, 100 * scores.fn / max(scores.tp + scores.fn, 1), within=0.01)
    return "there is no pure cut"


# Chapter 18


def ex_18_chance(answer: Any, board: Any) -> str:
    return compare_number(answer, 0.025 * int(board["seeds"].notna().sum()), within=0.02)  # one side of 95 %


def ex_18_weights(answer: Any, board: Any) -> str:
    weight = board["importance"].map({"high": 3, "medium": 2, "low": 1})
    mark = board["outcome"].map({"reproduced": 1.0, "partly": 0.5, "not reproduced": 0.0}).dropna()
    return compare_number(answer, float((mark * weight).sum() / max(weight[mark.index].sum(), 1)), within=0.02)


def ex_18_bound(answer: Any, read: Any) -> str:
    levels = [(each, each.rule) for each in claims() if isinstance(each.rule, Value)]
    bounds = [
        [replace(each, rule=replace(rule, within=factor * rule.within)) for each, rule in levels]
        for factor in (0.5, 1, 2, 4)
    ]
    return compare_numbers(answer, [sum(judge(each, read).verdict == "reproduced" for each in some) for some in bounds])
