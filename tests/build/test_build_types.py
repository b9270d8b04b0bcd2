"""Values against annotations: what fits, what is refused, how text becomes a value."""

from __future__ import annotations

import ast
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from btcnb.build.types import MismatchError, convert, parse


def annotation(text: str) -> ast.expr:
    return ast.parse(text, mode="eval").body


@pytest.mark.parametrize(
    ("kind", "value", "expected"),
    [
        ("int", 3, 3),
        ("float", 3, 3.0),
        ("float", "1e-3", 0.001),  # YAML 1.1 reads it as text
        ("str", "3", "3"),
        ("bool", True, True),
        ("Optional[int]", None, None),
        ("int | None", 4, 4),
        ("list[float]", [1, 2.5], [1.0, 2.5]),
        ("tuple[int, ...]", [1, 2, 3], (1, 2, 3)),
        ("tuple[int, str]", [1, "a"], (1, "a")),
        ("dict[str, int]", {"a": 1}, {"a": 1}),
        ("Literal['a', 'b']", "b", "b"),
        ("'int'", 3, 3),
        ("list", [1, "a"], [1, "a"]),
    ],
)
def test_a_value_that_fits(kind: str, value: Any, expected: Any) -> None:
    result = convert(annotation(kind), value)
    assert result == expected
    assert type(result) is type(expected)


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("int", True),
        ("int", 3.0),
        ("int", "3"),
        ("float", True),
        ("float", "fast"),
        ("str", 3),
        ("bool", 1),
        ("int", None),
        ("list[int]", [1, "2"]),
        ("list[int]", 1),
        ("tuple[int, int]", [1]),
        ("dict[str, int]", {"a": "b"}),
        ("Literal['a', 'b']", "c"),
        ("Literal[1]", True),
    ],
)
def test_a_value_that_does_not(kind: str, value: Any) -> None:
    with pytest.raises(MismatchError):
        convert(annotation(kind), value)


@pytest.mark.parametrize(
    ("kind", "text", "expected"),
    [
        ("int", "50", 50),
        ("float", "1e-3", 0.001),
        ("float", ".5", 0.5),
        ("str", "50", "50"),
        ("str", "yes", "yes"),
        ("str", "null", "null"),
        ("str", "2020-01-01", "2020-01-01"),
        ("str", "a # b", "a # b"),
        ("str", "a: {", "a: {"),
        ("str", "'quoted'", "quoted"),
        ("bool", "true", True),
        ("str | None", "None", None),
        ("str | None", "x", "x"),
        ("list[int]", "[1, 2]", [1, 2]),
        ("list[int]", "1,2,3", [1, 2, 3]),
        ("list[str]", "a,b", ["a", "b"]),
        ("tuple[float, ...]", "1", (1.0,)),
        ("int | str", "7", 7),
        ("int | str", "seven", "seven"),
    ],
)
def test_text_from_the_command_line(kind: str, text: str, expected: Any) -> None:
    assert parse(annotation(kind), text) == expected


@pytest.mark.parametrize(("kind", "text"), [("int", "fast"), ("int", "1.5"), ("bool", "1"), ("list[int]", "1,a")])
def test_text_that_is_refused(kind: str, text: str) -> None:
    with pytest.raises(MismatchError):
        parse(annotation(kind), text)


def test_an_annotation_we_do_not_know_is_an_error_not_a_pass() -> None:
    with pytest.raises(TypeError, match="complex"):
        convert(annotation("complex"), 1)


@given(st.integers() | st.floats(allow_nan=False) | st.booleans() | st.text() | st.none())
def test_a_scalar_fits_its_own_type_and_no_other_but_float(value: Any) -> None:
    for kind in ("int", "float", "bool", "str"):
        fits = type(value).__name__ == kind or (kind == "float" and type(value) is int)
        if kind == "float" and isinstance(value, str):
            continue
        try:
            converted = convert(annotation(kind), value)
        except MismatchError:
            assert not fits
        except OverflowError:  # an int beyond the floats
            assert kind == "float"
        else:
            assert fits and converted == value


@given(st.integers())
def test_what_is_printed_can_be_typed(value: int) -> None:
    assert parse(annotation("int"), str(value)) == value
