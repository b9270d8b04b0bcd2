"""Records of the grid `coinjoin` and of real CoinJoins as the tables of chapter 16; what has not been run says so."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from btcnb.data import Transactions
from btcnb.experiments.coinjoin import LEVELS, PROTOCOLS, Drawn, Mix
from btcnb.experiments.local import PAPER_LINKAGES
from btcnb.experiments.records import NONE, by_seed, cell
from btcnb.paper import table as paper_table
from btcnb.paper.stats import FEWEST_SEEDS, estimate

FloatArray = npt.NDArray[np.float64]

WAYS = tuple(f"{kind}.{linkage}" for kind in ("gnn", "hybrid") for linkage in PAPER_LINKAGES)
CLUSTERINGS = ("heuristics", *WAYS)
"""The rows of the paper's Table 3, in its order."""
STANDARD, REPELLED, BY_LISTS = "standard", "repelled", "by lists"
COLUMNS = {STANDARD: "TN", REPELLED: "TN_hard_negatives"}
"""Rows of our grid, and the column of the paper's table that each answers to."""
NOT_RECORDED = "(not yet recorded)"
ON_REAL = (STANDARD, REPELLED, BY_LISTS)
"""Encoders that judge recorded CoinJoins, in the order of a cell: taught none, simulated ones, earlier real ones."""
_MODELS = {"heuristics": "Heuristics", "gnn": "GNN-HAC", "hybrid": "Hybrid"}
_WORDS = {
    "heuristics": "heuristics, no safeguards",
    "safeguarded": "heuristics with safeguards",
    "hybrid_on_safeguarded": "hybrid on top of safeguards, average",
}


def in_words(name: str) -> str:
    """`hybrid.ward` is “Hybrid, ward”."""
    if name in _WORDS:
        return _WORDS[name]
    model, *way = name.split(".")
    return ", ".join([_MODELS[model], *way])


def printed(name: str, row: str = STANDARD) -> tuple[float, float]:
    """Mean and sd (over its five evaluation sets) of the paper's Table 3, NaN where it prints none."""
    model, *way = name.split(".")
    frame = paper_table("coinjoin")
    frame = frame[frame["model"] == _MODELS.get(model, "")]
    frame = frame[frame["linkage"] == way[0]] if way else frame
    if len(frame) != 1:
        return float("nan"), float("nan")
    return float(frame[COLUMNS[row]].iloc[0]), float(frame[f"{COLUMNS[row]}_sd"].iloc[0])


def mean(frame: pd.DataFrame, row: str, metric: str) -> tuple[float, float, float]:
    """Mean over worlds and its 95 % interval; NaN below three worlds."""
    values = by_seed(frame, row, metric)
    if len(values) < FEWEST_SEEDS:
        return float("nan"), float("nan"), float("nan")
    found = estimate(values.to_numpy())
    return found.mean, found.low, found.high


def protocols(txs: Transactions, drawn: Drawn, around: Sequence[Mix], owners: Mapping[str, Any]) -> pd.DataFrame:
    """CoinJoins of an economy, a line a protocol: how many, how large, and how many input pairs have one owner (%).

    drawn, around: some of them with their surroundings; owners: what `owner_numbers` says of all
    """
    known = np.asarray(None if txs.truth is None else txs.truth.coinjoin)
    lines = []
    for name in PROTOCOLS:
        mine = [mix for mix, protocol in zip(around, drawn.protocol, strict=True) if protocol == name]
        line: dict[str, Any] = {"protocol": name, "in this economy": int((known == name).sum())}
        line["inputs (median)"] = _median([len(mix.inputs) for mix in mine])
        line["addresses around (median)"] = _median([len(mix.piece.addresses) for mix in mine])
        lines.append(line | {"pairs of one owner": owners.get(f"own.share.{name}", float("nan"))})
    return pd.DataFrame(lines)


def _median(values: Sequence[int]) -> float:
    return float(np.median(values)) if values else float("nan")


def table_three(frame: pd.DataFrame) -> pd.DataFrame:
    """The paper's Table 3 beside ours: mean ± sd over sets in the paper, ± half the interval over worlds in ours."""
    lines = []
    for name in CLUSTERINGS:
        line = {"": in_words(name)}
        for row, words in ((STANDARD, "TN"), (REPELLED, "TN, repelled")):
            theirs, sd = printed(name, row)
            line[f"{words}, paper"] = f"{theirs:.1f}" + ("" if np.isnan(sd) else f" ± {sd:.1f}")
            line[f"{words}, ours"] = cell(frame, row, f"{name}.TN")
        line["sd over sets, ours"] = cell(frame, STANDARD, f"{name}.TN_sd").split(" ±")[0]
        lines.append(line)
    return pd.DataFrame(lines)


def by_protocol(frame: pd.DataFrame, names: Sequence[str], rows: Mapping[str, str]) -> pd.DataFrame:
    """True negatives of each protocol, mean over worlds: a line for each clustering and row of the grid."""
    lines = [
        {"clusters": in_words(name), "encoder": words}
        | {each: cell(frame, row, f"{name}.TN.{each}") for each in PROTOCOLS}
        for name in names
        for row, words in rows.items()
    ]
    return pd.DataFrame(lines)


