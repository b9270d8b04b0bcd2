"""Public labels of a simulated economy: tidy ones are true and cover all alike, the others are wrong as they say."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from worlds import simulated

from btcnb.data.simulator.parameters import Dial
from btcnb.data.simulator.tables import address_labels
from btcnb.data.simulator.wallets import Registry

SERVICES, HELD = 40, 500


def economy() -> tuple[Registry, np.ndarray]:
    """Forty exchanges and forty users with five hundred addresses each; the owner of every address."""
    registry = Registry()
    for number in range(SERVICES):
        registry.entity("exchange", f"exchange {number}")
    for number in range(SERVICES):
        registry.entity("user", f"user {number}")
    return registry, np.repeat(np.arange(2 * SERVICES), HELD)


def labels(share: float, **rates: float) -> tuple[np.ndarray, np.ndarray]:
    """Label and true name of every address of a service, shape (services, addresses each)."""
    registry, owner = economy()
    dial = Dial(1.0)
    dial.mechanisms = {
        name: replace(mechanism, rate=rates.get(name.replace("-", "_"), 0.0))
        for name, mechanism in dial.mechanisms.items()
    }
    told = address_labels(np.random.default_rng(5), registry, owner, share, dial)
    assert set(told[SERVICES * HELD :]) == {""}  # nobody labels private people
    names = np.array(registry.names, dtype=object)[owner]
    return tuple(text[: SERVICES * HELD].reshape(SERVICES, HELD) for text in (told, names))  # type: ignore[return-value]


def test_tidy_labels_are_true_and_cover_all_services_alike() -> None:
    told, names = labels(0.3)
    labelled = told != ""
    assert (told[labelled] == names[labelled]).all()
    error = np.sqrt(0.3 * 0.7 / HELD)
    assert labelled.mean(axis=1) == pytest.approx(np.full(SERVICES, 0.3), abs=4.5 * error)


def test_aliases() -> None:
    """Half of the services go by two or three names; six of ten of their labels bear the first."""
    told, names = labels(1.0, label_alias=0.5)
    number = np.array([len(set(row)) for row in told])
    assert set(number) == {1, 2, 3}
    assert 10 <= (number > 1).sum() <= 30
    for row, name in zip(told, names[:, 0], strict=True):
        assert set(row) <= {name, f"{name} (b)", f"{name} (c)"}
    several = told[number > 1] == names[number > 1]
    assert several.mean() == pytest.approx(0.6, abs=0.03)


def test_stale_labels_name_another_service() -> None:
    told, names = labels(0.5, label_stale=0.2)
    labelled = told != ""
    assert (told[labelled] != names[labelled]).mean() == pytest.approx(0.2 * (1 - 1 / SERVICES), abs=0.02)
    assert set(told[labelled]) <= set(names.ravel())


def test_biased_coverage_keeps_the_share() -> None:
    told, names = labels(0.3, label_bias=1.5)
    covered = (told != "").mean(axis=1)
    assert covered.mean() == pytest.approx(0.3, abs=0.01)
    assert covered.max() > 0.9
    assert (covered < 0.1).sum() > SERVICES / 4
    assert (told == names)[told != ""].all()


@given(share=st.floats(0.0, 1.0), bias=st.floats(0.0, 3.0))
def test_the_share_of_labels_is_kept_however_biased(share: float, bias: float) -> None:
    """Within 2 % and the noise of 20,000 addresses; the cap at 1 is reached step by step."""
    told, _ = labels(share, label_bias=bias)
    assert (told != "").mean() == pytest.approx(share, abs=0.02)


def test_labels_of_a_simulated_chain() -> None:
    """A tidy chain has true names only; else 3 % (or 6 %) name somebody else, and some services have aliases."""
    stale = {0.0: 0.0, 1.0: 0.03, 2.0: 0.06}
    for disorder, expected in stale.items():
        truth = simulated("quick", disorder=disorder).truth
        assert truth is not None and truth.label is not None
        kind, name = (truth.entities[column].to_numpy()[truth.owner] for column in ("kind", "name"))
        labelled = truth.label != ""
        assert not labelled[kind == "user"].any()
        assert labelled[kind != "user"].mean() == pytest.approx(0.3, abs=0.02)
        plain = np.array([text.split(" (")[0] for text in truth.label[labelled]])
        assert (plain != name[labelled]).mean() == pytest.approx(expected, abs=0.005)
        assert ((plain != truth.label[labelled]).mean() > 0.05) == (disorder > 0)
