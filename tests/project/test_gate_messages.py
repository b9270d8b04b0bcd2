"""Gates: values in their range pass, others are named with what is allowed."""

from __future__ import annotations

from math import inf, nan

import numpy as np
import pytest

from btcnb import gates
from btcnb.errors import DataError, ParameterError


@pytest.mark.parametrize("text", ["", "[0 1]", "0, 1", "[0, 1, 2]"])
def test_intervals_that_cannot_be_read_are_refused(text: str) -> None:
    with pytest.raises(ParameterError, match="interval"):
        gates.real("x", 1.0, text)


def test_gates_say_what_is_wrong() -> None:
    assert gates.real("x", -inf, "[-inf, 0)") == -inf and gates.whole("k", np.uint8(3), "[1, 3]") == 3
    with pytest.raises(ParameterError, match=r"x is inf, but must lie in \[0, inf\)"):
        gates.real("x", inf, "[0, inf)")
    with pytest.raises(ParameterError, match="k is True, but must be a whole number"):
        gates.whole("k", True)
    with pytest.raises(DataError, match="row 1, column 0 is nan"):
        gates.array("X", [[0.0], [nan]], 2)
