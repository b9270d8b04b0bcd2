"""Values against annotations and ranges: what fits, what is refused, how text becomes a value."""

from __future__ import annotations

import contextlib
import math
from typing import Any

import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st

from btcnb.book.parameters import Parameter, Range, read_parameters, read_range
from btcnb.errors import ParameterError
from btcnb.plain_yaml import read_yaml


def parameter(kind: str) -> Parameter:
    return Parameter("x", kind, None, "", Range())


@pytest.mark.parametrize(
    ("kind", "value", "expected"), [("int", 3, 3), ("float", 3, 3.0), ("str", "3", "3"), ("bool", True, True)]
)
def test_a_value_that_fits(kind: str, value: Any, expected: Any) -> None:
    result = parameter(kind).check(value)
    assert result == expected and type(result) is type(expected)


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("int", True), ("int", 3.0), ("int", "3"), ("float", True), ("float", "fast"), ("float", 10**400),
        ("float", math.nan), ("str", 3), ("bool", 1), ("int", None), ("int", [1]),
    ],
)  # fmt: skip
def test_a_value_that_does_not(kind: str, value: Any) -> None:
    with pytest.raises(ParameterError):
        parameter(kind).check(value)


@pytest.mark.parametrize(
    ("kind", "text", "expected"),
    [
        ("int", "50", 50), ("float", "1e-3", 0.001), ("float", ".5", 0.5), ("str", "50", "50"), ("str", "yes", "yes"),
        ("str", "null", "null"), ("str", "2020-01-01", "2020-01-01"), ("str", "a # b", "a # b"),
        ("str", "a: {", "a: {"), ("str", "'quoted'", "quoted"), ("bool", "true", True),
    ],
)  # fmt: skip
def test_text_from_the_command_line(kind: str, text: str, expected: Any) -> None:
    assert parameter(kind).parse(text) == expected


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("int", "fast"), ("int", "1.5"), ("bool", "1"), ("bool", "yes"), ("int", "1,2"), ("int", "010"),
        ("int", "1:30"), ("float", "fast"), ("float", ".inf"), ("int", "["),
    ],
)  # fmt: skip
def test_text_that_is_refused(kind: str, text: str) -> None:
    with pytest.raises(ParameterError):
        parameter(kind).parse(text)


@given(
    st.integers(-(10**20), 10**20)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.booleans()
    | st.text()
    | st.none()
)
def test_a_scalar_fits_its_own_type_and_no_other_but_float(value: Any) -> None:
    for kind in ("int", "float", "bool", "str"):
        fits = type(value).__name__ == kind or (kind == "float" and type(value) is int)
        try:
            assert parameter(kind).check(value) == (float(value) if kind == "float" else value) and fits
        except ParameterError:
            assert not fits


@given(st.integers())
def test_what_is_printed_can_be_typed(value: int) -> None:
    assert parameter("int").parse(str(value)) == value


@pytest.mark.parametrize(
    ("comment", "meaning", "inside", "outside"),
    [
        ("draws [1, 10000]", "draws", [1, 10_000], [0, 10_001, math.nan, math.inf]),
        ("share (0, 1)", "share", [0.5], [0, 1, 0.0, 1.0, -0.1]),
        ("rate (0, 1]", "rate", [1, 1.0], [0]),
        ("count [0, inf)", "count", [0, 1e300], [-1, math.inf, math.nan]),
        ("limit [0, inf]", "limit", [0, math.inf], [math.nan, -math.inf]),
        ("weight [-1e-3, .5]", "weight", [-0.001, 0.5], [0.51]),
        ("size: any of {tiny | quick}", "size: any of", ["tiny", "quick"], ["huge", "", None]),
        ("no range (see chapter 2)", "no range (see chapter 2)", ["any", 1e9, -1, True], [math.nan, math.inf]),
    ],
)
def test_ranges(comment: str, meaning: str, inside: list[Any], outside: list[Any]) -> None:
    words, limits = read_range(comment)
    assert words == meaning
    assert [limits.problem(value) for value in inside] == [""] * len(inside)
    assert all(limits.problem(value) for value in outside)


@given(st.text(), st.sampled_from(["int", "float", "str", "bool"]))
@example("[" * 2000, "int")
@example("&a [*a]", "int")
@example("{[1]: 2}", "float")
@example("9" * 5000, "int")
@example("!!python/object:os.system x", "int")
@example("!!bool maybe", "bool")
@example("!!timestamp abc", "float")
@example("'", "str")
def test_any_text_is_a_value_or_refused(text: str, kind: str) -> None:
    with contextlib.suppress(ParameterError):
        made = parameter(kind).parse(text)
        assert repr(parameter(kind).check(made)) == repr(made), "what was read fits its annotation"


@given(st.text())
@example("a: [int] = 1\x00")
@example("x = " + "-" * 300 + "1")
@example("x: int = 1  # [1, 1e999999]")
@example("x: int = 1  # [_, 1__0]")
@example("x: dict = {[1]: 2}")
@example("x: int = " + "-" * 5000 + "1")
def test_any_cell_is_read_or_refused(source: str) -> None:
    with contextlib.suppress(ParameterError):
        assert all(name.isidentifier() for name in read_parameters("99_test", source))


def test_aliases_are_refused_before_they_grow() -> None:
    """Thirteen lines that stand for 9^13 numbers."""
    lines = ["a0: &a0 [1, 1, 1, 1, 1, 1, 1, 1, 1]"]
    lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]" for i in range(1, 13)]
    with pytest.raises(yaml.YAMLError, match="write the value out"):
        read_yaml("\n".join(lines))
