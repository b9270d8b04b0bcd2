"""Buttons above a page: an edit starts from the text that people edit; only chapters can be opened elsewhere."""

from __future__ import annotations

import re
from typing import Any

_EDITS = {"source-edit-button", "source-file-button"}
_LAUNCH = "launch-buttons"


def lead_to_text(app: Any, page: str, template: str, context: dict[str, Any], doctree: Any) -> None:
    """Notebooks are edited as .md, not as the .ipynb that is rendered; see `html-page-context` of Sphinx.

    The repository holds an .ipynb of chapters only, so other pages have nothing to open in Binder or Colab.
    """
    groups = context.get("header_buttons", [])
    if not page.startswith("notebooks/"):
        groups[:] = [group for group in groups if group.get("label") != _LAUNCH]
    for group in groups:
        for button in group.get("buttons", []):
            if button.get("label") in _EDITS:
                button["url"] = re.sub(r"\.ipynb(?=$|\?)", ".md", button["url"])
