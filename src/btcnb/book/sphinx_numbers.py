"""References by number that do not read a whole page for every number.

For each {numref} Sphinx loads the page of its target from the disk again, a tenth of a second for a chapter. A page
mostly refers to its own figures and tables, so that the last few pages are worth remembering: a quarter of the time
that rendering this book took.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from docutils import nodes
from sphinx.domains.std import StandardDomain

PAGES = 4
"""Pages that are remembered: a chapter with its pictures can take tens of megabytes."""


class NumberedReferences(StandardDomain):
    """Sphinx's own domain; what is resolved, and to what, is the same."""

    def resolve_xref(self, env: Any, fromdocname: str, builder: Any, typ: str, *rest: Any) -> nodes.Element | None:
        seen: Any = _Remembering.of(env) if typ == "numref" else env
        return super().resolve_xref(seen, fromdocname, builder, typ, *rest)


class _Remembering:
    """An environment whose pages, as they were read, are loaded once; only to be looked at."""

    def __init__(self, env: Any) -> None:
        self._env = env
        self.get_doctree = lru_cache(PAGES)(env.get_doctree)

    @classmethod
    def of(cls, env: Any) -> _Remembering:
        """Kept with the builder, not with the environment, which is written to the disk."""
        builder = env.app.builder
        if not hasattr(builder, "btcnb_pages"):
            builder.btcnb_pages = cls(env)
        found: _Remembering = builder.btcnb_pages
        return found

    def __getattr__(self, name: str) -> Any:
        return getattr(self._env, name)
