"""Configuration classes refuse wrong fields with one sentence that names the field."""

from __future__ import annotations

import pickle
from dataclasses import FrozenInstanceError, asdict, replace
from typing import Annotated, Any, Literal

import numpy as np
import pytest
from pydantic import Field

from btcnb.configuration import Flag, Real, Whole, configuration
from btcnb.errors import ParameterError


@configuration
class Sample:
    steps: Annotated[Whole, Field(ge=1)] = 3
    share: Annotated[Real, Field(gt=0, lt=1)] = 0.5
    kind: Literal["a", "b"] = "a"
    plain: Flag = False


def test_fields_have_their_types() -> None:
    made = Sample(steps=np.int64(4), share=np.float32(0.25), plain=np.True_)
    assert asdict(made) == {"steps": 4, "share": 0.25, "kind": "a", "plain": True}
    assert [type(value) for value in asdict(made).values()] == [int, float, str, bool]
    assert replace(made, steps=5) == Sample(5, 0.25, "a", True)
    assert pickle.loads(pickle.dumps(made)) == made
    with pytest.raises(FrozenInstanceError):
        made.steps = 7  # type: ignore[misc]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"steps": 0}, "steps is 0: input should be greater than or equal to 1."),
        ({"steps": True}, "steps is True: input should be a number."),
        ({"steps": "5"}, "steps is '5': input should be a number."),
        ({"steps": 1.5}, "steps is 1.5: "),
        ({"share": float("nan")}, "share is nan: input should be a finite number."),
        ({"share": 1}, "share is 1: input should be less than 1."),
        ({"kind": "c"}, "kind is 'c': input should be 'a' or 'b'."),
        ({"plain": 1}, "plain is 1: input should be True or False."),
        ({"stepz": 1}, "stepz is no parameter of Sample; check its spelling."),
    ],
)
def test_a_wrong_field_is_named(given: dict[str, Any], words: str) -> None:
    with pytest.raises(ParameterError) as caught:
        Sample(**given)
    assert str(caught.value).startswith(words)


def test_replace_checks_again() -> None:
    with pytest.raises(ParameterError, match="share"):
        replace(Sample(), share=2.0)
