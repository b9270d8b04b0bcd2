"""Which modules of the package a chapter can reach: its imports, their imports, and so on, read from the source."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

PACKAGE = "btcnb"
_DOTTED = re.compile(rf"{PACKAGE}(\.\w+)+")
_MAGIC = re.compile(r"^\s*[%!].*$", re.MULTILINE)


@dataclass(frozen=True)
class Scan:
    """What a piece of Python mentions. `everything` is set when it imports names that only running it would tell."""

    modules: frozenset[str]
    texts: frozenset[str]  # its string literals
    everything: bool = False


@dataclass
class Package:
    """The package's source under `folder` (`src`), parsed once."""

    folder: Path
    _scans: dict[str, Scan] = field(default_factory=dict)

    @cached_property
    def modules(self) -> dict[str, Path]:
        """Dotted name -> file, of every module in the package."""
        modules = {}
        for path in sorted((self.folder / PACKAGE).rglob("*.py")):
            parts = path.relative_to(self.folder).with_suffix("").parts
            modules[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
        return modules

    def closure(self, scans: Iterable[Scan]) -> tuple[frozenset[str], frozenset[str]]:
        """The modules reached from `scans`, and the string literals of those modules."""
        queue: list[str] = []
        texts: set[str] = set()
        reached: set[str] = set()
        for scan in scans:
            queue += self.modules if scan.everything else scan.modules
        while queue:
            for name in self._with_parents(queue.pop()):
                if name in reached:
                    continue
                reached.add(name)
                scan = self._scan(name)
                texts |= scan.texts
                queue += self.modules if scan.everything else scan.modules
        return frozenset(reached), frozenset(texts)

    def _with_parents(self, name: str) -> Iterator[str]:
        """`btcnb.data.graph` also runs `btcnb.data` and `btcnb`; a name that is no module (a function) is dropped."""
        parts = name.split(".")
        for length in range(1, len(parts) + 1):
            if (prefix := ".".join(parts[:length])) in self.modules:
                yield prefix

    def _scan(self, name: str) -> Scan:
        if name not in self._scans:
            path = self.modules[name]
            package = name if path.name == "__init__.py" else name.rpartition(".")[0]
            self._scans[name] = scan_source(path.read_text(encoding="utf-8"), package)
        return self._scans[name]


def scan_source(source: str, package: str = "") -> Scan:
    """What `source` (a module of `package`, or a cell) mentions; source that does not parse may reach anything."""
    try:
        tree = ast.parse(_MAGIC.sub("pass", source) if not package else source)
    except SyntaxError:
        return Scan(frozenset(), frozenset(), everything=True)
    modules: set[str] = set()
    texts: set[str] = set()
    everything = False
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            modules.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = _absolute(node, package)
            modules.update([base, *(f"{base}.{alias.name}" for alias in node.names)])
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            texts.add(node.value)
        elif isinstance(node, ast.Call) and _is_dynamic_import(node):
            everything = True
    modules.update(text for text in texts if _DOTTED.fullmatch(text))
    own = frozenset(name for name in modules if name.split(".")[0] == PACKAGE)
    return Scan(own, frozenset(texts), everything)


def _absolute(node: ast.ImportFrom, package: str) -> str:
    if not node.level:
        return node.module or ""
    base = package.split(".")[: len(package.split(".")) - node.level + 1]
    return ".".join([*base, *([node.module] if node.module else [])])


def _is_dynamic_import(node: ast.Call) -> bool:
    """`import_module(name)` where the name is not a literal."""
    function = node.func
    name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
    return name in {"import_module", "__import__"} and not (node.args and isinstance(node.args[0], ast.Constant))
