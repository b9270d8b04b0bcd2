"""Encoders in files: the one that comes with the package, how it was made, and anybody's own.

`encoder.pt` holds weights and settings, nothing that is executed; `encoder.json` beside it says how they were made, how
clusters are refined with them, and the digest by which the two know each other.
"""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass, field, replace
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from btcnb.configuration import configuration
from btcnb.data import Source, load_clusters, load_graph
from btcnb.data.readers.files import MISSHAPEN, reading, replacing
from btcnb.errors import BtcnbError, DataError
from btcnb.experiments.recipe import Recipe, recipe
from btcnb.experiments.refine import Refiner, refined
from btcnb.experiments.stages import trained
from btcnb.learn import Encoder, embed
from btcnb.learn.checkpoints import digest, load_model_and_digest, model_state, save
from btcnb.store import note_read

SHIPPED = Path(__file__).parent / "shipped" / "encoder.pt"
FORMAT = 1
PACKAGES = ("btcnb", "torch", "torch_geometric", "numpy", "numba")


@dataclass(frozen=True)
class Making:
    """How an encoder file is made: trained on simulated economies only, so that it knows nobody's addresses."""

    size: str = "quick"
    """of the economies, and of training"""
    seed: int = 7
    """of economies, initialisation and tuples"""
    changes: dict[str, Any] = field(default_factory=dict)
    """what else differs from the paper's recipe: fields of `recipe`, `supervision` among them"""
    refiner: Refiner = field(default_factory=Refiner)
    """how clusters are refined with it where the user does not say otherwise"""

    def recipe(self) -> Recipe:
        return recipe(Source(size=self.size, seed=self.seed), seed=self.seed, **self.changes)


SHIPPED_BY = Making(changes={"robustness": 0.7}, refiner=Refiner("inputs", "fixed", 0.05))
"""The one place that says how the encoder of the package is made; `btcnb encoder` takes it from here. It is the recipe
that the records of the validation worlds choose (`selection.choose`, chapter 13); a test holds the two together."""


@configuration
class EncoderFile:
    """An encoder ready to embed, with what stands beside it.

    digest:    of the weights and settings
    refiner:   how clusters are refined; None where nothing stands beside the file
    threshold: of the rule `fixed`: λ of the validation economy, or a number somebody chose; None where nobody knows
    made:      how, in plain values
    """

    model: Encoder
    digest: str
    refiner: Refiner | None = None
    threshold: Annotated[float, Field(gt=0, strict=True, allow_inf_nan=False)] | None = None
    made: dict[str, Any] = field(default_factory=dict)


def make_encoder(making: Making = SHIPPED_BY) -> EncoderFile:
    """Train by a recipe; the threshold is the refiner's own, or λ that its units give in the validation economy."""
    wanted = making.recipe()
    model = trained(wanted).model
    threshold = making.refiner.threshold
    if threshold is None:
        rule = Refiner(making.refiner.units, "lambda", None, making.refiner.method)
        groups = load_clusters(wanted.source, "valid", ("common_input",)) if rule.units == "inputs" else None
        graph = load_graph(wanted.source, "valid")
        found = refined(embed(model, graph), graph.labels(), rule, groups, progress=False).threshold
        threshold = found if math.isfinite(found) else None
    made = {
        "recipe": wanted.flat(),
        "trained_on": wanted.source.words,
        "versions": {name: version(name) for name in PACKAGES},
    }
    return EncoderFile(model, digest(model_state(model)), replace(making.refiner, threshold=None), threshold, made)


def write_encoder(encoder: EncoderFile, folder: str | Path) -> Path:
    """Write `encoder.pt` and `encoder.json` into a folder; what stood there is replaced."""
    path = Path(folder) / SHIPPED.name
    refiner = None if encoder.refiner is None else asdict(encoder.refiner)
    state = model_state(encoder.model)
    described = {"format": FORMAT, "digest": digest(state), "threshold": encoder.threshold, "refiner": refiner}
    save(state, path)
    with replacing(path.with_suffix(".json")) as part:
        part.write_text(json.dumps({**described, "made": encoder.made}, indent=1) + "\n", encoding="utf-8")
    return path


def read_encoder(path: str | Path | None = None) -> EncoderFile:
    """The encoder of a file, or of a folder that training or `write_encoder` left; None: that of the package.

    A checkpoint without a JSON file beside it is an encoder without advice on refining.
    """
    place = SHIPPED if path is None else Path(path)
    with reading(place, "path", errors=(OSError, ValueError)):
        if place.is_dir() and (place / SHIPPED.name).is_file():
            place = place / SHIPPED.name
        beside = place.with_suffix(".json") if place.is_file() else None
        described = beside is not None and beside.is_file()
    found = EncoderFile(*load_model_and_digest(note_read(place)))
    return _with_advice(found, beside) if described and beside is not None else found


def _with_advice(found: EncoderFile, path: Path) -> EncoderFile:
    """The encoder with what its JSON file says, if that is about this encoder."""
    remedy = "make both again with `btcnb encoder`"
    try:
        described = json.loads(note_read(path).read_text(encoding="utf-8"))
        if described["format"] != FORMAT:
            raise ValueError(f"format {described['format']!r:.20} is not {FORMAT}")
        advised = replace(found, **{name: described[name] for name in ("refiner", "threshold", "made")})
    except (*MISSHAPEN, BtcnbError) as error:
        problem = f"does not describe an encoder ({str(error)[:160].rstrip('.')})"
        raise DataError(path, "JSON", problem, remedy) from error
    if described.get("digest") != found.digest:
        raise DataError(path, "digest", "belongs to another encoder than the file beside it", remedy)
    return advised
