"""Cells that need what the data lacks keep their place on the page without running."""

from __future__ import annotations

from typing import Any

import pytest
from IPython.core.interactiveshell import InteractiveShell

from btcnb.book import needs, output
from btcnb.book.looks import Look
from btcnb.data import Source
from btcnb.errors import ParameterError

CELL = """# needs: truth
book.glue("pure", purity(owners), "{:.2f}")
book.table(frame, caption="Owners", name="tbl-owners")
book.verdicts([book.Verdict(claim="Owners are found", verdict="partly", evidence=f"{x}", where="Section 6")])
"""


def lacks(*missing: str) -> Any:
    return lambda what: what in missing


def test_a_cell_without_needs_is_left_alone() -> None:
    assert needs.rewritten("x = 1\n# needs: truth\n", lacks("truth")) == "x = 1\n# needs: truth\n"


def test_a_cell_whose_needs_are_met_is_left_alone() -> None:
    assert needs.rewritten(CELL, lacks("labels")) == CELL


def test_a_misspelt_need_is_refused() -> None:
    with pytest.raises(ParameterError, match="`# needs: thruth`: a cell can need truth, labels"):
        needs.rewritten("# needs: thruth\n", lacks())


def test_numbers_tables_and_claims_keep_their_place(monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[str] = []
    glued: dict[str, str] = {}
    judged: list[output.Verdict] = []
    monkeypatch.setattr(needs, "show", lambda text, fallback: shown.append(text))
    monkeypatch.setattr(needs, "glue", lambda key, value: glued.update({key: value}))
    monkeypatch.setattr(needs, "verdicts", judged.extend)
    exec(needs.rewritten(CELL, lacks("truth")))
    assert glued == {"pure": "–"}
    assert ":name: tbl-owners" in shown[0]
    (verdict,) = judged
    assert (verdict.claim, verdict.verdict) == ("Owners are found", "cannot be tested here")
    assert "the true owners of the addresses" in verdict.evidence
    assert verdict.where == "Section 6"


def test_a_first_look_says_nothing_where_it_cannot_look(monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[Look] = []
    monkeypatch.setattr(needs, "first_look", looked.extend)
    exec(needs.rewritten('# needs: truth\nlook = book.Look("C022", [flags > others], "numbers")\n', lacks("truth")))
    (look,) = looked
    assert (look.id, look.says) == ("C022", "nothing") and "the true owners of the addresses" in look.evidence


def test_cells_of_a_shell_are_skipped_from_then_on(monkeypatch: pytest.MonkeyPatch) -> None:
    shell = InteractiveShell.instance()
    monkeypatch.setattr("IPython.get_ipython", lambda: shell)
    try:
        needs.skip_where(lacks("truth"))
        needs.skip_where(lacks("truth"))  # a chapter may name its data twice
        code = shell.transform_cell("# needs: truth\nraise RuntimeError\n")
        assert code.startswith("from btcnb.book.needs import skipped")
        assert "raise RuntimeError" in shell.transform_cell("# needs: labels\nraise RuntimeError\n")
    finally:
        InteractiveShell.clear_instance()


def test_the_title_block_tells_what_stands_beside_simulated_data(monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[str] = []
    monkeypatch.setattr(needs, "show", lambda text, *_: shown.append(text))
    monkeypatch.setattr(needs, "record", lambda *_, **__: None)
    needs.whose(Source(size="tiny"))
    needs.whose(Source(size="tiny"), besides="figures of real blocks")
    assert "All data on this page is **simulated**" in shown[0]
    assert "The data on this page is **simulated**" in shown[1]
    assert "Beside it stand figures of real blocks." in shown[1]
