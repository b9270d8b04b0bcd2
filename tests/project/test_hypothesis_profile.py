"""Hypothesis runs without a deadline, and the same way every time in continuous integration."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

CONFTEST = Path(__file__).resolve().parents[1] / "conftest.py"


def test_no_test_has_a_deadline() -> None:
    assert settings().deadline is None

    @given(st.integers())
    def example(x: int) -> None: ...

    assert settings.get_current_profile_name() in {"btcnb", "btcnb-ci", "thorough"}
    example()


@pytest.mark.parametrize(("ci", "same"), [("true", "True"), ("", "False")])
def test_continuous_integration_draws_the_same_examples(ci: str, same: str) -> None:
    code = (
        f"import runpy; runpy.run_path({str(CONFTEST)!r}); "
        "from hypothesis import settings; print(settings().derandomize)"
    )
    environment = {**os.environ, "CI": ci}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == same
