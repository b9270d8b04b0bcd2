"""Chapter 08: training."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from btcnb.book.exercises import ways
from btcnb.book.exercises.rule import Check
from btcnb.learn import BatchSampler, prepare

_GROUPS = {"at most 5": (0, 5), "6 to 50": (6, 50), "more than 50": (51, 10**9)}


def _count(answer: Any, model: Any, config: Any) -> str:
    total = sum(p.numel() for p in model.parameters())
    heads, wide = config.heads, config.heads * config.hidden
    fewer = (heads - 1) * (config.output * wide + 2 * config.output)  # what the output heads but one hold
    return ways.numbers(answer, [total, total - fewer], within=1e-9)


def _sampling(answer: Any, run: Any, graphs: Any, config: Any, X: Any) -> str:
    """Judged by other draws than the reader's, so a group that comes close to the farthest counts as right."""
    test = prepare(graphs["test"], unit=config.unit)
    some = np.random.default_rng(5).choice(test.num_nodes, min(500, test.num_nodes), replace=False)
    apart = np.mean([1 - (_sampled(run, test, some, draw) * X["trained"][some]).sum(1) for draw in range(3)], axis=0)
    degree, sources = test.in_degree(), np.split(test.source, test.indptr[1:-1])
    busiest = np.array([degree[sources[node]].max(initial=0) for node in some])
    here = {name: (busiest >= low) & (busiest <= high) for name, (low, high) in _GROUPS.items()}
    means = {name: float(apart[rows].mean()) for name, rows in here.items() if rows.any()}
    far = {name for name, mean in means.items() if mean >= 0.7 * max(means.values())}
    words = ways.as_words(answer)
    return ways.all_hold(
        [
            (len(words) == 1 and words[0] in _GROUPS, f"one of {', '.join(_GROUPS)} is wanted"),
            (set(words) <= far, "others differ more"),
        ]
    )


def _sampled(run: Any, test: Any, some: Any, draw: int) -> Any:
    batch = BatchSampler(test, (15, 5)).draw(some, 100 + draw)
    hops = (batch.nodes_per_hop, batch.edges_per_hop)
    with torch.no_grad():
        return run.model(batch.x, batch.edge_index, None, None, *hops).numpy()


CHECKS = {
    "ex-08-count": Check("two whole numbers: all parameters, and all with a single output head", _count),
    "ex-08-sampling": Check(
        f"one of {', '.join(repr(name) for name in _GROUPS)}: neighbours of the busiest neighbour", _sampling
    ),
}
