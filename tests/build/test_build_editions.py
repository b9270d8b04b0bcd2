"""The student edition: what goes, what stays, what is refused."""

from __future__ import annotations

import copy

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from btcnb.build.editions import strip_solutions, strip_text
from btcnb.build.project import BuildError

START = "```{solution-start} ex\n:class: dropdown\n```"
END = "```{solution-end}\n```"


def students(*cells: nbformat.NotebookNode) -> list[str]:
    notebook = new_notebook(cells=copy.deepcopy(list(cells)))
    strip_solutions(notebook, "05_theorem")
    return [cell.source for cell in notebook.cells]


def test_a_gate_across_cells() -> None:
    kept = students(
        new_markdown_cell(f"Before.\n\n{START}\n\nHidden."),
        new_code_cell("hidden = 1"),
        new_markdown_cell("Hidden too."),
        new_markdown_cell(f"{END}\n\nAfter."),
        new_code_cell("shown = 1"),
    )
    assert kept == ["Before.", "After.", "shown = 1"]


def test_two_gates_in_one_cell_and_cells_left_empty() -> None:
    text = f"A\n\n{START}\nx\n{END}\n\nB\n\n{START}\ny\n{END}\n\nC"
    assert students(new_markdown_cell(text), new_markdown_cell(f"{START}\n{END}"))[0].split() == ["A", "B", "C"]
    assert len(students(new_markdown_cell(text), new_markdown_cell(f"{START}\n{END}"))) == 1


@pytest.mark.parametrize("fence", ["```", "````", ":::", "::::", "~~~"])
def test_a_solution_block_with_code_inside(fence: str) -> None:
    inner = "~~~" if fence.startswith("`") else "```"
    block = f"{fence}{{solution}} ex\n:class: dropdown\n\n{inner}python\nhidden\n{inner}\n\nhidden\n{fence}"
    assert strip_text(f"A\n\n{block}\n\nB", "page").split() == ["A", "B"]


def test_solutions_inside_another_directive_go_and_the_rest_stays() -> None:
    text = "::::{admonition} Title\n:class: tip\n\nShown.\n\n:::{solution} ex\nhidden\n:::\n\nAlso shown.\n::::"
    stripped = strip_text(text, "page")
    assert "hidden" not in stripped
    assert [line for line in stripped.split("\n") if line] == [
        "::::{admonition} Title", ":class: tip", "Shown.", "Also shown.", "::::",
    ]  # fmt: skip


def test_a_solution_shown_as_an_example_of_markup_stays() -> None:
    text = "````md\n```{solution} ex\nshown\n```\n````"
    assert strip_text(text, "page").strip() == text


def test_exercises_and_other_fences_are_untouched() -> None:
    text = "```{exercise}\n:label: ex\n\nWhy?\n```\n\n```python\nx = 1\n\n\ny = 2\n```"
    assert strip_text(text, "page").strip() == text


@pytest.mark.parametrize(
    ("text", "complaint"),
    [(START, "starts and never ends"), (END, "never started"), (f"{START}\n{START}", "inside another")],
)
def test_gates_that_do_not_match(text: str, complaint: str) -> None:
    with pytest.raises(BuildError, match=f"05_theorem: .*{complaint}"):
        students(new_markdown_cell(text))


def test_a_name_that_only_a_solution_defines_may_not_be_used_later() -> None:
    gate = [new_markdown_cell(START), new_code_cell("answer = 42"), new_markdown_cell(END)]
    with pytest.raises(BuildError, match="`answer` is defined in a solution only"):
        students(*gate, new_code_cell("print(answer)"))
    assert len(students(new_code_cell("answer = 0"), *gate, new_code_cell("print(answer)"))) == 2


@pytest.mark.parametrize(
    "line", ["total = (5\n  % answer)", "same = (1\n  != answer)", "%matplotlib inline\nprint(answer)"]
)
def test_a_line_that_begins_like_a_magic_hides_no_name(line: str) -> None:
    gate = [new_markdown_cell(START), new_code_cell("answer = 42"), new_markdown_cell(END)]
    with pytest.raises(BuildError, match="`answer` is defined in a solution only"):
        students(*gate, new_code_cell(line))
