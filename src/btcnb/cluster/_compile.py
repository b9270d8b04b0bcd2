"""numba's compiler, typed: mypy sees a compiled function's own signature and checks who calls it with what."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

from numba import njit

F = TypeVar("F", bound=Callable[..., Any])


def compiled(*, parallel: bool = False, fastmath: bool | set[str] = False) -> Callable[[F], F]:
    """Compile on the first call and keep the machine code beside the source file."""

    def decorate(function: F) -> F:
        return cast(F, njit(function, cache=True, parallel=parallel, fastmath=fastmath))

    return decorate
