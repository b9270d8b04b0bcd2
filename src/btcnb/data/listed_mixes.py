"""What both sets of CoinJoin rules say of lists of real mixes, read from the counts of `score_lists`.

The counts have one row per archive, file, rule set and name, as `results/coinjoin_detectors.csv` keeps them.
"""

from __future__ import annotations

import pandas as pd

LISTED = {
    "SamouraiCoinJoins": ("whirlpool",),
    "SamouraiTx0s": ("whirlpool-tx0",),
    "WasabiCoinJoins": ("wasabi1.0", "wasabi1.1"),
    "Wasabi2CoinJoins": ("wasabi2",),
    "OtherCoinJoins": ("joinmarket",),
}
"""The protocols that a file of the Dumplings project lists; other files hold mostly ordinary transactions."""
GUESSED = ("OtherCoinJoins",)
"""Lists that were themselves made by a rule of thumb: nobody knows the truth about their transactions."""
SEEN = ("joinmarket-2024-06", "wasabi-2018-and-wasabi2-2024-05", "whirlpool-2024-03")
"""Archives that were open while the improved rules were written: on them the rules describe, they do not predict."""


def tidy(counts: pd.DataFrame) -> pd.DataFrame:
    """The counts with "" for transactions without a name, which a table read from a file may hold as missing."""
    return counts.assign(name=counts["name"].fillna("").astype(str))


def listed_table(counts: pd.DataFrame) -> pd.DataFrame:
    """One row per archive and file, lists of mixes first: what it lists, its size, and what the two rule sets say."""
    rows = []
    for key, group in counts.groupby(["archive", "file"]):
        archive, file = map(str, key)
        lists = " or ".join(LISTED.get(file, ())) or "mostly ordinary"
        said = [_in_words(group[group["rules"] == rules]) for rules in ("published", "improved")]
        rows.append((archive, file, lists, _total(group), *said))
    columns = ["archive", "file", "it lists", "transactions", "published rules say", "improved rules say"]
    rows.sort(key=lambda row: (row[1] not in LISTED, row[0], row[1]))
    return pd.DataFrame(rows, columns=columns)


def called(counts: pd.DataFrame, archive: str, file: str, rules: str, *names: str) -> tuple[int, int]:
    """(transactions of a file to which the rule set gives one of the names, all of the file); (0, 0): not at hand."""
    group = counts[(counts["archive"] == archive) & (counts["file"] == file)]
    found = group[(group["rules"] == rules) & group["name"].isin(names)]
    return int(found["transactions"].sum()), _total(group)


def right_names(counts: pd.DataFrame, rules: str, *, seen: bool) -> tuple[int, int]:
    """(mixes that get the name of their list, all) over the lists of known protocol, in archives `SEEN` or not."""
    chosen = counts[counts["archive"].isin(SEEN) == seen]
    files = [file for file in LISTED if file not in GUESSED]
    found = [
        called(chosen, archive, file, rules, *LISTED[file])
        for archive in sorted(set(chosen["archive"]))
        for file in files
    ]
    return sum(right for right, _ in found), sum(total for _, total in found)


def _total(group: pd.DataFrame) -> int:
    """Both rule sets see the same transactions, so either gives the size."""
    return int(group.loc[group["rules"] == "published", "transactions"].sum())


def _in_words(group: pd.DataFrame) -> str:
    ordered = group.sort_values(["transactions", "name"], ascending=[False, True])
    pairs = zip(ordered["name"], ordered["transactions"], strict=True)
    return ", ".join(f"{name or 'none'} {number:,}" for name, number in pairs)
