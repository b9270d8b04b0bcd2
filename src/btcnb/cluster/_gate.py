"""The one gate in front of compiled code: everything a caller hands in is read here, or refused with a `BtcnbError`.

Compiled code trusts its arguments: a wrong index there is a crash, not an exception. So public functions turn what they
are given into the types of this module first, and kernels take nothing else: `Trees` for dendrograms, `UnitRows` for
embeddings, int64 classes for labels.
"""

from __future__ import annotations

import math
import numbers
import warnings
from collections.abc import Iterable
from typing import Any, NamedTuple, NewType

import numpy as np
import numpy.typing as npt

from btcnb import gates
from btcnb.errors import DataError, ParameterError

Float64 = npt.NDArray[np.float64]
Float32 = npt.NDArray[np.float32]
Int64 = npt.NDArray[np.int64]
Int32 = npt.NDArray[np.int32]
Bool = npt.NDArray[np.bool_]
UnitRows = NewType("UnitRows", npt.NDArray[np.float64])  # type: ignore[valid-newtype]

BLOCK_ROWS = 1024
"""Rows normalised at a time, so that the float64 temporaries stay small beside the result."""

MOST = 2**31 - 1
"""Largest count or seed that every library below accepts."""

ZERO_ROWS = ("refuse", "fixed")


class Trees(NamedTuple):
    """One or more dendrograms in one numbering: leaves 0..N-1, tree after tree; merge m is node N + m.

    For a single tree this is SciPy's numbering.
    """

    children: Int64  # (M, 2) the two nodes that a merge joins
    height: Float64  # (M,)
    size: Int64  # (N + M,) leaves below each node
    offsets: Int64  # (trees + 1,) leaves of tree t are offsets[t]..offsets[t+1], its merges those minus t

    @property
    def tree_of_merge(self) -> Int64:
        return np.repeat(np.arange(len(self.offsets) - 1), np.diff(self.offsets) - 1)


def number(value: Any, name: str, low: float = -math.inf, *, infinite: bool = False) -> float:
    """A real number above `low`; NaN is none, infinity only where allowed."""
    ends = ("[" if infinite and low == -math.inf else "(", "]" if infinite else ")")
    return gates.real(name, _scalar(value), f"{ends[0]}{low:g}, inf{ends[1]}")


def whole(value: Any, name: str, least: int, most: int = MOST) -> int:
    """A whole number from `least` to `most`."""
    return gates.whole(name, _scalar(value), f"[{least}, {most}]")


def _scalar(value: Any) -> Any:
    """A 0-dimensional array's element, what it holds or None."""
    if isinstance(value, np.ndarray) and value.ndim == 0:
        return None if np.ma.is_masked(value) else value[()]
    return value


def choice(value: Any, name: str, allowed: Iterable[str]) -> str:
    return str(gates.choice(name, value, allowed))


def asked(graph: Any, what: str) -> Any:
    """What a graph's method says."""
    if isinstance(graph, type) or not callable(getattr(graph, what, None)):
        raise DataError(
            "graph", what, f"is missing in a {type(graph).__name__}", "pass an AddressGraph, or what it has"
        )
    return getattr(graph, what)()


def array(value: Any, source: str) -> npt.NDArray[Any]:
    try:
        return np.asarray(value)
    except Exception as error:  # whatever a foreign object raises when asked for its numbers
        raise DataError(source, "value", f"is no array ({type(error).__name__})", "pass a NumPy array") from None


def integers(value: Any, source: str, field: str) -> Int64:
    """An int64 array of any shape; floats only where they are whole."""
    found = array(value, source)
    fits = found.dtype.kind in "iuf"
    if fits and found.size and (found.dtype.kind == "f" or found.dtype == np.uint64):
        fits = bool((np.isfinite(found) & (np.abs(found) < 2.0**53) & (found == np.floor(found))).all())
    if not fits:
        raise DataError(source, field, f"holds {found.dtype}, not whole numbers", "pass integers")
    return found.astype(np.int64)


def reals(value: Any, source: str, length: int | None = None, *, nan: bool = False) -> Float64:
    """A float64 vector without infinities, and without NaN unless allowed."""
    found = array(value, source)
    if found.ndim != 1 or found.dtype.kind not in "iuf" or length not in (None, len(found)):
        wanted = "one number each" if length is None else f"{length} numbers"
        raise DataError(source, "shape", f"is {found.shape} of {found.dtype}", f"pass a vector, {wanted}")
    found = found.astype(np.float64)
    if np.isinf(found).any() or (not nan and np.isnan(found).any()):
        raise DataError(source, "values", "hold NaN or infinity", "pass finite numbers")
    return found


def embedding(X: Any, source: str = "X") -> npt.NDArray[Any]:
    """X as a matrix (n, d) of real numbers, not copied; what the numbers are, `unit_rows` checks."""
    rows = array(X, source)
    if rows.ndim != 2 or rows.shape[1] == 0:
        raise DataError(
            source, "shape", f"is {rows.shape}, not (points, dimensions)", "pass one row per point, at least one column"
        )
    if rows.dtype.kind not in "fiu":
        raise DataError(source, "dtype", f"holds {rows.dtype}, not real numbers", "pass float32 or float64 embeddings")
    return rows


