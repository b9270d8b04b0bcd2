"""The book's own Sphinx extension: no script from another host, mentions that are links, buttons that lead to sources.

Jupyter Book always loads sphinx-thebe, which writes the address of a remote script into every page (twice, which
browsers report as an error). The book runs offline and has no live kernel, so thebe's listeners are taken off before
they act.
"""

from __future__ import annotations

from typing import Any

from btcnb.book.sphinx_buttons import lead_to_text
from btcnb.book.sphinx_links import BY_HAND, ONCE, LinkMentions
from btcnb.book.sphinx_numbers import NumberedReferences


def _without_thebe(app: Any) -> None:
    for listeners in app.events.listeners.values():
        listeners[:] = [item for item in listeners if not item.handler.__module__.startswith("sphinx_thebe")]


def setup(app: Any) -> dict[str, bool]:
    app.connect("builder-inited", _without_thebe, priority=0)
    for setting in (BY_HAND, ONCE):
        app.add_config_value(setting, [], "env", [list])
    app.add_domain(NumberedReferences, override=True)
    app.add_post_transform(LinkMentions)
    app.connect("html-page-context", lead_to_text, priority=900)  # after the theme has made its buttons
    return {"parallel_read_safe": True, "parallel_write_safe": True}
