"""A simulated economy written out: transactions with known owners, as files that other programs read too."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import pandas as pd
from tqdm import tqdm

from btcnb.data.readers import write_etl, write_release
from btcnb.data.readers.files import path_of, replacing
from btcnb.data.sources import ROLES, Source, load_graph, load_transactions
from btcnb.data.tables import plain
from btcnb.data.transactions import Truth
from btcnb.errors import ParameterError

OF_TRANSACTIONS = ("coinjoin", "change", "mechanism")
"""Fields of `Truth` that hold one value per transaction; the others, but for `entities`, hold one per address."""


def write_simulation(size: str, seed: int, folder: str | Path, progress: bool | None = None) -> Path:
    """Write transactions, released tables and truth of the five simulated roles, and a README that describes them.

    The transactions are those that the graphs are built of. The folder appears whole or not at all; one that holds
    anything is refused.

    progress: show a progress bar (None: on a terminal only)
    """
    from btcnb import __version__

    target = path_of(folder, "folder")
    template = Path(__file__).with_suffix(".md").read_text()
    if target.exists() and not (target.is_dir() and not any(target.iterdir())):
        raise ParameterError(f"folder: {plain(target)} is not empty; name a new or an empty folder.")
    source = Source(size=size, seed=seed)
    hidden = None if progress is None else not progress
    with replacing(target, folder=True) as part:
        (part / "truth").mkdir()
        graphs = {}
        for role in tqdm(ROLES, desc="roles", leave=False, disable=hidden):
            txs = load_transactions(source, role)
            write_etl(txs, part / "transactions" / f"{role}.parquet")
            truth = cast(Truth, txs.truth)  # simulated transactions have it
            _addresses(txs.addresses, truth).to_csv(part / "truth" / f"{role}_addresses.csv", index=False)
            _transactions(txs.transactions, truth).to_csv(part / "truth" / f"{role}_transactions.csv", index=False)
            graphs[role] = load_graph(source, role)
        write_release(graphs, part / "release")
        (part / "README.md").write_text(template.format(size=size, seed=seed, version=__version__))
    return target


def _addresses(addresses: npt.NDArray[Any], truth: Truth) -> pd.DataFrame:
    """What is known about each address."""
    known = {field.name: getattr(truth, field.name) for field in fields(truth)}
    for name in (*OF_TRANSACTIONS, "entities"):
        del known[name]
    names = {column: np.append(truth.entities[column].to_numpy(dtype=object), "") for column in ("kind", "name")}
    told = {column: values[truth.owner] for column, values in names.items()}  # -1 is the empty one
    return pd.DataFrame({"address": addresses, "owner": known.pop("owner"), **told, **known})


def _transactions(transactions: pd.DataFrame, truth: Truth) -> pd.DataFrame:
    """What is known about each transaction."""
    return pd.DataFrame({"hash": transactions["hash"], **{name: getattr(truth, name) for name in OF_TRANSACTIONS}})
