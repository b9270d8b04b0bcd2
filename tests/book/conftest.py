"""One server and one browser for all tests that look at pages."""

from collections.abc import Iterator
from typing import Any

import pages
import pytest


@pytest.fixture(scope="session")
def site() -> Iterator[str]:
    with pages.served(pages.HTML) as address:
        yield address


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    with pages.chromium() as found:
        yield found
