"""Pictures of the real graph: drawn from a record, or saying that there is none."""

from __future__ import annotations

from typing import Any

import matplotlib.pyplot as plt
import pytest
from matplotlib.axes import Axes

from btcnb.book.real_pictures import dig, draw_cut_ratios, draw_services, draw_size_shares, draw_structure

NAMES = {"edges a transaction": "edges", "cut ratio overall, %": "cut"}
PAPER = {"edges a transaction": (75.0, 343.0), "cut ratio overall, %": (87.0, 87.0)}
STRUCTURE = {kind: {"edges a transaction": 9.0, "cut ratio overall, %": 95.0} for kind in ("real", "simulated")}
SERVICES = {
    f"pairs of {w} in one cluster, {t}": 3 for w in ("one service", "two services") for t in ("before", "after")
}


@pytest.fixture
def ax() -> Any:
    yield plt.figure().add_subplot()
    plt.close("all")


def words(ax: Axes) -> list[str]:
    return [text.get_text() for text in ax.texts]


def test_a_record_is_dug_into_and_what_is_missing_is_none() -> None:
    assert dig({"a": {"b": 0}}, "a", "b") == 0
    assert dig({"a": 1}, "a", "b") is dig(None, "a") is dig({"a": {}}, "b", "c") is None


def test_structure_shows_both_kinds_and_the_papers_range() -> None:
    axes = plt.figure().subplots(1, 2)
    draw_structure(axes, STRUCTURE, PAPER, NAMES)
    assert [line.get_label() for line in axes[0].lines] == ["real", "simulated"]
    assert axes[0].get_ylim()[1] > 343
    assert "paper: validation graph" in [line.get_label() for line in axes[1].lines]
    draw_structure(axes, None, PAPER, NAMES)
    assert words(axes[0]) == ["not recorded"]
    plt.close("all")


def test_bars_stand_side_by_side_and_a_missing_one_is_left_out(ax: Axes) -> None:
    draw_size_shares(ax, {"real": {"1": 60.0, "2": None}, "simulated": {"1": 50.0, "2": 50.0}})
    assert len(ax.patches) == 4 and words(ax) == ["60", "", "50", "50"]


def test_cut_ratios_have_the_papers_diamonds(ax: Axes) -> None:
    own = {"overall": {"cut ratio, %": 95.0}, "clusters 10-100": {"cut ratio, %": None}}
    draw_cut_ratios(ax, {"real": own, "simulated": own}, {"overall": 87.0, "clusters 10-100": 77.0})
    (diamonds,) = ax.lines
    assert diamonds.get_ydata().tolist() == [87.0, 77.0]  # type: ignore[union-attr]


def test_services_count_pairs_before_and_after(ax: Axes) -> None:
    draw_services(ax, SERVICES)
    assert [patch.get_height() for patch in ax.patches] == [3, 3, 3, 3]  # type: ignore[attr-defined]


def test_without_a_record_every_picture_says_so(ax: Axes) -> None:
    draw_size_shares(ax, None)
    draw_cut_ratios(ax, None, {"overall": 87.0})
    draw_services(ax, None)
    assert words(ax) == ["not recorded"] * 3
