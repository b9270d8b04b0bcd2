"""Figures as SVG, and the plots that chapters share."""

from __future__ import annotations

import re
from collections.abc import Iterator

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

from btcnb.book.figures import SMALLEST, draw_confusion, draw_verdicts, figure_svg
from btcnb.paper.board import OUTCOMES


@pytest.fixture(autouse=True)
def without_a_window() -> Iterator[None]:
    plt.switch_backend("agg")
    yield
    plt.close("all")


def drawn(points: int = 3, **look) -> Figure:
    figure, ax = plt.subplots(**look)
    ax.scatter(np.arange(points), np.arange(points), color="#1f77b4", label="points")
    ax.set_xlabel("satoshi")
    return figure


def test_equal_figures_give_equal_text_without_a_date():
    assert figure_svg(drawn()) == figure_svg(drawn())
    assert not re.search(r"<dc:date>|20\d\d-\d\d", figure_svg(drawn()))


def test_very_many_points_become_pixels():
    few, many = figure_svg(drawn(100)), figure_svg(drawn(20_000))
    assert "<image" not in few and "<image" in many
    assert len(many) < 200_000


def test_small_letters_of_a_wide_figure_are_enlarged():
    figure = drawn(figsize=(14.8, 3))
    note = figure.axes[0].text(0, 0, "note", fontsize=5)
    large = figure.axes[0].text(0, 1, "large", fontsize=20)
    figure_svg(figure)
    assert note.get_fontsize() == 2 * SMALLEST and large.get_fontsize() == 20


@pytest.mark.parametrize("size", [5, 12])  # letters that are enlarged, and letters that are not
def test_a_figure_is_laid_out_for_its_final_letters_and_keeps_its_engine(size: int):
    figure = drawn(layout="constrained")
    figure.axes[0].set_ylabel("one line\nand another", fontsize=size)
    engine = figure.get_layout_engine()
    figure_svg(figure)
    assert figure.get_layout_engine() is engine
    once = figure.axes[0].get_position().bounds
    figure.draw_without_rendering()
    assert figure.axes[0].get_position().bounds == pytest.approx(once, abs=0.01), "nothing is left to be moved"


def test_bars_are_shares_with_their_counts() -> None:
    counts = pd.DataFrame([[1, 0, 2, 0, 1], [0, 0, 0, 99, 1]], index=["few", "many"], columns=list(OUTCOMES))
    _, ax = plt.subplots()
    draw_verdicts(ax, counts)
    assert [label.get_text() for label in ax.get_yticklabels()] == ["few (4)", "many (100)"]
    told = [text.get_text() for text in ax.texts if text.get_text() not in ("", "0")]
    assert told == ["1", "2", "99", "1"], "the narrow one of 1 % goes without"
    widths = [[bar.get_width() for bar in bars] for bars in ax.containers]
    assert widths == [[25, 0], [0, 0], [50, 0], [0, 99], [25, 1]]
    assert len({(bars[0].get_hatch(), bars[0].get_facecolor()) for bars in ax.containers}) == len(OUTCOMES)
    plt.close()


def test_mistakes_have_another_colour_and_every_count_is_written() -> None:
    _, ax = plt.subplots()
    draw_confusion(ax, np.array([[90, 2, 0], [0, 5, 0], [1, 0, 12_000]]), ["ordinary", "one", "other"])
    (shown,) = ax.images
    signed = shown.get_array()
    assert signed.mask.tolist() == [[True, False, True], [True, False, True], [False, True, False]]
    assert signed[0, 1] == pytest.approx(-0.85) and signed[1, 1] == pytest.approx(0.85)
    red, _, blue, _ = shown.cmap(shown.norm(signed[1, 1]))
    assert blue > red and shown.cmap(shown.norm(signed[0, 1]))[0] > shown.cmap(shown.norm(signed[0, 1]))[2]
    assert sorted(text.get_text() for text in ax.texts if text.get_text()) == ["1", "12,000", "2", "5", "90"]
    assert [label.get_text() for label in ax.get_xticklabels()] == ["ordinary", "one", "other"]


def test_nothing_to_count() -> None:
    _, ax = plt.subplots()
    draw_confusion(ax, np.zeros((2, 2), dtype=int), ["ordinary", "one"])
    assert ax.images[0].get_array().mask.all() and not any(text.get_text() for text in ax.texts)
