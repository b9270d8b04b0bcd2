"""The reference: docstrings become reStructuredText without warnings, and every public name has its page."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import docutils.core
import pytest
import yaml

import btcnb
from btcnb.book.sphinx_reference import constant_doc, field_comments, source_file, to_rst
from btcnb.build.pages import public_names

PACKAGE = Path(btcnb.__file__).parent
ROOT = PACKAGE.parents[1]
SUBPACKAGES = ("data", "theory", "learn", "cluster", "experiments", "paper")
DOC = """Work on `x`; gives a *good* `Thing`, 2 * 3, x_ and **rest.

x: where to start,
    and where to end
how: as one should

    work(3)

    work(4)

Then more."""


def test_a_docstring_as_restructured_text() -> None:
    assert to_rst(DOC) == [
        r"Work on :py:obj:`x`; gives a *good* :py:obj:`Thing`, 2 \* 3, x\_ and \*\*rest.",
        "",
        "",
        "- ``x``: where to start,",
        "  and where to end",
        "- ``how``: as one should",
        "",
        "",
        "::",
        "",
        "    work(3)",
        "",
        "    work(4)",
        "",
        "",
        "Then more.",
    ]


def test_docutils_has_nothing_to_complain_about() -> None:
    text = "\n".join(to_rst(DOC)).replace(":py:obj:", "")
    html = docutils.core.publish_string(
        text, writer_name="html", settings_overrides={"report_level": 1, "halt_level": 1}
    )
    assert b"<pre" in html and html.count(b"<li>") == 2


@dataclass
class Thing:
    """A thing."""

    name: str  # what it is called
    size: int = 3
    _hidden: int = 0  # not public


def test_comments_beside_fields_and_strings_below_constants_are_found() -> None:
    assert list(field_comments(Thing)) == ["- ``name``: what it is called"]
    assert "Okabe and Ito's palette" in constant_doc("btcnb.book.drawings", "COLOURS")
    assert constant_doc("btcnb.book.drawings", "NOTHING") == ""


def test_a_name_leads_to_its_file() -> None:
    assert source_file("btcnb.store.keys", "code_digest") == "src/btcnb/store/keys.py"
    assert source_file("btcnb.store.keys", "nothing.at.all") == ""


@pytest.mark.parametrize("subpackage", SUBPACKAGES)
def test_every_subpackage_has_a_page_that_autodoc_fills(subpackage: str) -> None:
    page = (ROOT / "book" / f"api_{subpackage}.md").read_text(encoding="utf-8")
    assert f".. automodule:: btcnb.{subpackage}\n   :members:" in page
    assert f'names("{subpackage}")' in (ROOT / "book" / "api.md").read_text(encoding="utf-8")
    assert re.match(rf"\{{py:obj\}}`\w+ <btcnb\.{subpackage}\.\w+>`, ", public_names(PACKAGE, subpackage))


def test_the_table_of_contents_lists_the_pages() -> None:
    entries = yaml.safe_load((ROOT / "_toc.yml").read_text())["parts"][-1]["chapters"]
    listed = next(entry for entry in entries if entry["file"] == "book/api")
    assert [section["file"] for section in listed["sections"]] == [f"book/api_{name}" for name in SUBPACKAGES]
