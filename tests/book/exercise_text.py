"""The exercises of a chapter, read from its text: statement, hint, self-check, solution."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CHAPTERS = sorted((ROOT / "notebooks").glob("[0-9][0-9]_*.md"))
_EXERCISE = re.compile(
    r"^(?P<fence>`{3,}){exercise}[^\n]*\n:label: (?P<label>\S+)\n(?P<body>.*?)^(?P=fence)$", re.S | re.M
)
_SOLUTION = r"^(?P<fence>`{{3,}}){{solution-start}} {label}$(?P<body>.*?)^(?P=fence){{solution-end}}$"
_CODE = re.compile(r"^```{code-cell}[^\n]*\n(.*?)^```$", re.S | re.M)


@dataclass(frozen=True)
class Exercise:
    """`between` is what stands between the statement and the solution: the hint and the self-check."""

    label: str
    statement: str
    between: str
    solution: str

    @property
    def discussed(self) -> bool:
        return "*To discuss: no self-check.*" in self.statement

    @property
    def solution_code(self) -> str:
        return "\n".join(_CODE.findall(self.solution))

    @property
    def solution_prose(self) -> str:
        return _CODE.sub("", self.solution)


def exercises(path: Path) -> list[Exercise]:
    text = path.read_text(encoding="utf-8")
    found = []
    for match in _EXERCISE.finditer(text):
        gate = re.compile(_SOLUTION.format(label=re.escape(match["label"])), re.S | re.M).search(text, match.end())
        between = text[match.end() : gate.start()] if gate else ""
        found.append(Exercise(match["label"], match["body"], between, gate["body"] if gate else ""))
    return found
