"""The dendrogram with a movable cut, read as HTML and driven in a browser."""

from __future__ import annotations

import re

import numpy as np
import pages
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.cluster import hierarchy

from btcnb.book.interactive_dendrogram import dendrogram_html, describe, levels, summary
from btcnb.errors import ParameterError

# ((A B)(C D))(E F)
TREE = np.array([[0, 1, 0.1, 2], [2, 3, 0.2, 2], [4, 5, 0.3, 2], [6, 7, 0.5, 4], [9, 8, 0.9, 6]])
NAMES = list("ABCDEF")
OWNERS = ["u", "u", "u", "v", "v", "v"]


def test_levels_of_six_leaves_by_hand():
    found = levels(TREE, range(6))
    assert [level.runs for level in found] == [[1] * 6, [2, 1, 1, 1, 1], [2, 2, 1, 1], [2, 2, 2], [4, 2], [6]]
    assert [round(level.threshold, 3) for level in found] == [0.05, 0.15, 0.25, 0.4, 0.7, 0.936]
    assert summary(found[4], TREE) == "λ = 0.700: 2 clusters, 1 merge above the cut"
    assert describe(found[4], NAMES, OWNERS) == [
        "Cluster 1, 4 leaves [3 × u, 1 × v]: A, B, C, D",
        "Cluster 2, 2 leaves [2 × v]: E, F",
    ]


def test_merges_at_one_height_are_one_step():
    tied = TREE.copy()
    tied[:3, 2] = 0.2
    assert [level.runs for level in levels(tied, range(6))] == [[1] * 6, [2, 2, 2], [4, 2], [6]]


@given(st.integers(2, 30), st.integers(0, 10_000))
def test_runs_are_scipys_flat_clusters(n, seed):
    Z = hierarchy.linkage(np.random.default_rng(seed).normal(size=(n, 3)), "average")
    order = hierarchy.leaves_list(Z)
    for level in levels(Z, order):
        flat = hierarchy.fcluster(Z, level.threshold, "distance")[order]
        changes = np.flatnonzero(np.diff(flat)) + 1
        assert level.runs == np.diff([0, *changes, n]).tolist()


def test_the_page_opens_at_the_cut_loads_nothing_and_reads_without_scripts():
    page = dendrogram_html(TREE, "six leaves", NAMES, OWNERS, cut=0.6)
    assert not re.search(r"(src|href)=|https?://", page)
    assert 'value="4"' in page and "<noscript>" in page
    static = page.split("<script>")[0]
    assert static.count('class="leaf"') == 6 and static.count('class="merge"') == 5
    assert static.count('stroke-dasharray="5 3"') == 1 and "<li>Cluster 2, 2 leaves [2 × v]: E, F</li>" in static
    squares = re.findall(r'class="owner"[^>]*fill="([^"]+)"', static)
    assert len(squares) == 6 and len(set(squares[:3])) == len(set(squares[3:])) == 1 and squares[0] != squares[3]
    assert ">A · u</text>" in static and ">F · v</text>" in static
    assert dendrogram_html(TREE, "six leaves", NAMES, OWNERS, cut=0.6) == page
    for cut, position in ((0.0, 0), (0.1, 0), (0.11, 1), (0.9, 4), (2.0, 5)):
        assert f'value="{position}"' in dendrogram_html(TREE, "t", NAMES, cut=cut)


def test_names_cannot_break_out_of_the_page():
    page = dendrogram_html(TREE, "a & <b>", ["</script><i>", *NAMES[1:]], ['"><script>', *OWNERS[1:]])
    assert page.count("</script>") == 1 and "<i>" not in page and "a &amp; &lt;b&gt;" in page


def test_impossible_drawings_are_refused():
    with pytest.raises(ParameterError, match="6 leaves"):
        dendrogram_html(TREE, "t", NAMES[:5])
    with pytest.raises(ParameterError, match="heights"):
        dendrogram_html(TREE[:, [0, 1, 2, 3]] * [1, 1, -1, 1], "t", NAMES)
    with pytest.raises(ParameterError, match="2 to 200"):
        dendrogram_html(np.zeros((300, 4)), "t", ["x"] * 301)


@pytest.mark.book
@pages.needs_browser
def test_arrow_keys_and_buttons_move_the_cut(tmp_path, browser):
    page_file = tmp_path / "dendrogram.html"
    body = dendrogram_html(TREE, "six leaves", NAMES, OWNERS, cut=0.6)
    page_file.write_text(f"<!doctype html><meta charset=utf-8>{body}")
    page = browser.new_page()
    page.set_default_timeout(pages.PATIENCE)
    page.goto(page_file.as_uri())
    before = page.inner_html("svg")
    assert page.inner_text("output").startswith("λ = 0.700: 2 clusters")
    page.focus("input")
    page.keyboard.press("ArrowLeft")
    assert page.inner_text("output").startswith("λ = 0.400: 3 clusters, 2 merges above")
    assert [item.inner_text() for item in page.query_selector_all("li")][1].startswith("Cluster 2, 2 leaves")
    assert page.inner_html("svg") != before and page.locator('.merge[stroke-dasharray="5 3"]').count() == 2
    page.click("button[aria-label='raise the cut']")
    assert page.inner_html("svg") == before  # the script repaints exactly what was drawn without it
    page.keyboard.press("Tab")
    page.focus("input")
    page.keyboard.press("End")
    assert page.get_attribute("input", "aria-valuetext").startswith("λ = 0.936: 1 cluster, 0 merges")
    assert page.locator("li").count() == 1
    page.close()
