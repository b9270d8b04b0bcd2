"""Powers of ten as text."""

from __future__ import annotations

import pytest

from btcnb.book.telling import power_of_ten


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (3.2e-8, "3 · 10⁻⁸"),
        (0.0, "0"),
        (2e12, "2 · 10¹²"),
        (-1e-3, "-1 · 10⁻³"),
        (float("nan"), "nan"),
        (1.0, "1 · 10⁰"),
    ],
)
def test_powers_of_ten(value: float, text: str) -> None:
    assert power_of_ten(value) == text
