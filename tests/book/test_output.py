"""What chapters display: both forms of each output say the same, and records reach the build."""

import operator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import nbformat
import numpy as np
import pandas as pd
import papermill
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from btcnb import book
from btcnb.book import chapter, output
from btcnb.book.chapter import recorded_times
from btcnb.book.parameters import read_parameters
from btcnb.book.text import pipe_table, without_credentials
from btcnb.errors import DataError, ParameterError
from btcnb.store.keys import cell_modules, imported_subpackages


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1234567, "1,234,567"),
        (0.12345, "0.123"),
        (0.0, "0"),
        (12.5, "12.5"),
        (1234.5, "1,234"),
        (0.00001234, "1.2e-05"),
        (float("nan"), "–"),
        (None, "–"),
        (True, "yes"),
        ("as is", "as is"),
        (-0.0, "0"),
        (999.9, "1,000"),
        (-3, "-3"),
        (10**400, f"{10**400:,}"),
        (float("inf"), "∞"),
        (np.float32("nan"), "–"),
        (pd.NA, "–"),
        (np.int64(1500), "1,500"),
    ],
)
def test_numbers_read_well(value: object, text: str) -> None:
    assert book.number(value) == text


@pytest.mark.parametrize(
    ("value", "form", "text"),
    [
        (0.0, "{:.0e}", "0"),
        (0.0, "{:+.1f}", "0.0"),
        (-0.0001, "{:.1f}", "0.0"),
        (-0.2, "{:.0f} %", "0 %"),
        (-0.2, "{:+.1f}", "-0.2"),
        (0.14, "{:.1e}", "0.14"),
        (1e-7, "{:.0e}", "1e-07"),
        (float("nan"), "{:.1f}", "–"),
        (20, "{:.0f}", "20"),
    ],
)
def test_zero_has_neither_sign_nor_exponent_in_any_format(value: float, form: str, text: str) -> None:
    assert book.number(value, form) == text


def test_a_table_is_numbered_and_aligned(shown: list[dict[str, Any]]) -> None:
    frame = pd.DataFrame({"split": ["train|1"], "nodes": [643000], "share": [0.5]})
    book.table(frame, caption="Sizes.", name="tbl-sizes", formats={"share": "{:.0%}"})
    assert shown[0]["text/markdown"] == (
        "::::{table} Sizes.\n:name: tbl-sizes\n\n"
        "| split | nodes | share |\n| :--- | ---: | ---: |\n| train\\|1 | 643,000 | 50% |\n::::\n"
    )
    assert '<td style="text-align:right">643,000</td>' in shown[0]["text/html"]


def test_the_paper_box_holds_both_numbers(shown: list[dict[str, Any]]) -> None:
    book.in_the_paper([book.Row("cut ratio", 87.0, 85.25, note="simulated")])
    assert "| cut ratio | 87 | 85.2 | simulated |" in shown[0]["text/markdown"]


def test_verdicts_are_recorded_and_only_four_exist(shown: list[dict[str, Any]]) -> None:
    book.verdicts([book.Verdict("claim", "partly", "0.5 beside 0.6", "Table 1")])
    assert shown[0][output.RECORD_MIME] == {
        "kind": "verdict",
        "claim": "claim",
        "verdict": "partly",
        "evidence": "0.5 beside 0.6",
        "where": "Table 1",
    }
    assert "◐ **partly**" in shown[1]["text/markdown"]
    with pytest.raises(ParameterError, match="a verdict is one of reproduced"):
        book.Verdict("claim", "probably", "")


