"""A Sphinx extension that keeps the book to itself: no script from another host, no live-kernel button.

Jupyter Book always loads sphinx-thebe, which writes the address of a remote script into every page (twice, which
browsers report as an error). The book runs offline and has no live kernel, so thebe's listeners are taken off before
they act.
"""

from __future__ import annotations

from typing import Any


def _without_thebe(app: Any) -> None:
    for listeners in app.events.listeners.values():
        listeners[:] = [item for item in listeners if not item.handler.__module__.startswith("sphinx_thebe")]


def setup(app: Any) -> dict[str, bool]:
    app.connect("builder-inited", _without_thebe, priority=0)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
