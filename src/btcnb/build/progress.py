"""What a build says: one line that keeps up to date on a terminal, plain lines elsewhere, everything in the log."""

from __future__ import annotations

import shutil
import sys
import time
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TextIO

_QUIET_SECONDS = 10.0  # off a terminal: at most one line per chapter in this time


@dataclass
class _Running:
    number: int
    started: float
    cell: int = 0
    cells: int = 0
    said: float = 0.0


class Progress:
    """Tells how far `total` chapters have come; every message also goes to `log`, with the time of day."""

    def __init__(self, log: Path, stream: TextIO | None = None) -> None:
        self.stream = stream or sys.stdout
        self.live = self.stream.isatty()
        self.log_path = log
        log.parent.mkdir(parents=True, exist_ok=True)
        self._log = log.open("a", encoding="utf-8")
        self.total = 0
        self._count = 0
        self._running: dict[str, _Running] = {}
        self._line = ""

    def close(self) -> None:
        self._show("")
        self._log.close()

    def say(self, message: str) -> None:
        """A line that stays."""
        self._show("")
        print(message, file=self.stream, flush=True)
        self.note(message)
        self.tick()

    def note(self, message: str) -> None:
        """A line for the log only."""
        clock = datetime.now().strftime("%Y-%m-%d %H:%M:%S")
        for line in message.splitlines():
            self._log.write(f"{clock}  {line}\n")
        self._log.flush()

    def cell(self, chapter: str, cell: int, cells: int) -> None:
        """Code cell `cell` of `cells` has started; 0 stands for the kernel."""
        now = time.monotonic()
        if chapter not in self._running:
            self._count += 1
            self._running[chapter] = _Running(self._count, now)
        state = self._running[chapter]
        state.cell, state.cells = cell, cells
        line = self._describe(chapter, state)
        self.note(line)
        if not self.live and (cell <= 1 or now - state.said >= _QUIET_SECONDS):
            print(line, file=self.stream, flush=True)
            state.said = now
        self.tick()

    def end(self, chapter: str, outcome: str) -> None:
        """The chapter is over, well or not."""
        state = self._running.pop(chapter, None)
        if state is None:  # it ended before its first cell
            self._count += 1
            state = _Running(self._count, time.monotonic())
        self.say(f"chapter {state.number} of {self.total} · {chapter} · {outcome}")

    def tick(self) -> None:
        """Bring the live line up to date."""
        if self.live:
            self._show("   ".join(self._describe(chapter, state) for chapter, state in self._running.items()))

    def working(self, what: str) -> None:
        """The live line for work that is not a chapter's."""
        if self.live:
            self._show(what)

    def _describe(self, chapter: str, state: _Running) -> str:
        elapsed = duration(time.monotonic() - state.started)
        where = f"cell {state.cell} of {state.cells}" if state.cell else "starting"
        return f"chapter {state.number} of {self.total} · {chapter} · {where} · {elapsed}"

    def _show(self, line: str) -> None:
        if not self.live or line == self._line:
            return
        width = shutil.get_terminal_size().columns - 1
        self.stream.write("\r\x1b[2K" + line[:width])
        self.stream.flush()
        self._line = line


def duration(seconds: float) -> str:
    """0:07, 12:30, 1:02:03."""
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"
