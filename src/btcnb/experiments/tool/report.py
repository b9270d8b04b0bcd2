"""What the report says in words: what a flag means and what it does not, and how everything was made."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from btcnb.experiments.tool.drawing import Condensed, condensed, dendrogram, esc, heights_picture, short
from btcnb.experiments.tool.run import WORDS, Outcome

CAREFUL = """<div class="careful"><p><strong>Suspicion, not proof.</strong> A flagged merge says that two groups of
addresses behave differently. One person may behave in two ways, and two people alike. How often a flag is right on this
data is not known: nothing here says who owns what, or that anybody did anything wrong.</p></div>"""

MEANING = """<h2>What it means, and what it does not</h2>
<ul>
<li><strong>A flag is a reason to look.</strong> Read the transactions behind the merge: a payment signed by two people,
an unrecognised CoinJoin, a mistaken guess at the change. Where they explain the merge, keep it.</li>
<li><strong>No flag is no acquittal.</strong> Strangers who use the same wallet in the same way look alike. A cluster
without flags is still a hypothesis, not evidence of one owner.</li>
<li><strong>The network learnt from simulated economies</strong> unless you gave it another encoder. It has never seen a
real address, and its error rates on real data are unknown. Report that with whatever you conclude.</li>
<li><strong>Only merges are questioned.</strong> Addresses that were never in one cluster stay apart, even where they
have one owner.</li>
<li><strong>Behaviour at the edge of the data is thin.</strong> An address with one transaction has few features; what
lies before the first block or after the last one is not known.</li>
</ul>
<p>Clusters of addresses are about people. Before you use or publish this: who is harmed if it is wrong, and who if it
is right? Keep addresses of private people to yourself, and follow the law on personal data, which in many countries
covers pseudonyms. Taking part in a CoinJoin is no sign of guilt.</p>"""

COUNTED = {
    "addresses": "single addresses",
    "inputs": "groups of addresses that were inputs of one transaction, which are never separated",
}
RULED = {
    "fixed": "one number for all clusters, given beforehand",
    "lambda": "one number for all: the mean, weighted by size, of the cuts that separate clusters best (silhouette)",
    "local": "for each cluster the cut that separates it best (silhouette); small clusters take the weighted mean, λ",
}


def how_it_was_made(outcome: Outcome) -> str:
    """Recipe, encoder, price and the cost of each stage."""
    refiner, encoder, request = outcome.refiner, outcome.encoder, outcome.request
    price = "not used" if outcome.price_usd is None else f"{outcome.price_usd:,.2f} USD"
    trained = encoder.made.get("trained_on", "not told by its file")
    facts: list[tuple[str, Any]] = [
        ("clusters", _clusters(outcome)),
        ("ends of the trees", COUNTED[refiner.units]),
        ("threshold", RULED[refiner.threshold_rule]),
        ("linkage", f"{refiner.method}, cosine distance"),
        ("price of a bitcoin", price),
        ("encoder", "the one of the package" if request.encoder is None else short(str(request.encoder), 90)),
        ("trained on", trained),
        ("digest of the encoder", encoder.digest),
    ]
    rows = "".join(f'<tr><th scope="row">{name}</th><td>{esc(value)}</td></tr>' for name, value in facts)
    laps = outcome.laps
    costs = "".join(
        f'<tr><th scope="row">{WORDS[name]}</th><td class="number">{seconds:.1f} s</td>'
        f'<td class="number">{laps.peak_mb[name]:,.0f} MB</td></tr>'
        for name, seconds in laps.seconds.items()
        if name != "write"  # it is not over yet
    )
    return (
        f"<h2>How it was made</h2>\n<table>{rows}</table>\n"
        '<p class="quiet">The same facts, with the versions of all programs, stand in <code>summary.json</code>; '
        "<code>partition.csv</code> gives the cluster of every address before and after.</p>\n"
        f'<table class="narrow"><thead><tr><th scope="col">stage</th><th scope="col" class="number">time</th>'
        f'<th scope="col" class="number">peak memory</th></tr></thead><tbody>{costs}</tbody></table>'
    )


def _clusters(outcome: Outcome) -> str:
    if outcome.request.clusters is not None:
        return f"given, {short(str(outcome.request.clusters), 90)}"
    if outcome.transactions is None:
        return "those of the release"
    return "heuristic: common inputs, change, round values, forced merges; detected CoinJoins left out"


STYLE = Path(__file__).parent / "report.css"
POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
LONGEST = 90
"""Letters of an address or cluster that the page shows; the tables beside it hold all of them."""


def report(outcome: Outcome, top: int = 12) -> str:
    """The whole page; `top` merges are listed, and as many clusters are drawn."""
    title = "Suspicious merges in address clusters"
    body = [_head(outcome, title), _tiles(outcome), _in_short(outcome), CAREFUL]
    body += [_heights(outcome), _drawings(outcome, top), _table(outcome, top), MEANING, how_it_was_made(outcome)]
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="robots" content="noindex">\n'
        f"<title>{title}</title>\n<style>\n{STYLE.read_text(encoding='utf-8')}</style>\n</head>\n<body>\n"
        + "\n".join(part for part in body if part)
        + "\n</main>\n</body>\n</html>\n"
    )


def _head(outcome: Outcome, title: str) -> str:
    first, last = outcome.blocks
    number = "" if outcome.transactions is None else f"{outcome.transactions:,} transactions, "
    blocks = f"block {first:,}" if first == last else f"blocks {first:,} to {last:,}"
    made = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    source = f'<span class="address">{esc(short(str(outcome.request.source), LONGEST))}</span>'
    told = f"{source} ({esc(outcome.kind)}): {number}{blocks}. Made {made} by btcnb {esc(version('btcnb'))}."
    return f'<header><h1>{title}</h1><p class="quiet">{told}</p></header>\n<main>'


def _tiles(outcome: Outcome) -> str:
    counts = outcome.counts()
    entries = [
        ("addresses", counts["addresses"], ""),
        ("clusters before", counts["clusters"], ""),
        ("merges flagged", counts["flagged"], "bad"),
        ("clusters with a flagged merge", counts["clusters_flagged"], "bad"),
        ("clusters after", counts["refined_clusters"], ""),
    ]
    tiles = [f'<div class="{kind}"><dt>{name}</dt><dd>{value:,}</dd></div>' for name, value, kind in entries]
    found = outcome.found.threshold
    cut = f"{found:.3f}" if math.isfinite(found) else "none"
    tiles.append(f"<div><dt>threshold λ</dt><dd>{cut}</dd></div>")
    return f'<dl class="tiles">{"".join(tiles)}</dl>'


def _in_short(outcome: Outcome) -> str:
    counts = outcome.counts()
    several, flagged = counts["clusters_of_several"] or 0, counts["clusters_flagged"] or 0
    if not counts["flagged"]:
        text = f"None of the {several:,} clusters with several addresses holds a merge that looks suspicious here."
    else:
        share = 100.0 * flagged / max(several, 1)
        text = (
            f"Of {several:,} clusters with several addresses, {flagged:,} ({share:.1f} %) hold at least one merge that "
            f"joins what the network sees as different. If every flagged merge is undone, {counts['clusters']:,} "
            f"clusters become {counts['refined_clusters']:,}; the largest cluster held {counts['largest_cluster']:,} "
            "addresses."
        )
    notes = "".join(f"<li>{esc(note)}</li>" for note in outcome.notes)
    return f"<p>{text}</p>" + (f'<ul class="quiet">{notes}</ul>' if notes else "")


def _heights(outcome: Outcome) -> str:
    found = outcome.found
    if not len(found.forest.merges):
        return ""
    above, heights = found.above(), found.forest.merges[:, 2]
    picture = heights_picture(heights[~above], heights[above], found.threshold)
    which = "the cut of their own cluster (λ is the mean of the cuts)" if _local(outcome) else "λ"
    return (
        "<h2>How high the merges are</h2>\n"
        f'<figure class="wide"><figcaption>All {len(heights):,} merges inside clusters, by the distance that they '
        f"bridge. Those at {which} or above (orange) are flagged. The scale of numbers is logarithmic."
        f"</figcaption>{picture}</figure>"
    )


def _table(outcome: Outcome, top: int) -> str:
    table = outcome.found.flagged
    listed = table.head(top)
    if not len(listed):
        return ""
    names, titles = outcome.material.names, outcome.material.titles
    above = "above its cut" if _local(outcome) else "above λ"
    header = ["cluster", "height", above, "sides", "an address of the larger side", "of the smaller", "suspicion"]
    numeric = [False, True, True, True, False, False, True]
    kinds = ["cluster address", *(["number"] * 3), "address", "address", "number"]
    rows = []
    row: Any
    for row in listed.itertuples():
        cells = [
            esc(short(titles[row.cluster], LONGEST)),
            f"{row.height:.3f}",
            f"{row.excess:.3f}",
            f"{row.size_left:,} + {row.size_right:,}",
            esc(short(names[row.left], LONGEST)),
            esc(short(names[row.right], LONGEST)),
            f"{row.suspicion:.3f}",
        ]
        triples = zip(cells, header, kinds, strict=True)
        rows.append(
            "".join(f'<td class="{kind}" data-name="{name}"><span>{c}</span></td>' for c, name, kind in triples)
        )
    heads = "".join(
        f'<th scope="col"{" class=number" if right else ""}>{name}</th>'
        for name, right in zip(header, numeric, strict=True)
    )
    body = "\n".join(f"<tr>{row}</tr>" for row in rows)
    return (
        "<h2>The most suspicious merges</h2>\n"
        f"<p>The first {len(listed):,} of {len(table):,}; all of them stand in <code>flagged.csv</code>. Suspicion is "
        "how far the height lies above the threshold, times how evenly the merge divides its addresses: 1 for halves, "
        "near 0 for one stray address.</p>\n"
        f'<table class="merges"><thead><tr>{heads}</tr></thead>\n<tbody>\n{body}\n</tbody></table>'
    )


def _drawings(outcome: Outcome, top: int) -> str:
    found = outcome.found
    clusters = most_concerned(found.flagged)[:top]
    if not len(clusters):
        return ""
    first = np.unique(found.leaf, return_index=True)[1]
    cards, cut = [], "own cut" if _local(outcome) else "λ"
    for label in clusters:
        t = int(np.searchsorted(found.forest.clusters, label))
        tree, title = condensed(found, t), esc(short(outcome.material.titles[label], 40))
        picture = dendrogram(
            tree, lambda leaf: outcome.material.names[first[leaf]], f"Dendrogram of cluster {label}", cut
        )
        cards.append(f"<figure><figcaption><h3>Cluster {title}</h3>{_caption(tree)}</figcaption>{picture}</figure>")
    return (
        "<h2>Clusters that flags would split most</h2>\n"
        "<p>Each tree joins the addresses of one cluster, the most alike first (right), until all are one (left). "
        "Thick orange brackets with a dot lie at the cut or above: they are flagged, and undoing them leaves parts, "
        "one colour each. An end shows an example address and for how many it stands; a hollow one stands for several "
        "parts. First come the clusters in which flags set most addresses apart, and furthest.</p>"
        f'\n<div class="cards">\n{chr(10).join(cards)}\n</div>'
    )


def most_concerned(flagged: pd.DataFrame) -> npt.NDArray[np.int64]:
    """Clusters by the addresses that their flagged merges would set apart, each times the merge's excess; most first.

    A pair of addresses can be as suspicious as two halves of a thousand; what is drawn should matter to many.
    """
    weight = (flagged["excess"] * flagged["size_right"]).groupby(flagged["cluster"]).sum()
    return weight.sort_values(ascending=False, kind="stable").index.to_numpy(dtype=np.int64)


def _caption(tree: Condensed) -> str:
    text = f"{tree.addresses:,} addresses in {tree.parts:,} parts."
    if tree.left_out:
        text += f" Not drawn: {tree.left_out:,} addresses that join singly or in small groups."
    return text


def _local(outcome: Outcome) -> bool:
    return outcome.refiner.threshold_rule == "local"
