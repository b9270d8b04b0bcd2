"""The student edition: every solution is removed from a chapter, text and code, before anything is rendered."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable

from IPython.core.inputtransformer2 import TransformerManager
from nbformat import NotebookNode

from btcnb.build.project import BuildError

_FENCE = re.compile(r"^ {0,3}(?P<mark>`{3,}|~{3,}|:{3,})\s*(?P<rest>.*)$")
_DIRECTIVE = re.compile(r"^\{(?P<name>[\w:-]+)\}")


class _Remover:
    """Walks through Markdown line by line; whether we are inside a gate lasts from cell to cell."""

    def __init__(self, where: str) -> None:
        self.where = where
        self.gated = False

    def markdown(self, text: str) -> str:
        kept: list[str] = []
        lines = iter(text.split("\n"))
        for line in lines:
            fence = _FENCE.match(line)
            if not fence:
                if not self.gated:
                    kept.append(line)
                continue
            block = self._block(line, fence["mark"], lines)
            name = self._directive(fence["rest"])
            if name == "solution-start":
                if self.gated:
                    raise BuildError(f"{self.where}: a solution starts inside another one.")
                self.gated = True
            elif name == "solution-end":
                if not self.gated:
                    raise BuildError(f"{self.where}: a solution ends that never started.")
                self.gated = False
            elif name != "solution" and not self.gated:
                kept += block if not _nests(name) else self._nested(block)
        return "\n".join(kept).strip("\n")

    def close(self) -> None:
        if self.gated:
            raise BuildError(f"{self.where}: a solution starts and never ends.")

    def _nested(self, block: list[str]) -> list[str]:
        """A directive that holds Markdown: solutions inside go as well."""
        return [block[0], *self.markdown("\n".join(block[1:-1])).split("\n"), block[-1]] if len(block) > 2 else block

    def _block(self, first: str, mark: str, lines: Iterable[str]) -> list[str]:
        """The lines of a fenced block; it closes with at least as many of the same characters, and nothing else."""
        block = [first]
        for line in lines:
            block.append(line)
            if (found := _FENCE.match(line)) and not found["rest"].strip() and _closes(found["mark"], mark):
                break
        return block

    def _directive(self, rest: str) -> str:
        found = _DIRECTIVE.match(rest)
        return found["name"] if found else ""


def _closes(mark: str, opening: str) -> bool:
    return mark[0] == opening[0] and len(mark) >= len(opening)


def _nests(directive: str) -> bool:
    """Whether a directive's body is Markdown; code, literal text and mathematics are left as they are."""
    return bool(directive) and directive not in {"code", "code-block", "literalinclude", "math", "code-cell", "raw"}


def strip_text(text: str, where: str) -> str:
    """Markdown without its solutions."""
    remover = _Remover(where)
    stripped = remover.markdown(text)
    remover.close()
    return stripped + "\n"


def strip_solutions(notebook: NotebookNode, where: str) -> None:
    """Remove the solutions from `notebook`: gated cells, gated text, solution blocks.

    Raises `BuildError` for a name that only a solution defines and another cell uses: students could not run it.
    """
    remover = _Remover(where)
    kept, removed = [], []
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            cell.source = remover.markdown(cell.source)
            if cell.source.strip():
                kept.append(cell)
        elif remover.gated:
            removed.append(cell)
        else:
            kept.append(cell)
    remover.close()
    _check_names(kept, removed, where)
    notebook.cells = kept


def _check_names(kept: list[NotebookNode], removed: list[NotebookNode], where: str) -> None:
    defined, used = _names(kept)
    lost = sorted((_names(removed)[0] - defined) & used)
    if lost:
        raise BuildError(f"{where}: `{lost[0]}` is defined in a solution only, and used outside of it.")


def _names(cells: list[NotebookNode]) -> tuple[set[str], set[str]]:
    """Names that the cells bind anywhere, and names that they read."""
    bound: set[str] = set()
    read: set[str] = set()
    for cell in cells:
        if cell.cell_type != "code":
            continue
        try:
            tree = ast.parse(TransformerManager().transform_cell(cell.source))  # magics become calls
        except SyntaxError:
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.Name):
                (read if isinstance(node.ctx, ast.Load) else bound).add(node.id)
            elif isinstance(node, ast.FunctionDef | ast.ClassDef):
                bound.add(node.name)
            elif isinstance(node, ast.arg):
                bound.add(node.arg)
            elif isinstance(node, ast.Import | ast.ImportFrom):
                bound.update((alias.asname or alias.name).split(".")[0] for alias in node.names)
    return bound, read
