"""Several clusters to choose from, each as a tree with a cut to move and a graph that follows."""

from __future__ import annotations

import hashlib
import html
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from IPython.display import display
from scipy.cluster import hierarchy

from btcnb import gates
from btcnb.book.cluster_graph import Neighbourhood, neighbourhood_svg
from btcnb.book.interactive_dendrogram import dendrogram_html
from btcnb.errors import ParameterError


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
    """Display `explorer_html` of the same arguments."""
    page = explorer_html(panels, cut)
    display({"text/html": page, "text/plain": f"{len(panels)} clusters to choose from"}, raw=True)


def explorer_html(panels: Sequence[Panel], cut: float) -> str:
    """One self-contained piece of HTML; without scripts all clusters stand below each other."""
    panels = [gates.instance("a panel", panel, Panel) for panel in gates.items("panels", panels)]
    if not panels:
        raise ParameterError("panels is empty, but there must be a cluster to choose.")
    pages = [_page(panel, cut) for panel in panels]
    key = "clusters-" + hashlib.sha256("".join(pages).encode()).hexdigest()[:10]
    options = "".join(f'<option value="{i}">{html.escape(panel.title)}</option>' for i, panel in enumerate(panels))
    body = "\n".join(f'<div class="panel">{page}</div>' for page in pages)
    return f"""<div class="btcnb-clusters" id="{key}" role="group" aria-label="clusters to explore">
<p><label for="{key}-choice">Cluster: </label><select id="{key}-choice">{options}</select></p>
{body}
<script>
(function () {{
  const root = document.getElementById("{key}");
  if (!root) return;
  const choice = root.querySelector("select"), panels = root.querySelectorAll(":scope > .panel");
  function show() {{ panels.forEach((panel, i) => {{ panel.hidden = i !== Number(choice.value); }}); }}
  choice.addEventListener("change", show);
  show();
}})();
</script>
</div>"""


def _page(panel: Panel, cut: float) -> str:
    tree = np.asarray(panel.Z, dtype=float)
    names = [f"address {number}" for number in range(len(tree) + 1)]
    place = np.empty(len(names), dtype=int)
    place[hierarchy.leaves_list(tree)] = np.arange(len(names))
    said = [f"{name}, {group}" for name, group in zip(names, panel.groups, strict=True)]
    graph = neighbourhood_svg(panel.drawn, place.tolist(), said)
    return dendrogram_html(tree, panel.title, names, panel.groups, cut, beside=graph)
