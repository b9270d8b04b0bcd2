"""What the other chapters of a build have recorded, for a chapter that runs last, and the pages they stand on.

`btcnb build` names the folder of the records in the environment. A chapter that runs alone, by papermill or in
Jupyter, has no such folder, and so no records.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from btcnb.errors import DataError
from btcnb.store.reads import ROOT

FOLDER = "BTCNB_RECORDS"
NOTEBOOKS = ROOT / "notebooks"


def recorded_verdicts(folder: Path | None = None) -> dict[str, list[dict[str, Any]]]:
    """The verdicts of every chapter that has been executed, by the chapter's number; without a build, none at all.

    folder: the records of a build; left out, those of the build that executes the calling chapter
    The build itself watches these files: a chapter with `reads_records` runs again when one of them changes.
    """
    named = os.environ.get(FOLDER) if folder is None else folder
    paths = sorted(Path(named).glob("[0-9][0-9]_*.json")) if named else []
    return {path.name[:2]: _verdicts(path) for path in paths}


def _verdicts(path: Path) -> list[dict[str, Any]]:
    try:
        entries = json.loads(path.read_text(encoding="utf-8"))
        found = [dict(entry) for entry in entries if entry["kind"] == "verdict"]
        if not all(isinstance(entry[name], str) for entry in found for name in ("claim", "verdict", "evidence")):
            raise ValueError("a verdict lacks its claim or its evidence")
    except (OSError, KeyError, TypeError, ValueError) as error:
        why = f"cannot be read ({error!s:.200})"
        raise DataError(path, "records", why, "delete it and build the chapter again") from None
    return found


def chapter_pages() -> dict[str, str]:
    """The page of each chapter, as seen from another chapter's page, by number: `{"11": "11_ablation.html"}`."""
    return {path.name[:2]: f"{path.stem}.html" for path in sorted(NOTEBOOKS.glob("[0-9][0-9]_*.md"))}
