"""Interactive figures and the board's filters: read as HTML, and driven in a browser."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pages
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.cluster import hierarchy
from test_board import METHOD, board
from test_drawings import GRAPH

from btcnb.book import interactive
from btcnb.book.board import board_html
from btcnb.book.drawings import neighbourhood
from btcnb.book.interactive import Frame, Panel, dendrogram_html, explorer_html, frame, slider_html
from btcnb.book.reading import BUILD_RECORDS
from btcnb.errors import ParameterError

TREE = np.array([[0, 1, 0.1, 2], [2, 3, 0.2, 2], [4, 5, 0.3, 2], [6, 7, 0.5, 4], [9, 8, 0.9, 6]])


NAMES = list("ABCDEF")


OWNERS = ["u", "u", "u", "v", "v", "v"]


PICTURE = Frame("", "", b"<svg xmlns='http://www.w3.org/2000/svg'/>")


@pytest.fixture(autouse=True)
def without_a_window() -> None:
    plt.switch_backend("agg")


def data_of(page: str) -> Any:
    return json.loads(re.search(r'<script type="application/json">(.*?)</script>', page, re.S)[1])  # type: ignore[index]


def drawn(value: int) -> Frame:
    figure, ax = plt.subplots(figsize=(2, 1))
    ax.plot([0, 1], [0, value])
    return frame(figure, f"value {value}", f"a line that rises to {value}")


@pytest.fixture
def frames() -> list[Frame]:
    return [drawn(value) for value in (1, 2, 3)]


def test_equal_figures_give_equal_bytes_and_are_closed(frames: list[Frame]) -> None:
    assert drawn(2).svg == frames[1].svg != frames[0].svg
    assert not plt.get_fignums()


def test_the_page_carries_every_frame_and_loads_nothing(frames: list[Frame]) -> None:
    page = slider_html(frames, "rise", start=1)
    assert page.count("<img ") == 3 and page.count(" hidden>") == 2
    assert 'alt="a line that rises to 2">' in page  # the visible one
    assert not re.search(r"(src|href)=\"(?!data:)", page)
    assert slider_html(frames, "rise", start=1) == page


def test_labels_cannot_break_out_of_the_page() -> None:
    figure, _ = plt.subplots(figsize=(1, 1))
    page = slider_html([frame(figure, '</script><b>"', '"><script>')], "a & b")
    assert page.count("</script>") == 1 and "<b>" not in page and "a &amp; b" in page


def test_a_slider_opens_at_one_of_its_frames(frames: list[Frame]) -> None:
    for wrong in ([], frames):
        with pytest.raises(ParameterError, match=f"there are {len(wrong)} frames"):
            slider_html(wrong, "rise", start=3)


@pytest.mark.parametrize("in_build", [True, False])
def test_a_notebook_outside_of_a_build_carries_the_script(in_build: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[dict[str, str]] = []
    monkeypatch.setattr(interactive, "display", lambda bundle, raw: shown.append(bundle))
    monkeypatch.setenv(BUILD_RECORDS, "here") if in_build else monkeypatch.delenv(BUILD_RECORDS, raising=False)
    interactive.slider([PICTURE], "rise")
    assert ("function slider(root)" in shown[0]["text/html"]) is not in_build


@given(st.integers(2, 12), st.integers(0, 10_000))
def test_neighbouring_leaves_are_joined_where_scipy_joins_them(n: int, seed: int) -> None:
    """Leaves that stand side by side are of one cluster of a cut if and only if they are joined below it."""
    Z = hierarchy.linkage(np.random.default_rng(seed).normal(size=(n, 3)), "average")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(interactive, "frame", lambda figure, *_: plt.close(figure) or PICTURE)
        data = data_of(dendrogram_html(Z, "t", [str(i) for i in range(n)]))
    order = [int(name) for name in data["names"]]
    for threshold in [*(Z[:, 2] * (1 + 1e-9)), *(Z[:, 2] * (1 - 1e-9))]:
        flat = hierarchy.fcluster(Z, threshold, "distance")[order]
        assert (np.diff(flat) == 0).tolist() == [height < threshold for height in data["joined"]]


def test_a_dendrogram_shows_its_opening_cut_without_scripts() -> None:
    page = dendrogram_html(TREE, "six leaves", NAMES, OWNERS, cut=0.6)
    assert not re.search(r"(src|href)=\"(?!data:)", page) and page.count("<img ") == 1
    assert data_of(page)["groups"] == OWNERS and data_of(page)["cut"] == 0.6
    assert dendrogram_html(TREE, "six leaves", NAMES, OWNERS, cut=0.6) == page
    with pytest.raises(ParameterError, match="6 leaves"):
        dendrogram_html(TREE, "t", NAMES[:5])


def test_names_cannot_break_out_of_the_page() -> None:
    page = dendrogram_html(TREE, "a & <b>", ["</script><i>", *NAMES[1:]], ['"><script>', *OWNERS[1:]])
    assert page.count("</script>") == 1 and "<i>" not in page and "a &amp; &lt;b&gt;" in page


PANELS = [
    Panel(f"cluster <{i}>", np.array([[0, 1, 0.4, 2]]), ["owner a", "owner b"], neighbourhood(GRAPH, [1, 2]))
    for i in range(2)
]


def test_an_explorer_holds_its_clusters_and_stands_without_scripts() -> None:
    page = explorer_html(PANELS, cut=0.3)
    assert data_of(page)["titles"] == ["cluster <0>", "cluster <1>"] and "<0>" not in page
    assert page.count('class="panel"') == page.count("<img ") == 2 and " hidden" not in page


def opened(browser: Any, folder: Path, body: str) -> Any:
    """A tab with the figure and the script of the book."""
    (folder / "page.html").write_text(
        f"<!doctype html><meta charset=utf-8>{body}<script>{interactive.SCRIPT.read_text(encoding='utf-8')}</script>"
    )
    tab = browser.new_page()
    tab.set_default_timeout(pages.PATIENCE)
    tab.goto((folder / "page.html").as_uri())
    return tab


@pytest.mark.book
@pages.needs_browser
def test_arrow_keys_and_buttons_change_the_picture(frames: list[Frame], tmp_path: Path, browser: Any) -> None:
    page = opened(browser, tmp_path, slider_html(frames, "rise"))

    def seen() -> list[str]:
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


@pytest.mark.book
@pages.needs_browser
def test_arrow_keys_and_buttons_move_the_cut(tmp_path: Path, browser: Any) -> None:
    """The six leaves by hand: ((A B)(C D))(E F), merged at 0.1, 0.2, 0.3, 0.5 and 0.9."""
    page = opened(browser, tmp_path, dendrogram_html(TREE, "six leaves", NAMES, OWNERS, cut=0.6))

    def listed() -> list[str]:
        return [item.inner_text() for item in page.query_selector_all("li")]

    def dashed() -> int:
        return int(page.locator('.merge[stroke-dasharray="5 3"]').count())

    before = page.inner_html("svg")
    assert page.inner_text("output") == "λ = 0.700: 2 clusters, 1 merge above the cut" and dashed() == 1
    assert listed() == ["Cluster 1, 4 leaves [3 × u, 1 × v]: A, B, C, D", "Cluster 2, 2 leaves [2 × v]: E, F"]
    assert page.locator("img").count() == 0 and page.locator(".leaf").count() == page.locator(".owner").count() == 6
    assert {"A · u", "F · v"} <= {text.text_content() for text in page.query_selector_all("svg text")}
    squares = [square.get_attribute("fill") for square in page.query_selector_all(".owner")]
    assert len(set(squares[:3])) == len(set(squares[3:])) == 1 and squares[0] != squares[3]
    page.focus("input")
    page.keyboard.press("ArrowLeft")
    assert page.inner_text("output") == "λ = 0.400: 3 clusters, 2 merges above the cut" and dashed() == 2
    assert page.inner_html("svg") != before
    page.click("button[aria-label='raise the cut']")
    assert page.inner_html("svg") == before
    page.focus("input")
    page.keyboard.press("End")
    assert page.get_attribute("input", "aria-valuetext") == "λ = 0.936: 1 cluster, 0 merges above the cut"
    page.keyboard.press("Home")
    assert page.inner_text("output") == "λ = 0.050: 6 clusters, 5 merges above the cut" and len(listed()) == 6
    page.close()


@pytest.mark.book
@pages.needs_browser
@pytest.mark.parametrize(
    ("cut", "said"), [(0.0, "0.050"), (0.1, "0.050"), (0.11, "0.150"), (0.9, "0.700"), (2.0, "0.936")]
)
def test_a_dendrogram_opens_at_the_stop_that_parts_as_the_cut_does(
    cut: float, said: str, tmp_path: Path, browser: Any
) -> None:
    page = opened(browser, tmp_path, dendrogram_html(TREE, "t", NAMES, cut=cut))
    assert page.inner_text("output").startswith(f"λ = {said}")
    page.close()


@pytest.mark.book
@pages.needs_browser
def test_clusters_are_chosen_and_the_graph_is_painted_like_the_tree(tmp_path: Path, browser: Any) -> None:
    page = opened(browser, tmp_path, explorer_html(PANELS, cut=0.3))
    assert [option.inner_text() for option in page.query_selector_all("option")] == ["cluster <0>", "cluster <1>"]
    assert [panel.is_visible() for panel in page.query_selector_all(".panel")] == [True, False]
    page.focus("select")
    page.keyboard.press("ArrowDown")
    assert [panel.is_visible() for panel in page.query_selector_all(".panel")] == [False, True]
    panel = page.query_selector_all(".panel")[1]

    def colours(mark: str) -> list[str]:
        return [dot.get_attribute("fill") for dot in panel.query_selector_all(mark)]

    assert colours(".node") == colours(".leaf") and len(set(colours(".leaf"))) == 2
    panel.query_selector("button[aria-label='raise the cut']").click()
    assert colours(".node") == colours(".leaf") and len(set(colours(".leaf"))) == 1
    page.close()


@pytest.mark.book
@pages.needs_browser
def test_the_board_is_filtered_by_keyboard(tmp_path: Path, browser: Any) -> None:
    page = opened(
        browser, tmp_path, board_html(board({}, {"section": METHOD}, {"section": METHOD, "data": "real"}), {})
    )
    assert page.inner_text("output") == "3 of 3 claims"
    page.focus("select[name=section]")
    page.keyboard.type("3")
    page.wait_for_function("document.querySelector('output').textContent === '2 of 3 claims'")
    page.select_option("select[name=data]", "real")
    assert page.locator("tbody tr:visible").count() == 1 and page.inner_text("output") == "1 of 3 claims"
    page.focus("button")
    page.keyboard.press("Enter")
    page.wait_for_function("document.querySelector('output').textContent === '3 of 3 claims'")
    page.close()
