"""A rendered page as slides: what becomes a slide, what goes into the notes, what stays out."""

from __future__ import annotations

from pathlib import Path

import pytest

from btcnb.build.project import Project, UsageError
from btcnb.build.slides import LONGEST_CODE, deck, make_slides, slide_html

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
FIGURE = (
    '<figure id="f"><a href="../_images/a.png"><img alt="A line" src="../_images/a.png" style="width: 811px"/></a>'
    "<figcaption><p>Fig. 1 A line.</p></figcaption></figure>"
)


def page(*parts: str) -> str:
    return (
        '<html><body><nav>elsewhere</nav><article class="bd-article"><section><h1>1. Title<a class="headerlink" '
        'href="#t">#</a></h1><p>A promise.</p><div class="chapter-card"><ul><li><p>to see</p></li></ul></div>'
        f"{''.join(parts)}</section></article></body></html>"
    )


def section(title: str, *parts: str) -> str:
    return f"<section><h2>{title}</h2>{''.join(parts)}</section>"


def cell(code: str, output: str = "", tags: str = "") -> str:
    return (
        f'<div class="cell {tags}"><div class="cell_input"><pre>{code}</pre></div>'
        f'<div class="cell_output"><div class="output"><pre>{output}</pre></div></div></div>'
    )


def test_a_title_its_promise_and_goals() -> None:
    first, second = deck(page())
    assert (first.title, second.title) == ("1. Title", "What you will learn")
    assert "A promise." in first.body[0]
    assert second.bullets == ["to see"]


def test_first_sentences_are_bullets_and_all_prose_is_notes() -> None:
    prose = "<p>One sentence. Another one.</p><p>A <b>third</b> one with <span class='math'>\\(x\\)</span>! More.</p>"
    made = deck(page(section("Idea", prose)))[-1]
    assert made.title == "Idea"
    assert made.bullets == ["One sentence.", "A third one with \\(x\\)!"]
    assert "Another one." in "".join(made.notes)


def test_figures_tables_and_boxes_are_slides() -> None:
    box = '<div class="admonition in-the-paper"><p class="admonition-title">In the paper</p><p>3</p></div>'
    table = "<div class='scroll'><table><tr><td>5</td></tr></table></div>"
    made = deck(page(section("Idea", "<p>Look.</p>", FIGURE, "<p>Seen.</p>", table, box)))[2:]
    assert [slide.title for slide in made] == ["Idea"] * 3
    assert "<img" in made[0].body[0]
    assert made[0].bullets == ["Look."]
    assert "Seen." in made[0].notes[-1]
    assert "811px" not in made[0].body[0]
    assert "<a " not in made[0].body[0]
    assert made[1].body[0].startswith("<table")
    assert "In the paper" in made[2].body[0]


def test_short_code_is_shown_and_tags_decide() -> None:
    long = "\n".join(f"x{i} = {i}" for i in range(LONGEST_CODE + 1))
    cells = [
        cell("short = 1", "printed"),
        cell(long),
        cell("folded = 1", tags="tag_hide-input"),
        cell("wanted = 1", tags="tag_hide-input tag_slide-code"),
        cell("unwanted = 1", tags="tag_slide-skip"),
    ]
    made = "".join(slide_html(slide, 2, 9) for slide in deck(page(section("Code", *cells))))
    assert "short = 1" in made
    assert "printed" in made
    assert "wanted = 1" in made
    for word in ("x3 = 3", "folded = 1", "unwanted = 1"):
        assert word not in made


def test_solutions_and_references_stay_out_and_exercises_are_named() -> None:
    exercise = (
        '<div class="exercise admonition"><p class="admonition-title">Exercise 1</p><section><p>Goal: see.</p>'
        '</section></div><div class="solution dropdown admonition"><p>the answer</p></div>'
    )
    parts = (section("Exercises", exercise), section("References", "<p>A book.</p>"))
    made = "".join(slide_html(slide, 2, 9) for slide in deck(page(*parts)))
    assert "Exercise 1: Goal: see." in made
    assert "the answer" not in made
    assert "A book." not in made


def test_scripts_never_come_along() -> None:
    made = "".join(slide_html(slide, 2, 9) for slide in deck(page(section("I", "<p>Hi.<script>x()</script></p>"))))
    assert "Hi." in made
    assert "<script" not in made
    assert "x()" not in made


def test_what_is_no_page() -> None:
    assert deck("<html></html>") == []


@pytest.fixture
def project(tmp_path: Path) -> Project:
    root = Path(__file__).resolve().parents[2]
    for name in ("_toc.yml", "_config.yml", "notebooks", "src"):
        (tmp_path / name).symlink_to(root / name)
    folder = tmp_path / "_build" / "quick" / "html" / "notebooks"
    folder.mkdir(parents=True)
    return Project(tmp_path)


def test_one_file_that_needs_no_other(project: Project) -> None:
    import base64

    images = project.root / "_build" / "quick" / "html" / "_images"
    images.mkdir()
    (images / "a.png").write_bytes(base64.b64decode(PIXEL))
    source = project.root / "_build" / "quick" / "html" / "notebooks" / "13_refinement.html"
    source.write_text(page(section("Idea", FIGURE)), encoding="utf-8")
    text = make_slides(project, "13").read_text(encoding="utf-8")
    assert PIXEL in text
    assert "../_images" not in text
    assert "<!--" not in text
    assert "MathJax" not in text, "a deck without mathematics does not carry MathJax"
    source.write_text(page(section("Idea", "<p>So \\(x\\).</p>")), encoding="utf-8")
    assert "MathJax" in make_slides(project, "13").read_text(encoding="utf-8")


def test_a_chapter_that_is_not_rendered(project: Project) -> None:
    with pytest.raises(UsageError, match=r"btcnb build --preset quick"):
        make_slides(project, "13")
