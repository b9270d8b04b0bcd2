"""What chapters use to draw their pages: the card, tables, boxes, verdicts, and the look of the figures.

Each name is imported when it is first used: the build, which needs a few of these modules only, starts without
matplotlib and the readers.
"""

import importlib
import warnings
from typing import TYPE_CHECKING, Any

from tqdm import TqdmWarning

if TYPE_CHECKING:
    from btcnb.book.chapter import open_chapter as open_chapter
    from btcnb.book.checking import check as check
    from btcnb.book.checking import solved as solved
    from btcnb.book.judging import judged as judged
    from btcnb.book.looks import Look as Look
    from btcnb.book.looks import first_look as first_look
    from btcnb.book.needs import whose as whose
    from btcnb.book.output import Row as Row
    from btcnb.book.output import Verdict as Verdict
    from btcnb.book.output import data_source as data_source
    from btcnb.book.output import glue as glue
    from btcnb.book.output import in_the_paper as in_the_paper
    from btcnb.book.output import record as record
    from btcnb.book.output import show as show
    from btcnb.book.output import table as table
    from btcnb.book.output import verdicts as verdicts
    from btcnb.book.reading import real_data as real_data
    from btcnb.book.reading import results as results
    from btcnb.book.style import COLOURS as COLOURS
    from btcnb.book.style import MARKERS as MARKERS
    from btcnb.book.style import PAPER_COLOUR as PAPER_COLOUR
    from btcnb.book.style import mark_paper as mark_paper
    from btcnb.book.style import plot_style as plot_style
    from btcnb.book.telling import power_of_ten as power_of_ten
    from btcnb.book.telling import recipe as recipe
    from btcnb.book.text import Markup as Markup
    from btcnb.book.text import escape as escape
    from btcnb.book.text import markup as markup
    from btcnb.digits import count as count
    from btcnb.digits import number as number
    from btcnb.store import kept as kept

# A rendered page has no live widgets; without this, whatever imports tqdm.auto prints a warning into the page.
warnings.filterwarnings("ignore", category=TqdmWarning)

_NAMES = {
    "btcnb.book.chapter": "open_chapter",
    "btcnb.book.checking": "check solved",
    "btcnb.book.judging": "judged",
    "btcnb.book.looks": "Look first_look",
    "btcnb.book.needs": "whose",
    "btcnb.book.output": "Row Verdict data_source glue in_the_paper record show table verdicts",
    "btcnb.book.reading": "real_data results",
    "btcnb.book.style": "COLOURS MARKERS PAPER_COLOUR mark_paper plot_style",
    "btcnb.book.telling": "power_of_ten recipe",
    "btcnb.book.text": "Markup escape markup",
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
