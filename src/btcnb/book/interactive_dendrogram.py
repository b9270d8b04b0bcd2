"""A dendrogram with a cut to move: interactive in a rendered book, offline, without a kernel.

Everything is computed when the chapter runs. In drawing order the clusters of a cut are runs of neighbouring leaves, so
a position of the slider is nothing but a height and a list of run lengths, and the script only repaints. The
control is a native range input: arrow keys, Home, End and screen readers work. Without scripts the page shows the
cut at which it opens.
"""

from __future__ import annotations

import hashlib
import html
import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from IPython.display import display
from scipy.cluster import hierarchy

from btcnb.book.style import COLOURS
from btcnb.errors import ParameterError

LARGEST = 200
"""Leaves one can still tell apart on a page."""

WIDTH, HEIGHT = 760.0, 330.0
LEFT, RIGHT, TOP, BOTTOM = 56.0, 10.0, 12.0, 64.0
ABOVE = "#8a8a8a"
SHOWN = 12
"""Clusters listed, and members named in each."""


@dataclass(frozen=True)
class Level:
    """One position of the slider: the height of the cut and how many leaves each cluster holds, from left to right."""

    threshold: float
    runs: list[int]


def dendrogram(
    Z: Any, title: str, names: Sequence[str], groups: Sequence[str] | None = None, cut: float = 0.0, caption: str = ""
) -> None:
    """Display `dendrogram_html` of the same arguments; `caption`: what to see in it, below."""
    page = dendrogram_html(Z, title, names, groups, cut)
    if caption:
        page += f'\n<p class="btcnb-caption">{html.escape(caption)}</p>'
    display({"text/html": page, "text/plain": f"{title}: {len(names)} leaves"}, raw=True)


def dendrogram_html(
    Z: Any, title: str, names: Sequence[str], groups: Sequence[str] | None = None, cut: float = 0.0, beside: str = ""
) -> str:
    """A linkage matrix Z (n-1, 4) with heights that never fall, as one self-contained piece of HTML.

    names: one per leaf; groups: what is known about each leaf, such as its owner, shown below it by name and by a
        coloured square, and counted in the list of clusters; cut: the height at which the page opens (moved to the
        middle of its level)
    beside: another drawing, HTML taken as it is; whatever in it has the class `node` and `data-leaf` (a place from the
        left) is painted like that leaf
    """
    tree = np.asarray(Z, dtype=float)
    n = len(tree) + 1
    if tree.ndim != 2 or tree.shape[1] != 4 or not 2 <= n <= LARGEST:
        raise ParameterError(f"Z has shape {tree.shape}; a drawing needs (n - 1, 4) with 2 to {LARGEST} leaves.")
    if np.any(np.diff(tree[:, 2]) < 0):
        raise ParameterError("the heights of Z fall somewhere; a cut needs heights sorted from the leaves up.")
    if len(names) != n or (groups is not None and len(groups) != n):
        raise ParameterError(f"Z has {n} leaves; pass as many names, and as many groups or none.")
    order = [int(leaf) for leaf in hierarchy.leaves_list(tree)]
    all_levels = levels(tree, order)
    start = min(range(len(all_levels)), key=lambda at: _misses(tree, all_levels[at].threshold, cut))
    leaf_names = [str(names[leaf]) for leaf in order]
    leaf_groups = None if groups is None else [str(groups[leaf]) for leaf in order]
    return _page(tree, order, all_levels, start, title, leaf_names, leaf_groups, beside)


def levels(Z: Any, order: Sequence[int]) -> list[Level]:
    """Every partition that a cut can give, from single leaves to one cluster; a cut at λ keeps merges below λ."""
    heights = np.unique(np.asarray(Z)[:, 2])
    middles = [(low + high) / 2 for low, high in pairwise(heights)]
    thresholds = [heights[0] / 2, *middles, heights[-1] * 1.04 if heights[-1] > 0 else 1.0]
    found = []
    for position, threshold in enumerate(thresholds):
        made = position > 0  # the first cut makes no merge, even where the lowest height is 0
        top = heights[position - 1] if made else -1.0
        found.append(Level(float(threshold), _runs(Z, order, float(top))))
    return found


def _runs(Z: Any, order: Sequence[int], top: float) -> list[int]:
    """Sizes, from left to right, of the clusters that the merges up to height `top` make."""
    n = len(Z) + 1
    owner = list(range(2 * n - 1))
    for m in range(n - 2, -1, -1):
        if Z[m, 2] <= top:
            owner[int(Z[m, 0])] = owner[int(Z[m, 1])] = owner[n + m]
    tops = [owner[leaf] for leaf in order]
    sizes = Counter(tops)
    return [sizes[node] for node in dict.fromkeys(tops)]


def _misses(Z: Any, threshold: float, cut: float) -> int:
    """Merges on which two cuts disagree."""
    return int(((Z[:, 2] < threshold) != (Z[:, 2] < cut)).sum())