def controls(frame: pd.DataFrame, names: Sequence[str], rows: Mapping[str, str]) -> pd.DataFrame:
    """True negatives beside what they are compared with: random dealing, ordinary payments, wallets kept together."""
    heads = {"TN": "TN", "random": "dealt at random", "parted": "payments parted", "own": "wallets together"}
    lines = []
    for name in names:
        for row, words in rows.items():
            line = {"clusters": in_words(name), "encoder": words}
            line |= {head: cell(frame, row, f"{name}.{metric}") for metric, head in heads.items()}
            line["TN − parted"] = cell(frame, row, f"{name}.TN_paid - {name}.parted")  # of the same local graphs
            lines.append(line)
    return pd.DataFrame(lines)


def distribution(frame: pd.DataFrame, row: str, kind: str) -> tuple[FloatArray, FloatArray]:
    """(distance, share of pairs) of a kind of pairs, percentiles averaged over worlds; empty where nothing was run."""
    found = [by_seed(frame, row, f"distance.{kind}.p{level}") for level in LEVELS]
    if any(len(each) < 1 for each in found):
        return np.empty(0), np.empty(0)
    return np.array([each.mean() for each in found]), np.array(LEVELS) / 100


def real_table(record: pd.DataFrame | None, names: Sequence[str]) -> pd.DataFrame:
    """Recorded CoinJoins, a line for each list and half: true negatives of three encoders, `40 → 90 → 95`, mean over
    worlds: taught no CoinJoin, simulated ones, the earlier halves of the real lists (which it does not judge, so –)."""
    heads = ["kind", "protocol", "half", "when", "CoinJoins", *map(in_words, names)]
    lines = []
    groups = () if record is None else record.groupby(["kind", "archive", "protocol", "half"], sort=False)
    for (kind, _, protocol, half), group in groups:
        when = months(group["from"].min(), group["to"].max())
        arrows = [_arrows(group[group["clustering"] == name], "TN") for name in names]
        lines.append((kind, protocol, half, when, int(group["coinjoins"].max()), *arrows))
    return pd.DataFrame(lines, columns=heads)


def months(first: str, last: str) -> str:
    """`Aug 2021`, `Jul to Nov 2018` or `Dec 2018 to Jan 2019`, of two days such as 2021-08-20."""
    begin, end = (pd.Timestamp(day) for day in (first, last))
    if (begin.year, begin.month) == (end.year, end.month):
        return f"{end:%b %Y}"
    return f"{begin:%b} to {end:%b %Y}" if begin.year == end.year else f"{begin:%b %Y} to {end:%b %Y}"


WALLETS = {
    "strangers": "inputs of a CoinJoin, two wallets: apart",
    "own": "one wallet: together",
    "wallets_apart": "all addresses, two wallets: apart",
    "wallets_together": "one wallet: together (all)",
}
"""Columns of a record of recorded CoinJoins whose wallets are known -> heads of the table."""


def wallet_table(record: pd.DataFrame | None, names: Sequence[str]) -> pd.DataFrame:
    """Recorded CoinJoins of known wallets: pairs of two wallets kept apart, of one kept together, in %, cells as in
    `real_table`."""
    keys = ["kind", "half"]
    lines = []
    known = None if record is None else record[record["kind"] != "real"]
    if known is not None and len(known):
        for key, group in known.groupby(keys, sort=False):
            for name in names:
                mine = group[group["clustering"] == name]
                line = dict(zip(keys, key, strict=True)) | {"clusters": in_words(name)}
                lines.append(line | {head: _arrows(mine, metric) for metric, head in WALLETS.items()})
    return pd.DataFrame(lines, columns=[*keys, "clusters", *WALLETS.values()])


def own_in_words(record: pd.DataFrame | None) -> str:
    """`11 % (regtest), 9 % (emulated)`: input pairs of recorded CoinJoins that have one wallet, where it is known."""
    known = None if record is None else record[record["kind"] != "real"]
    if known is None or not len(known):
        return NOT_RECORDED
    once = known.drop_duplicates(["kind", "archive", "protocol", "half"])  # clusterings and encoders see the same pairs
    pairs = once.groupby("kind", sort=False)[["own_pairs", "pairs"]].sum()
    return ", ".join(f"{100 * own / all_:.0f} % ({kind})" for kind, own, all_ in pairs.itertuples())


def seen_in_words(record: pd.DataFrame | None) -> str:
    """`3 to 20 %`: by list, inputs of later CoinJoins that stand in a graph that taught, mean over worlds."""
    taught = None if record is None else record[record["encoder"] == BY_LISTS].dropna(subset="seen")
    if taught is None or not len(taught):
        return NOT_RECORDED
    share = taught.groupby(["archive", "protocol"])["seen"].mean()
    return f"{share.min():.0f} to {share.max():.0f} %"


def _arrows(group: pd.DataFrame, metric: str) -> str:
    found = [group.loc[group["encoder"] == row, metric].mean() for row in ON_REAL]
    return " → ".join(NONE if np.isnan(value) else f"{value:.0f}" for value in found)
