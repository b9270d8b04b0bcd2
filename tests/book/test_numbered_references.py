"""References by number say what Sphinx's own say, and do not read their page again for each."""

from __future__ import annotations

import io
import re
from pathlib import Path
from typing import Any

import pytest
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment

from btcnb.book.page import LEFT_OUT, RECORD_MIME
from btcnb.build.pages import leave_out

OURS = ["myst_parser", "btcnb.book.sphinx_links"]
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


def rendered(folder: Path, extensions: list[str], first: str = FIRST, **settings: Any) -> list[str]:
    """Both pages."""
    source = folder / "source"
    source.mkdir(parents=True)
    (source / "index.md").write_text(first + "\n```{toctree}\nsecond\n```\n")
    (source / "second.md").write_text(SECOND)
    settings |= {"extensions": extensions, "numfig": True, "html_theme": "basic"}
    told = io.StringIO()
    app = Sphinx(source, None, folder / "html", folder / "doctrees", "html", settings, status=None, warning=told)
    app.build()
    assert "undefined label" not in told.getvalue()
    return [(folder / "html" / f"{name}.html").read_text() for name in ("index", "second")]


def links(pages: list[str]) -> list[str]:
    """The references of the pages, as links with their words."""
    return [link for page in pages for link in re.findall(r'<a class="reference internal" href=".*?</a>', page)]


def test_they_are_sphinxs_own_with_fewer_readings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []
    load = BuildEnvironment.get_doctree
    monkeypatch.setattr(BuildEnvironment, "get_doctree", lambda env, name: read.append(name) or load(env, name))
    plain = links(rendered(tmp_path / "plain", ["myst_parser"]))
    often = len(read)
    read.clear()
    ours = links(rendered(tmp_path / "ours", OURS))
    words = [re.sub(r"<.*?>", "", link) for link in ours]
    assert words[:4] == ["Table 1", "Table 2", "Table 3", "Table 2"] and words[-3:] == ["Table 1", "Table 2", "Table 3"]
    assert ours == plain
    assert len(read) == often - 5  # seven references to two pages


def test_what_is_left_out_is_cited_without_a_number(tmp_path: Path) -> None:
    """Nothing warns, and the other tables are counted on without it."""
    first = FIRST.replace(":name: one", ":name: other") + "See {numref}`fig-gone`.\n"
    page = rendered(tmp_path, OURS, first, btcnb_left_out=["one", "fig-gone"])[0]
    assert "See <span>a figure that this edition leaves out</span>." in page
    assert "Table 2" in page and ">one<" not in page


def test_a_notebook_names_what_it_leaves_out_and_its_figure_loses_the_caption() -> None:
    def cell(name: str, *left: list[str]) -> NotebookNode:
        data = [{RECORD_MIME: {"kind": LEFT_OUT, "names": names}} for names in left]
        outputs = [new_output("display_data", one) for one in [*data, {"text/plain": "x"}]]
        return new_code_cell(outputs=outputs, metadata={"mystnb": {"figure": {"name": name, "caption": "See."}}})

    notebook = new_notebook(cells=[new_markdown_cell("a"), cell("fig-a", []), cell("fig-b", ["tbl-b"]), cell("fig-c")])
    assert leave_out(notebook) == ["fig-a", "tbl-b"]
    assert ["figure" in cell.metadata["mystnb"] for cell in notebook.cells[1:]] == [False, True, True]
