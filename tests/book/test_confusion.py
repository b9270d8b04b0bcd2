"""The picture of a confusion matrix."""

import matplotlib.pyplot as plt
import numpy as np
import pytest

from btcnb.book.confusion import RIGHT, WRONG, draw_confusion


@pytest.fixture
def ax():
    fig, ax = plt.subplots()
    yield ax
    plt.close(fig)


def test_mistakes_have_another_colour_and_every_count_is_written(ax):
    counts = np.array([[90, 2, 0], [0, 5, 0], [1, 0, 12_000]])
    draw_confusion(ax, counts, ["ordinary", "one", "other"])
    cells = {}
    for patch in ax.patches:
        x, y = patch.get_xy()
        cells[round(y + 0.5), round(x + 0.5)] = patch.get_facecolor()[:3]
    assert (0, 0) not in cells and (1, 0) not in cells  # the corner, and an empty cell, show the page
    assert np.allclose(1 - np.array(cells[1, 1]), 0.85 * (1 - RIGHT))
    assert np.allclose(1 - np.array(cells[0, 1]), 0.85 * (1 - WRONG))
    assert sorted(text.get_text() for text in ax.texts) == ["1", "12,000", "2", "5", "90"]
    assert [label.get_text() for label in ax.get_xticklabels()] == ["ordinary", "one", "other"]


def test_nothing_to_count(ax):
    draw_confusion(ax, np.zeros((2, 2), dtype=int), ["ordinary", "one"])
    assert not ax.patches and not ax.texts
