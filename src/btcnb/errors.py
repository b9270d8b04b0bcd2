"""Errors that a user can act on: each one says where, what, and what to do about it."""

from __future__ import annotations

import re
from pathlib import Path

_URL = re.compile(r"(?i)((?<![a-z0-9+.-])[a-z][a-z0-9+.-]{1,30}:/+|(?<!/)//)[^\s'\"]*@")
_LOGIN = re.compile(r"(?<![^\s'\"])[^\s'\":@/]+:[^\s'\"]+@(?=\S)")


class BtcnbError(Exception):
    """Base of every error that btcnb raises on purpose; the command line prints it without a traceback."""


class DataError(BtcnbError):
    """Input data that breaks a contract.

    The message names the source (file, URL or table), the field, what is wrong and the remedy, in one sentence.
    """

    def __init__(self, source: str | Path, field: str, problem: str, remedy: str) -> None:
        self.source = str(source)
        self.field = field
        self.problem = problem
        self.remedy = remedy
        super().__init__(f"{self.source}: {field}: {problem}; {remedy}.")


class ParameterError(BtcnbError):
    """A parameter that is unknown, of the wrong type, or out of range."""


def without_credentials(text: str) -> str:
    """`text` without the `user:password@` of any address in it."""
    return _LOGIN.sub("", _URL.sub(r"\1", text)) if "@" in text else text


def clipped(text: str, most: int = 80) -> str:
    """The beginning of a text, for an error; credentials go first, while they can still be told."""
    text = without_credentials(text)
    return text if len(text) <= most else f"{text[:most]} …"
