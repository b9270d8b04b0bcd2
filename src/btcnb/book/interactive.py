"""Interactive figures: sliders over pictures, dendrograms with a cut to move, clusters to choose from.

Python writes a container with data and a picture; `book/_static/interactive.js` makes the controls. They are native
range inputs, lists and buttons, so keys and screen readers work. Everything is offline and needs no kernel. Without
scripts, and on paper, the picture at which the figure opens stands there. Rendered pages load the script as a static
file; a notebook that runs outside of a build carries a copy of it.
"""

from __future__ import annotations

import base64
import html
import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from IPython.display import display
from matplotlib.figure import Figure
from scipy.cluster import hierarchy
from scipy.spatial.distance import squareform

from btcnb.book.drawings import Neighbourhood, draw_neighbourhood, draw_tree
from btcnb.book.figures import COLOURS, figure_svg
from btcnb.book.reading import BUILD_RECORDS
from btcnb.errors import ParameterError
from btcnb.store.reads import ROOT

SCRIPT = ROOT / "book" / "_static" / "interactive.js"
LARGEST = 200
"""Leaves of a dendrogram that one can still tell apart on a page."""


def show_interactive(page: str, plain: str) -> None:
    """Display a container that `interactive.js` makes live; `plain` is what a terminal shows."""
    if BUILD_RECORDS not in os.environ and SCRIPT.exists():
        page += f"\n<script>\n{SCRIPT.read_text(encoding='utf-8')}</script>"
    display({"text/html": page, "text/plain": plain}, raw=True)


@dataclass(frozen=True)
class Frame:
    """One position of the slider.

    label: what the slider reads out at this position, such as "12 flipped pairs"
    alt:   the picture in words
    svg:   the picture
    """

    label: str
    alt: str
    svg: bytes


def frame(figure: Figure, label: str, alt: str) -> Frame:
    """Turn a matplotlib figure into a frame, and close it. Equal figures give equal bytes."""
    svg = figure_svg(figure).encode()
    plt.close(figure)
    return Frame(label, alt, svg)


def slider(frames: Sequence[Frame], title: str, start: int = 0) -> None:
    """Display `frames` under a slider called `title`, opened at position `start`."""
    show_interactive(slider_html(frames, title, start), f"{title}: {len(frames)} frames")


def slider_html(frames: Sequence[Frame], title: str, start: int = 0) -> str:
    """The slider as one self-contained piece of HTML; without scripts it shows frame `start`."""
    if not 0 <= start < len(frames):
        raise ParameterError(f"start is {start}, but there are {len(frames)} frames, counted from 0.")
    pictures = [_picture(each, hidden=place != start) for place, each in enumerate(frames)]
    return _container("slider", title, {"labels": [each.label for each in frames], "start": start}, *pictures)


def dendrogram(
    Z: Any, title: str, names: Sequence[str], groups: Sequence[str] | None = None, cut: float = 0.0, caption: str = ""
) -> None:
    """Display `dendrogram_html` of the same arguments; `caption`: what to see in it, below."""
    page = dendrogram_html(Z, title, names, groups, cut)
    if caption:
        page += f'\n<p class="btcnb-caption">{html.escape(caption)}</p>'
    show_interactive(page, f"{title}: {len(names)} leaves")


