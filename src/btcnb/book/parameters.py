"""A chapter's parameters: declared once, in the cell with the tag `parameters`, and checked against that everywhere.

A line reads `name: type = default  # meaning [low, high]`, as papermill understands it. Types are `int`, `float`, `str`
and `bool`. An int is welcome where a float is asked for; a bool is never an int; nothing else is converted. The range
is optional and stands at the end of the meaning: an interval (`[1, 10]`, `(0, 1)`, `[0, inf)`) for a number, or choices
(`{tiny | quick}`).
"""

from __future__ import annotations

import ast
import contextlib
import difflib
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import yaml
from papermill.translators import PythonTranslator

from btcnb.errors import ParameterError, clipped
from btcnb.plain_yaml import read_yaml

TAG = "parameters"
TYPES: dict[str, type] = {"int": int, "float": float, "str": str, "bool": bool}
_BOUND = r"\s*([+-]?(?:inf|(?:\d+(?:_\d+)*)?\.?\d+(?:_\d+)*(?:[eE][+-]?\d+)?))\s*"
_INTERVAL = re.compile(rf"([\[(]){_BOUND},{_BOUND}([\])])\s*$")
_CHOICES = re.compile(r"\{([^{}]+)\}\s*$")


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

    def problem(self, value: Any) -> str:
        """What `value` would have to do; empty if it does."""
        if self.choices:
            return "" if str(value) in self.choices else f"be one of {', '.join(self.choices)}"
        if isinstance(value, str | bool):
            return ""
        above = value > self.low or (self.closed[0] and value == self.low)
        below = value < self.high or (self.closed[1] and value == self.high)
        return "" if above and below else f"lie in {self.text}" if self.text else "be finite"


def read_range(comment: str) -> tuple[str, Range]:
    """A comment's meaning, and the range at its end."""
    if found := _INTERVAL.search(comment):
        closed = (found[1] == "[", found[4] == "]")
        limits = Range(found[0].strip(), float(found[2]), float(found[3]), closed)
    elif found := _CHOICES.search(comment):
        choices = tuple(choice.strip() for choice in found[1].split("|"))
        limits = Range("{" + " | ".join(choices) + "}", choices=choices)
    else:
        return comment.strip(), Range()
    return comment[: found.start()].strip(), limits


