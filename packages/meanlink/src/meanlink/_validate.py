"""The checks of public functions: each argument becomes an array or number that compiled code can trust, or a
`ValueError` (`TypeError` for a scalar of another kind) says in one sentence what is wrong.

A wrong index in compiled code is a crash, not an exception. So kernels take only `Trees`, `UnitRows` and integer
classes that were made here.
"""

from __future__ import annotations

import math
import numbers
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from meanlink._dendrogram import Trees
from meanlink._types import Array, Bool, Float64, Int64, UnitRows

BLOCK_ROWS = 1024
"""Rows normalised at a time: float64 temporaries stay small beside the result."""

MOST = 2**31 - 1
"""Largest count or seed."""


def number(name: str, value: Any, low: float = -math.inf, *, infinite: bool = False) -> float:
    """A real number above `low`; NaN never, infinity only if allowed."""
    value = value[()] if isinstance(value, np.ndarray) and value.ndim == 0 else value
    if isinstance(value, bool | np.bool_) or not isinstance(value, numbers.Real):
        raise TypeError(f"{name} must be a number, not a {type(value).__name__}.")
    try:
        found = float(value)
    except OverflowError:
        found = math.nan
    if math.isnan(found) or (math.isinf(found) and not infinite) or (found <= low and low > -math.inf):
        raise ValueError(f"{name} is {found}; pass a number{f' above {low:g}' if low > -math.inf else ''}.")
    return found


def whole(name: str, value: Any, least: int, most: int = MOST) -> int:
    """A whole number from `least` to `most`."""
    value = value[()] if isinstance(value, np.ndarray) and value.ndim == 0 else value
    if isinstance(value, bool | np.bool_) or not isinstance(value, numbers.Integral):
        raise TypeError(f"{name} must be a whole number, not a {type(value).__name__}.")
    if not least <= int(value) <= most:
        raise ValueError(f"{name} must be a whole number from {least} to {most}.")
    return int(value)


def choice(name: str, value: Any, allowed: Iterable[str]) -> str:
    """One of some names."""
    names = tuple(allowed)
    if not isinstance(value, str) or value not in names:
        shown = repr(value) if isinstance(value, str) and len(value) < 40 else f"a {type(value).__name__}"
        raise ValueError(f"{name} is {shown}; choose one of {', '.join(map(repr, names))}.")
    return value


def flag(name: str, value: Any) -> bool:
    """True or False."""
    if not isinstance(value, bool | np.bool_):
        raise TypeError(f"{name} must be True or False.")
    return bool(value)


def array(name: str, value: Any) -> Array:
    """Anything array-like as an array; a tensor that requires a gradient is detached first."""
    try:
        return np.asarray(value.detach().cpu() if hasattr(value, "detach") else value)
    except Exception as error:  # whatever a foreign object raises when it is asked for its numbers
        raise ValueError(f"{name} cannot be read as an array ({type(error).__name__}).") from None


def integers(name: str, value: Any) -> Int64:
    """An int64 array of any shape; floats only where they are whole."""
    found = array(name, value)
    fits = found.dtype.kind in "iuf"
    if fits and found.size and (found.dtype.kind == "f" or found.dtype == np.uint64):
        fits = bool((np.isfinite(found) & (np.abs(found) < 2.0**53) & (found == np.floor(found))).all())
    if not fits:
        raise ValueError(f"{name} must hold whole numbers, not {found.dtype}.")
    return found.astype(np.int64)


def reals(name: str, value: Any, length: int | None = None, *, nan: bool = False) -> Float64:
    """A float64 vector without infinities, and without NaN unless allowed."""
    found = array(name, value)
    if found.ndim != 1 or found.dtype.kind not in "iuf" or length not in (None, len(found)):
        wanted = "a vector of numbers" if length is None else f"a vector of {length} numbers"
        raise ValueError(f"{name} has shape {found.shape} and type {found.dtype}; pass {wanted}.")
    found = found.astype(np.float64)
    if np.isinf(found).any() or (not nan and np.isnan(found).any()):
        raise ValueError(f"{name} holds NaN or infinity.")
    return found


def points(X: Any) -> Array:
    """X as a matrix (n, d) of real numbers, not copied; `unit_rows` checks the numbers themselves."""
    rows = array("X", X)
    if rows.ndim != 2 or rows.shape[1] == 0:
        raise ValueError(f"X has shape {rows.shape}; pass one row per point and at least one column.")
    if rows.dtype.kind not in "fiu":
        raise ValueError(f"X holds {rows.dtype}; pass real numbers.")
    return rows


