"""A chapter's parameters: declared once, in the cell with the tag `parameters`, and checked against that everywhere.

A line reads `name: type = default  # meaning [low, high]`. The range is optional and stands at the end: an interval
(`[1, 10]`, `(0, 1)`, `[0, inf)`) for a number, or for each number in a list, or choices (`{tiny | quick}`). Types are
`int`, `float`, `str`, `bool`, `None`, lists, tuples and dictionaries of those, unions, `Optional` and `Literal`. An int
is welcome where a float is asked for; a bool is never an int; nothing else is converted.
"""

from __future__ import annotations

import ast
import difflib
import io
import re
import tokenize
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from btcnb.book.page import clipped
from btcnb.book.values import Kind, Range, read_range
from btcnb.errors import ParameterError

TAG = "parameters"


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
        return self._settle(value, Kind(self.annotation).convert)

    def parse(self, text: str) -> Any:
        """The value that `text`, typed on the command line, stands for."""
        return self._settle(text, Kind(self.annotation).parse)

    def another_value(self) -> Any:
        """A value that is allowed and is not the default; the default itself where none comes to mind."""
        default = self.default
        if isinstance(default, bool):
            guesses: list[Any] = [not default]
        elif isinstance(default, int | float):
            guesses = [default + 1] if self.is_seed else [default * 2, default / 2, default // 2, default + 1]
        else:
            guesses = [*self.range.choices]
        for guess in guesses:
            try:
                if (value := self.check(guess)) != default:
                    return value
            except ParameterError:
                continue
        return default

    @property
    def is_seed(self) -> bool:
        """Whether every value gives another run of the same kind: by its name, or by a meaning such as `seed of …`."""
        return "seed" in self.name or self.meaning.startswith("seed ")

    @property
    def _about(self) -> str:
        return f" ({self.meaning})" if self.meaning else ""

    def _settle(self, value: Any, convert: Any) -> Any:
        try:
            settled = convert(value)
        except ValueError:
            raise ParameterError(
                f"{clipped(repr(value))} is of the wrong type: `{self.name}`{self._about} is {self.annotation}."
            ) from None
        if problem := self.range.problem(settled):
            raise ParameterError(
                f"{clipped(repr(settled))} is out of range: `{self.name}`{self._about} must {problem}."
            )
        return settled


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
    try:
        statements = ast.parse(source).body
    except SyntaxError as error:
        raise ParameterError(
            f"{chapter}: the parameters cell is not Python: {error.msg}, line {error.lineno}."
        ) from None
    except (ValueError, RecursionError, MemoryError) as error:  # a NUL, expressions too deep for Python's own parser
        raise ParameterError(f"{chapter}: the parameters cell cannot be read ({type(error).__name__}).") from None
    comments = _comments(source)
    found = [_read_statement(chapter, statement, comments) for statement in statements]
    return {parameter.name: parameter for parameter in found}


def _read_statement(chapter: str, statement: ast.stmt, comments: Mapping[int, str]) -> Parameter:
    match statement:
        case ast.AnnAssign(target=ast.Name(id=name), annotation=ast.expr() as given, value=ast.expr() as value):
            annotation = str(given.value) if isinstance(given, ast.Constant) else ast.unparse(given)
        case ast.Assign(targets=[ast.Name(id=name)], value=value):
            annotation = ""
        case _:
            raise ParameterError(
                f"{chapter}: the parameters cell holds `{_written(statement)}`; only assignments of literals "
                "belong there."
            )
    try:
        default = ast.literal_eval(value)
    except (ValueError, TypeError, RecursionError, MemoryError):  # the second: {[1]: 2}
        raise ParameterError(
            f"{chapter}: the default of the parameter `{name}` is `{_written(value)}`; only literals belong there."
        ) from None
    annotation = annotation or ("Any" if default is None else type(default).__name__)
    meaning, limits = read_range(comments.get(statement.end_lineno or statement.lineno, ""))
    if (
        limits
        and not limits.choices
        and (limits.low > limits.high or not re.search(r"\b(int|float|Any)\b", annotation))
    ):
        raise ParameterError(f"{chapter}: parameter `{name}`: {limits} is no range for {annotation}.")
    parameter = Parameter(name, annotation, default, meaning, limits)
    try:
        return Parameter(name, annotation, parameter.check(default), meaning, limits)
    except TypeError as error:
        raise ParameterError(f"{chapter}: parameter `{name}`: {error}.") from None
    except ParameterError as error:
        raise ParameterError(f"{chapter}: the default of `{name}` is not allowed: {error}") from None


def _written(node: ast.AST) -> str:
    try:
        return clipped(ast.unparse(node))
    except RecursionError:
        return "…"


def _comments(source: str) -> dict[int, str]:
    """The comment on each line that has one, without its hash."""
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    return {token.start[0]: token.string.lstrip("# ") for token in tokens if token.type == tokenize.COMMENT}


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
