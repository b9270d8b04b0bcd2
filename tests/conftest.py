"""Settings that all tests share.

Hypothesis has no deadline here: on a busy machine, or while numba compiles, a correct test would miss it. What must be
fast is measured in benchmarks/. In continuous integration (CI=true) the examples are the same in every run; elsewhere
they are new each time. `pytest --hypothesis-profile=thorough` looks ten times harder where a test does
not fix its number of examples.
"""

import gc
import os
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

os.environ.setdefault("MPLBACKEND", "Agg")

_UNHURRIED = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True)
settings.register_profile("btcnb", _UNHURRIED, derandomize=False)
settings.register_profile("btcnb-ci", _UNHURRIED, derandomize=True)
settings.register_profile("thorough", _UNHURRIED, derandomize=False, max_examples=1000)
settings.load_profile("btcnb-ci" if os.environ.get("CI", "").lower() in {"1", "true"} else "btcnb")


def pytest_collection_finish() -> None:
    """Libraries and tests are here to stay: nobody need look for garbage among them, over and over."""
    gc.collect()
    gc.freeze()


TOGETHER = tuple(f"tests/book/test_{name}.py" for name in ("own_data", "rendered", "printed", "slides"))
"""Files whose tests share what takes long to make."""


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """With `--dist loadgroup`, a file of `TOGETHER` goes to one process; other tests go wherever there is time.

    The plugin has marks for that, which this version of pytest does not let it see.
    """
    if config.getoption("dist") != "loadgroup":
        return None
    from xdist.scheduler import LoadScopeScheduling

    class Together(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            file = nodeid.partition("::")[0]
            return file if file in TOGETHER else nodeid

    return Together(config, log)
