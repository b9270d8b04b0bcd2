"""From transactions to transfers: who sends, who receives, and how much of each output each sender pays for.

A transfer is one (sender, recipient, transaction) triple. There can be hundreds of millions of them, so they are never
written down: `edge_rows` walks over them sender by sender and keeps one accumulator per distinct recipient, as sparse
matrix products do (senders × transactions times transactions × recipients). Time grows with the number of transfers,
memory with the number of edges.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

from btcnb.data.transactions import SCRIPT_TYPES, UNKNOWN, Transactions

IntArray = npt.NDArray[np.int64]
SplitValue = Literal["proportional", "equal", "full"]
Flow = Literal["gross", "net"]

NULLDATA = SCRIPT_TYPES.index("nulldata")


class Transfers(NamedTuple):
    """The two sides of all transactions, each address once per transaction, in order of first appearance.

    sender_tx, sender:        one row per (transaction, distinct input address)
    paid_before, paid_after:  cumulative weight of the transaction's senders before and after that row; the row's share
                              of an output is (paid_after - paid_before) / weight of the transaction
    recipient, received:      one row per (transaction, distinct output address), value in satoshi
    recipient_offsets:        rows of transaction t are recipient_offsets[t]:recipient_offsets[t + 1]
    weight:                   total weight per transaction, the denominator of the shares
    block:                    block number per transaction
    """

    sender_tx: IntArray
    sender: IntArray
    paid_before: IntArray
    paid_after: IntArray
    recipient_tx: IntArray
    recipient: IntArray
    received: IntArray
    recipient_offsets: IntArray
    weight: IntArray
    block: IntArray


def transfers(txs: Transactions, split_value: SplitValue, flow: Flow) -> Transfers:
    """Collapse inputs and outputs to distinct addresses per transaction and fix every sender's share."""
    number = len(txs)
    inputs, outputs = txs.inputs, txs.outputs
    in_tx, in_address, in_value = (inputs[name].to_numpy() for name in ("tx", "address", "value"))
    guessed = np.zeros(number, dtype=bool)  # transactions with an input of unknown value: senders share evenly
    guessed[in_tx[in_value == UNKNOWN]] = True
    known = in_address >= 0
    sender_tx, sender, sent = _distinct(in_tx[known], in_address[known], np.maximum(in_value[known], 0))

    payable = (outputs["address"].to_numpy() >= 0) & (outputs["script_type"].to_numpy() != NULLDATA)
    recipient_tx, recipient, received = _distinct(
        *(outputs[name].to_numpy()[payable] for name in ("tx", "address", "value"))
    )
    if flow == "net":
        (sender_tx, sender, sent), (recipient_tx, recipient, received) = _net(
            (sender_tx, sender, sent), (recipient_tx, recipient, received), guessed
        )

    weight = np.bincount(sender_tx, minlength=number) if split_value == "equal" else _sums(sender_tx, sent, number)
    evenly = guessed | (weight == 0)
    if split_value == "equal":
        evenly[:] = True
    paid = np.where(evenly[sender_tx], 1, sent)
    paid_after = np.cumsum(paid)
    first = np.searchsorted(sender_tx, sender_tx)  # first sender row of the same transaction
    paid_after -= (paid_after - paid)[first]
    return Transfers(
        sender_tx=sender_tx,
        sender=sender,
        paid_before=paid_after - paid,
        paid_after=paid_after,
        recipient_tx=recipient_tx,
        recipient=recipient,
        received=received,
        recipient_offsets=np.searchsorted(recipient_tx, np.arange(number + 1)).astype(np.int64),
        weight=_sums(sender_tx, paid, number),
        block=txs.transactions["block_number"].to_numpy(copy=True),
    )


class Edges(NamedTuple):
    """All edges, sorted by (a, b), and what an address sent in one transaction: extremes, -1 where it never did."""

    a: IntArray
    b: IntArray
    reveal: IntArray
    last_seen: IntArray
    total: IntArray
    min_sent: IntArray
    max_sent: IntArray
    total_sent: IntArray
    least_of_sender: IntArray  # per address
    most_of_sender: IntArray  # per address


