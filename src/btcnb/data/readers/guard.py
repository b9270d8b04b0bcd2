"""What malformed data do to the libraries that read them becomes one clear sentence, whatever the reader."""

from __future__ import annotations

import contextlib
import csv
import functools
import inspect
import re
import zipfile
import zlib
from collections.abc import Callable, Iterator
from decimal import DecimalException
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import pyarrow as pa

from btcnb.data.contract import plain
from btcnb.errors import DataError

P = ParamSpec("P")
R = TypeVar("R")

UNREADABLE = (
    AttributeError,
    DecimalException,
    EOFError,
    LookupError,
    MemoryError,
    OSError,
    OverflowError,
    RuntimeError,  # recursion too deep, an encrypted zip, a packing that is not known
    TypeError,
    ValueError,
    csv.Error,
    pa.ArrowException,
    zipfile.BadZipFile,
    zlib.error,
)
"""What the standard library, Arrow and pandas raise on data that are not what they seem."""


BROKEN = (EOFError, OSError, zipfile.BadZipFile, zlib.error)
"""What a packed file raises that is cut short or damaged."""


@contextlib.contextmanager
def reading(
    source: object,
    field: str = "content",
    problem: str = "cannot be read",
    remedy: str = "check or fetch it again",
    errors: tuple[type[Exception], ...] = UNREADABLE,
) -> Iterator[None]:
    """Turn what malformed data raise into a `DataError` that names the source."""
    try:
        yield
    except errors as error:
        reason = plain(error).strip()[:200] or type(error).__name__
        raise DataError(plain(source), field, f"{problem} ({reason})", remedy) from error


def guarded(argument: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """A decorator for public readers and writers: `reading` around the whole call, named by the given argument.

    Last net, behind the checks that know place and field; arguments that do not fit the signature stay TypeErrors.
    """

    def decorated(function: Callable[P, R]) -> Callable[P, R]:
        signature = inspect.signature(function)

        @functools.wraps(function)
        def safe(*args: P.args, **kwargs: P.kwargs) -> R:
            named: Any = signature.bind(*args, **kwargs).arguments.get(argument)
            source = named if isinstance(named, str | Path) and not is_address(named) else argument
            with reading(source):
                return function(*args, **kwargs)

        return safe

    return decorated


def is_address(path: str | Path) -> bool:
    """Whether a text is (or was meant as) a URL, which may hold a password and therefore shows in no message."""
    text = str(path)
    return "://" in text or re.match(r"\s*https?:", text, re.IGNORECASE) is not None or bool(re.search(":.*@", text))
