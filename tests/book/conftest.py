"""What a chapter puts on its page, and one server and one browser for the tests of a file that look at pages.

The browser is not for a whole session: its driver's event loop runs as long, and tests with loops of their own fail.
"""

from collections.abc import Iterator
from typing import Any

import pages
import pytest

from btcnb.book import interactive, page


@pytest.fixture(scope="module")
def site() -> Iterator[str]:
    with pages.served(pages.HTML) as address:
        yield address


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with pages.chromium() as found:
        yield found


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """Everything displayed so far, as bundles of forms by their type."""
    bundles: list[dict[str, Any]] = []
    for module in (page, interactive):
        monkeypatch.setattr(module, "display", lambda bundle, raw: bundles.append(bundle))
    return bundles
