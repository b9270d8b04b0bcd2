"""Values against annotations: what fits, what is refused, how text becomes a value."""

from __future__ import annotations

import contextlib
import math
from typing import Any

import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st

from btcnb.book.parameters import read_parameters
from btcnb.book.values import Kind, read_range
from btcnb.errors import ParameterError
from btcnb.plain_yaml import read_yaml


@pytest.mark.parametrize(
    ("kind", "value", "expected"),
    [
        ("int", 3, 3),
        ("float", 3, 3.0),
        ("str", "3", "3"),
        ("bool", True, True),
        ("Optional[int]", None, None),
        ("int | None", 4, 4),
        ("list[float]", [1, 2.5], [1.0, 2.5]),
        ("tuple[int, ...]", [1, 2, 3], (1, 2, 3)),
        ("tuple[int, str]", [1, "a"], (1, "a")),
        ("dict[str, int]", {"a": 1}, {"a": 1}),
        ("Literal['a', 'b']", "b", "b"),
        ("list", [1, "a"], [1, "a"]),
    ],
)
def test_a_value_that_fits(kind: str, value: Any, expected: Any) -> None:
    result = Kind(kind).convert(value)
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
    with pytest.raises(ValueError):
        Kind(kind).convert(value)


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
    assert Kind(kind).parse(text) == expected


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("int", "fast"),
        ("int", "1.5"),
        ("bool", "1"),
        ("bool", "yes"),
        ("list[int]", "1,a"),
        ("int", "010"),
        ("int", "1:30"),
        ("float", "fast"),
        ("int", "["),
    ],
)
def test_text_that_is_refused(kind: str, text: str) -> None:
    with pytest.raises(ValueError):
        Kind(kind).parse(text)


def test_an_annotation_we_do_not_know_is_an_error_not_a_pass() -> None:
    with pytest.raises(TypeError, match="complex"):
        Kind("complex").convert(1)
    with pytest.raises(TypeError, match="not supported"):
        Kind("__import__('os').getcwd()")


@given(st.integers() | st.floats(allow_nan=False) | st.booleans() | st.text() | st.none())
def test_a_scalar_fits_its_own_type_and_no_other_but_float(value: Any) -> None:
    for kind in ("int", "float", "bool", "str"):
        fits = type(value).__name__ == kind or (kind == "float" and type(value) is int)
        try:
            converted = Kind(kind).convert(value)
        except ValueError:
            assert not fits
        else:
            assert fits and (converted == value or (kind == "float" and isinstance(value, int)))


@given(st.integers())
def test_what_is_printed_can_be_typed(value: int) -> None:
    assert Kind("int").parse(str(value)) == value


@pytest.mark.parametrize(
    ("comment", "meaning", "inside", "outside"),
    [
        ("draws [1, 10000]", "draws", [1, 10_000, [5, 6]], [0, 10_001, [5, 0], math.nan, math.inf]),
        ("share (0, 1)", "share", [0.5], [0, 1, 0.0, 1.0, -0.1]),
        ("rate (0, 1]", "rate", [1, 1.0], [0]),
        ("count [0, inf)", "count", [0, 1e300], [-1, math.inf, math.nan]),
        ("limit [0, inf]", "limit", [0, math.inf], [math.nan, -math.inf]),
        ("weight [-1e-3, .5]", "weight", [-0.001, 0.5], [0.51]),
        ("size: any of {tiny | quick}", "size: any of", ["tiny", ["quick", "tiny"], None], ["huge", "", ["tiny", "x"]]),
        ("no range (see chapter 2)", "no range (see chapter 2)", ["any", 1e9, -1, True], [math.nan, math.inf]),
    ],
)
def test_ranges(comment: str, meaning: str, inside: list[Any], outside: list[Any]) -> None:
    words, limits = read_range(comment)
    assert words == meaning
    assert [limits.problem(value) for value in inside] == [""] * len(inside)
    assert all(limits.problem(value) for value in outside)


@given(st.text(), st.sampled_from(["int", "float", "str", "bool", "list[int]", "tuple[str, ...]", "dict[str, int]"]))
@example("[" * 2000, "int")
@example("&a [*a]", "list[int]")
@example("{[1]: 2}", "dict[str, int]")
@example("9" * 5000, "int")
@example("!!python/object:os.system x", "str")
@example("!!bool maybe", "bool")
@example("!!int ''", "int")
@example("!!timestamp abc", "str")
def test_any_text_is_a_value_or_refused(text: str, kind: str) -> None:
    with contextlib.suppress(ValueError):
        made = Kind(kind).parse(text)
        assert repr(Kind(kind).convert(made)) == repr(made), "what was read fits its annotation"


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