def dendrogram_html(
    Z: Any,
    title: str,
    names: Sequence[str],
    groups: Sequence[str] | None = None,
    cut: float = 0.0,
    beside: Neighbourhood | None = None,
) -> str:
    """A linkage matrix Z (n-1, 4) with heights that never fall, and a slider over all partitions that a cut can give.

    names: one per leaf; groups: what is known about each leaf, such as its owner, shown below it by name and by a
        coloured square, and counted in the list of clusters
    cut: the height at which the page opens (the slider stops halfway between merges)
    beside: the graph of the leaves, whose members are painted like them
    """
    tree = np.asarray(Z, dtype=float)
    n = len(tree) + 1
    if n > LARGEST or len(names) != n or (groups is not None and len(groups) != n):
        raise ParameterError(f"Z has {n} leaves; pass at most {LARGEST}, as many names, and as many groups or none.")
    drawn = hierarchy.dendrogram(tree, no_plot=True)
    order = drawn["leaves"]
    joined = squareform(hierarchy.cophenet(tree))
    data: dict[str, Any] = {
        "names": [str(names[leaf]) for leaf in order],
        "groups": None if groups is None else [str(groups[leaf]) for leaf in order],
        "heights": sorted(tree[:, 2].tolist()),
        "joined": [float(joined[a, b]) for a, b in pairwise(order)],  # neighbouring leaves
        "x": drawn["icoord"],  # of each merge, in SciPy's units: leaf i stands at 10 i + 5
        "y": drawn["dcoord"],
        "cut": float(cut),
        "colours": COLOURS[:-1],
    }
    if beside is not None:
        position = {leaf: place for place, leaf in enumerate(order)}
        data["graph"] = {
            "place": np.round(beside.place, 4).tolist(),
            "edges": np.asarray(beside.edges).tolist(),
            "leaves": [position[member] for member in range(beside.members)],
        }
    return _container("dendrogram", title, data, _opening(tree, names, groups, cut, beside))


def _opening(
    tree: Any, names: Sequence[str], groups: Sequence[str] | None, cut: float, beside: Neighbourhood | None
) -> str:
    """The picture at the cut at which the page opens; the script takes it away."""
    codes = np.unique(list(groups or names), return_inverse=True)[1]
    figure, axes = plt.subplots(
        1 if beside is None else 2, 1, figsize=(7.4, 3.4 if beside is None else 7), squeeze=False
    )
    draw_tree(axes[0, 0], tree, cut, [COLOURS[code % (len(COLOURS) - 1)] for code in codes], names)
    axes[0, 0].set(ylabel="cosine distance of the merge")
    if beside is not None:
        draw_neighbourhood(axes[1, 0], beside, hierarchy.fcluster(tree, cut, "distance"))
    return _picture(frame(figure, "", f"Dendrogram of {len(names)} leaves, cut at {cut:.3f}"))


@dataclass(frozen=True)
class Panel:
    """One cluster: its name in the list, its linkage matrix, the owner (or another group) of each leaf, its graph.

    Leaf i of `Z` is member i of `drawn`.
    """

    title: str
    Z: Any
    groups: Sequence[str]
    drawn: Neighbourhood


def explorer(panels: Sequence[Panel], cut: float) -> None:
    """Display several clusters to choose from, each as a tree with a cut to move and a graph that follows."""
    show_interactive(explorer_html(panels, cut), f"{len(panels)} clusters to choose from")


def explorer_html(panels: Sequence[Panel], cut: float) -> str:
    """The clusters; without scripts all of them stand below each other."""
    pages = [
        dendrogram_html(
            each.Z, each.title, [f"address {i}" for i in range(len(each.groups))], each.groups, cut, each.drawn
        )
        for each in panels
    ]
    parts = [f'<div class="panel">{page}</div>' for page in pages]
    return _container("clusters", "clusters to explore", {"titles": [each.title for each in panels]}, *parts)


def _container(kind: str, title: str, data: Any, *content: str) -> str:
    """What the script looks for: a box of class `btcnb-KIND` with its data as JSON."""
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")
    return (
        f'<div class="btcnb-interactive btcnb-{kind}" role="group" aria-label="{html.escape(title, quote=True)}">\n'
        f'<script type="application/json">{text}</script>\n' + "\n".join(content) + "\n</div>"
    )


def _picture(entry: Frame, hidden: bool = False) -> str:
    data = base64.b64encode(entry.svg).decode()
    image = f'<img src="data:image/svg+xml;base64,{data}" alt="{html.escape(entry.alt, quote=True)}">'
    return f'<div class="frame"{" hidden" if hidden else ""}>{image}</div>'
