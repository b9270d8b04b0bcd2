"""References by number say what Sphinx's own say, and do not read their page again for each."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment

FIRST = """# First

{numref}`Table {number} <one>`, {numref}`two`, {numref}`there` and {numref}`two` again.

```{table} A table
:name: one

| a |
|---|
| 1 |
```

```{table} Another
:name: two

| b |
|---|
| 2 |
```
"""
SECOND = """# Second

```{table} A third
:name: there

| c |
|---|
| 3 |
```

Back to {numref}`one`, {numref}`two` and {numref}`there`.
"""


def rendered(folder: Path, extensions: list[str]) -> list[str]:
    """The references of both pages, as links with their words."""
    source = folder / "source"
    source.mkdir(parents=True)
    (source / "index.md").write_text(FIRST + "\n```{toctree}\nsecond\n```\n")
    (source / "second.md").write_text(SECOND)
    settings = {"extensions": extensions, "numfig": True, "html_theme": "basic"}
    app = Sphinx(source, None, folder / "html", folder / "doctrees", "html", settings, status=None, warning=None)
    app.build()
    pages = [(folder / "html" / f"{name}.html").read_text() for name in ("index", "second")]
    return [link for page in pages for link in re.findall(r'<a class="reference internal" href=".*?</a>', page)]


def test_they_are_sphinxs_own_with_fewer_readings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []
    load = BuildEnvironment.get_doctree
    monkeypatch.setattr(BuildEnvironment, "get_doctree", lambda env, name: read.append(name) or load(env, name))
    plain = rendered(tmp_path / "plain", ["myst_parser"])
    often = len(read)
    read.clear()
    ours = rendered(tmp_path / "ours", ["myst_parser", "btcnb.book.sphinx_links"])
    words = [re.sub(r"<.*?>", "", link) for link in ours]
    assert words[:4] == ["Table 1", "Table 2", "Table 3", "Table 2"] and words[-3:] == ["Table 1", "Table 2", "Table 3"]
    assert ours == plain
    assert len(read) == often - 5  # seven references to two pages
