"""The parameters of a chapter, read from the one cell that carries the tag `parameters`."""

from __future__ import annotations

import ast
import io
import tokenize
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from btcnb.build.errors import UsageError
from btcnb.build.types import MismatchError, convert

TAG = "parameters"


@dataclass(frozen=True)
class Parameter:
    """`name: annotation = default  # meaning`, one line of a parameters cell."""

    name: str
    annotation: str
    default: Any
    meaning: str

    @property
    def type(self) -> ast.expr:
        return ast.parse(self.annotation, mode="eval").body


def chapter_parameters(chapter: str, notebook: Mapping[str, Any]) -> dict[str, Parameter]:
    """The parameters of `notebook` by name, in the order of the cell; empty without a parameters cell."""
    sources = [
        cell["source"]
        for cell in notebook["cells"]
        if cell["cell_type"] == "code" and TAG in cell["metadata"].get("tags", [])
    ]
    if len(sources) > 1:
        raise UsageError(f"{chapter} has {len(sources)} cells with the tag `{TAG}`; a chapter has one at most.")
    return read_parameters(chapter, sources[0]) if sources else {}


def read_parameters(chapter: str, source: str) -> dict[str, Parameter]:
    """Parse a parameters cell; each line is an assignment of a literal that fits its annotation."""
    try:
        statements = ast.parse(source).body
    except SyntaxError as error:
        raise UsageError(f"{chapter}: the parameters cell is not Python: {error.msg}, line {error.lineno}.") from None
    comments = _comments(source)
    parameters: dict[str, Parameter] = {}
    for statement in statements:
        parameter = _read_statement(chapter, statement, comments)
        parameters[parameter.name] = parameter
    return parameters


def _read_statement(chapter: str, statement: ast.stmt, comments: Mapping[int, str]) -> Parameter:
    meaning = comments.get(statement.end_lineno or statement.lineno, "")
    match statement:
        case ast.AnnAssign(target=ast.Name(id=name), annotation=given, value=ast.expr() as value):
            annotated = True
        case ast.Assign(targets=[ast.Name(id=name)], value=value):
            given, annotated = ast.Name(id="Any"), False
        case _:
            raise UsageError(
                f"{chapter}: the parameters cell holds `{ast.unparse(statement)}`; only assignments of literals "
                "belong there."
            )
    try:
        default = ast.literal_eval(value)
    except ValueError:
        raise UsageError(
            f"{chapter}: the default of the parameter `{name}` is `{ast.unparse(value)}`; only literals belong there."
        ) from None
    annotation = given if annotated or default is None else ast.Name(id=type(default).__name__)
    text = str(annotation.value) if isinstance(annotation, ast.Constant) else ast.unparse(annotation)
    try:
        default = convert(annotation, default)
    except MismatchError:
        raise UsageError(f"{chapter}: the default of `{name}`, {default!r}, is not {text}.") from None
    except TypeError as error:
        raise UsageError(f"{chapter}: parameter `{name}`: {error}.") from None
    return Parameter(name, text, default, meaning)


def _comments(source: str) -> dict[int, str]:
    """The comment on each line that has one, without its hash."""
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    return {token.start[0]: token.string.lstrip("# ") for token in tokens if token.type == tokenize.COMMENT}


def known_parameters(chapters: Mapping[str, Mapping[str, Parameter]]) -> str:
    """A table of all parameters with type, default, chapters and meaning; chapters that agree share a line."""
    rows: dict[tuple[str, str, str, str], list[str]] = {}
    for chapter, parameters in chapters.items():
        for entry in parameters.values():
            key = (entry.name, entry.annotation, repr(entry.default), entry.meaning)
            rows.setdefault(key, []).append(chapter.split("_")[0])
    lines = [("parameter", "type", "default", "chapters", "meaning")]
    lines += [(name, kind, default, " ".join(where), what) for (name, kind, default, what), where in rows.items()]
    widths = [max(len(line[column]) for line in lines) for column in range(4)]
    return "\n".join(
        "  " + "  ".join(cell.ljust(width) for cell, width in zip(line, [*widths, 0], strict=True)).rstrip()
        for line in lines
    )
