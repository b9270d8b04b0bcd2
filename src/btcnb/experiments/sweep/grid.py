"""A grid says what a sweep runs: rows of settings, each with every seed. It is a YAML file; `read_grid` expands it.

    name: ablation
    words: one sentence
    measure: scores            # what is measured of a run
    size: quick                # of the simulated economies
    seeds: 5                   # seeds 1 to 5; a list is allowed
    base: {epochs: 45}         # for every row
    rows:                      # name of a row: what it changes
      gat: {}
      louvain: {method: louvain}
      ward: {linkage: ward, cluster.alpha: 2.0}
    product:                   # or every combination: rows `gat 1`, `untrained 1`, `gat 2`, `untrained 2`
      encoder: {gat: {}, untrained: {method: untrained}}
      disorder: {1: {}, 2: {disorder: 2}}

A row may set the fields of TrainConfig and of ClusterConfig (a name that both have is training's; `cluster.NAME` is the
other, and the linkage is called `linkage`), size, disorder and scope of the source, supervision, method, measure and
the `arguments` of the measure. Seed i means economy i, initialisation i and tuples i.
"""

from __future__ import annotations

import difflib
import functools
import inspect
import itertools
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import yaml

from btcnb import sizes
from btcnb.errors import BtcnbError, DataError
from btcnb.experiments.sweep.records import run_id
from btcnb.plain_yaml import read_yaml

if TYPE_CHECKING:
    from btcnb.experiments.recipe import Job

KEYS = ("name", "words", "measure", "size", "seeds", "base", "rows", "product")
MOST_SEEDS = 10_000


@dataclass(frozen=True)
class Grid:
    """An expanded grid; its jobs stand seed by seed, so that an interrupted sweep can be compared in whole seeds."""

    name: str
    words: str
    path: Path
    jobs: tuple[Job, ...]

    @property
    def rows(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(job.row for job in self.jobs))

    def only(self, rows: Iterable[str]) -> Grid:
        """The same grid with some of its rows."""
        wanted = list(rows)
        for row in wanted:
            if row not in self.rows:
                raise DataError(self.path, "rows", *_unknown("row", row, self.rows))
        return replace(self, jobs=tuple(job for job in self.jobs if job.row in wanted))


def read_grid(path: str | Path, seeds: int | list[int] | None = None) -> Grid:
    """Read and expand a grid; `seeds` replaces the file's own. Everything is checked before anything runs."""
    path = Path(path)
    name, top, rows = _read_file(path)
    whole = {key: top[key] for key in ("measure", "size") if key in top}
    base = whole | _settings(path, "base", top.get("base"))
    settings = {row: base | _merged(path, row, values) for row, values in rows.items()}
    numbers = _seeds(path, top.get("seeds", 5) if seeds is None else seeds)
    jobs = tuple(_job(path, row, seed, given) for seed in numbers for row, given in settings.items())
    _refuse_duplicates(path, jobs)
    return Grid(name, str(top.get("words") or ""), path, jobs)


def grid_rows(path: str | Path) -> tuple[str, tuple[str, ...]]:
    """The name of a grid and the names of its rows. Their settings are not checked, so torch is not imported."""
    name, _, rows = _read_file(Path(path))
    return name, tuple(map(str, rows))


def _merged(path: Path, row: str, values: list[Any]) -> dict[str, Any]:
    """The settings of a row; those of a product's factors together."""
    merged: dict[str, Any] = {}
    for value in values:
        merged |= _settings(path, f"rows.{row}", value)
    return merged


def _read_file(path: Path) -> tuple[str, dict[str, Any], dict[str, list[Any]]]:
    """Name, all keys, and the rows of a grid's file with the settings of each: several where a product makes it."""
    try:
        read = read_yaml(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise DataError(path, "file", f"cannot be read ({error.strerror})", "name a grid") from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        said = " ".join(str(error).split())
        raise DataError(path, "YAML", f"cannot be read ({said})", "mend the file") from None
    top = _mapping(path, "grid", read)
    _known(path, "grid", top, KEYS)
    rows = {row: [value] for row, value in _mapping(path, "rows", top.get("rows")).items()}
    factors = [
        _mapping(path, f"product.{name}", each) for name, each in _mapping(path, "product", top.get("product")).items()
    ]
    for chosen in itertools.product(*(each.items() for each in reversed(factors))) if factors else ():
        rows[" ".join(name for name, _ in reversed(chosen))] = [value for _, value in chosen]
    if not rows:
        raise DataError(path, "rows", "there are none", "name at least one row")
    name = str(top.get("name", path.stem))
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,80}", name):
        raise DataError(path, "name", f"{name!r} names no file", "use letters, digits, -, _ and .")
    return name, top, rows


