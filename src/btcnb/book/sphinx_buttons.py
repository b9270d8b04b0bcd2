"""Buttons above a page: an edit starts from the text that people edit, and generated pages have nothing to edit."""

from __future__ import annotations

import re
from typing import Any

GENERATED = re.compile(r"book/(api(_\w+)?|benchmarks|status|verdicts)")
"""Pages that the build writes; the repository has no file of them."""
_EDITS = {"source-edit-button", "source-file-button"}


def lead_to_text(app: Any, page: str, template: str, context: dict[str, Any], doctree: Any) -> None:
    """Chapters are edited as .md, not as the .ipynb that is rendered; see `html-page-context` of Sphinx."""
    for group in context.get("header_buttons", ()):
        buttons = group.get("buttons", [])
        if GENERATED.fullmatch(page):
            buttons[:] = [button for button in buttons if button.get("label") not in _EDITS]
        for button in buttons:
            if button.get("label") in _EDITS and page.startswith("notebooks/"):
                button["url"] = re.sub(r"\.ipynb(?=$|\?)", ".md", button["url"])
