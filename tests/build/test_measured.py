"""Numbers in prose pages come from the benchmarks' records."""

import json
from pathlib import Path

import pytest

from btcnb.build.errors import UsageError
from btcnb.build.measured import fill

ROWS = [
    {"shape": "tight", "n": 20000, "stage": "ours", "speed_up": 16.44, "seconds": 2.1},
    {"shape": "tight", "n": 20000, "stage": "their own", "speed_up": 16.44, "seconds": 35.1},
    {"shape": "loose", "n": 65000, "stage": "ours", "seconds": 23.0},
]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "linkage.json").write_text(json.dumps(ROWS))
    return tmp_path


@pytest.mark.parametrize(
    ("text", "made"),
    [
        ("{{ linkage.speed_up }} times", "16.4 times"),
        ("{{ linkage.speed_up | {:.0f} }}", "16"),
        ("{{ linkage.seconds shape=loose | {:.1f} }} s", "23.0 s"),
        ('{{ linkage.seconds stage="their own" | {:.1f} }} s', "35.1 s"),
        ("{{linkage.n shape=loose}} rows", "65,000 rows"),
        ("see {{ repository }}", "see https://x"),
        ("{{ something else }} and {one}", "{{ something else }} and {one}"),
    ],
)
def test_marks_are_filled(folder: Path, text: str, made: str) -> None:
    assert fill(text, folder, "page.md", {"repository": "https://x"}) == made


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("{{ linkage.seconds }}", "means 3 numbers"),
        ("{{ linkage.seconds shape=none }}", "means 0 numbers"),
        ("{{ linkage.nothing }}", "means 0 numbers"),
        ("{{ other.seconds }}", "results/benchmarks/other.json cannot be read"),
    ],
)
def test_what_is_not_one_number_is_refused(folder: Path, text: str, problem: str) -> None:
    with pytest.raises(UsageError, match=problem):
        fill(text, folder, "page.md", {})
