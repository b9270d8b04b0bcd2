"""The book in one screen: a bar of verdicts and five findings, as the first page and the README show them.

Chapter 18 computes both and hands them to the build as a record; `btcnb summary` computes the same from what is
committed under `results/`. This module only tells, so a build need not load what computes.
"""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from btcnb.book.inline import inline_myst
from btcnb.errors import DataError

if TYPE_CHECKING:
    import pandas as pd

    from btcnb.experiments.headlines import Headline

KIND = "summary"
"""Kind of the record that chapter 18 makes for the build."""
ICONS = {
    "reproduced": "✔",
    "true by construction": "✔",
    "partly": "◐",
    "not reproduced": "✘",
    "cannot be tested here": "–",
}
FULL = 40
"""Length of the longest bar in the README, in characters."""


@dataclass(frozen=True)
class Summary:
    """How many claims have which outcome (all of `ICONS`, in order), among all and among the important; findings."""

    counts: Mapping[str, int]
    important: Mapping[str, int]
    findings: Sequence[tuple[str, str]]

    @property
    def claims(self) -> int:
        return sum(self.counts.values())

    def record(self) -> dict[str, Any]:
        """The fields of the record."""
        return {
            "counts": dict(self.counts),
            "important": dict(self.important),
            "findings": [list(each) for each in self.findings],
        }


def summarise(board: pd.DataFrame, found: Sequence[Headline]) -> Summary:
    """The summary of a scoreboard and of the findings."""
    important = board[board["importance"] == "high"]
    return Summary(
        _counted(board["outcome"]),
        _counted(important["outcome"]),
        tuple((each.question, each.finding) for each in found),
    )


def _counted(outcomes: pd.Series[str]) -> dict[str, int]:
    found = outcomes.value_counts()
    return {name: int(found.get(name, 0)) for name in ICONS}


def read_summary(records: Sequence[Mapping[str, Any]]) -> Summary | None:
    """The summary among the records of a chapter; None where there is none."""
    entry = next((entry for entry in records if entry.get("kind") == KIND), None)
    if entry is None:
        return None
    try:
        findings = tuple((str(question), str(finding)) for question, finding in entry["findings"])
        counts, important = ({name: int(entry[key][name]) for name in ICONS} for key in ("counts", "important"))
    except (KeyError, TypeError, ValueError) as error:
        raise DataError("chapter 18", KIND, f"is damaged ({error!s:.80})", "build the chapter again") from None
    return Summary(counts, important, findings)


def bar_html(summary: Summary) -> str:
    """The counts as one bar, segments as wide as their shares, with a legend that says all in words."""
    told = ", ".join(f"{count} {name}" for name, count in summary.counts.items())
    label = html.escape(f"Verdicts on {summary.claims} claims: {told}")
    shown = [(name, count) for name, count in summary.counts.items() if count]
    parts = "".join(
        f'<span class="{name.replace(" ", "-")}" style="flex-grow:{count}"><i>{count}</i></span>'
        for name, count in shown
    )
    items = "".join(
        f'<li><span class="key {name.replace(" ", "-")}"></span>{ICONS[name]} {html.escape(name)}: <b>{count}</b> '
        f"<small>({summary.important[name]} of high importance)</small></li>"
        for name, count in summary.counts.items()
    )
    return (
        f'<div class="verdict-bar" role="img" aria-label="{label}">{parts}</div>\n'
        f'<ul class="verdict-legend">{items}</ul>\n'
    )


def findings_myst(summary: Summary) -> str:
    """The findings as a numbered list."""
    lines = enumerate(summary.findings, 1)
    return "\n".join(f"{i}. **{inline_myst(ask)}** {inline_myst(answer)}" for i, (ask, answer) in lines)


def readme_block(summary: Summary) -> str:
    """The same as plain Markdown, bars of characters among it."""
    most = max([*summary.counts.values(), 1])
    rows = [
        f"| {ICONS[name]} {name} | {count} | {summary.important[name]} | {'█' * -(-FULL * count // most)} |"
        for name, count in summary.counts.items()
    ]
    found = [f"{i}. **{ask}** {answer}" for i, (ask, answer) in enumerate(summary.findings, 1)]
    return "\n".join(
        [
            f"Verdicts on the paper's {summary.claims} claims, by rules with a date; *important* counts those of high",
            "importance. Almost all rest on simulated data; chapter 18 has every rule and every number.",
            "",
            "| verdict | claims | important | |",
            "| --- | ---: | ---: | --- |",
            *rows,
            "",
            "Five findings, computed from the records in `results/sweeps`; brackets hold 95 % intervals:",
            "",
            *found,
        ]
    )
