"""The student edition of the whole book: no solution in a page, a download or the search index, and no answer."""

from __future__ import annotations

import html
import json
import re
from functools import cache
from pathlib import Path

import pytest
from exercise_text import CHAPTERS, ROOT, Exercise, exercises

HTML = ROOT / "_build" / "quick" / "html-student"
FULL = ROOT / "_build" / "quick" / "html"
WORDS_IN_A_ROW = 7

pytestmark = [
    pytest.mark.book,
    pytest.mark.skipif(
        not (HTML / "index.html").exists(),
        reason="the student edition is not built: run `btcnb build --edition student` first",
    ),
]


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", re.sub(r"</?[a-zA-Z!][^<>]*>|\{[\w:]+\}|\$[^$\n]*\$", " ", html.unescape(text)))


@cache
def _file(path: Path) -> str:
    return " ".join(_words(path.read_text(encoding="utf-8", errors="replace")))


def _published() -> list[Path]:
    """Every text that students get, scripts of the theme apart."""
    kinds = {".html", ".ipynb", ".md", ".py", ".txt"}
    return [path for path in HTML.rglob("*") if path.suffix in kinds]


def _traces(exercise: Exercise, elsewhere: str) -> list[str]:
    """Runs of words of a solution that stand nowhere else in the book's text."""
    found = []
    for paragraph in re.split(r"\n\s*\n", exercise.solution_prose):
        words = _words(paragraph)
        starts = range(0, len(words) - WORDS_IN_A_ROW, WORDS_IN_A_ROW)
        found += [" ".join(words[start : start + WORDS_IN_A_ROW]) for start in starts]
    for line in exercise.solution_code.splitlines():
        words = _words(line)
        if len(words) >= WORDS_IN_A_ROW:
            found.append(" ".join(words))
    return [trace for trace in found if trace not in elsewhere]


def _without_solutions(path: Path) -> str:
    text = path.read_text(encoding="utf-8")
    for exercise in exercises(path):
        text = text.replace(exercise.solution, "")
    return " ".join(_words(text))


@pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)
def test_no_trace_of_a_solution(path: Path) -> None:
    elsewhere = " ".join(_without_solutions(other) for other in CHAPTERS)
    traces = [trace for exercise in exercises(path) for trace in _traces(exercise, elsewhere)]
    assert len(traces) > 5
    full = _file(FULL / "notebooks" / f"{path.stem}.html")
    assert sum(trace in full for trace in traces) > len(traces) / 4, "the full edition shows what is looked for here"
    for published in _published():
        text = _file(published)
        assert not [trace for trace in traces if trace in text], published.relative_to(HTML)


@pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)
def test_pages_ask_and_do_not_answer(path: Path) -> None:
    page = (HTML / "notebooks" / f"{path.stem}.html").read_text(encoding="utf-8")
    assert 'class="solution' not in page
    assert "self-check-right" not in page
    assert "self-check-wrong" not in page
    asked = [each for each in exercises(path) if not each.discussed]
    assert page.count("Not answered yet") == len(asked)
    for published in _published():
        if path.stem in published.name:
            text = published.read_text(encoding="utf-8", errors="replace")
            assert "book.solved" not in text
            assert "solution-start" not in text


def test_downloads_are_the_stripped_notebooks() -> None:
    found = [path for path in HTML.rglob("*.ipynb") if path.name[:2].isdigit()]
    assert {path.stem for path in found} >= {path.stem for path in CHAPTERS}
    for path in found:
        sources = ["".join(cell["source"]) for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]]
        assert any("book.check(" in source for source in sources)
        assert not any("book.solved(" in source or "{solution" in source for source in sources)


def _index(folder: Path) -> dict[str, object]:
    text = (folder / "searchindex.js").read_text(encoding="utf-8")
    return json.loads(text.removeprefix("Search.setIndex(").removesuffix(")"))


def test_the_search_index_knows_no_solution() -> None:
    def known(folder: Path) -> set[str]:
        index = _index(folder)
        return {*index["terms"], *index["titleterms"]}  # type: ignore[misc]

    student, full = known(HTML), known(FULL)
    elsewhere = {word.lower() for path in CHAPTERS for word in _without_solutions(path).split()}
    elsewhere |= {word.lower() for path in (ROOT / "book").glob("*.md") for word in _words(path.read_text())}
    texts = [exercise.solution for path in CHAPTERS for exercise in exercises(path)]
    only = {word.lower() for text in texts for word in _words(text)} - elsewhere
    leaked = {word for word in only & full if len(word) > 4}
    assert len(leaked) > 20, "the full edition's index knows words that stand in solutions only"
    shown = {word.lower() for path in HTML.rglob("*.html") for word in _file(path).split()}
    stems = {word[:length] for word in shown for length in range(5, len(word) + 1)}  # the index keeps stems
    assert not (leaked & student) - stems
    assert not any("solution to" in title.lower() for title in _index(HTML)["alltitles"])  # type: ignore[attr-defined]