def describe(level: Level, names: Sequence[str], groups: Sequence[str] | None) -> list[str]:
    """The clusters in words, largest first: number from the left, size, groups, members."""
    ends = np.cumsum(level.runs)
    largest_first = sorted(range(len(level.runs)), key=lambda at: (-level.runs[at], at))
    lines = []
    for at in largest_first[:SHOWN]:
        inside = range(int(ends[at]) - level.runs[at], int(ends[at]))
        members = ", ".join(names[i] for i in inside[:SHOWN]) + (" …" if len(inside) > SHOWN else "")
        known = Counter(groups[i] for i in inside).most_common() if groups is not None else []
        owners = " [" + ", ".join(f"{number} × {group}" for group, number in known) + "]" if known else ""
        lines.append(f"Cluster {at + 1}, {len(inside)} {'leaf' if len(inside) == 1 else 'leaves'}{owners}: {members}")
    if len(largest_first) > SHOWN:
        lines.append(f"… and {len(largest_first) - SHOWN} smaller clusters")
    return lines


def summary(level: Level, Z: Any) -> str:
    """What the slider reads out."""
    flagged = int((np.asarray(Z)[:, 2] >= level.threshold).sum())
    many, above = len(level.runs), "merge" if flagged == 1 else "merges"
    return f"λ = {level.threshold:.3f}: {many} cluster{'s' * (many > 1)}, {flagged} {above} above the cut"


