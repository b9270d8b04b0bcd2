"""Chapters are code that people read: short cells, short lines, nothing hidden for good, no file opened by hand.

pytest tests/project/test_notebooks.py -k 03      # one chapter
"""

import json
import runpy
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from notebook_rules import MOST_REMOVED, RULES, Notebook, removed_and_all_lines

ROOT = Path(__file__).resolve().parents[2]
CHAPTERS = sorted((ROOT / "notebooks").glob("[0-9][0-9]_*.ipynb"))
FORMAT = runpy.run_path(str(ROOT / "tools" / "format_notebooks.py"))

Rule = Callable[[Notebook], Iterator[str]]


@pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)
@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_a_chapter_keeps_the_rules(path: Path, rule: Rule) -> None:
    assert list(rule(json.loads(path.read_text()))) == []


def test_hardly_any_code_is_removed_from_the_pages() -> None:
    counts = [removed_and_all_lines(json.loads(path.read_text())) for path in CHAPTERS]
    removed, total = (sum(column) for column in zip(*counts, strict=True))
    assert removed < MOST_REMOVED * total, f"{removed} of {total} lines are removed"


def _notebook(source: str, *tags: str, **metadata: Any) -> Notebook:
    return {"cells": [{"cell_type": "code", "source": [source], "metadata": {"tags": list(tags), **metadata}}]}


LABEL = {"mystnb": {"code_prompt_show": "Show the code of the figure"}}
LONG = "\n".join(f"x{i} = {i}" for i in range(26))
IMPORTS = "\n".join(f"import m{i}" for i in range(30)) + "\nbook.open_chapter('x')"


@pytest.mark.parametrize(
    ("notebook", "broken"),
    [
        (_notebook("x = 1"), ""),
        (_notebook(LONG), "cells_are_short"),
        (_notebook(LONG, "remove-input"), "cells_are_short"),
        (_notebook(IMPORTS, "remove-input"), ""),
        (_notebook(IMPORTS), "cells_are_short"),
        (_notebook(f"x = '{'a' * 82}'"), ""),
        (_notebook(f"x = '{'a' * 83}'"), "lines_are_short"),
        (_notebook("x = 1", "hide-input"), "folded_code_is_labelled"),
        (_notebook("x = 1", "hide-input", **LABEL), ""),
        (_notebook("pd.read_csv('a.csv')"), "files_are_read_through_the_book"),
        (_notebook("with open('a') as f: pass"), "files_are_read_through_the_book"),
        (_notebook("x = Path('results') / 'a'"), "files_are_read_through_the_book"),
        (_notebook("x = json.loads(p.read_text())"), "files_are_read_through_the_book"),
        (_notebook("x = os.environ['BTCNB_REAL_DATA']"), "files_are_read_through_the_book"),
        (_notebook("with TemporaryDirectory() as f:\n    Path(f, 'a').read_text()"), ""),
        (_notebook("x = book.results('benchmarks/linkage')"), ""),
        (_notebook("seed: int = 7  # seed of the world [0, inf)", "parameters"), ""),
        (_notebook("tau: float = 0.1  # temperature (0, 10]", "parameters"), ""),
        (_notebook("size: str = 'quick'  # size {tiny | quick}", "parameters"), ""),
        (_notebook("seed: int = 7  # seed of the world", "parameters"), "parameters_say_what_they_are"),
        (_notebook("seed: int = 7", "parameters"), "parameters_say_what_they_are"),
        (_notebook("seed = 7  # seed [0, 1]", "parameters"), "parameters_say_what_they_are"),
        (_notebook("a: str = (\n    'x'  # what\n)", "parameters"), "parameters_say_what_they_are"),
        (_notebook("# needs: truth, labels\nbook.glue('a', 1)"), ""),
        (_notebook("# needs: luck\nx = 1"), "needs_are_declared_properly"),
        (_notebook("x = 1\n# needs: truth"), "needs_are_declared_properly"),
        (_notebook("# needs: truth\nbook.glue(f'a-{x}', 1)"), "needs_are_declared_properly"),
    ],
)
def test_the_rules_find_what_they_are_for(notebook: Notebook, broken: str) -> None:
    assert [rule.__name__ for rule in RULES if list(rule(notebook))] == ([broken] if broken else [])


def test_lines_that_nobody_sees_are_counted() -> None:
    cells = _notebook("a = 1\n\nb = 2", "remove-input")["cells"] + _notebook("c = 3")["cells"]
    assert removed_and_all_lines({"cells": cells}) == (2, 3)


TEXT = """\
---
kernelspec:
  display_name: Python 3
  language: python
  name: python3
---

# Title   \n
Text with  two spaces, `x=1`, and a table.

```{code-cell} ipython3
:tags: [hide-input]

import numpy as np
import json
x=np.array( [1,2] ) ; print(json.dumps(1))
```

```python
untouched=True
```

```{code-cell} ipython3
---
tags: [parameters]
mystnb:
  code_prompt_show: "Show"
---
seed: int=7 # seed [0, 9]
```

````{exercise}
```{code-cell} ipython3
inner=1
```
````
+++

Last words.
"""
WANTED = (
    TEXT.replace("import numpy as np\nimport json\n", "import json\n\nimport numpy as np\n\n")
    .replace("x=np.array( [1,2] ) ; print(json.dumps(1))", "x = np.array([1, 2])\nprint(json.dumps(1))")
    .replace("seed: int=7 # seed [0, 9]", "seed: int = 7  # seed [0, 9]")
)


def test_formatting_touches_code_cells_only() -> None:
    assert FORMAT["formatted"](TEXT, "99_test.md") == WANTED
    assert FORMAT["formatted"](WANTED, "99_test.md") == WANTED


def test_code_that_is_not_python_is_named_and_left_alone() -> None:
    with pytest.raises(ValueError, match=r"99_test\.md"):
        FORMAT["formatted"](TEXT.replace("seed: int=7", "seed: = = 7"), "99_test.md")