def unit_rows(X: Any, names: Int64 | None = None) -> UnitRows:
    """A float64 copy of X (n, d) with every row scaled to length 1.

    names: how an error numbers the rows, if X is a selection
    """
    rows = points(X)
    require_memory(8 * rows.size, f"A float64 copy of X {rows.shape}")
    unit = np.empty(rows.shape, dtype=np.float64)
    for start in range(0, len(rows), BLOCK_ROWS):
        block = rows[start : start + BLOCK_ROWS].astype(np.float64, order="C")
        largest = np.abs(block).max(axis=1, keepdims=True)
        bad = ~(np.isfinite(largest) & (largest > 0.0))[:, 0]  # NaN and infinity survive the maximum
        if bad.any():
            row = int(bad.argmax())
            problem = "is all zeros and has no direction" if largest[row, 0] == 0.0 else "holds NaN or infinity"
            raise ValueError(f"Row {start + row if names is None else names[start + row]} of X {problem}.")
        block /= largest  # first, so that squares of tiny or huge entries neither vanish nor overflow
        block /= np.sqrt(np.einsum("ij,ij->i", block, block))[:, None]
        unit[start : start + BLOCK_ROWS] = block
    return UnitRows(unit)


def require_memory(needed: int, what: str) -> None:
    """Raise before work starts that cannot fit into the machine's free memory."""
    free = _free_bytes()
    if free is not None and needed > free:
        raise ValueError(f"{what} takes {needed:,} bytes, but only {free:,} are free.")


def _free_bytes() -> int | None:
    """Memory that can be taken without swapping; None where the system does not say."""
    try:
        for line in Path("/proc/meminfo").read_text("ascii").splitlines():
            if line.startswith("MemAvailable:"):
                return 1024 * int(line.split()[1])
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, AttributeError):
        return None


def classes(name: str, labels: Any, n: int | None = None) -> Int64:
    """Labels (numbers or text) renumbered 0..k-1 in order of value, int64 (n,)."""
    found = array(name, labels)
    if found.ndim != 1 or n not in (None, len(found)):
        wanted = "one label per point" if n is None else f"one label for each of {n} points"
        raise ValueError(f"{name} has shape {found.shape}; pass {wanted}.")
    kinds = {type(value) for value in found} if found.dtype.kind == "O" else set()
    named = kinds <= {str} or all(issubclass(kind, numbers.Integral) for kind in kinds)
    if found.dtype.kind not in "biufUSO" or not named:
        raise ValueError(f"{name} holds {found.dtype}; label points by numbers or by text.")
    if found.dtype.kind == "f" and not np.isfinite(found).all():
        raise ValueError(f"{name} holds NaN or infinity.")
    return np.unique(found, return_inverse=True)[1].astype(np.int64)


def mask(values: Any, n: int) -> Bool:
    """Which of n leaves count; None counts all."""
    if values is None:
        return np.ones(n, dtype=bool)
    found = array("mask", values)
    if found.shape != (n,) or found.dtype.kind not in "biu" or not np.isin(found, (0, 1)).all():
        raise ValueError(f"mask has shape {found.shape} and type {found.dtype}; pass one bool per leaf, {n} in all.")
    return found.astype(bool)


def tree(Z: Any, n: int | None = None) -> Trees:
    """One linkage matrix (points - 1, 4); n: the number of points it must have."""
    found = array("Z", Z)
    if found.ndim != 2 or found.shape[1] != 4:
        raise ValueError(f"Z has shape {found.shape}; pass a linkage matrix (points - 1, 4).")
    if n not in (None, len(found) + 1):
        raise ValueError(f"Z has {len(found) + 1} leaves for {n} points; pass the dendrogram of these points.")
    return trees(found, np.array([0, len(found) + 1]))


def trees(merges: Array, offsets: Int64, name: str = "Z") -> Trees:
    """Linkage matrices one below the other, of offsets[t+1] - offsets[t] >= 1 leaves each.

    Every node must be formed before it is used, and used once. Counts must be those of the parts. Heights must be
    finite and may stand in any order.
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
        raise ValueError(
            f"{name} is no linkage matrix: a node is used twice, used before it is formed or miscounted, or a height "
            "is not finite."
        )
    return Trees(children, np.ascontiguousarray(table[:, 2]), size.astype(np.int64), offsets.astype(np.int64))
