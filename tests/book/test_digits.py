"""One function writes numbers: zero without a sign, whole shares without decimals, one thing in the singular."""

import pytest

from btcnb import book
from btcnb.book import page
from btcnb.digits import count, evidence, number, probability


@pytest.mark.parametrize(
    ("value", "form", "said"),
    [
        (-0.0, None, "0"),
        (-0.0004, "{:+.3f}", "0.000"),
        (100.0, "{:.1f} %", "100 %"),
        (1.0, "{:.1%}", "100%"),
        (99.97, "{:.1f} %", "100.0 %"),  # rounded, and it shows
        (0.0, "{:.1f} %", "0 %"),
        (0.01, "{:.1f} %", "0.0 %"),
        (1.0, "{:.1f} %", "1.0 %"),
        (100.0, "{:.1f}", "100.0"),
        (0.0, "{:.0e}", "0"),
    ],
)
def test_numbers_in_any_format(value: float, form: str | None, said: str) -> None:
    assert number(value, form) == said


@pytest.mark.parametrize(
    ("value", "signed", "said"),
    [
        (0.12345, False, "0.123"),
        (-0.12345, True, "−0.123"),
        (0.12345, True, "+0.123"),
        (-0.0004, True, "0.000"),
        (12.345, False, "12.3"),
        (999.7, False, "1,000"),
        (12345.6, True, "+12,346"),
        (float("nan"), False, "nan"),
    ],
)
def test_numbers_that_decide(value: float, signed: bool, said: str) -> None:
    assert evidence(value, signed) == said


@pytest.mark.parametrize(
    ("p", "said"), [(3e-12, "p < 0.001"), (0.0, "p < 0.001"), (0.0341, "p = 0.034"), (1.0, "p = 1")]
)
def test_tiny_probabilities_are_bounds(p: float, said: str) -> None:
    assert probability(p) == said


def test_one_is_one() -> None:
    assert [count(n, "CoinJoin") for n in (0, 1, 2)] == ["0 CoinJoins", "1 CoinJoin", "2 CoinJoins"]
    assert (count(1000, "mix"), count(1, "mix")) == ("1,000 mixes", "1 mix")


def test_the_book_has_no_second_way() -> None:
    assert book.number is page.number is number
