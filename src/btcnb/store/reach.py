"""The source code that a function, or a chapter, reaches: symbol by symbol, read from the files, nothing executed.

A symbol is a top-level function, class or variable of a module of the package. A function reaches the symbols whose
names stand in it (annotations, defaults and decorators included), what those reach in turn, and the libraries they
import. Names are followed through imports and re-exports; a class counts as a whole; statements that a module merely
executes count for every symbol of it. Docstrings and comments do not count: they decide no number.

    package().of_function(load_graph).digest        # changes when anything changes that load_graph can run
    Package(root).of_source(cells)                  # the same for the code cells of a chapter
"""

from __future__ import annotations

import ast
import dis
import functools
import hashlib
import inspect
import sys
import textwrap
import types
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

PACKAGE = Path(__file__).resolve().parents[1]
BOUNDARY = ("btcnb.store", "btcnb.compiled")
"""Keeping a result does not change it: what lies behind these names is not followed."""

Chain = tuple[str, ...]  # a dotted name, part by part
Target = tuple[str, str | None]  # what an import binds: a module, or a name in it


@dataclass(frozen=True)
class Reach:
    """Reached symbols with a digest of their code, and the libraries (top-level import names) that they use."""

    symbols: Mapping[str, str]
    libraries: frozenset[str]

    @property
    def digest(self) -> str:
        """One digest of all reached code; the versions of the libraries are not in it."""
        return _sha("\n".join(f"{name} {code}" for name, code in sorted(self.symbols.items())))


@dataclass
class _Module:
    name: str
    is_package: bool
    symbols: dict[str, list[ast.stmt]] = field(default_factory=dict)
    imports: dict[str, Target] = field(default_factory=dict)
    effects: list[ast.stmt] = field(default_factory=list)


