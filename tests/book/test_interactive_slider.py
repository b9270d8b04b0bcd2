"""The slider, read as HTML and driven in a browser."""

from __future__ import annotations

import re

import matplotlib.pyplot as plt
import pages
import pytest

from btcnb.book.interactive_slider import frame, slider_html
from btcnb.errors import ParameterError


def drawn(value):
    figure, ax = plt.subplots(figsize=(2, 1))
    ax.plot([0, 1], [0, value])
    return frame(figure, f"value {value}", f"a line that rises to {value}")


@pytest.fixture
def frames():
    plt.switch_backend("agg")
    return [drawn(value) for value in (1, 2, 3)]


def test_equal_figures_give_equal_bytes_and_are_closed(frames):
    assert drawn(2).svg == frames[1].svg != frames[0].svg
    assert not plt.get_fignums()


def test_the_page_carries_every_frame_and_loads_nothing(frames):
    page = slider_html(frames, "rise", start=1)
    assert page.count("<img ") == 3 and page.count(" hidden>") == 2
    assert 'alt="a line that rises to 2">' in page  # the visible one
    assert not re.search(r"(src|href)=\"(?!data:)", page)
    assert slider_html(frames, "rise", start=1) == page


def test_labels_cannot_break_out_of_the_page():
    plt.switch_backend("agg")
    figure, _ = plt.subplots(figsize=(1, 1))
    page = slider_html([frame(figure, '</script><b>"', '"><script>')], "a & b")
    assert page.count("</script>") == 1 and "<b>" not in page and "a &amp; b" in page


def test_impossible_sliders_are_refused(frames):
    with pytest.raises(ParameterError, match="at least one"):
        slider_html([], "none")
    with pytest.raises(ParameterError, match="frames 0 to 2"):
        slider_html(frames, "rise", start=3)


@pytest.mark.book
@pages.needs_browser
def test_arrow_keys_and_buttons_change_the_picture(frames, tmp_path, browser):
    page_file = tmp_path / "slider.html"
    page_file.write_text(f"<!doctype html><meta charset=utf-8>{slider_html(frames, 'rise')}")
    page = browser.new_page()
    page.set_default_timeout(pages.PATIENCE)
    page.goto(page_file.as_uri())

    def seen():
        return [image.get_attribute("alt") for image in page.query_selector_all("img") if image.is_visible()]

    assert seen() == ["a line that rises to 1"]
    page.focus("input")
    page.keyboard.press("ArrowRight")
    assert seen() == ["a line that rises to 2"] and page.inner_text("output") == "value 2"
    page.keyboard.press("End")
    assert page.get_attribute("input", "aria-valuetext") == "value 3"
    page.click("button[aria-label='previous frame']")
    assert seen() == ["a line that rises to 2"]
    page.close()
