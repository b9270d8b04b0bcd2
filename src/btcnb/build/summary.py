"""What `btcnb summary` keeps up to date: recorded verdicts and the README's summary.

Claims that rules judge are judged anew from `results/sweeps` each time. Claims that a chapter judges by its own code
need that chapter's execution; their verdicts are taken from a build and committed as `results/verdicts.csv`, so that
everything in the README follows from committed files.
"""

from __future__ import annotations

import csv
import functools
import io
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from btcnb.book.board import Summary, readme_block, summarise
from btcnb.book.reading import recorded_verdicts, sweep
from btcnb.build.project import Output, Project, UsageError
from btcnb.errors import DataError
from btcnb.paper.board import OUTCOMES, of_chapter, scoreboard
from btcnb.paper.claims import claims
from btcnb.paper.rules import Chapter

if TYPE_CHECKING:
    from btcnb.experiments.findings import Finding, Read

VERDICTS, README = "results/verdicts.csv", "README.md"
START, END = "<!-- summary: `btcnb summary` writes this -->", "<!-- end of the summary -->"
_COLUMNS = ("id", "chapter", "verdict")
Findings: TypeAlias = "Callable[[Read], Sequence[Finding]]"
"""`btcnb.experiments.findings.findings`, handed in by the command line: nothing else imports experiments."""
_BLOCK = re.compile(f"{re.escape(START)}\n.*?{re.escape(END)}", re.DOTALL)


def verdicts_of(output: Output) -> list[tuple[str, str, str]]:
    """Id, chapter and verdict of every claim that a chapter of this build has judged by its own code."""
    recorded = recorded_verdicts(output.records)
    own = [each for each in claims() if isinstance(each.rule, Chapter) and each.rule.chapter in recorded]
    return [(each.id, each.chapter, of_chapter(each, recorded).verdict) for each in own]


def read_verdicts(path: Path) -> list[tuple[str, str, str]]:
    """The lines of `results/verdicts.csv`; none where it is missing."""
    if not path.exists():
        return []
    with path.open(encoding="utf-8", newline="") as file:
        header, *rows = csv.reader(file)
    if tuple(header) != _COLUMNS or not all(len(row) == 3 and row[2] in OUTCOMES for row in rows):
        raise DataError(path, "verdicts", "hold something else", "write it again: `btcnb summary` after a build")
    return [(id, chapter, verdict) for id, chapter, verdict in rows]


def verdicts_text(project: Project, output: Output) -> str:
    """`results/verdicts.csv` as it should be: a build's verdicts; those of chapters that it lacks stay as they were."""
    known = {each.id for each in claims() if isinstance(each.rule, Chapter)}
    lines = {line[0]: line for line in [*read_verdicts(project.root / VERDICTS), *verdicts_of(output)]}
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerows([_COLUMNS, *(lines[id] for id in sorted(known & set(lines)))])
    return text.getvalue()


def committed_summary(project: Project, findings: Findings) -> Summary:
    """The summary that follows from what is committed: claims, records of the sweeps, recorded verdicts."""
    recorded: dict[str, list[dict[str, Any]]] = {}
    for id, chapter, verdict in read_verdicts(project.root / VERDICTS):
        recorded.setdefault(chapter, []).append({"id": id, "verdict": verdict, "evidence": ""})
    read = functools.cache(sweep)
    return summarise(scoreboard(claims(), read, recorded), findings(read))


def readme_text(project: Project, findings: Findings) -> str:
    """The README with the summary of today between its two marks."""
    text = (project.root / README).read_text(encoding="utf-8")
    if not _BLOCK.search(text):
        raise UsageError(f"{README} lacks the lines {START} and {END}, between which the summary goes.")
    block = f"{START}\n{readme_block(committed_summary(project, findings))}\n{END}"
    return _BLOCK.sub(lambda _: block, text)
