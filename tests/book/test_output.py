"""What chapters display: both forms of each output say the same, and records reach the build."""

from pathlib import Path
from typing import Any

import nbformat
import pandas as pd
import pytest

from btcnb import book
from btcnb.book import chapter, output


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    bundles: list[dict[str, Any]] = []
    monkeypatch.setattr(output, "display", lambda bundle, raw: bundles.append(bundle))
    return bundles


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
    ],
)
def test_numbers_read_well(value: object, text: str) -> None:
    assert output.number(value) == text


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
    with pytest.raises(ValueError, match="a verdict is one of reproduced"):
        book.Verdict("claim", "probably", "")


def test_html_is_escaped(shown: list[dict[str, Any]]) -> None:
    book.table(pd.DataFrame({"a": ["<script>"]}), caption="x & y", name="tbl-a")
    assert "<script>" not in shown[0]["text/html"]
    assert "x &amp; y" in shown[0]["text/html"]


def _notebook(tmp_path: Path) -> Path:
    cells = [
        nbformat.v4.new_markdown_cell("word " * 400),
        nbformat.v4.new_code_cell(
            "epochs: int = 250  # training epochs\nsize: str = 'quick'  # size of the economy",
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
    assert "| `epochs` | int | `250` | training epochs |" in page
    assert "papermill notebooks/99_test.ipynb runs/99_test.ipynb" in page
    assert "3 min to read; to run on two cores: 12 s (`quick`)" in page  # 400 words at 180 a minute
    assert "- how to test" in page
