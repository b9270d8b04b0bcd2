"""A function takes at most eight arguments: more than that is a thing with a name."""

from __future__ import annotations

import ast
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "src"
MOST = 8
DOORS = {"read_bitcoin_core"}
"""A reader that takes ten settings, each by its name only: its callers may not change."""


def test_functions_take_at_most_eight_arguments() -> None:
    found = []
    for path in sorted(set(SOURCE.rglob("*.py")) - set(SOURCE.glob("btcnb/build/cli*.py"))):  # a command's options
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name not in DOORS:
                given = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
                names = [item.arg for item in given if item.arg not in ("self", "cls")]
                if len(names) > MOST:
                    found.append(f"{path.name}:{node.lineno} {node.name} takes {len(names)}")
    assert found == []
