"""Values survive the store as they are, and nothing is executed on the way back."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from btcnb.store.codec import FileSink, StorableError, fingerprint, from_tree, storable, to_tree


@storable("test-point")
@dataclass(frozen=True)
class Point:
    x: float
    tags: tuple[str, ...] = ()


@storable("test-pair")
class Pair(NamedTuple):
    left: np.ndarray
    right: Any


@storable("test-opaque")
class Opaque:
    def __init__(self, weight: np.ndarray) -> None:
        self.weight = weight

    def to_store(self) -> dict[str, Any]:
        return {"weight": self.weight}

    @classmethod
    def from_store(cls, parts: dict[str, Any]) -> Opaque:
        return cls(parts["weight"])


def round_trip(value: Any, folder: Path) -> Any:
    tree = json.loads(json.dumps(to_tree(value, FileSink(folder))))
    return from_tree(tree, folder)


PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.tuples(inner, inner)
        | st.dictionaries(st.text() | st.integers(), inner, max_size=3)
    ),
    max_leaves=12,
)


@given(PLAIN)
def test_plain_values_come_back_equal_and_of_the_same_kind(value: Any) -> None:
    back = round_trip(value, Path("unused"))
    assert back == value
    assert type(back) is type(value)
    assert fingerprint(back) == fingerprint(value)


@given(hnp.arrays(st.sampled_from([np.int8, np.int64, np.float32, np.float64, np.bool_]), hnp.array_shapes(max_side=4)))
def test_equal_arrays_have_equal_fingerprints(value: np.ndarray) -> None:
    assert fingerprint(value) == fingerprint(value.copy(order="F"))
    assert fingerprint(value) != fingerprint(value[np.newaxis])


def test_arrays_tables_and_registered_classes_come_back(tmp_path: Path) -> None:
    table = pd.DataFrame({"n": np.array([1, 2], dtype="int8"), "s": ["a", "b"], "f": [0.5, np.nan]})
    table["o"] = pd.Series(["x", None], dtype=object)
    value = {
        "array": np.arange(6, dtype=np.int32).reshape(2, 3),
        "empty": np.empty((0, 4)),
        "text": np.array(["bc1", "1A"], dtype=object),
        "scalar": np.float32(0.1),
        "nan": float("nan"),
        "point": Point(0.25, ("a", "b")),
        "series": pd.Series([3, 1], name="sizes"),
    }
    back = round_trip(value, tmp_path)
    for name in ("array", "empty", "text"):
        np.testing.assert_array_equal(back[name], value[name])
        assert back[name].dtype == value[name].dtype
    assert back["scalar"] == np.float32(0.1)
    assert isinstance(back["scalar"], np.float32)
    assert np.isnan(back["nan"])
    assert back["point"] == value["point"]
    pd.testing.assert_series_equal(back["series"], value["series"])
    pd.testing.assert_frame_equal(round_trip(table, tmp_path), table)
    pair = round_trip(Pair(np.ones(2), None), tmp_path)
    assert isinstance(pair, Pair)
    assert pair.left.tolist() == [1.0, 1.0]
    assert round_trip(Opaque(np.ones(3)), tmp_path).weight.tolist() == [1.0, 1.0, 1.0]


def test_what_the_store_does_not_know_is_refused_with_its_name(tmp_path: Path) -> None:
    @dataclass
    class Unknown:
        x: int

    with pytest.raises(StorableError, match=r"Unknown is not registered: put @storable"):
        to_tree([Unknown(1)], FileSink(tmp_path))
    with pytest.raises(StorableError, match="does not know"):
        fingerprint(lambda: None)
    with pytest.raises(StorableError, match="has no fields"):
        storable("test-int")(int)
