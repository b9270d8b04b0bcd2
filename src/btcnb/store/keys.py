"""The code that decides a result: sub-packages that modules import, digests of their files, versions of libraries.

Everything is read from source files; nothing is imported or executed.

    found = imported_subpackages(["btcnb.data.sources"])    # {"btcnb.data", "btcnb.errors", …}
    code_digest(found)                                      # changes when a file of one of them changes
    library_versions(["btcnb.data.sources"])                # {"numpy": "2.3.5", "python": "3.12", …}

A sub-package counts as a whole: an edit of any of its files, also of a comment, changes the digest. Which sub-packages
count is decided module by module, through imports at any depth, including those inside functions.
"""

from __future__ import annotations

import ast
import functools
import hashlib
import importlib.util
import platform
import subprocess
import sys
from collections.abc import Iterable, Mapping
from importlib import metadata
from pathlib import Path

from btcnb.store import reads

PACKAGE = Path(__file__).resolve().parents[1]
LIBRARY = "meanlink"
"""Lives in the same repository and changes with it, so its files count, not its version."""
BOUNDARY = ("store", "compiled", "build")
"""Sub-packages that keep, compile or display results. They decide no number, so their code is not part of a digest."""
Import = tuple[str, str]  # a module, and what is imported from it ("" for the module itself)


def imported_subpackages(modules: Iterable[str], root: Path = PACKAGE) -> frozenset[str]:
    """Sub-packages and top-level modules of the package that `modules` import, directly or through others.

    modules: dotted names; names outside of the package and of meanlink are ignored
    root: folder of the package; its name is the package's name

    Returns names such as "btcnb.data" (a folder), "btcnb.sizes" (a file) and "meanlink". The sub-packages of `modules`
    themselves are included, those in `BOUNDARY` are not.
    """
    found = {_subpackage(name) for name in _closure(modules, root)}
    ours = {name for name in found if name == LIBRARY or name.startswith(f"{root.name}.")}
    return frozenset(ours - _boundary(root))


def code_digest(subpackages: Iterable[str], root: Path = PACKAGE) -> str:
    """Digest of names and contents of all files, source and data, of these sub-packages.

    Data beside a top-level module belong to it (sizes.yml to btcnb.sizes). Raises ModuleNotFoundError for a sub-package
    without files.
    """
    whole = hashlib.sha256()
    homes = _homes(root)
    for name in sorted(subpackages):
        top, _, rest = name.partition(".")
        home = homes.get(top, root / "missing")
        place = home / rest
        found = place.rglob("*") if place.is_dir() else home.glob(f"{rest}.*")
        files = sorted(file for file in found if file.is_file() and "__pycache__" not in file.parts)
        if not files:
            raise ModuleNotFoundError(f"{name} has no source files.", name=name)
        for file in files:
            whole.update(f"{top}/{file.relative_to(home).as_posix()} {reads.digest(file)}\n".encode())
    return whole.hexdigest()


def cell_modules(cells: Iterable[str], root: Path = PACKAGE) -> frozenset[str]:
    """Modules that code cells import. Cells may hold IPython magics; a cell that is no Python imports nothing."""
    from IPython.core.inputtransformer2 import TransformerManager

    sources = _sources(root)
    found: set[str] = set()
    for cell in cells:
        head, _, body = cell.lstrip().partition("\n")
        source = body if head.startswith("%%") else cell  # %%time and others: the body may be Python
        try:
            tree = ast.parse(TransformerManager().transform_cell(source))
        except SyntaxError:  # executing the cell will say why
            continue
        found |= _modules(_imported(tree, ""), sources)
    return frozenset(found)


def library_versions(modules: Iterable[str], root: Path = PACKAGE) -> dict[str, str]:
    """Versions of the libraries that `modules` import, directly or through the package; and Python's (3.12)."""
    names = {name.partition(".")[0] for name in _closure(modules, root)}
    found = {"python": ".".join(platform.python_version_tuple()[:2])}
    for name in sorted(names - sys.stdlib_module_names - {root.name, LIBRARY}):
        if (version := library_version(name)) is not None:
            found[name] = version
    return found


@functools.cache
def library_version(name: str) -> str | None:
    """The version of the distribution that provides the import name, None where there is none."""
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        provided = metadata.packages_distributions().get(name, [])
        return metadata.version(provided[0]) if provided else None


def commit(root: Path = reads.ROOT) -> str:
    """`git describe` of the project, with `-dirty` for uncommitted changes; "unknown" outside a repository."""
    command = ["git", "-C", str(root), "describe", "--always", "--tags", "--dirty"]
    try:
        found = subprocess.run(command, capture_output=True, text=True, timeout=30, check=True).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return "unknown"
    return found or "unknown"


def _closure(modules: Iterable[str], root: Path) -> set[str]:
    """`modules` and all modules that they import; modules of other libraries and of `BOUNDARY` are not followed."""
    sources = _sources(root)
    seen: set[str] = set()
    waiting = set(modules)
    while waiting:
        name = waiting.pop()
        seen.add(name)
        if name in sources and _subpackage(name) not in _boundary(root):
            found = _modules(_file_imports(sources[name], reads.digest(sources[name]), name), sources)
            found.add(name.rpartition(".")[0] or name)  # importing a module executes the package that it lies in
            waiting |= found - seen
    return seen


def _subpackage(module: str) -> str:
    """btcnb.data.readers.etl -> btcnb.data; meanlink.cuts -> meanlink."""
    parts = module.split(".")
    return LIBRARY if parts[0] == LIBRARY else ".".join(parts[:2])


def _boundary(root: Path) -> set[str]:
    return {f"{root.name}.{name}" for name in BOUNDARY}


def _homes(root: Path) -> dict[str, Path]:
    """The folders of the package and, where it is installed, of meanlink."""
    spec = importlib.util.find_spec(LIBRARY)
    library = {LIBRARY: Path(spec.origin).parent} if spec and spec.origin else {}
    return {root.name: root, **library}


def _sources(root: Path) -> dict[str, Path]:
    """Module name -> source file, of the package and of meanlink."""
    return {
        ".".join((top, *file.relative_to(home).with_suffix("").parts)).removesuffix(".__init__"): file
        for top, home in _homes(root).items()
        for file in home.rglob("*.py")
    }


def _modules(imports: Iterable[Import], sources: Mapping[str, Path]) -> set[str]:
    """Names of imported modules: of `from a import b`, a, and a.b where that is a module and no attribute."""
    inner = {f"{base}.{item}" for base, item in imports}
    return {base for base, _ in imports} | {name for name in inner if name in sources}


@functools.cache
def _file_imports(file: Path, _content: str, module: str) -> frozenset[Import]:
    holder = module if file.name == "__init__.py" else module.rpartition(".")[0]
    return frozenset(_imported(ast.parse(file.read_text(encoding="utf-8")), holder))


def _imported(tree: ast.Module, holder: str) -> set[Import]:
    """What import statements at any depth name, those for type checkers included: a sub-package too many does no harm.

    holder: the package that relative imports start from
    """
    found: set[Import] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {(alias.name, "") for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            name = "." * node.level + (node.module or "")
            base = importlib.util.resolve_name(name, holder) if node.level else name
            found |= {(base, alias.name) for alias in node.names}
    return found
