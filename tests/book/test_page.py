"""What chapters display: text that stays text, both forms of each output, and records that reach the build."""

import operator
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from btcnb import book
from btcnb.book import page
from btcnb.book.page import inline_html, inline_myst, pipe_table, power_of_ten
from btcnb.errors import without_credentials
from btcnb.store.keys import cell_modules, imported_subpackages


def test_a_table_is_numbered_and_aligned(shown: list[dict[str, Any]]) -> None:
    frame = pd.DataFrame({"split": ["train|1"], "nodes": [643000], "share": [0.5]})
    book.table(frame, caption="Sizes.", name="tbl-sizes", formats={"share": "{:.0%}"})
    assert shown[0]["text/markdown"] == (
        "::::{table} Sizes.\n:name: tbl-sizes\n\n"
        "| split | nodes | share |\n| :--- | ---: | ---: |\n| train\\|1 | 643,000 | 50% |\n::::\n"
    )
    assert "<td>643,000</td>" in shown[0]["text/html"]


def test_a_table_without_rows_is_left_out(shown: list[dict[str, Any]]) -> None:
    book.table(pd.DataFrame({"a": []}), "Nothing.", "tbl-nothing")
    assert [bundle[page.RECORD_MIME] for bundle in shown] == [{"kind": "left out", "names": ["tbl-nothing"]}]


def test_the_paper_box_holds_both_numbers(shown: list[dict[str, Any]]) -> None:
    book.in_the_paper([book.Row("cut ratio", 87.0, 85.25, note="simulated")])
    assert "| cut ratio | 87 | 85.2 | simulated |" in shown[0]["text/markdown"]


def test_verdicts_are_shown_and_recorded(shown: list[dict[str, Any]]) -> None:
    book.verdicts([book.Verdict("claim", "partly", "0.5 beside 0.6", "Table 1")])
    assert shown[0][page.RECORD_MIME] == {
        "kind": "verdict",
        "claim": "claim",
        "verdict": "partly",
        "evidence": "0.5 beside 0.6",
        "where": "Table 1",
    }
    assert "◐ **partly**" in shown[1]["text/markdown"]


def test_a_verdict_on_nothing_is_no_verdict() -> None:
    for empty in (
        book.Verdict("claim", "not reproduced", "0 draws within nan standard errors"),
        book.Verdict("claim", "reproduced", "0 of 0 pairs", sample=0),
        book.Verdict("claim", "reproduced", "a share of – of pairs", numbers=[0.5, float("nan")]),
        book.Verdict("claim", "partly", "scores", numbers=np.array([np.inf])),
        book.Verdict("claim", "cannot be tested here", "the area is nan"),
        book.Verdict("claim", "reproduced", f"a ratio of {book.number(float('inf'))}"),
    ):
        assert empty.verdict == "cannot be tested here"
        assert empty.evidence.startswith("nothing to judge it on: ")
    sound = book.Verdict("claim", "reproduced", "infeasible at 3 nanometres, information", numbers=[0.0], sample=1)
    assert (sound.verdict, sound.evidence) == ("reproduced", "infeasible at 3 nanometres, information")


HOSTILE = (
    "<svg onload=alert(1)>.txt",
    "<script>",
    "{doc}`/notebooks/01`",
    "{{ 7 * 7 }}",
    "[x](javascript:alert(1))",
    "![x](http://host/p.png)",
    "<http://host>",
    "$\\href{javascript:alert(1)}{x}$",
    "`x`{.class}",
    "\\{doc}`x`",
    "a|b\n\n# heading",
    "&lt;b&gt;",
    "```{raw} html",
    "[^1]",
)


def rendered_tokens(markdown: str) -> list[Any]:
    from myst_parser.config.main import MdParserConfig
    from myst_parser.mdit_to_docutils.base import DocutilsRenderer
    from myst_parser.parsers.mdit import create_md_parser

    extensions = {"amsmath", "attrs_inline", "colon_fence", "deflist", "dollarmath", "smartquotes", "substitution"}
    parser = create_md_parser(MdParserConfig(enable_extensions=extensions), DocutilsRenderer)
    return [token for token in parser.parse(markdown) if token.type == "inline"]


def rendered(markdown: str) -> str:
    children = [child for token in rendered_tokens(markdown) for child in token.children or []]
    return " ".join(f"{child.type}:{child.content}" for child in children)


@pytest.mark.parametrize("text", HOSTILE)
def test_text_from_data_stays_text(shown: list[dict[str, Any]], text: str) -> None:
    book.table(pd.DataFrame({"name": [text], text: [1]}), caption="Names.", name="tbl-a")
    assert "<svg" not in shown[0]["text/html"] and "<script" not in shown[0]["text/html"]
    table = shown[0]["text/markdown"].split("\n", 3)[3].rsplit("\n::::", 1)[0]
    assert table.count("\n") == 2
    kinds = {part.split(":")[0] for part in rendered(table).split() if ":" in part}
    assert not kinds & {
        "html_inline",
        "myst_role",
        "link_open",
        "image",
        "substitution_inline",
        "math_inline",
        "footnote_ref",
    }


ACTIVE = {"html_inline", "myst_role", "link_open", "image", "substitution_inline", "footnote_ref", "hardbreak"}


