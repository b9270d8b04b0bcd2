"""Records: outputs that chapters make for the build, not for the page (`btcnb.book.record`)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from nbformat import NotebookNode

from btcnb.book.output import RECORD_MIME
from btcnb.build.project import write_atomically


def take_records(notebook: NotebookNode) -> list[dict[str, Any]]:
    """Remove the records from the outputs of `notebook` and return them, in order.

    An output that held nothing else (its plain-text fallback apart) goes as a whole.
    """
    records: list[dict[str, Any]] = []
    for cell in notebook.cells:
        if cell.cell_type != "code":
            continue
        kept = []
        for output in cell.outputs:
            data = output.get("data", {})
            if RECORD_MIME in data:
                records.append(data.pop(RECORD_MIME))
                if not set(data) - {"text/plain"}:
                    continue
            kept.append(output)
        cell.outputs = kept
    return records


def write_records(path: Path, records: list[dict[str, Any]]) -> None:
    write_atomically(path, json.dumps(records, indent=1, ensure_ascii=False) + "\n")


def read_records(path: Path) -> list[dict[str, Any]]:
    """The records of a chapter whose stamp vouches for them."""
    return list(json.loads(path.read_text(encoding="utf-8")))