@dataclass(frozen=True)
class Parameter:
    """One line of a parameters cell."""

    name: str
    annotation: str
    default: Any
    meaning: str
    range: Range

    def check(self, value: Any) -> Any:
        """`value` as the parameter wants it, or a `ParameterError` that says what would do."""
        kind = TYPES[self.annotation]
        about = f" ({self.meaning})" if self.meaning else ""
        fits = type(value) is kind or (kind is float and type(value) is int and abs(value) < 1e300)
        if not fits:
            raise ParameterError(
                f"{clipped(repr(value))} is of the wrong type: `{self.name}`{about} is {self.annotation}."
            )
        settled = kind(value)
        if problem := self.range.problem(settled):
            raise ParameterError(f"{clipped(repr(settled))} is out of range: `{self.name}`{about} must {problem}.")
        return settled

    def parse(self, text: str) -> Any:
        """The value that `text`, typed on the command line, stands for: YAML, or plain text where text is wanted."""
        value: Any = text
        if self.annotation != "str" or text.startswith(("'", '"')):
            with contextlib.suppress(yaml.YAMLError):
                value = read_yaml(text)
        return self.check(value)

    def another_value(self) -> Any:
        """A value that is allowed and is not the default; the default itself where none comes to mind."""
        default = self.default
        if isinstance(default, bool):
            candidates: list[Any] = [not default]
        elif isinstance(default, int | float):
            candidates = [default + 1] if self.is_seed else [default * 2, default / 2, default // 2, default + 1]
        else:
            candidates = [*self.range.choices]
        for candidate in candidates:
            with contextlib.suppress(ParameterError):
                if (value := self.check(candidate)) != default:
                    return value
        return default

    @property
    def is_seed(self) -> bool:
        """Whether every value gives another run of the same kind: by its name, or by a meaning such as `seed of …`."""
        return "seed" in self.name or self.meaning.startswith("seed ")


def chapter_parameters(chapter: str, notebook: Mapping[str, Any]) -> dict[str, Parameter]:
    """The parameters of `notebook` by name, in the order of the cell; empty without a parameters cell."""
    sources = [
        cell["source"]
        for cell in notebook["cells"]
        if cell["cell_type"] == "code" and TAG in cell["metadata"].get("tags", [])
    ]
    if len(sources) > 1:
        raise ParameterError(f"{chapter} has {len(sources)} cells with the tag `{TAG}`; a chapter has one at most.")
    return read_parameters(chapter, sources[0]) if sources else {}


def read_parameters(chapter: str, source: str) -> dict[str, Parameter]:
    """Parse a parameters cell; each line is an assignment of a literal that fits its annotation and its range."""
    defaults = _defaults(chapter, source)
    seen = {entry.name: entry for entry in PythonTranslator.inspect({"source": source})}
    found = {}
    for name, default in defaults.items():
        if name not in seen or repr(_literal(seen[name].default)) != repr(default):
            line = "`name: type = default  # meaning`, without another # or ="
            raise ParameterError(
                f"{chapter}: papermill cannot read the parameter `{name}`: write it in one line, {line}."
            )
        annotation = seen[name].inferred_type_name
        annotation = type(default).__name__ if annotation == "None" else annotation
        if annotation not in TYPES:
            raise ParameterError(
                f"{chapter}: parameter `{name}`: the annotation {annotation} is not supported; "
                f"write one of {', '.join(TYPES)}."
            )
        meaning, limits = read_range(seen[name].help)
        if limits.text and not limits.choices and (limits.low > limits.high or annotation not in ("int", "float")):
            raise ParameterError(f"{chapter}: parameter `{name}`: {limits} is no range for {annotation}.")
        parameter = Parameter(name, annotation, default, meaning, limits)
        try:
            found[name] = Parameter(name, annotation, parameter.check(default), meaning, limits)
        except ParameterError as error:
            raise ParameterError(f"{chapter}: the default of `{name}` is not allowed: {error}") from None
    return found


def _defaults(chapter: str, source: str) -> dict[str, Any]:
    """Names and defaults, as Python itself reads the cell."""
    try:
        statements = ast.parse(source).body
    except SyntaxError as error:
        raise ParameterError(
            f"{chapter}: the parameters cell is not Python: {error.msg}, line {error.lineno}."
        ) from None
    except (ValueError, RecursionError, MemoryError) as error:  # a NUL, expressions too deep for Python's own parser
        raise ParameterError(f"{chapter}: the parameters cell cannot be read ({type(error).__name__}).") from None
    found = {}
    for statement in statements:
        match statement:
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                pass
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                pass
            case _:
                raise ParameterError(
                    f"{chapter}: the parameters cell holds line {statement.lineno}, which is no assignment; only "
                    "assignments of literals belong there."
                )
        try:
            found[name] = ast.literal_eval(value)
        except (ValueError, TypeError, RecursionError, MemoryError):  # the second: {[1]: 2}
            raise ParameterError(
                f"{chapter}: the default of the parameter `{name}` is none; only literals belong there."
            ) from None
    return found


def _literal(text: str) -> Any:
    try:
        return ast.literal_eval(text)
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
        return None


def nearest(name: str, names: Iterable[str]) -> str | None:
    """The name that may have been meant; of a text far longer than any name, none (comparing it takes minutes)."""
    close = difflib.get_close_matches(name, list(names), n=1) if len(name) <= 100 else []
    return close[0] if close else None


def unknown(name: str, chapter: str, parameters: Iterable[str]) -> str:
    """A sentence about a name that `chapter` does not have: the nearest spelling, and the chapter's own."""
    own = list(parameters)
    close = nearest(name, own)
    hint = f" (did you mean `{close}`?)" if close else ""
    has = f"its parameters are {', '.join(own)}" if own else "it has no parameters"
    return f"chapter {chapter} does not know the parameter `{clipped(name)}`{hint}; {has}."


def check_run(chapter: str, declared: Mapping[str, Parameter], namespace: dict[str, Any], given: Iterable[str]) -> None:
    """Check a chapter's values as it runs, and leave them in `namespace` as the parameters want them.

    `given` are the names that whoever runs the chapter has set.
    """
    for name in given:
        if name not in declared:
            raise ParameterError(unknown(name, chapter, declared))
    for name, parameter in declared.items():
        if name in namespace:
            namespace[name] = parameter.check(namespace[name])
