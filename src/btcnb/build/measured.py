"""Numbers of the benchmarks in prose pages: `{{ linkage.speed_up }}` is taken from `results/benchmarks/linkage.json`.

A page names the benchmark and the column; `{{ linkage.speed_up shape=uniform n=20000 }}` picks rows, and a format comes
last: `{{ linkage.peak_mb stage=ours n=65000 | {:.0f} }}`. All rows that are picked must say the same.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from btcnb.book.text import number
from btcnb.build.errors import UsageError

_VALUE = r"(?:\"[^\"}]*\"|[^\s\"}|]+)"
_MARK = re.compile(
    rf"\{{\{{ *(?P<name>\w+)\.(?P<column>\w+)(?P<where>(?: +\w+={_VALUE})*) *(?:\| *(?P<form>\{{[^{{}}]*\}}) *)?\}}\}}"
)
_PICK = re.compile(r"(\w+)=(?:\"([^\"}]*)\"|([^\s\"}|]+))")


def fill(text: str, folder: Path, page: str, words: Mapping[str, str]) -> str:
    """`text` with every mark replaced; `{{ WORD }}` stands for an entry of `words`. `page` is named in errors."""
    for word, meaning in words.items():
        text = re.sub(rf"\{{\{{ *{word} *\}}\}}", lambda _: meaning, text)  # noqa: B023
    return _MARK.sub(lambda found: _number(found, folder, page), text)


def _number(found: re.Match[str], folder: Path, page: str) -> str:
    where = {key: quoted or plain for key, quoted, plain in _PICK.findall(found["where"] or "")}
    rows = [row for row in _records(folder / f"{found['name']}.json", page) if _fits(row, where)]
    values = {row[found["column"]] for row in rows if found["column"] in row}
    if len(values) != 1:
        raise UsageError(f"{page}: {found[0]} means {len(values)} numbers of {found['name']}.json, not one.")
    return number(values.pop(), found["form"])


def _records(path: Path, page: str) -> Sequence[Mapping[str, Any]]:
    try:
        return [dict(entry) for entry in json.loads(path.read_text(encoding="utf-8"))]
    except (OSError, ValueError, TypeError) as error:
        raise UsageError(f"{page}: results/benchmarks/{path.name} cannot be read: {error!s:.200}.") from None


def _fits(row: Mapping[str, Any], where: Mapping[str, str]) -> bool:
    return all(str(row.get(key)) == value for key, value in where.items())
