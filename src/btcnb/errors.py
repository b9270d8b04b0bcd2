"""Errors that a user can act on: each one says where, what, and what to do about it."""

from __future__ import annotations

from pathlib import Path


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
