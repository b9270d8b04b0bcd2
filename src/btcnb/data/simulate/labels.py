"""Public labels: who is known on the chain, under which names, and how wrongly.

Collections of labels cover a few services densely and most hardly at all, know some under two or three names, and name
former owners. At `disorder` 0 every service is covered alike, under its one true name.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from btcnb.data.simulate.disorder import Dial
from btcnb.data.simulate.world import Registry

Array = npt.NDArray[np.int64]

PRIVATE_KINDS = ("user",)
"""Kinds of entities whose addresses are never labelled."""
ALIASES = (2, 3)
"""Names under which a service with several is known."""
FIRST_NAME = 0.6
"""Share of such a service's labels that bear its first name."""


def address_labels(
    rng: np.random.Generator, registry: Registry, owner: Array, label_share: float, dial: Dial
) -> npt.NDArray[np.object_]:
    """A name per address, "" where it is not labelled; shape of `owner` (entity of each address).

    About `label_share` of the addresses of all services are labelled.
    """
    public = np.array([kind not in PRIVATE_KINDS for kind in registry.kinds])
    labelled = public[owner] & (rng.random(len(owner)) < _coverage(rng, public, owner, label_share, dial)[owner])
    names = np.array(registry.names, dtype=object)[owner]
    names = _aliased(rng, names, owner, len(registry.kinds), dial)
    stale = np.flatnonzero(labelled & (rng.random(len(owner)) < dial("label-stale")))
    former = rng.choice(np.flatnonzero(public), size=len(stale))
    names[stale] = np.array(registry.names, dtype=object)[former]
    return np.where(labelled, names, "")


def _coverage(
    rng: np.random.Generator, public: npt.NDArray[np.bool_], owner: Array, share: float, dial: Dial
) -> npt.NDArray[np.float64]:
    """Per entity: the share of its addresses that are labelled; `share` on average over addresses."""
    bias = np.exp(rng.normal(0.0, dial("label-bias"), len(public)))
    held = np.bincount(owner[public[owner]], minlength=len(public)).astype(np.float64)
    low, high = -50.0, 50.0  # logarithm of what all are multiplied with; coverage is capped at 1, so it is searched
    for _ in range(60):
        middle = (low + high) / 2
        mean = float((np.minimum(1.0, bias * np.exp(middle)) * held).sum() / max(held.sum(), 1.0))
        low, high = (middle, high) if mean < share else (low, middle)
    return np.minimum(1.0, bias * np.exp(high))


def _aliased(
    rng: np.random.Generator, names: npt.NDArray[np.object_], owner: Array, entities: int, dial: Dial
) -> npt.NDArray[np.object_]:
    """The names, some replaced by "NAME (b)" or "NAME (c)" for services that go by several."""
    number = np.where(rng.random(entities) < dial("label-alias"), rng.integers(ALIASES[0], ALIASES[1] + 1, entities), 1)
    other = (number[owner] > 1) & (rng.random(len(owner)) >= FIRST_NAME)
    letter = np.where(number[owner] == 3, rng.integers(2, size=len(owner)), 0)
    places = np.flatnonzero(other)
    names = names.copy()
    names[places] = names[places] + np.array([" (b)", " (c)"], dtype=object)[letter[places]]
    return names
