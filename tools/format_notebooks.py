"""Format the code cells of notebooks/*.md with ruff; every byte outside the code stays.

    python tools/format_notebooks.py              # all chapters (also: make format)
    python tools/format_notebooks.py 03 08        # some
    python tools/format_notebooks.py --check      # write nothing; fail if a cell would change

ruff sees each chapter as the notebook that it describes, under the name of its pair, so notebooks/ruff.toml holds. Safe
fixes (order of imports, for instance) are made too. `btcnb pair` writes the .ipynb files afterwards.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from pathlib import Path

import jupytext
import nbformat
from markdown_it import MarkdownIt

ROOT = Path(__file__).resolve().parents[1]


def formatted(text: str, name: str) -> str:
    """`text`, a MyST notebook, with its code as ruff writes it; `name`, the file's, decides the configuration."""
    before = jupytext.reads(text, fmt="md:myst")
    after = nbformat.reads(_ruff(nbformat.writes(before), name), as_version=4)
    if [cell.cell_type for cell in after.cells] != [cell.cell_type for cell in before.cells]:
        raise ValueError(f"{name}: ruff changed the number or order of the cells")
    code = [
        (old.source, new.source) for old, new in zip(before.cells, after.cells, strict=True) if old.cell_type == "code"
    ]
    lines = text.splitlines(keepends=True)
    places = _code_places(text)
    if len(places) != len(code):
        raise ValueError(f"{name}: {len(places)} code cells found in the text, {len(code)} in the notebook")
    for (begin, end), (old, new) in reversed(list(zip(places, code, strict=True))):
        if old != new:
            lines[begin:end] = [f"{new}\n"]
    result = "".join(lines)
    check = jupytext.reads(result, fmt="md:myst")
    if [(c.source, c.metadata) for c in check.cells] != [(c.source, c.metadata) for c in after.cells]:
        raise ValueError(f"{name}: the formatted text does not read as the formatted notebook")
    return result


def _ruff(notebook: str, name: str) -> str:
    for step in (["check", "--fix", "--exit-zero", "--quiet"], ["format", "--quiet"]):
        command = [sys.executable, "-m", "ruff", *step, "--stdin-filename", f"notebooks/{Path(name).stem}.ipynb", "-"]
        done = subprocess.run(command, cwd=ROOT, input=notebook, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise ValueError(f"{name}: {done.stderr.strip()}")
        notebook = done.stdout
    return notebook


def _code_places(text: str) -> list[tuple[int, int]]:
    """First line and end of the source of each code cell, its options (`:tags: …`, or YAML between ---) not counted."""
    lines = text.splitlines()
    places = []
    for token in MarkdownIt("commonmark").parse(text):
        if token.type != "fence" or token.level or not token.info.startswith("{code-cell}") or token.map is None:
            continue
        begin, end = token.map[0] + 1, token.map[1] - 1
        if begin < end and lines[begin].strip() == "---":
            begin = next(i for i in range(begin + 1, end) if lines[i].strip() == "---") + 1
        else:
            while begin < end and re.match(r":[\w-]+:", lines[begin]):
                begin += 1
        while begin < end and not lines[begin].strip():
            begin += 1
        places.append((begin, end))
    return places


def main() -> int:
    parser = argparse.ArgumentParser(description="Format the code cells of the chapters.")
    parser.add_argument("chapters", nargs="*", metavar="NN", help="chapters by number or name (all)")
    parser.add_argument("--check", action="store_true", help="write nothing; fail if a cell would change")
    options = parser.parse_args()
    changed, failed = [], False
    for path in sorted((ROOT / "notebooks").glob("[0-9][0-9]_*.md")):
        if options.chapters and not path.stem.startswith(tuple(options.chapters)):
            continue
        text = path.read_text()
        try:
            result = formatted(text, path.name)
        except ValueError as error:
            print(f"format_notebooks: {error}", file=sys.stderr)
            failed = True
            continue
        if result != text:
            changed.append(path.name)
            if not options.check:
                path.write_text(result)
    verb = "would change" if options.check else "formatted"
    print(f"{verb}: {', '.join(changed) or 'nothing'}")
    return int(failed or (options.check and bool(changed)))


if __name__ == "__main__":
    sys.exit(main())