def unit_rows(X: Any, source: str = "X", names: Int64 | None = None) -> UnitRows:
    """A float64 copy of X (n, d) with every row scaled to length 1; X itself is left alone.

    Rows of any non-zero length are accepted, because cosine distance does not see lengths.
    names: what an error calls the rows, if X is a selection
    Raises `DataError` for anything that has no cosine distance: another shape, NaN, infinities, zero rows.
    """
    rows = embedding(X, source)
    unit = np.empty(rows.shape, dtype=np.float64)
    for start in range(0, len(rows), BLOCK_ROWS):
        block = rows[start : start + BLOCK_ROWS].astype(np.float64, order="C")
        largest = np.abs(block).max(axis=1, keepdims=True)
        bad = ~(np.isfinite(largest) & (largest > 0.0))[:, 0]  # NaN and infinity outlast the maximum
        if bad.any():
            row = int(bad.argmax())
            name = f"row {start + row if names is None else names[start + row]}"
            if largest[row, 0] == 0.0:
                raise DataError(source, name, "is all zeros and has no direction", "drop the row")
            raise DataError(source, name, "holds NaN or infinity", "drop the row or repair the embedding")
        block /= largest  # first, so that squares of tiny or huge entries neither vanish nor overflow
        block /= np.sqrt(np.einsum("ij,ij->i", block, block))[:, None]
        unit[start : start + BLOCK_ROWS] = block
    return UnitRows(unit)


def directed(X: Any, zero_rows: str) -> tuple[npt.NDArray[Any], int]:
    """X and its number of zero rows; "fixed" gives them one direction of their own, in a copy, and warns.

    The direction is a fixed random one, at a cosine distance of about 1 to everything in high dimensions: a network
    that says nothing about an address puts it near nobody, except near the others it says nothing about.
    """
    rows = embedding(X)
    zero = ~rows.any(axis=1)
    found = int(zero.sum())
    if not found or choice(zero_rows, "zero_rows", ZERO_ROWS) == "refuse":
        return rows, 0
    direction = np.random.default_rng(0).normal(size=rows.shape[1])
    rows = rows.astype(np.result_type(rows.dtype, np.float32))
    rows[zero] = direction / np.linalg.norm(direction)
    warnings.warn(f"{found:,} of {len(rows):,} rows of X are all zeros; they share one fixed direction.", stacklevel=3)
    return rows, found


def classes(labels: Any, n: int | None = None, source: str = "labels") -> Int64:
    """Labels (numbers or text) renumbered 0..k-1 in order of value, int64 (n,); one per point."""
    found = array(labels, source)
    if found.ndim != 1 or n not in (None, len(found)):
        raise DataError(source, "shape", f"is {found.shape} for {n} points", "pass exactly one label per point")
    if found.dtype.kind == "f" and not np.isfinite(found).all():
        raise DataError(source, "values", "hold NaN or infinity", "label every point")
    kinds = {type(value) for value in found} if found.dtype.kind == "O" else set()
    plain = found.dtype.kind in "biufUS" or (
        found.dtype.kind == "O" and (kinds <= {str} or all(issubclass(kind, numbers.Integral) for kind in kinds))
    )
    if not plain:
        raise DataError(source, "dtype", f"holds {found.dtype}, not names", "label points by numbers, or by text")
    return np.unique(found, return_inverse=True)[1].astype(np.int64)


def mask(values: Any, n: int) -> Bool:
    """Which of n leaves count; None counts all."""
    if values is None:
        return np.ones(n, dtype=bool)
    found = array(values, "mask")
    if found.shape != (n,) or found.dtype.kind not in "biu" or not np.isin(found, (0, 1)).all():
        raise ParameterError(f"mask has shape {found.shape} for {n} leaves; pass one bool per leaf.")
    return found.astype(bool)


def tree(Z: Any, n: int | None = None) -> Trees:
    """One linkage matrix (points - 1, 4); n: how many points it must have."""
    found = array(Z, "Z")
    if found.ndim != 2 or found.shape[1] != 4:
        raise DataError("Z", "shape", f"is {found.shape}, not (points - 1, 4)", "pass a SciPy linkage matrix")
    if n not in (None, len(found) + 1):
        raise DataError(
            "Z", "leaves", f"there are {len(found) + 1} for {n} points", "pass the dendrogram of these points"
        )
    return trees(found, np.array([0, len(found) + 1]))


def trees(merges: npt.NDArray[Any], offsets: Int64, source: str = "Z") -> Trees:
    """Linkage matrices one below the other, of offsets[t+1] - offsets[t] >= 1 leaves each.

    Every node must be formed before it is used, and used once; counts must be those of the parts; heights finite, in
    any order.
    """
    table = merges.astype(np.float64) if merges.dtype.kind in "iuf" else np.full(merges.shape, np.nan)
    leaves, sizes = int(offsets[-1]), np.diff(offsets)
    which = np.repeat(np.arange(len(sizes)), sizes - 1)
    start, below = offsets[which], sizes[which, None]
    first = (start - which)[:, None]
    pair, count = table[:, :2], table[:, 3]
    formed = below + np.arange(len(table))[:, None] - first
    with np.errstate(invalid="ignore"):
        good = np.isfinite(table).all() and ((pair >= 0) & (pair < formed) & (pair == np.floor(pair))).all()
    if good:
        local = pair.astype(np.int64)
        children = np.where(local < below, start[:, None] + local, leaves + first + local - below)
        size = np.concatenate([np.ones(leaves), count])
        good = np.bincount(children.ravel(), minlength=1).max() <= 1 and (size[children].sum(axis=1) == count).all()
    if not good:
        raise DataError(
            source,
            "merges",
            "some node is used twice, before it is formed, or miscounted, or a height is not finite",
            "pass the output of linkage or of SciPy's linkage",
        )
    return Trees(children, np.ascontiguousarray(table[:, 2]), size.astype(np.int64), offsets.astype(np.int64))
