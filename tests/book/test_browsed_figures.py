"""The interactive figures of the built book, moved by mouse and by keyboard."""

from __future__ import annotations

from typing import Any

import pages
import pytest

pytestmark = [*pages.needs_book, pages.needs_browser]

MOVABLE = ".btcnb-slider, .btcnb-dendrogram"
DRAWN = """root => [...root.querySelectorAll("img, .merge, .cut")].filter((part) => part.getClientRects().length)
  .map((part) => part.src || part.outerHTML).join()"""


def _with(mark: str) -> list[str]:
    return [page for page in pages.chapters() if pages.HTML.exists() and mark in pages.text(page)]


@pytest.mark.parametrize("page", _with('btcnb-slider"') + _with('btcnb-dendrogram"'))
def test_a_figure_with_a_slider_answers_to_keys_and_to_the_mouse(page: str, site: str, browser: Any) -> None:
    visit = pages.Visit(browser, site, mathematics=False)
    tab = visit.open(f"{page}.html")
    figures = [figure for figure in tab.query_selector_all(MOVABLE) if figure.is_visible()]
    assert figures
    for figure in figures:
        control, said = figure.query_selector("input[type=range]"), figure.query_selector("output")
        at, most = (int(control.input_value()), int(control.get_attribute("max")))
        step, back = ("ArrowRight", -1) if at < most else ("ArrowLeft", 1)
        before = said.inner_text(), figure.evaluate(DRAWN)
        control.focus()
        tab.keyboard.press(step)
        after = said.inner_text(), figure.evaluate(DRAWN)
        assert after[0] != before[0] and after[1] != before[1]
        assert control.get_attribute("aria-valuetext") == after[0]
        figure.query_selector(f'button[data-step="{back}"]').click()
        assert (said.inner_text(), figure.evaluate(DRAWN)) == before
    visit.close()
    assert visit.errors == []


@pytest.mark.parametrize("page", _with('btcnb-clusters"'))
def test_clusters_are_chosen_by_key_and_by_mouse(page: str, site: str, browser: Any) -> None:
    visit = pages.Visit(browser, site, mathematics=False)
    tab = visit.open(f"{page}.html")
    for explorer in tab.query_selector_all(".btcnb-clusters"):
        choice, panels = explorer.query_selector("select"), explorer.query_selector_all(":scope > .panel")

        def shown(panels: list[Any] = panels) -> list[int]:
            return [position for position, panel in enumerate(panels) if panel.is_visible()]

        assert shown() == [0] and len(panels) > 1
        choice.focus()
        tab.keyboard.press("ArrowDown")
        assert shown() == [1]
        choice.select_option("0")
        assert shown() == [0]
    visit.close()


@pytest.mark.parametrize("page", _with('btcnb-board"'))
def test_the_scoreboard_is_filtered_by_key_and_by_mouse(page: str, site: str, browser: Any) -> None:
    visit = pages.Visit(browser, site, mathematics=False)
    tab = visit.open(f"{page}.html")
    rows = tab.locator(".btcnb-board tbody tr:visible")
    everything, choice = rows.count(), tab.locator(".btcnb-board select").first
    choice.focus()
    tab.keyboard.press("ArrowDown")
    chosen = choice.input_value()
    fewer = rows.count()
    assert 0 < fewer < everything
    tab.locator(".btcnb-board button").first.click()
    assert rows.count() == everything
    choice.select_option(chosen)
    assert rows.count() == fewer
    visit.close()
