"""Small drawings of transactions: one as boxes with its coins, many as the graph that their outputs and inputs form."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.patches import Circle, FancyArrowPatch, FancyBboxPatch

from btcnb.book.style import COLOURS
from btcnb.data.transactions import Transactions

BTC = 100_000_000  # satoshi


def draw_transaction(
    ax: Axes, txs: Transactions, tx: int, names: Sequence[str] | None = None, colours: Sequence[str] | None = None
) -> None:
    """One transaction: a box for each input on the left, for each output on the right, amounts in BTC.

    `names` and `colours` have one entry per address id (say, its owner); without them the address itself is written.
    """
    inputs, outputs = (table[table["tx"] == tx][["address", "value"]].to_numpy() for table in (txs.inputs, txs.outputs))
    height = max(len(inputs), len(outputs))
    ax.set_xlim(0, 10)
    ax.set_ylim(-0.2, height + 0.2)
    ax.axis("off")
    middle = FancyBboxPatch((4.4, height / 2 - 0.3), 1.2, 0.6, boxstyle="round,pad=0.05", fc=COLOURS[0], ec="none")
    ax.add_patch(middle)
    ax.text(5, height / 2, f"tx {tx}", color="white", ha="center", va="center", fontsize=9)
    for rows, left, tip in ((inputs, 0.1, (3.4, 4.4)), (outputs, 6.6, (5.6, 6.6))):
        for position, (address, value) in enumerate(rows):
            y = height - (position + 0.5) * height / len(rows)
            colour = "#dddddd" if colours is None or address < 0 else colours[address]
            ax.add_patch(FancyBboxPatch((left, y - 0.28), 3.3, 0.56, boxstyle="round,pad=0.04", fc=colour, alpha=0.35))
            text = "nobody (data)" if address < 0 else str(txs.addresses[address] if names is None else names[address])
            ax.text(left + 0.1, y, text[:22], va="center", fontsize=8.5)
            ax.text(left + 3.2, y, f"{value / BTC:.8f}", va="center", ha="right", fontsize=8.5, family="monospace")
            start, end = ((tip[0], y), (tip[1], height / 2)) if left < 5 else ((tip[0], height / 2), (tip[1], y))
            ax.add_patch(FancyArrowPatch(start, end, arrowstyle="-|>", mutation_scale=9, color="#777777", lw=1))


def draw_dag(ax: Axes, txs: Transactions, labels: Sequence[str] | None = None) -> None:
    """The transaction graph: time runs to the right, an arrow is a coin that moves on, double circles are coinbases."""
    position = layered_positions(txs)
    radius = 0.28
    for parent, child in links(txs):
        step = position[child] - position[parent]
        inset = 1.35 * radius * step / np.hypot(*step)  # arrows end at the rims, not under the circles
        ax.add_patch(
            FancyArrowPatch(
                position[parent] + inset,
                position[child] - inset,
                arrowstyle="-|>",
                mutation_scale=11,
                color="#777777",
                lw=1.1,
                shrinkA=0,
                shrinkB=0,
            )
        )
    coinbase = txs.transactions["is_coinbase"].to_numpy()
    for tx, (x, y) in enumerate(position):
        ax.add_patch(Circle((x, y), radius, fc=COLOURS[1] if coinbase[tx] else COLOURS[4], ec="black", lw=1, zorder=3))
        if coinbase[tx]:
            ax.add_patch(Circle((x, y), radius * 1.28, fc="none", ec="black", lw=1, zorder=3))
        ax.text(x, y, str(tx) if labels is None else labels[tx], ha="center", va="center", fontsize=8, zorder=4)
    ax.set_xlim(position[:, 0].min() - 0.6, position[:, 0].max() + 0.6)
    ax.set_ylim(position[:, 1].min() - 0.6, position[:, 1].max() + 0.6)
    ax.set_aspect("equal")
    ax.axis("off")


def links(txs: Transactions) -> list[tuple[int, int]]:
    """Distinct (parent, child) pairs: an output of the parent is spent by the child."""
    spent = txs.inputs[txs.inputs["spent_output"] >= 0]
    parent = txs.outputs["tx"].to_numpy()[spent["spent_output"].to_numpy()]
    pairs = np.unique(np.stack([parent, spent["tx"].to_numpy()], axis=1), axis=0)
    return [(int(a), int(b)) for a, b in pairs]


def layered_positions(txs: Transactions) -> np.ndarray:
    """x = longest path from a source, y = place within that layer, centred; shape (transactions, 2)."""
    layer = np.zeros(len(txs), dtype=int)
    for parent, child in sorted(links(txs), key=lambda pair: pair[1]):
        layer[child] = max(layer[child], layer[parent] + 1)
    order = pd.Series(layer).groupby(layer).cumcount().to_numpy()
    size = np.bincount(layer)[layer]
    return np.stack([1.5 * layer, (size - 1) / 2.0 - order], axis=1)