class Package:
    """The modules of one package, parsed when first reached. An instance sees each file as it was at that moment."""

    def __init__(self, root: Path = PACKAGE) -> None:
        self.root = root
        self.name = root.name
        self._modules: dict[str, _Module | None] = {}
        self._digests: dict[tuple[str, str], str] = {}
        self._followed: dict[tuple[str, str], tuple[set[tuple[str, str]], set[str]]] = {}

    def of_symbol(self, module: str, name: str) -> Reach:
        """What the top-level symbol `name` of `module` reaches, itself included."""
        return self._closure([(module, name)], set(), {})

    def of_source(self, sources: Iterable[str]) -> Reach:
        """What pieces of code that share a namespace (the cells of a notebook) reach in the package."""
        here = _Module("", False)
        for source in sources:
            try:
                _read_statements(here, _parsed(source).body)
            except SyntaxError:  # a cell that does not parse reaches nothing; executing it will say why
                continue
        statements = [*here.effects, *(node for nodes in here.symbols.values() for node in nodes)]
        found, libraries = self._references(here, statements)
        return self._closure(found, libraries, {})

    def of_function(self, function: Callable[..., Any]) -> Reach:
        """What a function reaches; one that was defined in a notebook or a test is followed object by object."""
        plain = _unwrapped(function)
        if self._holds(plain.__module__):
            return self.of_symbol(plain.__module__, plain.__qualname__.partition(".")[0])
        found: set[tuple[str, str]] = set()
        libraries: set[str] = set()
        own: dict[str, str] = {}
        self._follow_object(plain, plain.__module__, found, libraries, own)
        return self._closure(found, libraries, own)

    # --- objects that live in no file of the package ---

    def _follow_object(
        self, item: Any, home: str, found: set[tuple[str, str]], libraries: set[str], own: dict[str, str]
    ) -> None:
        """`item` is a function or class of the module `home`, which is not part of the package."""
        name = f"{home}.{item.__qualname__}"
        if name in own:
            return
        tree = _parsed(textwrap.dedent(inspect.getsource(item)))
        own[name] = _dump(tree.body)
        names, free = _outer_names(item)
        chains, _ = _chains(tree.body)
        for chain in sorted(chains):
            if chain[0] in free:
                self._follow_value(chain, free[chain[0]], home, found, libraries, own)
            elif chain[0] in names and chain[0] in _globals(item):
                self._follow_value(chain, _globals(item)[chain[0]], home, found, libraries, own)

    def _follow_value(
        self, chain: Chain, value: Any, home: str, found: set[tuple[str, str]], libraries: set[str], own: dict[str, str]
    ) -> None:
        if isinstance(value, types.ModuleType):
            symbols, used = self._walk(value.__name__, chain[1:])
            found |= symbols
            libraries |= used
            return
        plain = _unwrapped(value)
        module = getattr(plain, "__module__", None) if callable(plain) else None
        if isinstance(plain, type | types.FunctionType | types.BuiltinFunctionType) and isinstance(module, str):
            if self._holds(module):
                if not _beyond(module):
                    found.add((module, plain.__qualname__.partition(".")[0]))
            elif module == home and not isinstance(plain, types.BuiltinFunctionType):
                self._follow_object(plain, home, found, libraries, own)
            else:
                libraries.add(module.partition(".")[0])
            return
        from btcnb.store.codec import fingerprint

        own[f"{home}.{chain[0]}"] = fingerprint(value, f"the variable `{chain[0]}`, which the function reads,")
        if isinstance(module := type(value).__module__, str) and self._holds(module):
            found.add((module, type(value).__qualname__.partition(".")[0]))

    # --- symbols of the package ---

    def _closure(self, start: Iterable[tuple[str, str]], libraries: set[str], own: dict[str, str]) -> Reach:
        libraries = set(libraries)
        digests = dict(own)
        waiting = list(start)
        seen = set(waiting)
        while waiting:
            module_name, name = waiting.pop()
            module = self._module(module_name)
            if module is None:
                continue
            statements = module.symbols.get(name, []) if name else module.effects
            more, used = self._symbol_references(module, name, statements)
            libraries |= used
            digests[f"{module_name}.{name}"] = self._digest(module, name, statements)
            more = more | {(ancestor, "") for ancestor in _lineage(module_name)}
            waiting += more - seen
            seen |= more
        return Reach({name: code for name, code in digests.items() if code}, frozenset(libraries))

    def _symbol_references(
        self, module: _Module, name: str, statements: list[ast.stmt]
    ) -> tuple[set[tuple[str, str]], set[str]]:
        key = (module.name, name)
        if key not in self._followed:
            self._followed[key] = self._references(module, statements)
        return self._followed[key]

    def _references(self, module: _Module, statements: list[ast.stmt]) -> tuple[set[tuple[str, str]], set[str]]:
        chains, inner = _chains(statements, module)
        found: set[tuple[str, str]] = set()
        libraries: set[str] = set()
        for chain in chains:
            symbols, used = self._resolve(module, chain, inner)
            found |= symbols
            libraries |= used
        return found, libraries

    def _resolve(
        self, module: _Module, chain: Chain, inner: Mapping[str, Target]
    ) -> tuple[set[tuple[str, str]], set[str]]:
        head = chain[0]
        own = {(module.name, head)} if module.name and head in module.symbols else set()
        target = inner.get(head) or module.imports.get(head)
        if target is None:  # its own symbol, a builtin, or a local variable
            return own, set()
        holder, name = target
        found, libraries = self._walk(holder, chain[1:] if name is None else (name, *chain[1:]))
        return own | found, libraries

    def _walk(self, holder: str, rest: Chain) -> tuple[set[tuple[str, str]], set[str]]:
        """Follow `rest` from the module `holder` to a symbol of the package, or to a library."""
        if not self._holds(holder):
            return set(), {holder.partition(".")[0]}
        if _beyond(holder):
            return set(), set()
        module = self._module(holder)
        if module is None:
            return set(), set()
        if not rest:  # the module itself is handed around: anything in it may be used
            return {(holder, name) for name in (*module.symbols, "")}, set()
        name = rest[0]
        if name in module.symbols:
            return {(holder, name)}, set()
        if name in module.imports and module.imports[name] != (holder, name):  # a module may import its own sub-module
            found, libraries = self._resolve(module, rest, {})
            return found | {(holder, "")}, libraries
        return self._walk(f"{holder}.{name}", rest[1:])

    def _digest(self, module: _Module, name: str, statements: list[ast.stmt]) -> str:
        key = (module.name, name)
        if key not in self._digests:
            self._digests[key] = _dump(statements) if statements else ""
        return self._digests[key]

    def _holds(self, module: str | None) -> bool:
        return isinstance(module, str) and _inside(module, self.name)

    def _module(self, name: str) -> _Module | None:
        if name not in self._modules:
            path = self.root.joinpath(*name.split(".")[1:])
            file = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
            if not file.is_file():
                self._modules[name] = None
            else:
                module = _Module(name, path.is_dir())
                _read_statements(module, _parsed(file.read_text(encoding="utf-8")).body)
                self._modules[name] = module
        return self._modules[name]


@functools.cache
def package() -> Package:
    """This package, as this process sees it."""
    return Package()


