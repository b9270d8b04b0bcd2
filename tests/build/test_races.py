"""Benchmarks at a glance: which ratio is shown, and how long its bar is."""

from __future__ import annotations

import pytest

from btcnb.build.races import RACES, races_html, results

LINKAGE = {"task": "average linkage", "shape": "clustered", "speed_up": 16.4, "memory_ratio": 59.0}


def test_of_several_sizes_the_largest_counts() -> None:
    found = {"linkage": [{**LINKAGE, "n": 10, "speed_up": 2.0}, {**LINKAGE, "n": 20}, {**LINKAGE, "n": 5}]}
    (one,) = results(found)
    assert (one.race.peer, one.faster, one.leaner) == ("pdist + fastcluster", 16.4, 59.0)


@pytest.mark.parametrize(
    "odd", [{"speed_up": None}, {"memory_ratio": "many"}, {"shape": "bits"}, {"task": "agreement"}]
)
def test_records_that_are_no_race_are_left_out(odd: dict[str, object]) -> None:
    assert results({"linkage": [{**LINKAGE, **odd}], "other": [LINKAGE]}) == []
    assert races_html({"linkage": [{**LINKAGE, **odd}]}) == ""


def test_bars_grow_with_the_logarithm() -> None:
    found = {
        "linkage": [{**LINKAGE, "speed_up": 10.0, "memory_ratio": 100.0}],
        "silhouette": [{"task": "silhouette", "speed_up": 0.5}],
    }
    page = races_html(found)
    assert '<i style="width:50%"></i><b>10 ×</b>' in page and '<i style="width:100%"></i><b>100 ×</b>' in page
    assert '<i style="width:0%"></i><b>0.5 ×</b></td><td>–</td>' in page, "slower is said, and has no bar"
    assert page.count('scope="row"') == 2


def test_every_race_names_its_peer_once() -> None:
    assert len({(race.benchmark, race.where, race.faster) for race in RACES}) == len(RACES)
    assert all(race.what and race.peer and race.faster for race in RACES)
