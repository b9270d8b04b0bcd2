"""Choosing how to refine: on validation worlds, by a rule fixed beforehand; what was chosen is reported on test worlds.

A candidate is an encoder, what the leaves of its trees are, and where they are cut. The rule: the largest mean ARI
against true owners over all validation worlds and disorders; among equals the one that splits least. Leaving the
heuristics alone is a candidate too.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from btcnb.errors import DataError
from btcnb.experiments.quality import THRESHOLDS, UNITS
from btcnb.paper.stats import estimate, newest

NOTHING = "heuristics"
"""The name of the candidate that changes nothing."""
CUTS = ("lambda", "local", "silhouette", *(f"at.{threshold:.2f}" for threshold in THRESHOLDS))


@dataclass(frozen=True)
class Candidate:
    """One way to refine. `encoder` is the first factor of a row of the grid; an empty one changes nothing."""

    encoder: str = ""
    units: str = "addresses"
    cut: str = NOTHING

    @property
    def metric(self) -> str:
        """The head of its metrics in a record: `lambda`, `twice.at.0.30`, `heuristics`."""
        return self.cut if self.units == "addresses" or self.cut == NOTHING else f"{self.units}.{self.cut}"

    @property
    def words(self) -> str:
        if self.cut == NOTHING:
            return "heuristics as they are"
        where = f"fixed λ = {self.cut[3:]}" if self.cut.startswith("at.") else f"cut {self.cut}"
        return f"{self.encoder}, leaves: {self.units}, {where}"


PAPER = Candidate("paper", "addresses", "lambda")
UNTRAINED = Candidate("untrained", "addresses", "lambda")


def by_factors(frame: pd.DataFrame | None) -> pd.DataFrame:
    """The finished runs of a grid whose rows are the product of encoders and disorders (or other numbers), with these
    two as columns."""
    runs = newest(frame)
    parts = runs["row"].astype(str).str.rsplit(" ", n=1, expand=True).reindex(columns=[0, 1])
    return runs.assign(encoder=parts[0], disorder=parts[1].astype(float))


def candidates(records: pd.DataFrame) -> list[Candidate]:
    """Every candidate that the records speak of, the one that changes nothing first."""
    every = itertools.product(records["encoder"].unique(), UNITS, CUTS)
    return [Candidate(), *(each for each in itertools.starmap(Candidate, every) if f"{each.metric}.ari" in records)]


def scores(records: pd.DataFrame, candidate: Candidate, metric: str = "ari") -> pd.DataFrame:
    """A candidate's metric by seed (rows) and disorder (columns)."""
    name = f"{candidate.metric}.{metric}"
    found = _means(records, candidate.encoder, [name])
    if name not in found or not len(found):
        raise DataError("records", name, f"no record of {candidate.words!r}", "run the refinement grid")
    return found[name].dropna().unstack()  # noqa: PD010 (pivot_table takes ten times as long)


def _means(records: pd.DataFrame, encoder: str, names: Sequence[str]) -> pd.DataFrame:
    """Some metrics of an encoder (of all of them without a name), by seed and disorder; few of hundreds of columns."""
    kept = [name for name in names if name in records]
    mine = records["encoder"] == encoder if encoder else records["encoder"].notna()
    return records.loc[mine, ["seed", "disorder", *kept]].groupby(["seed", "disorder"])[kept].mean()


def ranking(records: pd.DataFrame) -> pd.DataFrame:
    """All candidates, best first: mean ARI over worlds and disorders, and the gain over doing nothing."""
    base = float(scores(records, Candidate()).to_numpy().mean())
    rows = []
    for encoder, group in itertools.groupby(candidates(records), key=lambda each: each.encoder):
        mine = list(group)
        means = _means(records, encoder, [f"{each.metric}.{what}" for each in mine for what in ("ari", "clusters")])
        for each in mine:
            ari, clusters = (float(np.nanmean(means[f"{each.metric}.{what}"])) for what in ("ari", "clusters"))
            rows.append((each, encoder, each.units, each.cut, ari, ari - base, clusters))
    table = pd.DataFrame(rows, columns=["candidate", "encoder", "units", "cut", "ari", "gain", "clusters"])
    return table.sort_values(["ari", "clusters"], ascending=[False, True], kind="stable", ignore_index=True)


def choose(validation: pd.DataFrame, encoder: str | None = None) -> Candidate:
    """The best candidate of the validation records; of one encoder alone if it is named."""
    table = ranking(validation)
    if encoder is not None:
        table = table[table["encoder"] == encoder]
    if not len(table):
        raise DataError("records", "encoder", f"no record of {encoder!r}", "run the refinement grid")
    best: Candidate = table["candidate"].iloc[0]
    return best


def difference(records: pd.DataFrame, first: Candidate, second: Candidate, metric: str = "ari") -> pd.DataFrame:
    """The difference of two candidates by disorder, paired by seed: disorder, mean, low, high, worlds."""
    return by_disorder((scores(records, first, metric) - scores(records, second, metric)).dropna(how="all"))


def by_disorder(values: pd.DataFrame) -> pd.DataFrame:
    """Means over seeds (rows) with 95 % intervals, a line for each disorder (column): disorder, mean, low, high,
    worlds."""
    found = [(float(disorder), estimate(values[disorder].dropna().to_numpy())) for disorder in values.columns]
    lines = [(disorder, each.mean, each.low, each.high, each.count) for disorder, each in found]
    return pd.DataFrame(lines, columns=["disorder", "mean", "low", "high", "worlds"])


def best_fixed(records: pd.DataFrame, encoder: str) -> pd.DataFrame:
    """The gain over doing nothing of an encoder at the fixed threshold that is best for each disorder, in hindsight.

    Columns as in `difference`. Trees are over addresses.
    """
    fixed = [Candidate(encoder, "addresses", cut) for cut in CUTS if cut.startswith("at.")]
    gaps = pd.concat([difference(records, each, Candidate()) for each in fixed])
    best = gaps.sort_values("mean", kind="stable").groupby("disorder").tail(1)
    return best.sort_values("disorder", ignore_index=True)


def hindsight(records: pd.DataFrame) -> pd.DataFrame:
    """What the best candidate of every single world would gain over doing nothing: a ceiling, not a recipe.

    Columns as in `difference`.
    """
    base = scores(records, Candidate())
    best = base.copy()
    for encoder, group in itertools.groupby(candidates(records)[1:], key=lambda each: each.encoder):
        means = _means(records, encoder, [f"{each.metric}.ari" for each in group])
        best = best.combine(means.max(axis=1).unstack(), np.fmax)  # noqa: PD010 (as above)
    return by_disorder(best - base)