def _read_statements(module: _Module, statements: Iterable[ast.stmt]) -> None:
    """Sort top-level statements into symbols, imports and effects; branches of `if` and `try` count as top level."""
    for node in statements:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            module.symbols.setdefault(node.name, []).append(node)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            module.imports.update(_bound(node, module))
        elif isinstance(node, ast.If | ast.Try | ast.With):
            inner = [child for child in ast.iter_child_nodes(node) if isinstance(child, ast.stmt)]
            inner += [child for handler in getattr(node, "handlers", []) for child in handler.body]
            _read_statements(module, inner)
        else:
            names = _assigned(node)
            for name in names:
                module.symbols.setdefault(name, []).append(node)
            if not names:
                module.effects.append(node)


def _assigned(node: ast.stmt) -> list[str]:
    """Names that a statement gives a value to, or changes in place: `a = …`, `a[k] = …`, `a += …`."""
    if isinstance(node, ast.Assign):
        targets: list[ast.expr] = node.targets
    elif isinstance(node, ast.AnnAssign | ast.AugAssign):
        targets = [node.target]
    else:
        return []
    return [name.id for target in targets for name in ast.walk(target) if isinstance(name, ast.Name)]


def _bound(node: ast.Import | ast.ImportFrom, module: _Module) -> Iterator[tuple[str, Target]]:
    if isinstance(node, ast.Import):
        for alias in node.names:
            if alias.asname:
                yield alias.asname, (alias.name, None)
            else:
                yield alias.name.partition(".")[0], (alias.name.partition(".")[0], None)
        return
    holder = node.module or ""
    if node.level:
        parts = module.name.split(".")
        base = parts[: len(parts) - node.level + module.is_package]
        holder = ".".join([*base, *([holder] if holder else [])])
    for alias in node.names:
        yield alias.asname or alias.name, (holder, alias.name)


def _chains(statements: Iterable[ast.stmt], module: _Module | None = None) -> tuple[set[Chain], dict[str, Target]]:
    """Every dotted name in the statements, and what imports inside of functions bind."""
    chains: set[Chain] = set()
    inner: dict[str, Target] = {}
    waiting: list[ast.AST] = list(statements)
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Import | ast.ImportFrom):
            inner.update(_bound(node, module or _Module("", False)))
        elif (chain := _chain(node)) is not None:
            chains.add(chain)
        else:
            waiting += ast.iter_child_nodes(node)
    return chains, inner


def _chain(node: ast.AST) -> Chain | None:
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return (node.id, *reversed(parts)) if isinstance(node, ast.Name) else None


def _parsed(source: str) -> ast.Module:
    """The syntax tree without docstrings and other strings that stand alone."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list):
            node.body = [item for item in body if not _is_text(item)]  # type: ignore[attr-defined]
    return tree


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def _dump(statements: Iterable[ast.stmt]) -> str:
    return _sha("\n".join(ast.dump(node, annotate_fields=False) for node in statements))[:16]


def _sha(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _inside(module: str, package: str) -> bool:
    return module == package or module.startswith(f"{package}.")


def _beyond(module: str) -> bool:
    return any(_inside(module, name) for name in BOUNDARY)


def _lineage(module: str) -> list[str]:
    """A module and the packages it lies in: importing it executes them all."""
    parts = module.split(".")
    return [".".join(parts[:end]) for end in range(1, len(parts) + 1)]


def _unwrapped(item: Any) -> Any:
    """The plain function behind decorators and numba's dispatchers."""
    while True:
        inner = getattr(item, "__wrapped__", None) or getattr(item, "py_func", None)
        if inner is None:
            return item
        item = inner


def _outer_names(item: Any) -> tuple[set[str], dict[str, Any]]:
    """Global names that a function (or the methods of a class) loads, and the values of its free variables."""
    functions = [item] if isinstance(item, types.FunctionType) else _methods(item)
    names: set[str] = set()
    free: dict[str, Any] = {}
    for function in functions:
        names |= _loaded(function.__code__)
        for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
            try:
                free[name] = cell.cell_contents
            except ValueError:  # not filled yet
                continue
    if isinstance(item, type):
        names |= {chain[0] for chain in _chains(_parsed(textwrap.dedent(inspect.getsource(item))).body)[0]}
    return names, {name: value for name, value in free.items() if name != "__class__"}


def _loaded(code: types.CodeType) -> set[str]:
    names = {str(step.argval) for step in dis.get_instructions(code) if step.opname in ("LOAD_GLOBAL", "LOAD_NAME")}
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            names |= _loaded(constant)
    return names


def _methods(item: type) -> list[types.FunctionType]:
    return [value for value in vars(item).values() if isinstance(value, types.FunctionType)]


def _globals(item: Any) -> Mapping[str, Any]:
    if isinstance(item, types.FunctionType):
        return item.__globals__
    return vars(sys.modules[item.__module__])
