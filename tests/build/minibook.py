"""A miniature book for the tests: two or three tiny chapters over a toy package, rendered by the real tools."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import nbformat

import btcnb
from btcnb.build.cli import main
from btcnb.build.notebooks import text_notebooks, write_pairs
from btcnb.build.project import Project

REAL = Path(btcnb.__file__).parent
HEADER = """---
jupytext:
  formats: ipynb,md:myst
kernelspec:
  display_name: Python 3
  language: python
  name: python3
{more}---

"""

FIRST = """# The first chapter

It counts to {glue:text}`count`. See {numref}`fig-line`.

```{code-cell} ipython3
:tags: [parameters]

seed: int = 7  # seed of everything random
rate: float = 0.5  # a rate [0, 1]
source: str = "data/numbers.txt"  # file to read
```

```{code-cell} ipython3
from pathlib import Path

from IPython.display import display
from myst_nb import glue

from btcnb.data.toy import double
from btcnb.store import note_read

numbers = [int(line) for line in note_read(source).read_text().split()]
glue("count", len(numbers), display=False)
with Path("runs.txt").open("a") as runs:
    runs.write("01_first\\n")
print("doubled", double(seed), rate)
```

```{code-cell} ipython3
display({"application/vnd.btcnb.record+json": {"kind": "data_source", "source": "a list of numbers"}}, raw=True)
```

```{code-cell} ipython3
---
mystnb:
  figure:
    caption: A line.
    name: fig-line
---
import base64

from IPython.display import Image

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
Image(base64.b64decode(PIXEL))
```

## Exercises

```{exercise}
:label: ex-first

What is twice the seed?
```

```{solution-start} ex-first
:class: dropdown
```

Here is the SECRET-TEXT.

```{code-cell} ipython3
secret_code = 14
print("SECRET-" + "OUTPUT", secret_code)
```

```{solution-end}
```

After the exercise.
"""

SECOND = """# The second chapter

```{code-cell} ipython3
:tags: [parameters]

seed: int = 3  # seed of everything random
epochs: int = 2  # passes over the data [0, inf)
share: float = 0.5  # a share (0, 1)
label: str = "none"  # a name
```

```{code-cell} ipython3
from pathlib import Path

from btcnb.theory import half

with Path("runs.txt").open("a") as runs:
    runs.write("02_second\\n")
print(half(epochs), share, label)
```

```{exercise}
:label: ex-second

Why?
```

````{solution} ex-second
:class: dropdown

```python
SECRET_BLOCK = 1
```
````
"""

STATUS = """# Status

```{code-cell} ipython3
import json
import os

from btcnb.store import note_read

states = json.loads(note_read(os.environ["BTCNB_STATES"]).read_text())
print(states["preset"], sum(each["executed"] for each in states["chapters"]), "of", len(states["chapters"]), "executed")
for each in states["chapters"]:
    print(each["title"], each["executed"], each.get("cells"), each.get("changed"), each.get("since"))
```
"""

CONFIG = """
title: A miniature book
author: Nobody
execute: {execute_notebooks: "off"}
html: {use_repository_button: false}
sphinx:
  recursive_update: true
  extra_extensions: [sphinx_exercise]
  config: {numfig: true, suppress_warnings: [etoc.toctree]}
"""

TOC = """
format: jb-book
root: book/intro
chapters:
  - file: notebooks/01_first
  - file: notebooks/02_second
  - file: book/status
"""

SIZES = """
quick: {chapters: {}}
standard: {chapters: {seed: 11, 02_second: {epochs: 4}}}
paper: {chapters: {seed: 12}}
"""

PACKAGE = {
    "src/btcnb/__init__.py": "",
    "src/btcnb/sizes.yml": SIZES,
    "src/btcnb/data/__init__.py": "",
    "src/btcnb/data/toy.py": "from btcnb.data.deep import factor\n\n\ndef double(x):\n    return factor() * x\n",
    "src/btcnb/data/deep.py": "from btcnb.data.constants import TWO\n\n\ndef factor():\n    return TWO\n",
    "src/btcnb/data/constants.py": "TWO = 2\nTHREE = 3\n",
    "src/btcnb/theory/__init__.py": "from .cut import half\n",
    "src/btcnb/learn/__init__.py": "# unused\n",
    "src/btcnb/theory/cut.py": "def half(x):\n    return x / 2\n",
}


@dataclass
class MiniBook:
    """The book's folder, with the handles that the tests turn."""

    root: Path

    @classmethod
    def create(cls, root: Path) -> MiniBook:
        book = cls(root)
        book.write("_config.yml", CONFIG)
        shutil.copy(REAL.parents[1] / "jupytext.toml", root)
        book.write("_toc.yml", TOC)
        book.write("book/intro.md", "# A miniature book\n\nWelcome.\n")
        book.write("book/status.md", HEADER.replace("{more}", "") + STATUS)
        book.write("requirements.lock", "toy==1.0\n")
        book.write("data/numbers.txt", "1\n2\n3\n")
        for name, text in PACKAGE.items():
            book.write(name, text)
        for part in ("store", "errors.py"):  # the chapters' package is the toy; how reads are noted is the real thing
            copy = shutil.copytree if (REAL / part).is_dir() else shutil.copy
            copy(REAL / part, root / "src/btcnb" / part)
        book.chapter("01_first", FIRST)
        book.chapter("02_second", SECOND)
        return book

    @property
    def project(self) -> Project:
        return Project(self.root)

    def write(self, name: str, text: str) -> Path:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    def edit(self, name: str, old: str, new: str) -> None:
        path = self.root / name
        text = path.read_text(encoding="utf-8")
        assert old in text
        path.write_text(text.replace(old, new), encoding="utf-8")

    def chapter(self, name: str, text: str, more: str = "") -> None:
        self.write(f"notebooks/{name}.md", HEADER.replace("{more}", more) + text)
        self.pair()

    def pair(self) -> None:
        write_pairs(text_notebooks(self.root / "notebooks"))

    def btcnb(self, *arguments: str) -> int:
        return main(["--root", str(self.root), *arguments])

    def execute(self, *arguments: str) -> int:
        """Build without pages."""
        return self.btcnb("build", "--no-pages", *arguments)

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        """The build as a process of its own, to be killed."""
        command = [sys.executable, "-m", "btcnb.build.cli", "--root", str(self.root), "build", *arguments]
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def take_runs(self) -> list[str]:
        """The chapters whose code has really run since the last call, in alphabetical order."""
        path = self.root / "runs.txt"
        runs = sorted(path.read_text().split()) if path.exists() else []
        path.unlink(missing_ok=True)
        return runs

    def made(self, name: str, preset: str = "quick") -> Path:
        return self.root / "_build" / preset / name

    def executed(self, chapter: str, preset: str = "quick") -> Any:
        return nbformat.read(self.made(f"notebooks/{chapter}.ipynb", preset), as_version=4)

    def printed(self, chapter: str, preset: str = "quick") -> str:
        """Everything that the executed chapter printed."""
        cells = self.executed(chapter, preset).cells
        return "".join(output.get("text", "") for cell in cells for output in cell.get("outputs", []))

    def stamp(self, chapter: str, preset: str = "quick") -> dict[str, Any]:
        return dict(json.loads(self.made(f"notebooks/{chapter}.json", preset).read_text()))
