"""The paper as data: every table transcribed once, and the numbers its text gives.

Each CSV beside this file is one table. A score `DP` has its standard deviation in `DP_sd` and the paper's mark for best
(`**`) and second-best (`*`) in `DP_mark`. All comparisons in the book read these;
no chapter types a number of the paper.
"""

from btcnb.paper.checks import balanced_accuracy, disagreements, macro_f1
from btcnb.paper.tables import table, tables, value

__all__ = ["balanced_accuracy", "disagreements", "macro_f1", "table", "tables", "value"]
