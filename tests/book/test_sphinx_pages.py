"""Colours of figures on a light and on a dark page, and what is mended in rendered pages."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from test_figures import drawn

from btcnb.book.figures import figure_svg
from btcnb.book.sphinx_pages import (
    DARK,
    LIGHT,
    accessible,
    contrast,
    finish,
    fit,
    fitted,
    is_figure,
    lead_to_text,
    light,
)
from btcnb.build.project import Repository, read_repository

COLOURS = st.tuples(*[st.integers(0, 255)] * 3)


@pytest.fixture(autouse=True)
def without_a_window():
    plt.switch_backend("agg")
    yield
    plt.close("all")


def test_contrast_by_hand():
    assert contrast((0, 0, 0), (255, 255, 255)) == pytest.approx(21)
    assert contrast((119, 119, 119), (255, 255, 255)) == pytest.approx(4.48, abs=0.01)  # WCAG's example of a near miss


@given(COLOURS)
def test_letters_can_be_read_on_both_pages_unless_they_are_white(colour):
    for page in (LIGHT, DARK):
        if min(colour) <= 240:
            assert contrast(fitted(colour, page, letters=True), page.paper) >= 4.5
        else:
            assert fitted(colour, page, letters=True) == colour


@given(COLOURS)
def test_lines_keep_their_colour_on_the_light_page_and_hues_are_seen_on_the_dark_one(colour):
    assert fitted(colour, LIGHT, letters=False) == colour
    if max(colour) - min(colour) > 26:
        assert contrast(fitted(colour, DARK, letters=False), DARK.paper) >= 3


def test_greys_are_turned_over_on_the_dark_page():
    assert fitted((255, 255, 255), DARK, letters=False) == DARK.paper
    assert fitted((0, 0, 0), DARK, letters=False) == DARK.ink
    shades = [contrast(fitted((grey,) * 3, DARK, letters=False), DARK.paper) for grey in range(0, 256, 15)]
    assert shades == sorted(shades, reverse=True)


def test_the_plate_goes_and_ink_without_a_colour_of_its_own_follows_the_page():
    svg = figure_svg(drawn())
    assert is_figure(svg) and "#ffffff" in svg
    dark = fit(svg, DARK)
    assert 'id="patch_1"' in svg and 'id="patch_1"' not in dark and "#000000" not in dark
    assert re.match(r'<svg [^>]*fill="#f2f2f2"', dark)
    assert "#1f77b4" in svg and "#1f77b4" in dark, "blue stays blue"


def test_letters_on_coloured_ground_keep_their_colour():
    figure, (left, right) = plt.subplots(1, 2)
    left.imshow(np.eye(2))
    left.text(0, 0, "cell", color="#010203")
    right.bar([0], [1], color="#0072B2")
    right.text(0, 0.5, "bar", color="#040506")
    right.text(0, 2, "outside", color="#070809")
    right.set_ylim(0, 3)
    dark = fit(figure_svg(figure), DARK)
    assert "#010203" in dark and "#040506" in dark and "#070809" not in dark


def test_a_white_box_behind_letters_takes_the_colour_of_the_dark_page():
    figure, ax = plt.subplots()
    ax.text(0.5, 0.5, "boxed", bbox={"fc": "white", "ec": "none"})
    assert "#ffffff" not in fit(figure_svg(figure), DARK)


def test_a_page_gets_each_figure_twice_with_its_description_and_other_pictures_stay(tmp_path: Path):
    images = tmp_path / "_images"
    images.mkdir()
    (images / "a.svg").write_text(figure_svg(drawn()))
    (images / "logo.svg").write_text('<svg xmlns="http://www.w3.org/2000/svg"/>')
    page = tmp_path / "notebooks" / "01.html"
    page.parent.mkdir()
    logo = '<img alt="logo" src="../_images/logo.svg">'
    page.write_text(f'<p><img alt="a &amp; b" class="wide" src="../_images/a.svg" />{logo}</p>')
    finish(page, images)
    tags = re.findall("<img[^>]*>", page.read_text())
    assert [re.search('class="([^"]*)"', tag)[1] for tag in tags[:2]] == ["wide in-light", "wide in-dark dark-light"]
    assert all('alt="a &amp; b"' in tag and re.search(r'width="\d+" height="\d+"', tag) for tag in tags[:2])
    assert tags[2] == logo
    sources = [re.search('src="([^"]*)"', tag)[1] for tag in tags[:2]]
    light, dark = ((page.parent / source).read_text() for source in sources)
    assert light != dark and 'id="patch_1"' not in light


def test_what_has_no_name_gets_one_and_a_list_without_items_is_none():
    arrow = '<summary><span class="toctree-toggle" role="presentation"><i></i></span></summary>'
    assert accessible(arrow).startswith('<summary aria-label="sections of this chapter"><span class="toctree-toggle"')
    assert accessible('<div role="list" class="citation-list">') == '<div class="citation-list">'
    signature = '<dl>\n<dd><em class="sig-param">a</em>,</dd>\n<dd><em class="sig-param">b</em>,</dd>\n</dl>'
    assert "<dl>" not in accessible(signature) and accessible(signature).count('<div class="sig-line">') == 2
    assert accessible("<dl><dt>a</dt><dd>b</dd></dl>") == "<dl><dt>a</dt><dd>b</dd></dl>", "a list of definitions stays"
    assert accessible('<section id="proof-content"><p>') == "<section><p>"
    assert accessible("<details><summary>Hint</summary></details>") == "<details><summary>Hint</summary></details>"


def test_signs_are_fetched_once_and_when_shown():
    page = """<head>
