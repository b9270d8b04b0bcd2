"""Progress of long work: a bar, a function, or nobody."""

from __future__ import annotations

import importlib
import sys
import time
from collections.abc import Callable
from typing import Any

Progress = bool | Callable[[int, int], object] | None

BAR_FROM = 20_000
"""Points from which `progress=None` shows a bar on a terminal: smaller work takes about a second."""

REDRAW = 0.2
"""Seconds between two drawings."""


class _Line:
    """A line of text on standard error, for environments without tqdm."""

    def __init__(self, total: int, desc: str, **_: object) -> None:
        self.total, self.desc, self.done = total, desc, 0

    def update(self, more: int) -> None:
        self.done += more

    def refresh(self) -> None:
        print(f"\r{self.desc}: {self.done:,} of {self.total:,}", end="", file=sys.stderr, flush=True)

    def close(self) -> None:
        print(file=sys.stderr)


def _bar(total: int, name: str, unit: str) -> Any:
    try:
        return importlib.import_module("tqdm.auto").tqdm(total=total, desc=name, unit=unit, leave=False)
    except ImportError:
        return _Line(total, name)


class Reporter:
    """Context that reports to a bar (True; None: on a terminal, for long work), to a function (done, total) or to
    nobody.

    `add()` without a number only says that the work goes on. An exception that the function raises ends the work.
    """

    def __init__(self, progress: Progress, total: int, name: str, unit: str = "point") -> None:
        if progress is not None and not isinstance(progress, bool) and not callable(progress):
            raise TypeError("progress must be True, False, None or a function of (done, total).")
        self.total, self.done, self._drawn = total, 0, 0.0
        self._callback = progress if callable(progress) else None
        shown = progress is True or (progress is None and total + 1 >= BAR_FROM and sys.stderr.isatty())
        self._bar = _bar(total, name, unit) if shown else None

    def __enter__(self) -> Reporter:
        try:
            self.add()
        except BaseException:  # an interrupt here comes before the body of `with`, which would not close the bar
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.close()

    def add(self, more: int = 0) -> None:
        """Report `more` units of finished work."""
        self.done += more
        if self._bar is not None:
            self._bar.update(more)
            if time.monotonic() - self._drawn > REDRAW:
                self._bar.refresh()
                self._drawn = time.monotonic()
        if self._callback is not None:
            self._callback(self.done, self.total)


def nobody(more: int = 0) -> None:
    """For work that nobody watches."""
