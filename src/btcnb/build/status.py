"""The status page: every chapter, whether it has been executed, when, how long it took, and with which versions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from btcnb.book.text import Markup, code, pipe_table, without_credentials
from btcnb.build.chapters import Chapter
from btcnb.build.fingerprint import Stamp
from btcnb.build.provenance import duration_words, when


@dataclass(frozen=True)
class ChapterState:
    """A chapter, the stamp of its last complete execution (if any), and what has changed since."""

    chapter: Chapter
    stamp: Stamp | None
    changes: tuple[str, ...] = ()

    @property
    def words(self) -> str:
        if self.stamp is None:
            return "not executed"
        return f"executed; changed since: {', '.join(self.changes)}" if self.changes else "executed"


def status_page(preset: str, states: Sequence[ChapterState]) -> str:
    """`book/status.md`, MyST."""
    stamps = [state.stamp for state in states if state.stamp]
    total = sum(stamp.seconds for stamp in stamps)
    lines = [
        "# Status of this build",
        "",
        f"Preset `{preset}`: {len(stamps)} of {len(states)} chapters executed, in {duration_words(total)} altogether.",
        "Each chapter ends with its own provenance: parameters, seed, commit, data source.",
        "",
        pipe_table(
            ["chapter", "state", "executed", "time", "code cells", "parameters changed"],
            [_row(state) for state in states],
            [False, False, False, True, True, False],
        ),
    ]
    return "\n".join([*lines, *_versions(stamps)]) + "\n"


def _row(state: ChapterState) -> list[Any]:
    chapter, stamp = state.chapter, state.stamp
    title = Markup(f"{{doc}}`/notebooks/{chapter.name}`") if chapter.in_toc else code(chapter.name)
    if stamp is None:
        return [title, state.words, *"––––"]
    changed = ", ".join(code(without_credentials(f"{name} = {stamp.parameters[name]!r}")) for name in stamp.changed)
    return [title, state.words, when(stamp.finished), duration_words(stamp.seconds), stamp.cells, changed or "none"]


def _versions(stamps: Sequence[Stamp]) -> list[str]:
    """One table of versions; chapters executed under different ones each show theirs."""
    found: dict[str, dict[str, None]] = {}
    for stamp in stamps:
        for name, version in {**stamp.versions, "commit": stamp.commit, "machine": stamp.machine}.items():
            found.setdefault(name, {})[version] = None
    if not found:
        return []
    return ["", "## Versions", "", pipe_table(["what", "version"], [[name, ", ".join(found[name])] for name in found])]
