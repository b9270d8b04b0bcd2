"""Whirlpool's entry transactions (Tx0), pool by pool: shared by both rule sets, which differ in their limits."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
from numba import njit

from btcnb.data.coinjoin.shape import NULLDATA
from btcnb.data.transactions import IntArray, Transactions


def entries(
    txs: Transactions,
    pool_fees: Mapping[int, int],
    *,
    surplus: int,
    most_premix: int,
    fee_factors: tuple[float, float],
    premix_type: int | None = None,
    change_in_band: bool = False,
) -> npt.NDArray[np.bool_]:
    """Per transaction, whether for some pool its outputs are premix, a fee, and little else.

    Premix: the outputs worth pool value + 1 .. + `surplus`; they all have one value (and the type `premix_type`), there
    are at most `most_premix` of them, and at most two other outputs that can be spent, of which one lies within
    `fee_factors` × the pool's fee. With `change_in_band`, one of the two others may fall into the premix band as well:
    change can be worth nearly as much as one more premix output.
    """
    pools = np.array(sorted(pool_fees, reverse=True), dtype=np.int64)
    fees = np.array([pool_fees[int(pool)] for pool in pools], dtype=np.float64)
    return _entries(
        txs.output_offsets(),
        txs.outputs["value"].to_numpy(),
        txs.outputs["script_type"].to_numpy(),
        pools,
        np.minimum(surplus, pools),
        fees * fee_factors[0],
        fees * fee_factors[1],
        most_premix,
        -1 if premix_type is None else premix_type,
        change_in_band,
    )


@njit(cache=True)
def _entries(
    start: IntArray,
    value: IntArray,
    kind: npt.NDArray[np.int8],
    pools: IntArray,
    surplus: IntArray,
    fee_low: npt.NDArray[np.float64],
    fee_high: npt.NDArray[np.float64],
    most_premix: int,
    premix_type: int,
    change_in_band: bool,
) -> npt.NDArray[np.bool_]:
    found = np.zeros(len(start) - 1, dtype=np.bool_)
    for t in range(len(found)):
        for p in range(len(pools)):
            low, high = pools[p] + 1, pools[p] + surplus[p]
            tried = 0
            for candidate in range(start[t], start[t + 1]):
                if not low <= value[candidate] <= high or found[t]:
                    continue
                tried += 1
                if tried > 3:  # at most two outputs are not premix: one of the first three in the band must be
                    break
                premix, others, fee_paid, fits = 0, 0, False, True
                for i in range(start[t], start[t + 1]):
                    if kind[i] == NULLDATA:
                        continue
                    if value[i] == value[candidate]:
                        premix += 1
                        fits &= premix_type < 0 or kind[i] == premix_type
                    else:
                        others += 1
                        fits &= change_in_band or not low <= value[i] <= high
                        fee_paid |= fee_low[p] <= value[i] <= fee_high[p]
                found[t] = fits and fee_paid and premix <= most_premix and others <= 2
    return found
