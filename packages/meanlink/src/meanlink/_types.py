"""Array types that all modules share."""

from __future__ import annotations

from typing import Any, NewType

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
Float64 = npt.NDArray[np.float64]
Float32 = npt.NDArray[np.float32]
Int64 = npt.NDArray[np.int64]
Int32 = npt.NDArray[np.int32]
Bool = npt.NDArray[np.bool_]
UnitRows = NewType("UnitRows", npt.NDArray[np.float64])  # type: ignore[valid-newtype]