<link href="../_static/vendor/fontawesome/6.5.2/css/all.min.css" rel="stylesheet" />
<link rel="preload" as="font" type="font/woff2" href="../_static/vendor/fontawesome/6.5.2/webfonts/a.woff2" />
<link rel="preload" as="script" href="../_static/scripts/bootstrap.js" />
<script src="../_static/vendor/fontawesome/6.5.2/js/all.min.js?digest=1"></script>
<script src="../_static/btcnb.js"></script></head><i class="fab fa-github"></i>"""
    left = light(page)
    assert "all.min.css" in left and "bootstrap.js" in left and "btcnb.js" in left
    assert "all.min.js" not in left and "woff2" not in left and 'class="fas fa-code-branch"' in left
    assert light(left) == left


ROOT = Path(__file__).resolve().parents[2]


EDIT = "https://github.com/a/b/edit/main/"


def _after(page: str, file: str) -> list[str]:
    buttons = [
        {"label": "source-repository-button", "url": "https://github.com/a/b"},
        {"label": "source-edit-button", "url": EDIT + file},
    ]
    launch = {"label": "launch-buttons", "buttons": [{"label": "launch-binder", "url": "https://mybinder.org"}]}
    groups = [{"label": "source-buttons", "buttons": buttons}, launch, {"label": "other"}]
    context: dict[str, Any] = {"header_buttons": groups}
    lead_to_text(None, page, "page.html", context, None)
    return [button["url"] for group in context["header_buttons"] for button in group.get("buttons", [])]


def test_a_chapter_is_edited_as_text() -> None:
    edited = ["https://github.com/a/b", f"{EDIT}notebooks/01_a.md"]
    assert _after("notebooks/01_a", "notebooks/01_a.ipynb") == [*edited, "https://mybinder.org"]


def test_other_pages_are_edited_as_text_and_cannot_be_opened_elsewhere() -> None:
    assert _after("book/intro", "book/intro.md") == ["https://github.com/a/b", f"{EDIT}book/intro.md"]
    assert _after("book/status", "book/status.ipynb") == ["https://github.com/a/b", f"{EDIT}book/status.md"]


def test_the_repository_is_named_in_one_place() -> None:
    address = read_repository(ROOT / "_config.yml")
    assert address is not None
    assert re.fullmatch(r"https://github\.com/[\w-]+/[\w-]+", address.url)  # Colab knows no other
    sources = [*(ROOT / "src").rglob("*.py"), *(ROOT / "book").glob("*.md"), *(ROOT / "notebooks").glob("*.md")]
    assert [path.name for path in sources if address.url in path.read_text(encoding="utf-8")] == []


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("repository: {url: https://github.com/a/b/, branch: old}", Repository("https://github.com/a/b", "old")),
        ("repository: {url: https://github.com/a/b}", Repository("https://github.com/a/b", "main")),
        ("repository: {url: ''}", None),
        ("title: x", None),
    ],
)
def test_reading_the_address(tmp_path: Path, text: str, found: Repository | None) -> None:
    (tmp_path / "_config.yml").write_text(text)
    assert read_repository(tmp_path / "_config.yml") == found
    assert read_repository(tmp_path / "nothing.yml") is None


def test_binder_finds_an_environment_that_installs_the_package() -> None:
    environment = yaml.safe_load((ROOT / "environment.yml").read_text())
    pip = next(entry["pip"] for entry in environment["dependencies"] if isinstance(entry, dict))
    assert not (ROOT / ".binder").exists() and not (ROOT / "binder").exists(), "they would hide environment.yml"
    assert any("--editable ." in entry for entry in pip)
    python = next(entry for entry in environment["dependencies"] if str(entry).startswith("python"))
    assert re.fullmatch(r"python\s*=+\s*3\.1[1-3]", python), "Binder takes a version that is named, not a range"
