"""When two runs are the same: by what they compute, not by what their rows are called or when they were recorded.

Fields at their default do not count, so a record stays the record of its run when a recipe gets a new field; what the
code did then and does now is the matter of the code's digest. A record without a field had it at the default.
"""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Mapping
from typing import Any

from btcnb.data import Source
from btcnb.experiments.jobs import Job
from btcnb.experiments.recipe import Recipe
from btcnb.learn import TrainConfig

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
    return {name: value for name, value in record.items() if name.startswith(_PARTS) or name in _defaults()}


@functools.cache
def _defaults() -> dict[str, Any]:
    return Recipe(Source(), TrainConfig()).flat()


def _id(measure: str, method: str, flat: Mapping[str, Any]) -> str:
    plain = {name: _number(value) for name, value in flat.items()}
    changed = {name: value for name, value in plain.items() if value != _number(_defaults().get(name, ...))}
    for seed in SEEDS:
        if seed in plain:  # seeds have no default worth the name
            changed[seed] = plain[seed]
    return hashlib.sha256(json.dumps([measure, method, changed], sort_keys=True).encode()).hexdigest()[:16]


def _number(value: Any) -> Any:
    """1 and 1.0 are the same setting; True is not a number."""
    return float(value) if isinstance(value, int) and not isinstance(value, bool) else value