def test_a_verdict_on_nothing_is_no_verdict() -> None:
    for empty in (
        book.Verdict("claim", "not reproduced", "0 draws within nan standard errors"),
        book.Verdict("claim", "reproduced", "0 of 0 pairs", sample=0),
        book.Verdict("claim", "reproduced", "a share of – of pairs", numbers=[0.5, float("nan")]),
        book.Verdict("claim", "partly", "scores", numbers=np.array([np.inf])),
        book.Verdict("claim", "cannot be tested here", "the area is nan"),
        book.Verdict("claim", "reproduced", f"a ratio of {output.number(float('inf'))}"),
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
    page = shown[0]["text/markdown"]
    assert "Cells of {numref}`tbl-b`." in page
    for cell in ("`a\\|b`", "$\\alpha < 1$", "*so*", "**so**", "{doc}`/notebooks/01`", "λ_\\{k+1\\} &lt; 2"):
        assert f"| {cell} |" in page
    assert {"code_inline:a|b", "math_inline:\\alpha"} <= set(rendered(page.split("\n", 3)[3]).split())


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


def _notebook(tmp_path: Path) -> Path:
    cells = [
        nbformat.v4.new_markdown_cell("word " * 400),
        nbformat.v4.new_code_cell(
            "epochs: int = 250  # training epochs [1, 300]\nsize: str = 'quick'  # size of the economy {tiny | quick}",
            metadata={"tags": ["parameters"]},
        ),
    ]
    metadata = {"kernelspec": {"name": "python3", "language": "python", "display_name": "Python 3"}}
    path = tmp_path / "notebooks" / "99_test.ipynb"
    path.parent.mkdir()
    nbformat.write(nbformat.v4.new_notebook(cells=cells, metadata=metadata), path)
    return path


def test_the_rerun_box_is_made_from_the_parameters_cell(
    tmp_path: Path, shown: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    _notebook(tmp_path)
    (tmp_path / "results").mkdir()
    (tmp_path / "results" / "chapter_times.csv").write_text(
        "chapter,preset,seconds\n99_test,quick,12.2\n98_x,quick,9\n"
    )
    monkeypatch.setattr(chapter, "PROJECT", tmp_path)
    book.open_chapter("99_test", learn=["how to test"], prerequisites=["nothing"])
    page = shown[0]["text/markdown"]
    assert "| `epochs` | int | `250` | \\[1, 300\\] | training epochs |" in page
    assert "| `size` | str | `'quick'` | \\{tiny \\| quick\\} | size of the economy |" in page
    assert ".venv/bin/papermill notebooks/99_test.ipynb runs/99_test.ipynb -p epochs 125\n" in page
    assert "3 min to read; to run on two cores: 12 s (`quick`)" in page  # 400 words at 180 a minute
    assert "- how to test" in page


def test_the_example_changes_something() -> None:
    def example(cell: str) -> str:
        return chapter._example(read_parameters("99_test", cell))

    assert example("epochs: int = 5\nseed: int = 7") == " -p seed 8"
    assert example("share: float = 0.75  # share (0, 1)") == " -p share 0.375"
    assert example("label: str = 'x'\nrule: str = 'a b'  # {a b | c d}") == " -p rule 'c d'"
    assert example("full: bool = True") == " -p full False"
    assert example("count: int = 0  # [0, 1]") == " -p count 1"
    assert example("label: str = 'x'") == ""
    assert example("price_usd: float = 2.0  # USD\nworld: int = 7  # seed of the economies [0, 9]") == " -p world 8"
    assert example("price_usd: float = 2.0  # USD\nsmallest: int = 8  # [3, 90]") == " -p smallest 16"


@pytest.mark.parametrize(
    "notebook", sorted((chapter.PROJECT / "notebooks").glob("*.ipynb")), ids=lambda path: path.stem
)
def test_every_chapter_can_be_run_again_with_something_changed(notebook: Path) -> None:
    declared = chapter.parameters(notebook)
    _, name, value = chapter._example(declared).split()
    assert name not in chapter.OF_OWN_DATA
    assert declared[name].parse(value) != declared[name].default


CELL = "draws: int = 20  # draws [1, 100]\nshare: float = 0.5  # share\nsizes: tuple[int, ...] = (1, 2)"


@pytest.mark.parametrize(
    ("injected", "complaint"),
    [
        ("draws = 0", r"0 is out of range: `draws` \(draws\) must lie in \[1, 100\]"),
        ("draws = True", "wrong type"),
        ("draws = '010'", "wrong type"),
        ("share = float('inf')", "must be finite"),
        (
            "draw = 5",
            r"chapter 99_none does not know the parameter `draw` \(did you mean `draws`\?\); its parameters are",
        ),
    ],
)
def test_a_chapter_checks_its_parameters_itself(monkeypatch: pytest.MonkeyPatch, injected: str, complaint: str) -> None:
    with pytest.raises(ParameterError, match=complaint):
        _run(monkeypatch, CELL, f"# Parameters\n{injected}\n")


def test_a_chapter_takes_what_fits_as_it_wants_it(monkeypatch: pytest.MonkeyPatch, shown: list[dict[str, Any]]) -> None:
    namespace = _run(monkeypatch, CELL, "# Parameters\nshare = 1\nsizes = [3]\n")
    assert (namespace["share"], type(namespace["share"]), namespace["sizes"]) == (1.0, float, (3,))
    with pytest.raises(ParameterError, match="it has no parameters"):
        _run(monkeypatch, "", "# Parameters\nshare = 1\n")


def _run(monkeypatch: pytest.MonkeyPatch, *cells: str) -> dict[str, Any]:
    namespace: dict[str, Any] = {"In": ["", *cells, "book.open_chapter(…)"]}
    for cell in cells:
        exec(cell, namespace)
    monkeypatch.setattr(chapter, "get_ipython", lambda: SimpleNamespace(user_ns=namespace))
    book.open_chapter("99_none", [], [])
    return namespace


def test_plain_papermill_is_told_too(tmp_path: Path) -> None:
    source = "from btcnb import book\nbook.open_chapter('99_none', [], [])"
    cells = [
        nbformat.v4.new_code_cell(CELL, metadata={"tags": ["parameters"]}),
        nbformat.v4.new_code_cell(source),
    ]
    metadata = {"kernelspec": {"name": "python3", "language": "python", "display_name": "Python 3"}}
    nbformat.write(nbformat.v4.new_notebook(cells=cells, metadata=metadata), tmp_path / "a.ipynb")
    with pytest.raises(papermill.PapermillExecutionError, match="does not know the parameter `draw`"):
        papermill.execute_notebook(tmp_path / "a.ipynb", tmp_path / "b.ipynb", {"draw": 3}, progress_bar=False)


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


@pytest.mark.parametrize("content", [b"a,b\n1,2\n", b"chapter,preset,seconds\nx\n", bytes(range(256)), b"x" * 200_000])
def test_running_times_that_cannot_be_read_are_told(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "times.csv").write_bytes(content + b"\n1,2,many\n")
    with pytest.raises(DataError, match=r"times\.csv: running times: cannot be read"):
        recorded_times(tmp_path / "times.csv")


def test_a_mean_and_its_spread_stay_on_one_line(shown: list[dict[str, Any]]) -> None:
    book.table(pd.DataFrame({"what": ["a"], "ours": ["0.61 ± 0.02"]}), "A caption.", "tbl-spread")
    assert shown and all("0.61\u00a0±\u00a00.02" in text for text in shown[-1].values())
