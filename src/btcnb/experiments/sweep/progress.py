"""What a sweep says: a bar that keeps up to date on a terminal, exactly one plain line a run elsewhere."""

from __future__ import annotations

import sys
from datetime import datetime
from typing import TextIO

from tqdm import tqdm


class Progress:
    """Counts the runs of a sweep and tells how long the rest will take, from the runs of this sweep so far."""

    def __init__(self, total: int, slots: int, stream: TextIO | None = None) -> None:
        self.total, self.slots = total, slots
        self.done = self.failed = 0
        self._seconds: list[float] = []
        self._stream = sys.stdout if stream is None else stream
        live = self._stream.isatty()
        layout = "{desc}|{bar}| {n_fmt}/{total_fmt}{postfix}"
        self._bar = tqdm(total=total, file=self._stream, bar_format=layout, dynamic_ncols=True) if live else None
        self._refresh()

    @property
    def remaining(self) -> int:
        return self.total - self.done - self.failed

    @property
    def left(self) -> str:
        """The time left in words; empty before the first run is over."""
        if not self._seconds or not self.remaining:
            return ""
        mean = sum(self._seconds) / len(self._seconds)
        return f"about {duration(mean * self.remaining / self.slots)} left"

    @property
    def counts(self) -> str:
        parts = [f"{self.done} done", f"{self.failed} failed", f"{self.remaining} to go", self.left]
        return ", ".join(part for part in parts if part)

    def run(self, what: str, seconds: float, error: str = "", elsewhere: bool = False) -> None:
        """A run is over: `what` says which; `elsewhere`, another process made it and its time says nothing here."""
        if error:
            self.failed += 1
        else:
            self.done += 1
        if not elsewhere:
            self._seconds.append(seconds)
        how = f"failed after {duration(seconds)} ({error.rstrip('.')})" if error else duration(seconds)
        if self._bar is None:
            clock = datetime.now().strftime("%Y-%m-%d %H:%M:%S")
            print(f"{clock} · {what} · {how} · {self.counts}", file=self._stream, flush=True)
            return
        if error:
            self._bar.write(f"{what} · {how}", file=self._stream)
        self._bar.update()
        self._refresh()

    def warn(self, sentence: str) -> None:
        """Beside the lines of the runs: to the errors' stream where there is no terminal."""
        if self._bar is None:
            print(f"warning: {sentence}", file=sys.stderr, flush=True)
        else:
            self._bar.write(f"warning: {sentence}", file=self._stream)

    def close(self) -> None:
        if self._bar is not None:
            self._bar.close()

    def _refresh(self) -> None:
        if self._bar is not None:
            self._bar.set_description_str(self.counts)


def duration(seconds: float) -> str:
    """0:07, 12:30, 1:02:03."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"
