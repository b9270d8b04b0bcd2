"""Tests of commands in `benchmarks/` import them as the commands import one another, and the builders of tests/data."""

import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT / "benchmarks"), str(ROOT / "tests" / "data")]
