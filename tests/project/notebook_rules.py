"""What a chapter's code cells may look like. Each rule takes a notebook (JSON) and yields one sentence per fault."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import Any

LONGEST_CELL, LONGEST_LINE, MOST_REMOVED = 25, 88, 0.10
NEEDS = {"truth", "transactions", "labels", "simulated"}
READS = {"read_csv", "read_json", "read_parquet", "read_text", "read_bytes", "read_table", "loadtxt", "genfromtxt"}
INTERVAL = re.compile(r"[\[(] *-?[\w.]+ *, *-?[\w.]+ *[\])]$")

Notebook = dict[str, Any]


def code_cells(notebook: Notebook) -> Iterator[tuple[str, str, list[str]]]:
    """(where, source, tags) of every code cell."""
    for number, cell in enumerate(notebook["cells"], 1):
        if cell["cell_type"] == "code":
            source = "".join(cell["source"])
            first = next((line for line in source.splitlines() if line.strip()), "")
            yield f"cell {number} ({first.strip()[:50]})", source, cell["metadata"].get("tags", [])


def cells_are_short(notebook: Notebook) -> Iterator[str]:
    """At most 25 lines; in set-up cells, which readers do not see, the imports do not count."""
    for where, source, tags in code_cells(notebook):
        lines = len(source.splitlines())
        if "remove-input" in tags:
            imports = [node for node in ast.parse(source).body if isinstance(node, ast.Import | ast.ImportFrom)]
            lines -= sum((node.end_lineno or node.lineno) - node.lineno + 1 for node in imports)
        if lines > LONGEST_CELL:
            yield f"{where}: {lines} lines, at most {LONGEST_CELL} are read in one go"


def lines_are_short(notebook: Notebook) -> Iterator[str]:
    for where, source, _ in code_cells(notebook):
        long = [len(line) for line in source.splitlines() if len(line) > LONGEST_LINE]
        if long:
            yield f"{where}: {len(long)} lines over {LONGEST_LINE} characters, the longest {max(long)}"


def folded_code_is_labelled(notebook: Notebook) -> Iterator[str]:
    for (where, _, tags), cell in zip(code_cells(notebook), _code(notebook), strict=True):
        if "hide-input" in tags and not cell["metadata"].get("mystnb", {}).get("code_prompt_show"):
            yield f'{where}: folded without a label; add mystnb: {{code_prompt_show: "Show the code of …"}}'


def files_are_read_through_the_book(notebook: Notebook) -> Iterator[str]:
    """No cell opens a file of the project; a temporary folder that the cell itself makes is its own affair."""
    for where, source, _ in code_cells(notebook):
        tree = ast.parse(source)
        names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
        names |= {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
        if names & {"TemporaryDirectory", "NamedTemporaryFile", "mkdtemp"}:
            continue
        called = {_name(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
        faults = sorted((called & (READS | {"open", "Path", "glob"})) | (names & {"PROJECT", "__file__", "environ"}))
        if faults:
            yield f"{where}: uses {', '.join(faults)}; book.results(…) and book.real_data(…) read files"


def parameters_say_what_they_are(notebook: Notebook) -> Iterator[str]:
    """`name: type = default  # meaning [low, high]`, one a line, literals only; numbers carry a range."""
    for where, source, tags in code_cells(notebook):
        if "parameters" not in tags:
            continue
        lines = source.splitlines()
        for node in ast.parse(source).body:
            line = lines[node.lineno - 1]
            if not isinstance(node, ast.AnnAssign) or node.value is None:
                yield f"{where}: `{line}` is not `name: type = default  # meaning`"
                continue
            meaning = line[node.end_col_offset :].strip().removeprefix("#").strip() if node.end_col_offset else ""
            if node.end_lineno != node.lineno:
                yield f"{where}: `{line}` runs over several lines; shorten its comment"
            elif not meaning:
                yield f"{where}: `{line}` does not say what it means"
            elif ast.unparse(node.annotation) in {"int", "float"} and not INTERVAL.search(meaning):
                yield f"{where}: `{line}` has no range, such as [1, 1000] or (0, inf)"


def needs_are_declared_properly(notebook: Notebook) -> Iterator[str]:
    """`# needs: truth, labels` is the first line of its cell, and what it glues has literal keys."""
    for where, source, _ in code_cells(notebook):
        lines = source.strip().splitlines()
        declared = [number for number, line in enumerate(lines) if re.match(r"\s*#\s*needs\b", line)]
        if not declared:
            continue
        words = {word.strip() for word in lines[0].partition(":")[2].split(",")}
        if declared != [0] or not lines[0].startswith("# needs: ") or not words <= NEEDS:
            yield f"{where}: the first line is to be `# needs: …` with words out of {', '.join(sorted(NEEDS))}"
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.Call) and _name(node.func) == "glue" and not isinstance(node.args[0], ast.Constant):
                yield f"{where}: the key of `{ast.unparse(node)[:60]}` is to be a literal"


RULES = (
    cells_are_short,
    lines_are_short,
    folded_code_is_labelled,
    files_are_read_through_the_book,
    parameters_say_what_they_are,
    needs_are_declared_properly,
)


def removed_and_all_lines(notebook: Notebook) -> tuple[int, int]:
    """Lines of code that a reader can never see, and all; blank lines aside."""
    removed = total = 0
    for _, source, tags in code_cells(notebook):
        lines = sum(bool(line.strip()) for line in source.splitlines())
        total += lines
        removed += lines if {"remove-input", "remove-cell"} & set(tags) else 0
    return removed, total


def _code(notebook: Notebook) -> list[dict[str, Any]]:
    return [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]


def _name(function: ast.expr) -> str:
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else ""
