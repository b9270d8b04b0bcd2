"""Public names of a package, read from its files: what each is, its signature, its docstring. Nothing is imported."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from btcnb.build.errors import BuildError

LONGEST_VALUE = 100
"""Characters of a constant's value that are shown; longer ones are left to the file."""
_COMMENT = re.compile(r"#\s*(.+)$")


@dataclass(frozen=True)
class Member:
    """A field, property or method of a class; `signature` is what stands behind its name."""

    kind: str  # attribute, property, method, classmethod, staticmethod
    name: str
    signature: str
    doc: str


@dataclass(frozen=True)
class Entry:
    """A public name: `function`, `class`, `exception` or `data`; `path` is its file, below the package's folder."""

    kind: str
    name: str
    signature: str
    doc: str
    path: str
    members: tuple[Member, ...] = ()


def module_doc(package: Path, room: str) -> str:
    """The docstring of a room."""
    return ast.get_docstring(_tree(package / room / "__init__.py")) or ""


def public_entries(package: Path, room: str) -> list[Entry]:
    """The names in `__all__` of a room, constants first, then classes, then functions, each by name."""
    tree = _tree(package / room / "__init__.py")
    names = next((ast.literal_eval(node.value) for node in tree.body if _binds(node, "__all__")), None)  # type: ignore[attr-defined]
    if names is None:
        raise BuildError(f"btcnb.{room} has no __all__: its public names cannot be told.")
    entries = [_entry(package, package / room / "__init__.py", name) for name in names]
    order = ("data", "exception", "class", "function")
    return sorted(entries, key=lambda entry: (order.index(entry.kind), entry.name.lower()))


def _entry(package: Path, file: Path, name: str) -> Entry:
    """Follow `name` through imports to the statement that makes it."""
    tree = _tree(file)
    where = file.relative_to(package).as_posix()
    for position, node in enumerate(tree.body):
        if isinstance(node, ast.ImportFrom) and not node.level and (node.module or "").startswith(package.name):
            for alias in node.names:
                if (alias.asname or alias.name) == name:
                    return _entry(package, _file(package, str(node.module)), alias.name)
        if isinstance(node, ast.FunctionDef) and node.name == name:
            return Entry("function", name, _signature(node), ast.get_docstring(node) or "", where)
        if isinstance(node, ast.ClassDef) and node.name == name:
            return _class(node, where, file.read_text(encoding="utf-8").splitlines())
        if _binds(node, name):
            assert isinstance(node, ast.Assign | ast.AnnAssign)
            return Entry("data", name, _annotation(node), _said_below(tree.body, position), where)
    raise BuildError(f"{name} is public, but nothing in src/{package.name}/{where} makes it.")


def _class(node: ast.ClassDef, where: str, lines: Sequence[str]) -> Entry:
    bases = {ast.unparse(base) for base in node.bases}
    kind = "exception" if any(base.endswith(("Error", "Warning", "Exception")) for base in bases) else "class"
    made = next((item for item in node.body if isinstance(item, ast.FunctionDef) and item.name == "__init__"), None)
    members = tuple(_members(node, lines))
    signature = _signature(made, bound=True).partition(" -> ")[0] if made else ""
    if not made and any("dataclass" in ast.unparse(item) for item in node.decorator_list):
        signature = "(" + ", ".join(m.name + m.signature for m in members if m.kind == "attribute") + ")"
    return Entry(kind, node.name, signature, ast.get_docstring(node) or "", where, members)


def _members(node: ast.ClassDef, lines: Sequence[str]) -> Iterator[Member]:
    """Fields with their defaults and what is said of them, then properties and methods; private ones are left out."""
    for position, item in enumerate(node.body):
        if isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name) and not item.target.id.startswith("_"):
            default = "" if item.value is None else f" = {_default(item.value)}"
            said = _said_below(node.body, position) or _said_beside(item, lines)
            yield Member("attribute", item.target.id, f": {_unquoted(item.annotation)}{default}", said)
        elif isinstance(item, ast.FunctionDef) and not item.name.startswith("_"):
            kind = _kind(item)
            doc = ast.get_docstring(item) or ""
            if kind == "property":
                yield Member(kind, item.name, f": {_unquoted(item.returns)}" if item.returns else "", doc)
            else:
                yield Member(kind, item.name, _signature(item, bound=kind != "staticmethod"), doc)


def _kind(node: ast.FunctionDef) -> str:
    decorators = {ast.unparse(item).rpartition(".")[2] for item in node.decorator_list}
    if decorators & {"property", "cached_property"}:
        return "property"
    return next((kind for kind in ("classmethod", "staticmethod") if kind in decorators), "method")


def _signature(node: ast.FunctionDef, bound: bool = False) -> str:
    """`(X: Any, method: str = 'average') -> Float64`, without `self` or `cls` where it is `bound`."""
    arguments = ast.parse(f"def f({ast.unparse(node.args)}): ...").body[0].args  # type: ignore[attr-defined]
    if bound:
        (arguments.posonlyargs or arguments.args).pop(0)
    return f"({ast.unparse(arguments)})" + (f" -> {_unquoted(node.returns)}" if node.returns else "")


def _default(value: ast.expr) -> str:
    """A default as a reader wants it; what `field` makes is said by what it makes."""
    if isinstance(value, ast.Call) and ast.unparse(value.func) == "field":
        made = next((word.value for word in value.keywords if word.arg in {"default", "default_factory"}), None)
        return "…" if made is None or isinstance(made, ast.Lambda) else ast.unparse(made)
    return ast.unparse(value)


def _annotation(node: ast.Assign | ast.AnnAssign) -> str:
    if isinstance(node, ast.AnnAssign):
        return f": {_unquoted(node.annotation)}"
    if isinstance(node.value, ast.Dict):
        return f" = {{{', '.join(map(_key, node.value.keys))}}}"
    text = ast.unparse(node.value)
    return f" = {text}" if len(text) <= LONGEST_VALUE else ""


def _key(key: ast.expr | None) -> str:
    return f"{ast.unparse(key)}: …" if key is not None else "…"


def _unquoted(annotation: ast.expr) -> str:
    is_text = isinstance(annotation, ast.Constant) and isinstance(annotation.value, str)
    return str(annotation.value) if is_text else ast.unparse(annotation)  # type: ignore[attr-defined]


def _said_below(body: Sequence[ast.stmt], position: int) -> str:
    """The string that stands below an assignment."""
    below = body[position + 1] if position + 1 < len(body) else None
    if isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant) and isinstance(below.value.value, str):
        return inspect.cleandoc(below.value.value)
    return ""


def _said_beside(node: ast.AnnAssign, lines: Sequence[str]) -> str:
    found = _COMMENT.search(lines[(node.end_lineno or node.lineno) - 1], node.end_col_offset or 0)
    return found[1].strip() if found else ""


def _binds(node: ast.stmt, name: str) -> bool:
    bound = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
    return any(isinstance(target, ast.Name) and target.id == name for target in bound)


def _file(package: Path, module: str) -> Path:
    place = package.joinpath(*module.split(".")[1:])
    return place / "__init__.py" if place.is_dir() else place.with_suffix(".py")


def _tree(file: Path) -> ast.Module:
    return ast.parse(file.read_text(encoding="utf-8"))
