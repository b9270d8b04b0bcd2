"""Summaries as tables: text for a terminal, Markdown, LaTeX, CSV."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import pandas as pd

from btcnb import gates

_SPECIAL = {
    "\\": r"\textbackslash{}",
    **{mark: f"\\{mark}" for mark in "&%$#_{}"},
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
}


def table(summary: pd.DataFrame, form: str = "text", against: str = "") -> str:
    """A summary (see `summary`) with a line for each row; CSV keeps one for each row and metric, with all digits.

    Where the summary holds differences from the row `against`, each metric has a second column: the difference, and its
    95 % interval in brackets.
    """
    gates.choice("form", form, FORMS)
    if form == "csv":
        return summary.to_csv(index=False, lineterminator="\n")
    return FORMS[form](_cells(summary, against))


def _cells(summary: pd.DataFrame, against: str) -> list[list[str]]:
    metrics = list(dict.fromkeys(summary["metric"]))
    compared = "difference" in summary.columns
    head = ["row", "n"]
    for metric in metrics:
        head += [metric, f"{metric} − {against}"] if compared else [metric]
    cells = [head]
    for row in dict.fromkeys(summary["row"]):
        lines = summary[summary["row"] == row].set_index("metric")
        cell = [str(row), str(int(lines["n"].max()))]
        for metric in metrics:
            line = lines.loc[metric]
            cell.append(_spread(line["mean"], line["sd"]))
            if compared:
                own = row == against
                cell.append("" if own else _interval(line["difference"], line["low"], line["high"]))
        cells.append(cell)
    return cells


def _spread(mean: float, sd: float) -> str:
    if math.isnan(mean):
        return "–"
    return _number(mean) if math.isnan(sd) else f"{_number(mean)} ± {_number(sd)}"


def _interval(difference: float, low: float, high: float) -> str:
    if math.isnan(difference):
        return "–"
    return _number(difference, "+") + ("" if math.isnan(low) else f" [{_number(low, '+')}, {_number(high, '+')}]")


def _number(value: float, sign: str = "") -> str:
    digits = 3 if abs(value) < 10 else 1 if abs(value) < 10_000 else 0
    return format(value, f"{sign},.{digits}f")


def _text(cells: Sequence[Sequence[str]]) -> str:
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = ("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) for line in cells)
    return "".join(f"{line.rstrip()}\n" for line in lines)


def _markdown(cells: Sequence[Sequence[str]]) -> str:
    rule = ["---", *("---:" for _ in cells[0][1:])]
    escaped = [[cell.replace("|", r"\|") for cell in line] for line in cells]
    return "".join(f"| {' | '.join(line)} |\n" for line in (escaped[0], rule, *escaped[1:]))


def _latex(cells: Sequence[Sequence[str]]) -> str:
    lines = [" & ".join(map(_escaped, line)) + r" \\" for line in cells]
    columns = "l" + "r" * (len(cells[0]) - 1)
    parts = [
        rf"\begin{{tabular}}{{{columns}}}",
        r"\hline",
        lines[0],
        r"\hline",
        *lines[1:],
        r"\hline",
        r"\end{tabular}",
    ]
    return "\n".join(parts) + "\n"


def _escaped(cell: str) -> str:
    plain = "".join(_SPECIAL.get(mark, mark) for mark in cell)
    return plain.replace("±", r"$\pm$").replace("−", "$-$").replace("–", "--")


FORMS: dict[str, Callable[[Sequence[Sequence[str]]], str]] = {
    "text": _text,
    "markdown": _markdown,
    "latex": _latex,
    "csv": _text,
}
