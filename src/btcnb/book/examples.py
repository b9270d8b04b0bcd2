"""Examples worth a picture, chosen from whatever transactions are at hand, and names for their addresses."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pandas as pd
from matplotlib.axes import Axes

from btcnb.data.transactions import Transactions

Mask = npt.NDArray[np.bool_]
GREY = "#bbbbbb"


def owner_names(txs: Transactions) -> npt.NDArray[np.object_]:
    """Per address: kind and number of its owner, `unknown` where the owner is not known; the address without truth."""
    if txs.truth is None:
        return txs.addresses
    kind = txs.truth.entities["kind"].tolist()
    return np.array([f"{kind[o]} {o}" if o >= 0 else "unknown" for o in txs.truth.owner.tolist()], dtype=object)


def plain_shape(txs: Transactions, inputs: int, outputs: int) -> Mask:
    """Per transaction: so many inputs and outputs, all of different known addresses."""
    fits = (np.diff(txs.input_offsets()) == inputs) & (np.diff(txs.output_offsets()) == outputs)
    ends = pd.concat(
        [table.loc[fits[table["tx"].to_numpy()], ["tx", "address"]] for table in (txs.inputs, txs.outputs)]
    )
    distinct = ends[ends["address"] >= 0].groupby("tx")["address"].nunique()
    return fits & (distinct.reindex(range(len(txs)), fill_value=0).to_numpy() == inputs + outputs)


def example_payment(txs: Transactions) -> int:
    """A payment of two inputs and two outputs, a round sum where the change is known; the next best otherwise."""
    value, first = txs.outputs["value"].to_numpy(), txs.output_offsets()[:-1]
    shaped = (np.diff(txs.input_offsets()) == 2) & (np.diff(txs.output_offsets()) == 2)
    truth = txs.truth
    if truth is not None and truth.change is not None and truth.coinjoin is not None:
        two = np.flatnonzero(shaped & (truth.change >= 0) & (truth.coinjoin == ""))
        paid = value[first[two] + 1 - truth.change[two]]
        returned = value[first[two] + truth.change[two]]
        two = two[(paid % 100_000 == 0) & (returned % 1_000 != 0)]
        if len(two):
            return int(two[len(two) // 2])
    ordinary = ~txs.transactions["is_coinbase"].to_numpy()
    for choice in (plain_shape(txs, 2, 2), shaped, ordinary, np.ones(len(txs), dtype=bool)):
        fits = np.flatnonzero(choice)
        if len(fits):
            return int(fits[len(fits) // 2])
    raise ValueError("there is no transaction at all")


def uneven_payment(txs: Transactions) -> int | None:
    """A payment from two addresses to two others, one input a few times the other; None where there is none.

    Such a payment shows how inputs share an output. The next best has two inputs and two outputs of any amounts.
    """
    fits = plain_shape(txs, 2, 2)
    value, first = txs.inputs["value"].to_numpy(), txs.input_offsets()[:-1]
    for tx in np.flatnonzero(fits).tolist():
        less, more = sorted(value[first[tx] : first[tx] + 2].tolist())
        if less > 0 and 1.5 < more / less < 6:
            return tx
    return int(fits.argmax()) if fits.any() else None


def payer_shades(txs: Transactions, tx: int, payer: str, others: str) -> npt.NDArray[np.object_]:
    """A colour per address: the owner of the transaction's first input, and everybody else; grey without truth."""
    senders = txs.inputs.loc[txs.inputs["tx"] == tx, "address"].to_numpy()
    if txs.truth is None or not len(senders) or senders[0] < 0:
        return np.full(txs.num_addresses, GREY, dtype=object)
    return np.where(txs.truth.owner == txs.truth.owner[senders[0]], payer, others).astype(object)


def say_nothing(ax: Axes, text: str) -> None:
    """An empty plate that says why it is empty."""
    ax.clear()
    ax.axis("off")
    ax.text(0.5, 0.5, text, ha="center", va="center", transform=ax.transAxes)
