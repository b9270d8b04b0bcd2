"""One server and one browser for the tests of a file that look at pages.

Not for a whole session: the event loop of the browser's driver runs as long, and tests with loops of their own fail.
"""

from collections.abc import Iterator
from typing import Any

import pages
import pytest


@pytest.fixture(scope="module")
def site() -> Iterator[str]:
    with pages.served(pages.HTML) as address:
        yield address


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with pages.chromium() as found:
        yield found
