"""Questions that the book asks beyond the paper, read from `questions.yml`; rules answer them as they judge claims."""

from __future__ import annotations

import datetime
import functools
import re
from dataclasses import dataclass
from pathlib import Path

import yaml

from btcnb import gates
from btcnb.errors import DataError, ParameterError
from btcnb.paper.claims import Claim
from btcnb.paper.kinds import Chapter, Definition, Later, Rule
from btcnb.paper.reader import Fields, read_rule
from btcnb.paper.records import Frames
from btcnb.paper.rules import NOT, PARTLY, REPRODUCED, UNTESTED, Judgement, judge
from btcnb.store import note_read

FILE = Path(__file__).with_name("questions.yml")
ANSWERS = {REPRODUCED: "yes", PARTLY: "in part", NOT: "no", UNTESTED: UNTESTED}
"""What a verdict of the rules is called where nobody has claimed anything."""


@dataclass(frozen=True)
class Question:
    """A question, and the rule that answers it with yes, in part or no."""

    id: str
    chapter: str
    question: str
    rule: Rule
    decided: datetime.date
    """day on which the rule was written"""


@dataclass(frozen=True)
class Answer:
    """The answer to a question, the numbers behind it, and the rule in words."""

    question: Question
    answer: str
    judgement: Judgement


def questions(chapter: str) -> tuple[Question, ...]:
    """The questions of a chapter (`"17"`), in the order of the file."""
    note_read(FILE)
    found = tuple(each for each in _table(FILE) if each.chapter == gates.text("chapter", chapter))
    if not found:
        raise ParameterError(f"chapter {chapter!r:.80} asks no question; there are some in {_chapters()}.")
    return found


def answer(question: Question, frames: Frames) -> Answer:
    """Answer a question by its rule, on the records that `frames(grid)` gives."""
    gates.instance("question", question, Question)
    asked = Claim(
        question.id, "", question.question, "", "both", "medium", False, question.chapter, question.rule,
        question.decided,
    )  # fmt: skip
    found = judge(asked, frames)
    return Answer(question, ANSWERS[found.verdict], found)


def read(content: object) -> tuple[Question, ...]:
    """Questions, from what the YAML file holds; anything unknown, missing or twice there is refused."""
    fields = Fields.of("questions.yml", content)
    decided = fields.take("decided")
    fields.take("rows", {})  # lists that rules share by YAML's anchors
    found = tuple(_question(position, entry, decided) for position, entry in enumerate(fields.items("questions")))
    fields.done()
    ids = [each.id for each in found]
    if len(set(ids)) < len(ids):
        raise DataError(FILE.name, "id", "stands there twice", "give each question an id of its own")
    return found


def _question(position: int, entry: object, decided: object) -> Question:
    fields = Fields.of(f"questions[{position}]", entry)
    fields.name = id = fields.text("id")
    if not re.fullmatch(r"Q\d{3}", id):
        raise fields.wrong("id", id, "write Q and three digits")
    day = fields.take("decided", decided)
    if not isinstance(day, datetime.date):
        raise fields.wrong("decided", day, "give a date such as 2026-11-17")
    rule = read_rule(f"{id}.rule", fields.take("rule"))
    if isinstance(rule, Chapter | Later | Definition):
        raise DataError(FILE.name, f"{id}.rule", "looks at no record", "write a rule that records can decide")
    one = Question(id, fields.text("chapter"), fields.text("question"), rule, day)
    fields.done()
    return one


@functools.cache
def _table(path: Path) -> tuple[Question, ...]:
    try:
        return read(yaml.safe_load(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, yaml.YAMLError) as error:
        raise DataError(path, "file", f"cannot be read ({error!s:.200})", "mend it") from None


def _chapters() -> str:
    return ", ".join(sorted({each.chapter for each in _table(FILE)}))
