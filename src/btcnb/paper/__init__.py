"""The paper as data: every table transcribed once, the numbers its text gives, and its claims with the rules that judge
them.

Each CSV beside this file is one table. A score `DP` has its standard deviation in `DP_sd` and the paper's mark for best
(`**`) and second-best (`*`) in `DP_mark`. All comparisons in the book read these;
no chapter types a number of the paper. `claims.yml` holds the claims; `judge` computes a verdict from records.
"""

from btcnb.paper.checks import balanced_accuracy, disagreements, macro_f1
from btcnb.paper.claims import claim, claims, paper_words
from btcnb.paper.tables import table, tables, value
from btcnb.paper.verdicts import judge
from btcnb.paper.words import rule_words

__all__ = [
    "balanced_accuracy",
    "claim",
    "claims",
    "disagreements",
    "judge",
    "macro_f1",
    "paper_words",
    "rule_words",
    "table",
    "tables",
    "value",
]