def _job(path: Path, row: str, seed: int, given: Mapping[str, Any]) -> Job:
    from btcnb.cluster import ClusterConfig
    from btcnb.data import Source
    from btcnb.experiments.measures import MEASURES
    from btcnb.experiments.recipe import METHODS, Job, recipe

    parts: dict[str, dict[str, Any]] = {"source": {}, "train": {}, "cluster": {}, "recipe": {}, "job": {}}
    for key, value in given.items():
        if key == "arguments":
            parts["job"][key] = tuple(sorted(_mapping(path, f"rows.{row}.arguments", value).items()))
            continue
        part, name = _places()[key]
        parts[part][name] = tuple(value) if isinstance(value, list) else value
    for key, known in (("method", METHODS), ("measure", MEASURES)):
        if key in parts["job"] and parts["job"][key] not in known:
            raise DataError(path, f"rows.{row}.{key}", *_unknown(key, parts["job"][key], known))
    if "size" in parts["source"] and parts["source"]["size"] not in sizes.names():
        raise DataError(path, f"rows.{row}.size", *_unknown("size", parts["source"]["size"], sizes.names()))
    taken = set(inspect.signature(MEASURES[parts["job"].get("measure", "scores")]).parameters) - {"job"}
    for name, _ in parts["job"].get("arguments", ()):
        if name not in taken:
            raise DataError(path, f"rows.{row}.arguments", *_unknown("argument", name, taken or {"none"}))
    try:
        source = Source.of(seed=seed, **parts["source"])
        made = recipe(source, seed, cluster=ClusterConfig(**parts["cluster"]), **parts["train"])
        return Job(row, seed, replace(made, **parts["recipe"]), **parts["job"])
    except (BtcnbError, TypeError) as error:
        raise DataError(path, f"rows.{row}", str(error).rstrip("."), "mend that row (or base)") from None


@functools.cache
def _places() -> dict[str, tuple[str, str]]:
    """Key of a row -> part of the job and field in it."""
    from btcnb.cluster import ClusterConfig
    from btcnb.experiments.recipe import Recipe
    from btcnb.learn import TrainConfig

    cluster = [item.name for item in fields(ClusterConfig)]
    places = {name: ("cluster", name) for name in cluster} | {f"cluster.{name}": ("cluster", name) for name in cluster}
    places["linkage"] = ("cluster", "method")
    places |= {item.name: ("train", item.name) for item in fields(TrainConfig) if item.name != "seed"}
    places |= {name: ("source", name) for name in ("size", "disorder", "scope")}
    places |= {item.name: ("recipe", item.name) for item in fields(Recipe) if item.name == "supervision"}
    return places | {name: ("job", name) for name in ("method", "measure", "arguments")}


def _settings(path: Path, field: str, value: Any) -> dict[str, Any]:
    """The keys of `base` or of a row, all known, no field set twice."""
    given = _mapping(path, field, value)
    _known(path, field, given, _places())
    set_by: dict[tuple[str, str], str] = {}
    for key in given:
        other = set_by.setdefault(_places()[key], key)
        if other != key:
            raise DataError(path, field, f"{other!r} and {key!r} set the same field", "keep one of them")
    return given


def _mapping(path: Path, field: str, value: Any) -> dict[str, Any]:
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise DataError(path, field, f"is {value!r:.60}", "write names and values, `name: value`")
    return value


def _known(path: Path, field: str, given: Mapping[Any, Any], known: Iterable[str]) -> None:
    for key in given:
        if key == "seed":
            _refuse_seed(path, field)
        if key not in known:
            raise DataError(path, field, *_unknown("key", key, known))


def _refuse_seed(path: Path, field: str) -> NoReturn:
    raise DataError(path, field, "a row has no seed of its own", "write `seeds` at the top: every row runs with each")


def _unknown(what: str, name: Any, known: Iterable[str]) -> tuple[str, str]:
    """Problem and remedy of a name that is not known."""
    names = [str(each) for each in known]
    near = difflib.get_close_matches(str(name), names, n=1, cutoff=0.5)
    remedy = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(names)}"
    return f"there is no {what} {str(name)!r:.80}", remedy.rstrip("?")


def _seeds(path: Path, value: Any) -> list[int]:
    numbers = list(range(1, value + 1)) if _is_whole(value) and value <= MOST_SEEDS else value
    right = isinstance(numbers, list) and len(numbers) > 0 and all(_is_whole(each) and each >= 0 for each in numbers)
    if not right or len(set(numbers)) < len(numbers):
        wanted = f"write a number of 1 to {MOST_SEEDS:,}, or a list of different whole numbers"
        raise DataError(path, "seeds", f"is {value!r:.60}", wanted)
    return list(numbers)


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _refuse_duplicates(path: Path, jobs: Iterable[Job]) -> None:
    seen: dict[str, Job] = {}
    for job in jobs:
        other = seen.setdefault(run_id(job), job)
        if other is not job:
            problem = f"{other.row!r} and {job.row!r} are the same run (seed {job.seed})"
            raise DataError(path, "rows", problem, "change or remove one of them")
