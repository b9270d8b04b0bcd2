"""The folder that `btcnb refine` leaves: two tables, a summary and a report, all of them or none.

The report is one page that needs nothing but itself, and runs no script. Everything that its template prints is made
plain and escaped. A content security policy forbids whatever is not in the file.
"""

from __future__ import annotations

import json
import math
import os
import platform
from collections.abc import Callable
from dataclasses import asdict
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import jinja2
import numpy as np
import numpy.typing as npt
import pandas as pd
from markupsafe import Markup

from btcnb.data.readers.files import replacing
from btcnb.data.tables import plain
from btcnb.errors import DataError
from btcnb.experiments.tool.drawing import LEFT, TOP, WIDTH, condensed, dendrogram, histogram, short
from btcnb.experiments.tool.run import STAGES, Outcome, stage

FLAGGED, PARTITION, SUMMARY, REPORT = "flagged.csv", "partition.csv", "summary.json", "report.html"
FILES = frozenset({FLAGGED, PARTITION, SUMMARY, REPORT})
PACKAGES = ("btcnb", "numpy", "pandas", "scipy", "numba", "torch", "torch_geometric")
FORMAT = 1
POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
LONGEST = 90
"""Letters of an address or cluster that the page shows; the tables beside it hold all of them."""
COUNTED = {
    "addresses": "single addresses",
    "inputs": "groups of addresses that were inputs of one transaction, which are never separated",
}
INITIAL = {
    "of the release": "those of the release",
    "heuristic": "heuristic: common inputs, change, round values, forced merges; detected CoinJoins left out",
}
RULED = {
    "fixed": "one number for all clusters, given beforehand",
    "lambda": "one number for all: the mean, weighted by size, of the cuts that separate clusters best (silhouette)",
    "local": "for each cluster the cut that separates it best (silhouette); small clusters take the weighted mean, λ",
}


def require_place(out: str | Path, force: bool = False) -> Path:
    """Where the folder may be written: nothing, an empty folder, or with `force` an earlier result and nothing else."""
    try:
        target = Path(out).expanduser().resolve()
        if target.is_dir():
            held = sorted(entry.name for entry in target.iterdir())
        elif target.exists():
            raise DataError(target, "out", "is a file", "name a folder")
        else:
            held = []
        above = next(folder for folder in (target, *target.parents) if folder.exists())
        blocked = not above.is_dir() or not os.access(above if above != target else target.parent, os.W_OK)
    except (OSError, ValueError, RuntimeError) as error:  # the last: a home that is not known, links in a circle
        raise DataError(plain(out), "out", f"cannot be used ({error})", "name another folder") from error
    if blocked:
        raise DataError(target, "out", "cannot be written", "name another folder")
    if held and not force:
        raise DataError(target, "out", "is not empty", "name another folder, or replace an earlier result by --force")
    if strange := [name for name in held if name not in FILES]:
        problem = f"holds {strange[0]}, which is no result of this command"
        raise DataError(target, "out", problem, "name another folder: this one is never replaced")
    return target


def write(
    outcome: Outcome, out: str | Path, top: int = 12, force: bool = False, tell: Callable[[str], None] | None = None
) -> Path:
    """Write the four files beside the folder, then rename: readers see all of them or what was there before.

    top: merges listed and clusters drawn in the report
    """
    target = require_place(out, force)
    with replacing(target, folder=True) as part:
        with stage("write", outcome.timer, tell or (lambda line: None)):
            flagged_table(outcome).to_csv(part / FLAGGED, index=False, lineterminator="\n")
            partition_table(outcome).to_csv(part / PARTITION, index=False, lineterminator="\n")
            (part / REPORT).write_text(report(outcome, top), encoding="utf-8")
        text = json.dumps(summary(outcome), indent=1, ensure_ascii=False, allow_nan=False)
        (part / SUMMARY).write_text(text + "\n", encoding="utf-8")
    return target


def flagged_table(outcome: Outcome) -> pd.DataFrame:
    """Suspicious merges, most suspicious first, with an example address of either side."""
    table, names = outcome.found.flagged, outcome.material.names
    return pd.DataFrame(
        {
            "cluster": outcome.material.titles[table["cluster"].to_numpy(dtype=np.int64)],
            **{name: table[name] for name in ("height", "threshold", "excess", "size_left", "size_right")},
            "address_left": names[table["left"].to_numpy(dtype=np.int64)],
            "address_right": names[table["right"].to_numpy(dtype=np.int64)],
            "suspicion": table["suspicion"],
        }
    )


def partition_table(outcome: Outcome) -> pd.DataFrame:
    """Every address with its cluster and its refined cluster, the latter numbered by first appearance."""
    return pd.DataFrame(
        {
            "address": outcome.material.names,
            "cluster": outcome.material.titles[outcome.material.labels],
            "refined_cluster": pd.factorize(outcome.found.partition)[0],
        }
    )


def summary(outcome: Outcome) -> dict[str, Any]:
    """What was done, by what, and what it cost; plain values. An infinite threshold (nothing is split) is null."""
    encoder, request = outcome.encoder, outcome.request
    refiner = {name: _finite(value) for name, value in asdict(outcome.refiner).items()}
    seconds, memory = outcome.timer.seconds, outcome.timer.peak_mb
    return {
        "format": FORMAT,
        "made": datetime.now(UTC).isoformat(timespec="seconds"),
        "source": {
            "path": str(request.source),
            "kind": outcome.kind,
            "blocks": list(outcome.blocks),
            "price_usd": outcome.price_usd,
            "data": outcome.material.graph.fingerprint(),
            "clusters": _whose(outcome),
        },
        "recipe": refiner,
        "threshold": _finite(outcome.found.threshold),
        "counts": outcome.counts(),
        "encoder": {
            "file": "of the package" if request.encoder is None else str(request.encoder),
            "digest": encoder.digest,
            "made": encoder.made,
        },
        "notes": list(outcome.notes),
        "seconds": {name: round(value, 3) for name, value in seconds.items()},
        "peak_mb": {name: round(value, 1) for name, value in memory.items()},
        "total": {"seconds": round(sum(seconds.values()), 3), "peak_mb": round(max(memory.values()), 1)},
        "versions": {"python": platform.python_version(), **{name: version(name) for name in PACKAGES}},
    }


def _whose(outcome: Outcome) -> str:
    """Whose the initial clusters are."""
    if outcome.request.clusters is not None:
        return str(outcome.request.clusters)
    return "heuristic" if outcome.transactions is not None else "of the release"


def _finite(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value


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
    request, whose = outcome.request, _whose(outcome)
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
        source=str(request.source),
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
            "clusters": INITIAL[whose] if request.clusters is None else f"given, {short(whose, LONGEST)}",
            "ends of the trees": COUNTED[outcome.refiner.units],
            "threshold": RULED[outcome.refiner.threshold_rule],
            "linkage": f"{outcome.refiner.method}, cosine distance",
            "price of a bitcoin": "not used" if outcome.price_usd is None else f"{outcome.price_usd:,.2f} USD",
            "encoder": short(str(request.encoder or "the one of the package"), LONGEST),
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
