"""Progress of long work: a bar, a function, or nobody."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

from tqdm.auto import tqdm

from btcnb import gates

Progress = bool | Callable[[int, int], None] | None

FROM = 20_000
"""Points from which `progress=None` shows a bar on a terminal: below, a run takes about a second."""


class Reporter:
    """Tells a bar (True; or None on a terminal, for long work), a function of (done, total) or nobody.

    Used as a context. `add()` without a number only shows that the work goes on; an exception that the function raises
    there ends the work.
    """

    def __init__(self, progress: Progress, total: int, name: str, unit: str = "point") -> None:
        if progress is not None and not isinstance(progress, bool):
            gates.function("progress", progress)
        self.total, self.done, self.drawn = total, 0, 0.0
        self.callback = progress if callable(progress) else None
        shown = progress is True or (progress is None and total + 1 >= FROM and sys.stderr.isatty())
        self.bar = tqdm(total=total, desc=name, unit=unit, leave=False) if shown else None

    def __enter__(self) -> Reporter:
        try:
            self.add()
        except BaseException:  # an interrupt at the first drawing: `with` has not begun, and would not close the bar
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        if self.bar is not None:
            self.bar.close()

    def add(self, more: int = 0) -> None:
        self.done += more
        if self.bar is not None:
            self.bar.update(more)
            if time.monotonic() - self.drawn > 0.2:
                self.bar.refresh()
                self.drawn = time.monotonic()
        if self.callback is not None:
            self.callback(self.done, self.total)


def nobody(more: int = 0) -> None:
    """For work that nobody watches."""
