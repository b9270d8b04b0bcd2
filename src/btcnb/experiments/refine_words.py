"""What the report says in words: what a flag means and what it does not, and how everything was made."""

from __future__ import annotations

from typing import Any

from btcnb.experiments.refine_drawing import esc, short
from btcnb.experiments.refine_tool import WORDS, Outcome

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
