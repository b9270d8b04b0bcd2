"""When two runs are the same: by what they compute, not by what their rows are called or when they were recorded.

Fields at their default do not count, so a record stays the record of its run when a recipe gets a new field. A record
without a field had it at the default. The defaults that count are those of `defaults.json`, which holds every field
that a recipe has or had: a run keeps its id when a class drops a field or changes a default.
"""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from btcnb.experiments.recipe import Job

SEEDS = ("source.seed", "train.seed")
_PARTS = ("source.", "train.", "cluster.")


def run_id(job: Job) -> str:
    """A short name of what a job computes: equal for equal measure, method and recipe, whatever its row is called."""
    return _id(job.measure, job.method, job.recipe.flat())


def run_of(record: Mapping[str, Any]) -> str:
    """The same of a record, from its fields as today's recipes have them."""
    return _id(record["measure"], record["method"], _recipe(record))


def settings_of(record: Mapping[str, Any]) -> str:
    """The same without the seeds: what all runs of a row have in common."""
    flat = {name: value for name, value in _recipe(record).items() if name not in SEEDS}
    return _id(record["measure"], record["method"], flat)


def _recipe(record: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in record.items() if name.startswith(_PARTS) or name in defaults()}


@functools.cache
def defaults() -> dict[str, Any]:
    """The settings at which fields of a recipe do not count, by the names that records have for them."""
    found: dict[str, Any] = json.loads((Path(__file__).parent / "defaults.json").read_text(encoding="utf-8"))
    return found


def _id(measure: str, method: str, flat: Mapping[str, Any]) -> str:
    plain = {name: _number(value) for name, value in flat.items()}
    changed = {name: value for name, value in plain.items() if value != _number(defaults().get(name, ...))}
    for seed in SEEDS:
        if seed in plain:  # seeds have no default worth the name
            changed[seed] = plain[seed]
    return hashlib.sha256(json.dumps([measure, method, changed], sort_keys=True).encode()).hexdigest()[:16]


def _number(value: Any) -> Any:
    """1 and 1.0 are the same setting; True is not a number."""
    return float(value) if isinstance(value, int) and not isinstance(value, bool) else value
