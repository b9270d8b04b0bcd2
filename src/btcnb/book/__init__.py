"""What chapters use to draw their pages: the card, tables, boxes, verdicts, and the look of the figures."""

from btcnb.book.chapter import open_chapter
from btcnb.book.output import Row, Verdict, data_source, glue, in_the_paper, number, record, show, table, verdicts
from btcnb.book.style import COLOURS, MARKERS, PAPER_COLOUR, mark_paper, plot_style
from btcnb.cache import cached as cache

__all__ = [
    "COLOURS",
    "MARKERS",
    "PAPER_COLOUR",
    "Row",
    "Verdict",
    "cache",
    "data_source",
    "glue",
    "in_the_paper",
    "mark_paper",
    "number",
    "open_chapter",
    "plot_style",
    "record",
    "show",
    "table",
    "verdicts",
]