@given(st.text(alphabet="ab <>&{}[]()`$|\\\\!*_~^:#/\"'\n\r\x0b\u2028", max_size=40))
@example("`a$b`$ {doc}`x`")
@example("$a`b$ {doc}`x`")
@example("\\\\`{doc}`x``")
def test_no_text_escapes_its_cell(text: str) -> None:
    table = pipe_table(["name", "next"], [[text, "end"]])
    assert len(table.split("\n")) == 3
    inline = rendered_tokens(table)
    assert len(inline) == 4  # two cells in the head, two in the body
    assert inline[3].content == "end"
    assert not {child.type for token in inline for child in token.children or []} & ACTIVE


def test_a_cell_keeps_what_a_chapter_writes_in_it(shown: list[dict[str, Any]]) -> None:
    cells = ["`a|b`", "$\\alpha < 1$", "*so*", "**so**", book.markup("{doc}`/notebooks/01`"), "λ_{k+1} < 2"]
    book.table(pd.DataFrame({"cell": cells}), caption="Cells of {numref}`tbl-b`.", name="tbl-a")
    text = shown[0]["text/markdown"]
    assert "Cells of {numref}`tbl-b`." in text
    for cell in ("`a\\|b`", "$\\alpha < 1$", "*so*", "**so**", "{doc}`/notebooks/01`", "λ_\\{k+1\\} &lt; 2"):
        assert f"| {cell} |" in text
    assert {"code_inline:a|b", "math_inline:\\alpha"} <= set(rendered(text.split("\n", 3)[3]).split())


@pytest.mark.parametrize(
    "text",
    [
        "http://bob:PW/x@host", "Http://bob:PW#x@host", " http://bob:PW?x@host",
        "bob:PW/x@host", "//bob:PW@host", "(//bob:PW@host)", "see bob:P@W@host now", "'http:/bob:PW@host'",
    ],
)  # fmt: skip
def test_a_source_never_shows_credentials(shown: list[dict[str, Any]], text: str) -> None:
    book.data_source(text)
    assert "PW" not in str(shown) and "P@W" not in str(shown) and "bob" not in str(shown)
    assert "host" in str(shown)


def test_every_name_for_chapters_is_there_and_the_code_behind_it_is_followed() -> None:
    followed = imported_subpackages(cell_modules(["from btcnb import book"]))
    for name in dir(book):
        assert getattr(book, name) is not None
        home = ".".join(book._HOMES[name].split(".")[:2])
        assert home in followed or home == "btcnb.store", name
    with pytest.raises(AttributeError):
        operator.attrgetter("nothing")(book)


@pytest.mark.parametrize("text", ["e" * 200_000 + "@", "/" * 200_000 + "@ x", "http:" * 40_000])
def test_long_texts_are_searched_for_credentials_in_one_go(text: str) -> None:
    """Where the search begins anew at every letter, this takes hours."""
    assert len(without_credentials(text)) <= len(text)


def test_a_mean_and_its_spread_stay_on_one_line(shown: list[dict[str, Any]]) -> None:
    book.table(pd.DataFrame({"what": ["a"], "ours": ["0.61 ± 0.02"]}), "A caption.", "tbl-spread")
    assert shown and all("0.61\u00a0±\u00a00.02" in text for text in shown[-1].values())


@pytest.mark.parametrize(
    ("typed", "html"),
    [
        ("√(2/S_max)", "√(2/<i>S</i><sub>max</sub>)"),
        ("Σ λ_i‖H_i‖²", "Σ <i>λ</i><sub>i</sub>‖<i>H</i><sub>i</sub>‖²"),
        ("N k_s^(L−1) d", "N <i>k</i><sub>s</sub><sup>L−1</sup> d"),
        ("γσ_min", "γ<i>σ</i><sub>min</sub>"),
        ("λ_{k+1}", "<i>λ</i><sub>k+1</sub>"),
        ("peak_mb and NMI_degree_0, a_b_c, moser.in_collapsed", "peak_mb and NMI_degree_0, a_b_c, moser.in_collapsed"),
        ("`S_max`", "<code>S_max</code>"),
        ("*so* <b>", "<em>so</em> &lt;b&gt;"),
        ("$a_b < 1$", '<span class="math notranslate nohighlight">\\(a_b &lt; 1\\)</span>'),
        (r"$\href{x}{y}$", r"$\href{x}{y}$"),
    ],
)
def test_html(typed: str, html: str) -> None:
    assert inline_html(typed) == html


def test_myst_keeps_its_own_code_and_formulas() -> None:
    assert inline_myst("of `S_max`, $S_max$, S_max and {doc}`x`") == (
        "of `S_max`, $S_max$, <i>S</i><sub>max</sub> and \\{doc\\}`x`"
    )
    assert inline_myst("λ_{k+1} < <b>") == "<i>λ</i><sub>k+1</sub> &lt; &lt;b&gt;"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (3.2e-8, "3 · 10⁻⁸"),
        (0.0, "0"),
        (2e12, "2 · 10¹²"),
        (-1e-3, "-1 · 10⁻³"),
        (float("nan"), "nan"),
        (1.0, "1 · 10⁰"),
    ],
)
def test_powers_of_ten(value: float, text: str) -> None:
    assert power_of_ten(value) == text