def edge_rows(flows: Transfers, num_addresses: int, full: bool) -> Edges:
    """The transfers, collected into edges."""
    order = np.argsort(flows.sender, kind="stable")
    offsets = np.searchsorted(flows.sender[order], np.arange(num_addresses + 1)).astype(np.int64)
    flows = flows._replace(  # grouped by sender, in chain order within a sender
        sender_tx=flows.sender_tx[order],
        sender=flows.sender[order],
        paid_before=flows.paid_before[order],
        paid_after=flows.paid_after[order],
    )
    degree = _count_edges(offsets, flows)
    edges = Edges(
        np.repeat(np.arange(num_addresses), degree),
        *(np.zeros(degree.sum(), dtype=np.int64) for _ in range(7)),
        *(np.full(num_addresses, -1, dtype=np.int64) for _ in range(2)),
    )
    _fill_edges(offsets, flows, np.concatenate([[0], np.cumsum(degree)]), edges, full)
    return edges


def received_extremes(flows: Transfers, num_addresses: int, full: bool) -> tuple[IntArray, IntArray]:
    """Per address the smallest and the largest value received from others in one transaction; -1 where none is."""
    position = np.full(len(flows.recipient), -1, dtype=np.int64)  # the sender row of the same address and transaction
    key = flows.sender_tx * num_addresses + flows.sender
    order = np.argsort(key, kind="stable")
    wanted = flows.recipient_tx * num_addresses + flows.recipient
    if len(key):
        at = order[np.minimum(np.searchsorted(key[order], wanted), len(key) - 1)]
        position = np.where(key[at] == wanted, at, -1)
    senders = np.bincount(flows.sender_tx, minlength=len(flows.block))
    return _received_extremes(flows, position, senders, num_addresses, full)


def _distinct(tx: IntArray, address: IntArray, value: IntArray) -> tuple[IntArray, IntArray, IntArray]:
    """Sum values per (transaction, address); rows in order of first appearance, hence grouped by transaction."""
    order = np.lexsort((address, tx))
    new = np.ones(len(order), dtype=bool)
    new[1:] = (np.diff(tx[order]) != 0) | (np.diff(address[order]) != 0)
    starts = np.flatnonzero(new)
    first = order[starts]  # lexsort is stable: the first row of a group is its first appearance
    total = np.add.reduceat(value[order], starts) if len(starts) else np.zeros(0, dtype=np.int64)
    back = np.argsort(first)
    return tx[first][back], address[first][back], total[back].astype(np.int64)


Side = tuple[IntArray, IntArray, IntArray]


def _net(senders: Side, recipients: Side, guessed: npt.NDArray[np.bool_]) -> tuple[Side, Side]:
    """Balance what an address pays and gets within one transaction; only net payers send, only net payees receive.

    A transaction with an input of unknown value has no balance: it keeps its gross sides.
    """
    tx, address, balance = _distinct(
        np.concatenate([senders[0], recipients[0]]),
        np.concatenate([senders[1], recipients[1]]),
        np.concatenate([-senders[2], recipients[2]]),
    )
    order = np.argsort(tx, kind="stable")
    tx, address, balance = tx[order], address[order], balance[order]
    sides = []
    for (gross_tx, gross_address, gross_value), sign in ((senders, -1), (recipients, 1)):
        take, keep = (balance * sign > 0) & ~guessed[tx], guessed[gross_tx]
        side = (
            np.concatenate([tx[take], gross_tx[keep]]),
            np.concatenate([address[take], gross_address[keep]]),
            np.concatenate([np.abs(balance[take]), gross_value[keep]]),
        )
        order = np.argsort(side[0], kind="stable")
        sides.append((side[0][order], side[1][order], side[2][order]))
    return sides[0], sides[1]


def _sums(group: IntArray, value: IntArray, number: int) -> IntArray:
    """Exact int64 sums per group (bincount would go through floats)."""
    total = np.zeros(number, dtype=np.int64)
    np.add.at(total, group, value)
    return total


@njit(cache=True)
def _part(value: int, weight: int, total: int) -> int:
    """floor(value · weight / total), exact for 0 <= weight <= total, though the product may need more than 64 bits.

    The quotient is guessed in floating point; the remainder, computed modulo 2^64, is small and therefore exact, and
    corrects it.
    """
    whole, rest = value // total, value % total
    guess = int(float(rest) * float(weight) / float(total))
    remainder = rest * weight - guess * total
    while remainder < 0:
        guess -= 1
        remainder += total
    while remainder >= total:
        guess += 1
        remainder -= total
    return whole * weight + guess


