"""The benchmarks at a glance: how many times faster and leaner than the peer a user would pick, one line a race."""

from __future__ import annotations

import html
import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from btcnb.digits import number

Records = Sequence[Mapping[str, Any]]


class Race(NamedTuple):
    """Which column of which records is the ratio to the peer."""

    benchmark: str
    what: str
    peer: str
    faster: str
    leaner: str = ""
    where: tuple[tuple[str, str], ...] = ()
    """(column, value) that the records have"""


RACES = (
    Race("linkage", "average linkage, points in clusters", "pdist + fastcluster", "speed_up", "memory_ratio",
         (("task", "average linkage"), ("shape", "clustered"))),
    Race("linkage", "average linkage, uniform directions", "pdist + fastcluster", "speed_up", "memory_ratio",
         (("task", "average linkage"), ("shape", "uniform"))),
    Race("silhouette", "silhouette of a partition", "scikit-learn", "speed_up", where=(("task", "silhouette"),)),
    Race("training_step", "one training step, peer trimmed", "PyTorch Geometric, trim_to_layer", "ratio_trimmed"),
    Race("training_step", "one training step, peer plain", "PyTorch Geometric", "ratio"),
    Race("neighbours", "neighbours drawn, address-like graph", "torch-sparse's NeighborLoader, recorded",
         "ours_ratio", where=(("shape", "address-like"),)),
    Race("coarse", "coarse partition, size paper", "leidenalg", "speed_up", where=(("size", "paper"),)),
    Race("local_graphs", "local graphs, all of Table 2", "the public functions, one graph at a time",
         "speed_up", where=(("task", "table"),)),
)  # fmt: skip


class Result(NamedTuple):
    """A race that was run. Ratios: the peer's seconds, or extra memory, over ours."""

    race: Race
    faster: float
    leaner: float | None


def results(found: Mapping[str, Records]) -> list[Result]:
    """The races on record, by the benchmarks' names; of several sizes the largest counts."""
    made = []
    for race in RACES:
        rows = [row for row in found.get(race.benchmark, ()) if _ran(row, race)]
        if rows:
            row = max(rows, key=lambda each: each.get("n", 0))
            made.append(Result(race, float(row[race.faster]), float(row[race.leaner]) if race.leaner else None))
    return made


def _ran(row: Mapping[str, Any], race: Race) -> bool:
    known = all(str(row.get(column)) == value for column, value in race.where)
    return known and all(isinstance(row.get(column), int | float) for column in (race.faster, race.leaner) if column)


def races_html(found: Mapping[str, Records]) -> str:
    """A table with bars, on a scale of logarithms from 1 to the largest ratio; empty without a race."""
    ran = results(found)
    if not ran:
        return ""
    most = max(max(each.faster, each.leaner or 1.0, 2.0) for each in ran)
    lines = "".join(
        f'<tr><th scope="row">{html.escape(each.race.what)}</th><td>{html.escape(each.race.peer)}</td>'
        f"{_cell(each.faster, most)}{_cell(each.leaner, most)}</tr>\n"
        for each in ran
    )
    heads = "".join(f'<th scope="col">{name}</th>' for name in ("what", "peer", "times as fast", "times leaner"))
    caption = "Ours beside the peer a user would pick, both in one run. Bars grow with the logarithm of the ratio."
    return (
        f'<table class="races"><caption>{caption}</caption>\n<thead><tr>{heads}</tr></thead>\n'
        f"<tbody>\n{lines}</tbody></table>"
    )


def _cell(ratio: float | None, most: float) -> str:
    if ratio is None:
        return "<td>–</td>"
    share = 100 * max(math.log(ratio), 0.0) / math.log(most) if ratio > 0 else 0.0
    text = number(ratio, "{:.0f}" if ratio >= 9.95 else "{:.1f}")
    return f'<td><i style="width:{share:.0f}%"></i><b>{text} ×</b></td>'
