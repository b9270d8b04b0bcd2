"""What chapters use to make their pages: the card, tables, boxes, verdicts, exercises, and the style of the figures.

Each name is imported when it is first used: the build, which needs a few of these modules only, starts without
matplotlib and the readers.
"""

import importlib
import warnings
from typing import TYPE_CHECKING, Any

from tqdm import TqdmWarning

if TYPE_CHECKING:  # what a chapter depends on is read from the imports of the code (`btcnb.store.keys`)
    from btcnb import digits, store  # noqa: F401
    from btcnb.book import chapter, exercises, figures, judging, page, reading  # noqa: F401

# A rendered page has no live widgets; without this, whatever imports tqdm.auto prints a warning into the page.
warnings.filterwarnings("ignore", category=TqdmWarning)

_NAMES = {
    "btcnb.book.chapter": "open_chapter whose",
    "btcnb.book.exercises": "check solved",
    "btcnb.book.judging": "Look first_look judged answered",
    "btcnb.book.page": """Row Verdict data_source escape glue in_the_paper leave_out markup power_of_ten recipe record
        show table verdicts""",
    "btcnb.book.reading": "real_data results sweep",
    "btcnb.book.figures": "COLOURS MARKERS PAPER_COLOUR mark_paper",
    "btcnb.digits": "count number",
    "btcnb.store": "kept",
}
_HOMES = {name: module for module, names in _NAMES.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"btcnb.book has no {name!r}")
    value = globals()[name] = getattr(importlib.import_module(_HOMES[name]), name)
    return value


def __dir__() -> list[str]:
    return sorted(_HOMES)
