"""Configuration classes: frozen dataclasses that pydantic checks, with errors that name the field and the remedy.

    @configuration
    class Training:
        epochs: Annotated[Whole, Field(ge=0)] = 250
        alpha: Annotated[Real, Field(ge=0, le=1)] = 0.5
        negatives: Literal["uniform", "mixture"] = "uniform"

    Training(epochs=-1)        # ParameterError: epochs is -1: input should be greater than or equal to 0.

Instances are ordinary dataclasses: `dataclasses.replace`, `asdict` and `fields` work, and `replace` checks again.
"""

from __future__ import annotations

import functools
from typing import Annotated, Any, TypeVar, dataclass_transform

import numpy as np
from pydantic import BeforeValidator, ConfigDict, Field, ValidationError
from pydantic.dataclasses import dataclass

from btcnb.errors import ParameterError

T = TypeVar("T")


def _number(value: Any) -> Any:
    """Pydantic reads True as 1 and "3" as 3; a parameter of that kind is a slip."""
    if isinstance(value, bool | np.bool_ | str | bytes):
        raise ValueError("input should be a number")
    return value


def _flag(value: Any) -> Any:
    if not isinstance(value, bool | np.bool_):
        raise ValueError("input should be True or False")
    return bool(value)


Whole = Annotated[int, BeforeValidator(_number)]
"""A whole number of any integer type."""
Real = Annotated[float, BeforeValidator(_number), Field(allow_inf_nan=False)]
"""A finite real number."""
Flag = Annotated[bool, BeforeValidator(_flag)]
"""True or False, no number and no text."""


@dataclass_transform(frozen_default=True, field_specifiers=(Field,))
def configuration(cls: type[T]) -> type[T]:
    """Class decorator: a frozen pydantic dataclass whose `ValidationError` becomes one `ParameterError`."""
    made: Any = dataclass(frozen=True, config=ConfigDict(extra="forbid", arbitrary_types_allowed=True))(cls)
    checked = made.__init__

    @functools.wraps(checked)
    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        try:
            checked(self, *args, **kwargs)
        except ValidationError as error:
            raise ParameterError(explained(error)) from None

    made.__init__ = init
    return made  # type: ignore[no-any-return]


def explained(error: ValidationError) -> str:
    """The first problem in one sentence: the field, the value and what is allowed."""
    first = error.errors()[0]
    name = ".".join(str(part) for part in first["loc"]) or error.title
    if first["type"] == "unexpected_keyword_argument":
        return f"{name} is no parameter of {error.title}; check its spelling."
    problem = first["msg"].removeprefix("Value error, ")
    if not first["loc"]:  # a check across fields says it all
        return problem
    return f"{name} is {first['input']!r:.80}: {problem[0].lower()}{problem[1:]}."
