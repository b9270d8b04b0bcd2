"""Pictures of chapter 17: the real graph beside a simulated one and the paper's, and services that shared a cluster.

All of them are drawn from the record `results/real_chain_graph.json`; where there is none, the axes say so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from btcnb.book.figures import COLOURS, MARKERS, PAPER_COLOUR

GREY = "#777777"
KINDS = {"real": (COLOURS[0], MARKERS[0]), "simulated": (COLOURS[1], MARKERS[1])}
"""Colour and marker of real and of simulated graphs on every figure."""
Record = Mapping[str, Any]


def dig(record: Any, *keys: str) -> Any:
    """What a record holds under a path of keys; None where any of them is missing."""
    for key in keys:
        record = record.get(key) if isinstance(record, Mapping) else None
    return record


def not_recorded(ax: Axes) -> None:
    """Say that there is nothing to draw."""
    ax.text(0.5, 0.5, "not recorded", transform=ax.transAxes, ha="center", color=GREY, style="italic")


def draw_structure(
    axes: Sequence[Axes], structure: Record | None, paper: Mapping[str, tuple[float, float]], names: Mapping[str, str]
) -> None:
    """One axes a quantity of `names` (key: title): the paper's range as a red band, real and simulated as markers."""
    for ax, (key, title) in zip(axes, names.items(), strict=True):
        low, high = paper[key]
        ax.set(title=title, xlim=(-0.6, 1.6), xticks=[])
        ax.grid(visible=False, axis="x")
        if structure is None:
            not_recorded(ax)
            continue
        if low < high:
            ax.axhspan(low, high, color=PAPER_COLOUR, alpha=0.15, lw=0, label="paper: range of five graphs")
        else:
            ax.axhline(low, color=PAPER_COLOUR, ls=(0, (4, 2)), lw=1.4, label="paper: validation graph")
        values = [dig(structure, kind, key) for kind in KINDS]
        for place, (kind, value) in enumerate(zip(KINDS, values, strict=True)):
            if value is not None:
                colour, marker = KINDS[kind]
                ax.plot([place], [value], marker, color=colour, ms=9, label=kind)
        ax.set_ylim(0, 1.15 * max(high, *(value for value in values if value is not None)))


def draw_size_shares(ax: Axes, shares: Record | None) -> None:
    """Share of the addresses in clusters of a size, real beside simulated."""
    _pairs_of_bars(ax, shares)
    ax.set(ylabel="addresses (%)", xlabel="addresses in the cluster")


def draw_cut_ratios(ax: Axes, homophily: Record | None, paper: Mapping[str, float]) -> None:
    """Cut ratios by part of the graph, real beside simulated; the paper's as red diamonds. paper: part -> per cent."""
    told = None
    if homophily is not None:
        told = {kind: {part: dig(homophily, kind, part, "cut ratio, %") for part in paper} for kind in KINDS}
    _pairs_of_bars(ax, told)
    if told is not None:
        ax.plot(np.arange(len(paper)), list(paper.values()), "D", color=PAPER_COLOUR, zorder=4, label="paper")
    ax.set(ylabel="edges that are cut (%)", ylim=(0, 105))


def _pairs_of_bars(ax: Axes, values: Record | None) -> None:
    """values: kind -> name -> number, or None for a bar that does not exist."""
    if not values:
        not_recorded(ax)
        return
    for place, (kind, own) in enumerate((kind, values[kind]) for kind in KINDS if kind in values):
        numbers = np.array([np.nan if value is None else value for value in own.values()], dtype=float)
        at = np.arange(len(numbers)) + 0.38 * (place - 0.5)
        hatch = None if place == 0 else "///"
        bars = ax.bar(at, numbers, 0.36, color=KINDS[kind][0], label=kind, hatch=hatch, edgecolor="white")
        ax.bar_label(bars, ["" if np.isnan(value) else f"{value:.0f}" for value in numbers], fontsize=8)
        ax.set_xticks(np.arange(len(numbers)), [name.replace("clusters ", "clusters\n") for name in own])
    ax.grid(visible=False, axis="x")


def draw_services(ax: Axes, services: Record | None) -> None:
    """Pairs of labelled addresses in one cluster, before and after refinement, of one service and of two."""
    if services is None:
        not_recorded(ax)
        return
    for place, (kind, hatch) in enumerate((("one service", None), ("two services", "///"))):
        counts = [services[f"pairs of {kind} in one cluster, {when}"] for when in ("before", "after")]
        at = np.arange(2) + 0.38 * (place - 0.5)
        bars = ax.bar(at, counts, 0.36, color=COLOURS[2 + 3 * place], hatch=hatch, edgecolor="white", label=kind)
        ax.bar_label(bars, fontsize=9)
    ax.set_xticks([0, 1], ["heuristic clusters", "after refinement"])
    ax.set(ylabel="pairs of labelled addresses in one cluster")
    ax.grid(visible=False, axis="x")
    ax.margins(y=0.15)
    ax.legend(title="the two addresses belong to")
