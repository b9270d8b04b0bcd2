"""What chapters use to draw their pages: the card, tables, boxes, verdicts, and the look of the figures."""

import warnings

from tqdm import TqdmWarning

# A rendered page has no live widgets; without this, whatever imports tqdm.auto prints a warning into the page.
warnings.filterwarnings("ignore", category=TqdmWarning)

from btcnb.book.chapter import open_chapter  # noqa: E402
from btcnb.book.needs import whose  # noqa: E402
from btcnb.book.output import Row, Verdict, data_source, glue, in_the_paper, record, show, table, verdicts  # noqa: E402
from btcnb.book.reading import real_data, results  # noqa: E402
from btcnb.book.style import COLOURS, MARKERS, PAPER_COLOUR, mark_paper, plot_style  # noqa: E402
from btcnb.book.text import Markup, escape, markup, number  # noqa: E402
from btcnb.store import kept  # noqa: E402

__all__ = [
    "COLOURS",
    "MARKERS",
    "PAPER_COLOUR",
    "Markup",
    "Row",
    "Verdict",
    "data_source",
    "escape",
    "glue",
    "in_the_paper",
    "kept",
    "mark_paper",
    "markup",
    "number",
    "open_chapter",
    "plot_style",
    "real_data",
    "record",
    "results",
    "show",
    "table",
    "verdicts",
    "whose",
]
