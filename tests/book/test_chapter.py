"""The opening of a chapter: card, re-run box, checked parameters; cells that need what the data lacks."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import nbformat
import papermill
import pytest
from IPython.core.interactiveshell import InteractiveShell

from btcnb import book
from btcnb.book import chapter, page
from btcnb.book.chapter import recorded_times
from btcnb.book.parameters import read_parameters
from btcnb.data import Source
from btcnb.errors import DataError, ParameterError


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


CELL = "draws: int = 20  # draws [1, 100]\nshare: float = 0.5  # share\nlabel: str = 'a'  # name"


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
    namespace = _run(monkeypatch, CELL, "# Parameters\nshare = 1\nlabel = 'b'\n")
    assert (namespace["share"], type(namespace["share"]), namespace["label"]) == (1.0, float, "b")
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


@pytest.mark.parametrize("content", [b"a,b\n1,2\n", b"chapter,preset,seconds\nx\n", bytes(range(256)), b"x" * 200_000])
def test_running_times_that_cannot_be_read_are_told(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "times.csv").write_bytes(content + b"\n1,2,many\n")
    with pytest.raises(DataError, match=r"times\.csv: running times: cannot be read"):
        recorded_times(tmp_path / "times.csv")


NEEDY = """# needs: truth
book.glue("pure", purity(owners), "{:.2f}")
book.table(frame, caption="Owners", name="tbl-owners")
book.verdicts([book.Verdict(claim="Owners are found", verdict="partly", evidence=f"{x}", where="Section 6")])
"""


def lacks(*missing: str) -> Any:
    return lambda what: what in missing


def test_a_cell_without_needs_is_left_alone() -> None:
    assert chapter.rewritten("x = 1\n# needs: truth\n", lacks("truth")) == "x = 1\n# needs: truth\n"


def test_a_cell_whose_needs_are_met_is_left_alone() -> None:
    assert chapter.rewritten(NEEDY, lacks("labels")) == NEEDY


def test_a_misspelt_need_is_refused() -> None:
    with pytest.raises(ParameterError, match="`# needs: thruth`: a cell can need truth, labels"):
        chapter.rewritten("# needs: thruth\n", lacks())


def test_numbers_become_dashes_tables_are_left_out_and_claims_stay_open(
    shown: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    glued: dict[str, str] = {}
    monkeypatch.setattr(chapter, "glue", lambda key, value: glued.update({key: value}))
    exec(chapter.rewritten(NEEDY, lacks("truth")))
    assert glued == {"pure": "–"}
    figure, tables, verdict = (bundle[page.RECORD_MIME] for bundle in shown[:3])
    assert (figure["names"], tables["names"]) == ([], ["tbl-owners"])
    assert (verdict["claim"], verdict["verdict"]) == ("Owners are found", "cannot be tested here")
    assert "the true owners of the addresses" in verdict["evidence"] and verdict["where"] == "Section 6"


def test_a_first_look_says_nothing_where_it_cannot_look(shown: list[dict[str, Any]]) -> None:
    exec(chapter.rewritten('# needs: truth\nlook = book.Look("C022", [flags > others], "numbers")\n', lacks("truth")))
    assert "| C022 |" in shown[-1]["text/markdown"] and "| nothing |" in shown[-1]["text/markdown"]
    assert "the true owners of the addresses" in shown[-1]["text/markdown"]


def test_cells_of_a_shell_are_skipped_from_then_on(monkeypatch: pytest.MonkeyPatch) -> None:
    shell = InteractiveShell.instance()
    monkeypatch.setattr(chapter, "get_ipython", lambda: shell)
    try:
        chapter.skip_where(lacks("truth"))
        chapter.skip_where(lacks("truth"))  # a chapter may name its data twice
        code = shell.transform_cell("# needs: truth\nraise RuntimeError\n")
        assert code.startswith("from btcnb.book.chapter import skipped")
        assert "raise RuntimeError" in shell.transform_cell("# needs: labels\nraise RuntimeError\n")
    finally:
        InteractiveShell.clear_instance()


def test_the_title_block_tells_what_stands_beside_simulated_data(shown: list[dict[str, Any]]) -> None:
    book.whose(Source(size="tiny"))
    book.whose(Source(size="tiny"), besides="figures of real blocks")
    first, second = (bundle["text/markdown"] for bundle in shown if "text/markdown" in bundle)
    assert "All data on this page is **simulated**" in first
    assert "The data on this page is **simulated**" in second
    assert "Beside it stand figures of real blocks." in second
