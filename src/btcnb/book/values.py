"""Values against annotations and ranges: what fits, what is refused, how text becomes a value."""

from __future__ import annotations

import ast
import contextlib
import functools
import json
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal, Optional, Union

import yaml
from pydantic import TypeAdapter, ValidationError

from btcnb.plain_yaml import read_yaml

_NAMES: dict[str, Any] = {
    "int": int, "float": float, "str": str, "bool": bool, "Any": Any, "list": list, "List": list, "Sequence": list,
    "tuple": tuple, "Tuple": tuple, "dict": dict, "Dict": dict, "Mapping": dict, "Optional": Optional, "Union": Union,
    "Literal": Literal,
}  # fmt: skip
_NOTHING = {"None", "none", "null", "~"}
_BOUND = r"\s*([+-]?(?:inf|(?:\d+(?:_\d+)*)?\.?\d+(?:_\d+)*(?:[eE][+-]?\d+)?))\s*"
_INTERVAL = re.compile(rf"([\[(]){_BOUND},{_BOUND}([\])])\s*$")
_CHOICES = re.compile(r"\{([^{}]+)\}\s*$")


class Kind:
    """An annotation, such as `tuple[int, ...]`; `TypeError` if it is none of those supported."""

    def __init__(self, annotation: str) -> None:
        self.adapter = _adapter(annotation)

    def convert(self, value: Any) -> Any:
        """`value` as the annotation wants it; `ValueError` if it does not fit."""
        try:
            # by way of JSON a list may become a tuple, while numbers, text and truth stay what they are
            made = self.adapter.validate_json(json.dumps(value), strict=True)
        except (ValidationError, TypeError):
            raise ValueError(f"{value!r} does not fit") from None
        if _truths(made) != _truths(value):  # pydantic takes True for 1 in a Literal
            raise ValueError(f"{value!r} does not fit")
        return made

    def parse(self, text: str) -> Any:
        """The value that `text` stands for: YAML, or plain text where text is asked for."""
        candidates: list[Any] = [None] if text in _NOTHING else []
        with contextlib.suppress(yaml.YAMLError):
            value = read_yaml(text)
            quoted = text.startswith(("'", '"'))
            candidates.append(text if isinstance(value, str) and not quoted else value)  # YAML would cut a comment off
        candidates.append(text)
        with contextlib.suppress(yaml.YAMLError):
            candidates.append(read_yaml(f"[{text}]"))  # seeds=1,2,3
        for candidate in candidates:
            with contextlib.suppress(ValueError):
                return self.convert(candidate)
        raise ValueError(f"{text!r} does not fit")


@functools.cache
def _adapter(annotation: str) -> TypeAdapter[Any]:
    """Only names and brackets are evaluated, so that reading a chapter's parameters runs none of its code."""
    allowed = (ast.Expression, ast.Name, ast.Load, ast.Subscript, ast.Tuple, ast.BinOp, ast.BitOr, ast.Constant)
    try:
        tree = ast.parse(annotation, mode="eval")
        if not all(isinstance(node, allowed) for node in ast.walk(tree)):
            raise NameError
        return TypeAdapter(eval(compile(tree, "annotation", "eval"), {"__builtins__": {}}, _NAMES))
    except Exception:  # pydantic and typing have many words for an annotation that is none
        raise TypeError(f"the annotation {annotation} is not supported") from None


@dataclass(frozen=True)
class Range:
    """What a parameter may be beside its type. Without bounds, numbers are still finite."""

    text: str = ""
    low: float = -math.inf
    high: float = math.inf
    closed: tuple[bool, bool] = (False, False)
    choices: tuple[str, ...] = ()

    def __str__(self) -> str:
        return self.text

    def __bool__(self) -> bool:
        return bool(self.text)

    def problem(self, value: Any) -> str:
        """What `value` would have to do; empty if it does."""
        for leaf in _leaves(value):
            if self.choices and str(leaf) not in self.choices:
                return f"be one of {', '.join(self.choices)}"
            if isinstance(leaf, int | float) and not isinstance(leaf, bool) and not self._holds(leaf):
                return f"lie in {self.text}" if self.text else "be finite"
        return ""

    def _holds(self, number: float) -> bool:
        above = number > self.low or (self.closed[0] and number == self.low)
        below = number < self.high or (self.closed[1] and number == self.high)
        return above and below


def read_range(comment: str) -> tuple[str, Range]:
    """A comment's meaning, and the range at its end."""
    if found := _INTERVAL.search(comment):
        low, high = float(found[2]), float(found[3])
        limits = Range(found[0].strip(), low, high, (found[1] == "[", found[4] == "]"))
    elif found := _CHOICES.search(comment):
        choices = tuple(choice.strip() for choice in found[1].split("|"))
        limits = Range("{" + " | ".join(choices) + "}", choices=choices)
    else:
        return comment.strip(), Range()
    return comment[: found.start()].strip(), limits


def _truths(value: Any) -> list[bool]:
    return [isinstance(leaf, bool) for leaf in _leaves(value)]


def _leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list | tuple):
        for item in value:
            yield from _leaves(item)
    elif value is not None:
        yield value