@njit(cache=True)
def _share(value: int, before: int, after: int, total: int, full: bool) -> int:
    """What one sender pays of an output: cumulative rounding, so that all senders' shares add up to the output."""
    if full:
        return value
    return _part(value, after, total) - _part(value, before, total)


@njit(cache=True)
def _count_edges(offsets: IntArray, flows: Transfers) -> IntArray:
    """Distinct recipients other than itself, per address; its rows as a sender are offsets[a]:offsets[a + 1]."""
    sender_tx, recipient_offsets, recipient = flows.sender_tx, flows.recipient_offsets, flows.recipient
    number = len(offsets) - 1
    degree = np.zeros(number, dtype=np.int64)
    seen = np.full(number, -1, dtype=np.int64)
    for a in range(number):
        for row in range(offsets[a], offsets[a + 1]):
            t = sender_tx[row]
            for j in range(recipient_offsets[t], recipient_offsets[t + 1]):
                b = recipient[j]
                if b != a and seen[b] != a:
                    seen[b] = a
                    degree[a] += 1
    return degree


@njit(cache=True)
def _fill_edges(offsets: IntArray, flows: Transfers, edge_offsets: IntArray, edges: Edges, full: bool) -> None:
    sender_tx, before, after = flows.sender_tx, flows.paid_before, flows.paid_after
    recipient_offsets, recipient, received = flows.recipient_offsets, flows.recipient, flows.received
    weight, block = flows.weight, flows.block
    out_b, reveal, last_seen, total = edges.b, edges.reveal, edges.last_seen, edges.total
    min_sent, max_sent, total_sent = edges.min_sent, edges.max_sent, edges.total_sent
    sent_min, sent_max = edges.least_of_sender, edges.most_of_sender
    number = len(offsets) - 1
    slot = np.full(number, -1, dtype=np.int64)  # where b's accumulator stands, if it belongs to the current sender
    for a in range(number):
        start = edge_offsets[a]
        end = start
        for row in range(offsets[a], offsets[a + 1]):
            t = sender_tx[row]
            for j in range(recipient_offsets[t], recipient_offsets[t + 1]):
                b = recipient[j]
                if b != a and slot[b] < start:
                    slot[b] = end
                    out_b[end] = b
                    end += 1
        out_b[start:end].sort()
        for position in range(start, end):
            slot[out_b[position]] = position
        for row in range(offsets[a], offsets[a + 1]):
            t = sender_tx[row]
            sent, sends = np.int64(0), False
            for j in range(recipient_offsets[t], recipient_offsets[t + 1]):
                b = recipient[j]
                if b == a:
                    continue
                value = _share(received[j], before[row], after[row], weight[t], full)
                sent, sends = sent + value, True
                e = slot[b]
                if total[e] == 0:
                    reveal[e], min_sent[e], max_sent[e] = block[t], value, value
                total[e] += 1
                last_seen[e] = block[t]  # rows stand in chain order
                min_sent[e] = min(min_sent[e], value)
                max_sent[e] = max(max_sent[e], value)
                total_sent[e] += value
            if sends:
                sent_min[a] = sent if sent_min[a] < 0 else min(sent_min[a], sent)
                sent_max[a] = max(sent_max[a], sent)


@njit(cache=True)
def _received_extremes(
    flows: Transfers, own_row: IntArray, senders: IntArray, num_addresses: int, full: bool
) -> tuple[IntArray, IntArray]:
    before, after, weight = flows.paid_before, flows.paid_after, flows.weight
    recipient_tx, recipient, received = flows.recipient_tx, flows.recipient, flows.received
    smallest = np.full(num_addresses, -1, dtype=np.int64)
    largest = np.full(num_addresses, -1, dtype=np.int64)
    for j in range(len(recipient)):
        t, b, own = recipient_tx[j], recipient[j], own_row[j]
        others = senders[t] - (1 if own >= 0 else 0)
        if others == 0:
            continue
        value = received[j] * others if full else received[j]
        if own >= 0 and not full:
            value -= _share(received[j], before[own], after[own], weight[t], full)
        smallest[b] = value if smallest[b] < 0 else min(smallest[b], value)
        largest[b] = max(largest[b], value)
    return smallest, largest
