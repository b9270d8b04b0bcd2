"""The report of `btcnb refine`: one page that needs nothing but itself, and runs no script.

Everything that the template prints is made plain and escaped. A content security policy forbids whatever is not in the
file.
"""

from __future__ import annotations

import math
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any

import jinja2
import numpy as np
import numpy.typing as npt
import pandas as pd
from markupsafe import Markup

from btcnb.data.tables import plain
from btcnb.experiments.tool.drawing import LEFT, TOP, WIDTH, condensed, dendrogram, histogram, short
from btcnb.experiments.tool.run import STAGES, Outcome

POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
LONGEST = 90
"""Letters of an address or cluster that the page shows; the tables beside it hold all of them."""
COUNTED = {
    "addresses": "single addresses",
    "inputs": "groups of addresses that were inputs of one transaction, which are never separated",
}
RULED = {
    "fixed": "one number for all clusters, given beforehand",
    "lambda": "one number for all: the mean, weighted by size, of the cuts that separate clusters best (silhouette)",
    "local": "for each cluster the cut that separates it best (silhouette); small clusters take the weighted mean, λ",
}


def _printed(value: Any) -> Any:
    """What an expression of the template prints: one line without control characters, escaped afterwards."""
    return value if isinstance(value, Markup) else "" if isinstance(value, jinja2.Undefined) else plain(value)


PAGES = jinja2.Environment(
    loader=jinja2.PackageLoader("btcnb.experiments.tool", ""), autoescape=True, finalize=_printed
)
PAGES.filters["short"] = short


def report(outcome: Outcome, top: int = 12) -> str:
    """The whole page; `top` merges are listed, and as many clusters are drawn."""
    found, encoder, timer = outcome.found, outcome.encoder, outcome.timer
    above, heights, material = found.above(), found.forest.merges[:, 2], outcome.material
    first = np.unique(found.leaf, return_index=True)[1]
    drawings = []
    for label in most_concerned(found.flagged)[:top]:
        tree = condensed(found, int(np.searchsorted(found.forest.clusters, label)))
        drawings.append((label, material.titles[label], dendrogram(tree, lambda leaf: material.names[first[leaf]])))
    return PAGES.get_template("report.html").render(
        WIDTH=int(WIDTH), LEFT=LEFT, TOP=TOP, LONGEST=LONGEST,
        title="Suspicious merges in address clusters",
        policy=POLICY,
        source=str(outcome.request.source),
        kind=outcome.kind,
        blocks=outcome.blocks,
        made=datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        version=version("btcnb"),
        counts=outcome.counts(),
        threshold=found.threshold if math.isfinite(found.threshold) else None,
        own_cuts=outcome.refiner.threshold_rule == "local",
        notes=outcome.notes,
        histogram=histogram(heights[~above], heights[above], found.threshold) if len(heights) else None,
        drawings=drawings,
        merges=list(found.flagged.head(top).itertuples()),
        names=material.names,
        titles=material.titles,
        facts={
            "clusters": _clusters(outcome),
            "ends of the trees": COUNTED[outcome.refiner.units],
            "threshold": RULED[outcome.refiner.threshold_rule],
            "linkage": f"{outcome.refiner.method}, cosine distance",
            "price of a bitcoin": "not used" if outcome.price_usd is None else f"{outcome.price_usd:,.2f} USD",
            "encoder": short(str(outcome.request.encoder or "the one of the package"), LONGEST),
            "trained on": encoder.made.get("trained_on", "not told by its file"),
            "digest of the encoder": encoder.digest,
        },
        costs=[(STAGES[name], timer.seconds[name], timer.peak_mb[name]) for name in timer.seconds if name != "write"],
    )  # fmt: skip


def most_concerned(flagged: pd.DataFrame) -> npt.NDArray[np.int64]:
    """Clusters by the addresses that their flagged merges would set apart, each times the merge's excess; most first.

    A pair of addresses can be as suspicious as two halves of a thousand; what is drawn should matter to many.
    """
    weight = (flagged["excess"] * flagged["size_right"]).groupby(flagged["cluster"]).sum()
    return weight.sort_values(ascending=False, kind="stable").index.to_numpy(dtype=np.int64)


def _clusters(outcome: Outcome) -> str:
    if outcome.request.clusters is not None:
        return f"given, {short(str(outcome.request.clusters), LONGEST)}"
    if outcome.transactions is None:
        return "those of the release"
    return "heuristic: common inputs, change, round values, forced merges; detected CoinJoins left out"
