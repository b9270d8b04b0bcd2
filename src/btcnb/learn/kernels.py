"""The hot loops of learning: neighbour sampling, weighted sums and softmaxes over in-edges, dropout masks.

The first half are plain loops over arrays, compiled once and kept on disk. They run in one thread, so that nothing
clashes with torch's own threads and sums do not depend on the number of cores. The second half are the operations that
layers call, differentiable by torch. Each dispatches by device: the compiled loops on the CPU, torch's own operations
elsewhere. Both ways agree up to rounding.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from numba import njit, types
from torch import Tensor
from torch.nn import functional

Array = npt.NDArray[Any]

COMPILED = ("cpu",)
"""Devices whose memory the compiled loops read."""

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)  # constants of the SplitMix64 generator
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)


@njit(types.uint64(types.uint64), cache=True, inline="always")
def _mixed(value: Any) -> Any:
    value = (value ^ (value >> np.uint64(30))) * _MIX_1
    value = (value ^ (value >> np.uint64(27))) * _MIX_2
    return value ^ (value >> np.uint64(31))


@njit(cache=True)
def sample_neighbours(
    indptr: Array, source: Array, seeds: Array, fanout: Array, seed: int, position: Array
) -> tuple[Array, Array, Array, Array, Array, Array]:
    """Draw up to `fanout[h]` in-neighbours of every node first reached at hop h, uniformly and without replacement.

    seeds: distinct node ids. position: int32 scratch, one entry per node, all -1; left all -1 again.
    Returns node (n), row (e), col (e), edge (e), nodes per hop (hops+1), edges per hop (hops). `node` begins with the
    seeds; `row` and `col` index `node`; edges run from `row` to `col`, sorted by `col`; `edge` indexes `source`.
    The draw for a node depends on the seed, the hop and the node's id alone, not on what else is in the batch.
    """
    hops = len(fanout)
    node = np.empty(len(seeds), np.int64)
    edge, row, col = np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.int64)
    nodes_per_hop, edges_per_hop = np.zeros(hops + 1, np.int64), np.zeros(hops, np.int64)
    for i in range(len(seeds)):
        node[i] = seeds[i]
        position[seeds[i]] = i
    begin, num_nodes, num_edges = 0, len(seeds), 0
    nodes_per_hop[0] = num_nodes
    for hop in range(hops):  # three passes, each with loads that do not wait for one another
        room = 0
        for i in range(begin, num_nodes):
            room += min(indptr[node[i] + 1] - indptr[node[i]], fanout[hop])
        more = np.empty(room, np.int64)
        edge, row, col = np.append(edge, more), np.append(row, more), np.append(col, more)
        node = np.append(node[:num_nodes], more)
        at = num_edges
        for i in range(begin, num_nodes):
            at = _choose(indptr, node[i], fanout[hop], np.uint64(seed), np.uint64(node[i] * hops + hop + 1), edge, at)
            col[num_edges:at] = i
            edges_per_hop[hop] += at - num_edges
            num_edges = at
        before = num_edges - edges_per_hop[hop]
        for e in range(before, num_edges):
            row[e] = source[edge[e]]
        begin = num_nodes
        for e in range(before, num_edges):
            u = row[e]
            if position[u] < 0:
                position[u] = num_nodes
                node[num_nodes] = u
                num_nodes += 1
            row[e] = position[u]
        nodes_per_hop[hop + 1] = num_nodes - begin
    for i in range(num_nodes):
        position[node[i]] = -1
    return node[:num_nodes], row, col, edge, nodes_per_hop, edges_per_hop


@njit(cache=True)
def _choose(indptr: Array, v: int, k: int, seed: Any, stream: Any, edge: Array, at: int) -> int:
    """Write min(k, degree) distinct in-edges of v to `edge[at:]`; returns where they end."""
    first, degree = indptr[v], indptr[v + 1] - indptr[v]
    if degree <= k:
        for j in range(degree):
            edge[at + j] = first + j
        return at + degree
    state = _mixed(seed + _GOLDEN * stream)
    for j in range(k):  # Floyd's algorithm: k draws, every k-subset equally likely
        state += _GOLDEN
        top = degree - k + j
        pick = first + np.int64(_mixed(state) % np.uint64(top + 1))
        for other in range(j):
            if edge[at + other] == pick:
                pick = first + top
                break
        edge[at + j] = pick
    return at + k


@njit(cache=True, fastmath={"reassoc", "contract"})
def sums_of_rows(x: Array, weight: Array, indptr: Array, source: Array) -> Array:
    """out[d, h] = Σ over edges e of target d: weight[e, h] · x[source[e]]; x (S, F), weight (E, H), out (D, H, F)."""
    targets, heads, width = len(indptr) - 1, weight.shape[1], x.shape[1]
    out = np.zeros((targets, heads, width), x.dtype)
    for d in range(targets):
        for e in range(indptr[d], indptr[d + 1]):
            row = x[source[e]]
            for h in range(heads):
                w = weight[e, h]
                for f in range(width):
                    out[d, h, f] += w * row[f]
    return out


@njit(cache=True, fastmath={"reassoc", "contract"})
def sums_backward_weight(grad: Array, x: Array, indptr: Array, source: Array) -> Array:
    """Gradient of `sums_of_rows` by its weights: grad (D, H, F) to (E, H)."""
    targets, heads, width = grad.shape
    out = np.empty((len(source), heads), x.dtype)
    for d in range(targets):
        for e in range(indptr[d], indptr[d + 1]):
            row = x[source[e]]
            for h in range(heads):
                total = x.dtype.type(0.0)
                for f in range(width):
                    total += grad[d, h, f] * row[f]
                out[e, h] = total
    return out


@njit(cache=True, fastmath={"reassoc", "contract"})
def sums_backward_x(grad: Array, weight: Array, indptr: Array, source: Array, num_sources: int) -> Array:
    """Gradient of `sums_of_rows` by x: grad (D, H, F) to (S, F)."""
    targets, heads, width = grad.shape
    out = np.zeros((num_sources, width), grad.dtype)
    for d in range(targets):
        for e in range(indptr[d], indptr[d + 1]):
            s = source[e]
            for h in range(heads):
                w = weight[e, h]
                for f in range(width):
                    out[s, f] += w * grad[d, h, f]
    return out


@njit(cache=True)
def softmax_of_edges(logits: Array, indptr: Array) -> Array:
    """Softmax of logits (E, H) over the edges of each target, head by head; stable because the largest is taken off."""
    out = np.empty_like(logits)
    for d in range(len(indptr) - 1):
        begin, end = indptr[d], indptr[d + 1]
        for h in range(logits.shape[1]):
            largest = logits.dtype.type(-np.inf)
            for e in range(begin, end):
                largest = max(largest, logits[e, h])
            total = logits.dtype.type(0.0)
            for e in range(begin, end):
                out[e, h] = np.exp(logits[e, h] - largest)
                total += out[e, h]
            for e in range(begin, end):
                out[e, h] /= total
    return out


@njit(cache=True)
def softmax_backward(grad: Array, softmax: Array, indptr: Array) -> Array:
    """Gradient of `softmax_of_edges`: s · (g − Σ s g), over the edges of each target."""
    out = np.empty_like(grad)
    for d in range(len(indptr) - 1):
        begin, end = indptr[d], indptr[d + 1]
        for h in range(grad.shape[1]):
            total = grad.dtype.type(0.0)
            for e in range(begin, end):
                total += softmax[e, h] * grad[e, h]
            for e in range(begin, end):
                out[e, h] = softmax[e, h] * (grad[e, h] - total)
    return out


@njit(cache=True)
def keep_mask(number: int, keep: float, seed: int) -> Array:
    """`number` float32 values, 1/keep with probability `keep` and 0 otherwise, independently; the same for a seed."""
    out = np.empty(number, np.float32)
    scale = np.float32(1.0 / keep)
    limit = np.uint64(keep * 4294967296.0)
    low = np.uint64(0xFFFFFFFF)
    state = np.uint64(seed)
    for i in range(0, number - 1, 2):  # one 64-bit draw serves two values
        state += _GOLDEN
        bits = _mixed(state)
        out[i] = scale if (bits & low) < limit else np.float32(0.0)
        out[i + 1] = scale if (bits >> np.uint64(32)) < limit else np.float32(0.0)
    if number % 2:
        out[number - 1] = scale if (_mixed(state + _GOLDEN) & low) < limit else np.float32(0.0)
    return out


class _WeightedSums(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, indptr: Tensor, source: Tensor) -> Tensor:
        ctx.save_for_backward(x, weight, indptr, source)
        return torch.from_numpy(sums_of_rows(*_arrays(x, weight, indptr, source)))

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, Tensor | None, None, None]:
        x, weight, indptr, source = _arrays(*ctx.saved_tensors)
        (grad,) = _arrays(grads[0])
        by_x = by_weight = None
        if ctx.needs_input_grad[0]:
            by_x = torch.from_numpy(sums_backward_x(grad, weight, indptr, source, len(x)))
        if ctx.needs_input_grad[1]:
            by_weight = torch.from_numpy(sums_backward_weight(grad, x, indptr, source))
        return by_x, by_weight, None, None


class _SegmentSoftmax(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, logits: Tensor, indptr: Tensor) -> Tensor:
        softmax = torch.from_numpy(softmax_of_edges(*_arrays(logits, indptr)))
        ctx.save_for_backward(softmax, indptr)
        return softmax

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None]:
        softmax, indptr = _arrays(*ctx.saved_tensors)
        (grad,) = _arrays(grads[0])
        return torch.from_numpy(softmax_backward(grad, softmax, indptr)), None


def weighted_sums(x: Tensor, weight: Tensor, indptr: Tensor, source: Tensor) -> Tensor:
    """Σ over the in-edges e of each target: weight[e, h] · x[source[e]].

    x (S, F), weight (E, H), indptr (D+1), source (E), edges sorted by target; returns (D, H, F). The compiled loops
    make no tensor of the size edges × features.
    """
    if x.device.type in COMPILED:
        out: Tensor = _WeightedSums.apply(x, weight, indptr, source)  # type: ignore[no-untyped-call]
        return out
    target = targets_of(indptr, len(source))
    rows = x.index_select(0, source)  # (E, F)
    zeros = x.new_zeros(len(indptr) - 1, x.shape[1])
    return torch.stack([zeros.index_add(0, target, one.unsqueeze(1) * rows) for one in weight.T], dim=1)


def segment_softmax(logits: Tensor, indptr: Tensor) -> Tensor:
    """Softmax of logits (E, H) over the in-edges of each target."""
    if logits.device.type in COMPILED:
        out: Tensor = _SegmentSoftmax.apply(logits, indptr)  # type: ignore[no-untyped-call]
        return out
    target = targets_of(indptr, len(logits))
    zeros = logits.new_zeros(len(indptr) - 1, logits.shape[1])
    place = target.unsqueeze(1).expand_as(logits)
    largest = zeros.scatter_reduce(0, place, logits.detach(), "amax", include_self=False)
    powers = (logits - largest[target]).exp()
    return powers / zeros.index_add(0, target, powers)[target]


def dropout(x: Tensor, share: float, training: bool) -> Tensor:
    """As torch's: zero a `share` of the values and scale up the rest, while training.

    On the CPU one draw of torch's generator seeds the whole mask. Drawing every value from that generator took a third
    of a training step.
    """
    if not training or share == 0:
        return x
    if x.device.type not in COMPILED:
        return functional.dropout(x, share)
    seed = int(torch.randint(1 << 62, ()))
    return x * torch.from_numpy(keep_mask(x.numel(), 1.0 - share, seed)).view(x.shape)


def targets_of(indptr: Tensor, edges: int) -> Tensor:
    """The target of each edge, (E,), from the bounds of each target's edges, (D+1)."""
    targets = torch.arange(len(indptr) - 1, device=indptr.device)
    return targets.repeat_interleave(indptr.diff(), output_size=edges)


def _arrays(*tensors: Tensor) -> tuple[Array, ...]:
    return tuple(tensor.detach().contiguous().numpy() for tensor in tensors)
