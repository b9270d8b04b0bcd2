"""Values checked against the annotations of a chapter's parameters cell.

`int`, `float`, `str`, `bool`, `None`, lists, tuples and dictionaries of those, unions, `Optional` and `Literal`. An int
is welcome where a float is asked for; a bool is never an int; nothing else is converted.
"""

from __future__ import annotations

import ast
import contextlib
import re
from typing import Any

import yaml

_SCALARS: dict[str, type] = {"int": int, "float": float, "str": str, "bool": bool}
_LISTS = {"list", "List", "Sequence"}
_TUPLES = {"tuple", "Tuple"}
_DICTS = {"dict", "Dict", "Mapping"}
_EXPONENT = re.compile(r"[+-]?\d+(\.\d*)?[eE][+-]?\d+")  # YAML 1.1 reads 1e-3, without a dot, as text
_NOTHING = {"None", "none", "null", "~"}


class MismatchError(ValueError):
    """A value that does not fit its annotation."""


def convert(annotation: ast.expr, value: Any) -> Any:
    """`value` as the annotation wants it; `MismatchError` if it does not fit, `TypeError` for an unknown annotation."""
    match annotation:
        case ast.Constant(value=str(text)):  # an annotation in quotes
            return convert(ast.parse(text, mode="eval").body, value)
        case ast.Constant(value=None):
            return _require(value is None, value)
        case ast.Name(id=name):
            return _convert_name(name, value)
        case ast.BinOp(op=ast.BitOr(), left=left, right=right):
            return _convert_union([left, right], value)
        case ast.Subscript(value=ast.Name(id=name) | ast.Attribute(attr=name), slice=inner):
            return _convert_generic(name, inner, value)
        case _:
            raise TypeError(f"the annotation {ast.unparse(annotation)} is not supported")


def parse(annotation: ast.expr, text: str) -> Any:
    """The value that `text`, typed on the command line, stands for: YAML, or plain text where text is asked for."""
    if text in _NOTHING and _accepts(annotation, None):
        return None
    try:
        value = yaml.safe_load(text)
    except yaml.YAMLError:
        value = text
    if isinstance(value, str) and not text.startswith(("'", '"')):
        value = text  # YAML would cut a comment off
    candidates = [value, text]
    if not isinstance(value, list | dict):
        with contextlib.suppress(yaml.YAMLError):
            candidates.append(yaml.safe_load(f"[{text}]"))  # seeds=1,2,3
    for candidate in candidates:
        if _accepts(annotation, candidate):
            return convert(annotation, candidate)
    raise MismatchError(f"{text!r} is not {ast.unparse(annotation)}")


def _accepts(annotation: ast.expr, value: Any) -> bool:
    try:
        convert(annotation, value)
    except MismatchError:
        return False
    return True


def _require(fits: bool, value: Any) -> Any:
    if not fits:
        raise MismatchError
    return value


def _convert_name(name: str, value: Any) -> Any:
    if name == "float":
        if isinstance(value, str) and _EXPONENT.fullmatch(value):
            return float(value)
        return float(_require(isinstance(value, int | float) and not isinstance(value, bool), value))
    if name in _SCALARS:
        kind = _SCALARS[name]
        return _require(isinstance(value, kind) and (kind is bool or not isinstance(value, bool)), value)
    if name in _LISTS:
        return list(_require(isinstance(value, list | tuple), value))
    if name in _TUPLES:
        return tuple(_require(isinstance(value, list | tuple), value))
    if name in _DICTS:
        return _require(isinstance(value, dict), value)
    if name == "Any":
        return value
    raise TypeError(f"the annotation {name} is not supported")


def _convert_union(members: list[ast.expr], value: Any) -> Any:
    for member in members:
        try:
            return convert(member, value)
        except MismatchError:
            continue
    raise MismatchError


def _convert_generic(name: str, inner: ast.expr, value: Any) -> Any:
    arguments = inner.elts if isinstance(inner, ast.Tuple) else [inner]
    if name == "Optional":
        return _convert_union([ast.Constant(value=None), *arguments], value)
    if name == "Union":
        return _convert_union(arguments, value)
    if name == "Literal":
        allowed = [ast.literal_eval(argument) for argument in arguments]
        return _require(any(type(value) is type(entry) and value == entry for entry in allowed), value)
    if name in _LISTS:
        return [convert(arguments[0], item) for item in _require(isinstance(value, list | tuple), value)]
    if name in _DICTS:
        _require(isinstance(value, dict), value)
        return {convert(arguments[0], key): convert(arguments[1], item) for key, item in value.items()}
    if name in _TUPLES:
        _require(isinstance(value, list | tuple), value)
        if len(arguments) == 2 and isinstance(arguments[1], ast.Constant) and arguments[1].value is Ellipsis:
            return tuple(convert(arguments[0], item) for item in value)
        _require(len(value) == len(arguments), value)
        return tuple(convert(argument, item) for argument, item in zip(arguments, value, strict=True))
    raise TypeError(f"the annotation {name}[…] is not supported")