def _page(
    Z: Any,
    order: Sequence[int],
    cuts: Sequence[Level],
    start: int,
    title: str,
    names: Sequence[str],
    groups: Sequence[str] | None,
    beside: str,
) -> str:
    picture, first_leaf, scale = _picture(Z, order, cuts[start], names, groups)
    data = {
        "first": first_leaf,
        "height": [float(height) for height in Z[:, 2]],
        "colours": COLOURS[:-1],
        "above": ABOVE,
        "levels": [
            {"t": level.threshold, "y": scale(level.threshold), "runs": level.runs, "say": summary(level, Z)}
            | {"list": describe(level, names, groups)}
            for level in cuts
        ],
    }
    script = json.dumps(data, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")
    key = "dendrogram-" + hashlib.sha256((script + title).encode()).hexdigest()[:10]
    say = html.escape(summary(cuts[start], Z), quote=True)
    listed = "".join(f"<li>{html.escape(line)}</li>" for line in describe(cuts[start], names, groups))
    return f"""<div class="btcnb-dendrogram" id="{key}" role="group" aria-label="{html.escape(title, quote=True)}">
<style>
#{key} svg {{ width: 100%; height: auto; }}
#{key} .controls {{ display: flex; flex-wrap: wrap; gap: .6em; align-items: center; }}
#{key} label {{ flex: 1 0 100%; }}
#{key} input {{ flex: 1 1 12em; min-width: 8em; }}
#{key} output {{ font-variant-numeric: tabular-nums; font-weight: 600; }}
#{key} button {{ font: inherit; padding: 0 .7em; min-height: 2em; }}
#{key} ul {{ margin: .6em 0; max-height: 15em; overflow: auto; }}
</style>
{picture}
{beside}
<div class="controls">
<label for="{key}-range">{html.escape(title)}: <output for="{key}-range">{say}</output></label>
<button type="button" data-step="-1" aria-label="lower the cut">▼</button>
<input id="{key}-range" type="range" min="0" max="{len(cuts) - 1}" step="1" value="{start}" aria-valuetext="{say}">
<button type="button" data-step="1" aria-label="raise the cut">▲</button>
</div>
<noscript><p>The cut can be moved where scripts are allowed; shown is the one at which the page opens.</p></noscript>
<ul tabindex="0" aria-label="clusters at this cut">{listed}</ul>
<script>
(function () {{
  const root = document.getElementById("{key}");
  if (!root) return;
  const data = {script};
  const range = root.querySelector("input"), output = root.querySelector("output"), list = root.querySelector("ul");
  const merges = root.querySelectorAll(".merge"), leaves = root.querySelectorAll(".leaf");
  const line = root.querySelector(".cut"), nodes = root.querySelectorAll(".node[data-leaf]");
  function show() {{
    const level = data.levels[Number(range.value)], cluster = [];
    level.runs.forEach((size, c) => {{ for (let i = 0; i < size; i++) cluster.push(c); }});
    const colour = (leaf) => data.colours[cluster[leaf] % data.colours.length];
    merges.forEach((path, m) => {{
      const below = data.height[m] < level.t;
      path.setAttribute("stroke", below ? colour(data.first[m]) : data.above);
      path.setAttribute("stroke-dasharray", below ? "none" : "5 3");
    }});
    leaves.forEach((dot, i) => dot.setAttribute("fill", colour(i)));
    nodes.forEach((dot) => dot.setAttribute("fill", colour(Number(dot.dataset.leaf))));
    line.setAttribute("y1", level.y);
    line.setAttribute("y2", level.y);
    output.textContent = level.say;
    range.setAttribute("aria-valuetext", level.say);
    list.replaceChildren(...level.list.map((text) => {{
      const item = document.createElement("li");
      item.textContent = text;
      return item;
    }}));
  }}
  range.addEventListener("input", show);
  root.querySelectorAll("button").forEach((button) => button.addEventListener("click", () => {{
    range.value = Number(range.value) + Number(button.dataset.step);
    show();
  }}));
  show();
}})();
</script>
</div>"""


def _picture(
    Z: Any, order: Sequence[int], level: Level, names: Sequence[str], groups: Sequence[str] | None
) -> tuple[str, list[int], Any]:
    """The drawing at one cut, the leftmost leaf below each merge, and the scale from heights to pixels."""
    n = len(Z) + 1
    top = max(float(Z[-1, 2]) * 1.08, 1e-9)
    floor = HEIGHT - BOTTOM

    def y(height: float) -> float:
        return round(floor - (floor - TOP) * height / top, 2)

    step = (WIDTH - LEFT - RIGHT) / n
    x, first = np.zeros(2 * n - 1), np.zeros(2 * n - 1, dtype=int)
    for position, leaf in enumerate(order):
        x[leaf], first[leaf] = LEFT + step * (position + 0.5), position
    cluster = np.repeat(np.arange(len(level.runs)), level.runs)
    palette = COLOURS[:-1]
    parts = []
    for m, (a, b, height, _) in enumerate(Z):
        left, right = sorted((int(a), int(b)), key=lambda node: first[node])
        x[n + m], first[n + m] = (x[left] + x[right]) / 2, first[left]
        ends = [y(0.0 if node < n else float(Z[node - n, 2])) for node in (left, right)]
        below = height < level.threshold
        stroke = palette[cluster[first[n + m]] % len(palette)] if below else ABOVE
        dashes = "none" if below else "5 3"
        parts.append(
            f'<path class="merge" d="M{x[left]:.1f} {ends[0]}V{y(height)}H{x[right]:.1f}V{ends[1]}" fill="none" '
            f'stroke="{stroke}" stroke-width="1.8" stroke-dasharray="{dashes}">'
            f"<title>height {height:.3f}</title></path>"
        )
    parts.extend(
        _leaf(position, step, floor, palette[cluster[position] % len(palette)], names, groups) for position in range(n)
    )
    parts.extend(
        f'<text x="{LEFT - 6}" y="{y(tick) + 4}" text-anchor="end" font-size="11" fill="currentColor">{tick:.2f}</text>'
        for tick in np.linspace(0.0, float(Z[-1, 2]), 5)
    )
    middle = (floor + TOP) / 2
    parts.append(
        f'<text transform="translate(14 {middle}) rotate(-90)" text-anchor="middle" font-size="12" fill="currentColor">'
        "cosine distance of the merge</text>"
    )
    parts.append(
        f'<line class="cut" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y(level.threshold)}" y2="{y(level.threshold)}" '
        'stroke="currentColor" stroke-width="1.6" stroke-dasharray="2 3"/>'
    )
    alt = f"Dendrogram of {n} leaves with a movable horizontal cut; the text below names the clusters"
    head = f'<svg viewBox="0 0 {WIDTH:.0f} {HEIGHT:.0f}" role="img" aria-label="{alt}">'
    return f"{head}\n{''.join(parts)}\n</svg>", [int(first[n + m]) for m in range(n - 1)], y


def _leaf(
    position: int, step: float, floor: float, colour: str, names: Sequence[str], groups: Sequence[str] | None
) -> str:
    """A dot, with the leaf's name and group below it where there is room."""
    x = LEFT + step * (position + 0.5)
    said = names[position] + ("" if groups is None else f", {groups[position]}")
    radius = min(4.0, step / 2.2)
    own = "" if groups is None else _square(x, floor + 6, 2 * radius, sorted(set(groups)).index(groups[position]))
    dot = (
        f'<circle class="leaf" cx="{x:.1f}" cy="{floor}" r="{radius:.1f}" fill="{colour}">'
        f"<title>{html.escape(said)}</title></circle>{own}"
    )
    shown = groups[position] if groups is not None else names[position]
    if groups is not None and step > 80:
        shown = f"{names[position]} · {groups[position]}"
    if step < 7:
        return dot
    size = min(11.0, step + 2)
    upright = step < max(22.0, 0.62 * size * len(shown))  # about the width of the word
    turn = f"translate({x:.1f} {floor + 18}) rotate(-90)" if upright else f"translate({x:.1f} {floor + 28})"
    anchor = "end" if upright else "middle"
    style = f'text-anchor="{anchor}" font-size="{size:.0f}" fill="currentColor"'
    return f'{dot}<text transform="{turn}" {style}>{html.escape(shown)}</text>'


def _square(x: float, top: float, side: float, group: int) -> str:
    """Whose leaf it is, whatever the cut: groups have colours of their own, in the order of their names."""
    colour = COLOURS[group % (len(COLOURS) - 1)]
    look = f'width="{side:.1f}" height="{side:.1f}" fill="{colour}" stroke="currentColor" stroke-width="0.5"'
    return f'<rect class="owner" x="{x - side / 2:.1f}" y="{top:.1f}" {look}/>'
