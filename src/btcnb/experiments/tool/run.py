"""What `btcnb refine` does: anybody's transactions in, suspicious merges and refined clusters out.

    outcome = refine_source(Request(source="transactions.parquet", price_usd=9000.0))
    write(outcome, "refined")                          # flagged.csv, partition.csv, summary.json, report.html

All of the source is one graph. Nothing is trained, and nothing is written before everything is computed.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from pydantic import Field

from btcnb.configuration import configuration
from btcnb.data import AddressGraph, feature_names
from btcnb.data.tables import plain
from btcnb.errors import DataError, ParameterError
from btcnb.experiments.encoder import EncoderFile, read_encoder
from btcnb.experiments.refine import Refined, Refiner, Units, refined
from btcnb.experiments.stages import StageTimer
from btcnb.experiments.tool.source import Material, Missing, SourceData, material, read_source
from btcnb.learn import Encoder, embed
from meanlink.progress import Progress

STAGES = {
    "read": "reading the source",
    "graph": "clusters and graph",
    "embed": "embedding the addresses",
    "trees": "trees inside clusters",
    "write": "writing",
}
RULES = ("fixed", "lambda", "local")


@configuration
class Request:
    """What the user asks for; None: what the encoder's own file says.

    source:    path of transactions of any kind that `btcnb.data` reads, or of a release with one graph
    clusters:  CSV or Parquet file with the columns address and cluster; None: heuristic clusters
    missing:   what becomes of addresses that this file does not name, "refuse" or "alone"
    encoder:   a checkpoint; None: the one of the package
    threshold: a number, or a rule: "fixed" (the number that comes with the encoder), "lambda", "local"
    units:     leaves of the trees, "addresses" or "inputs"
    price_usd: USD for one bitcoin; None: the paper's where the blocks are the paper's
    """

    source: str | Path
    clusters: str | Path | None = None
    missing: Missing = "refuse"
    encoder: str | Path | None = None
    threshold: float | str | None = None
    units: Units | None = None
    price_usd: Annotated[float, Field(gt=0, le=1e9)] | None = None


@dataclass(frozen=True)
class Outcome:
    """Everything that was found, for `write` and for whoever looks on."""

    request: Request
    refiner: Refiner
    encoder: EncoderFile
    kind: str
    blocks: tuple[int, int]
    transactions: int | None
    price_usd: float | None
    material: Material
    found: Refined
    notes: tuple[str, ...]
    timer: StageTimer

    def counts(self) -> dict[str, int | None]:
        """Numbers of things, before and after."""
        sizes = np.bincount(self.material.labels)
        sizes = sizes[sizes > 0]
        return {
            "transactions": self.transactions,
            "addresses": len(self.material.names),
            "edges": self.material.graph.num_edges,
            "clusters": len(sizes),
            "clusters_of_several": int((sizes > 1).sum()),
            "largest_cluster": int(sizes.max()),
            "leaves": len(self.found.leaf_sizes),
            "merges": len(self.found.forest.merges),
            "flagged": len(self.found.flagged),
            "clusters_flagged": int(self.found.flagged["cluster"].nunique()),
            "refined_clusters": int(self.found.partition.max()) + 1,
            "zero_rows": self.found.zero_rows,
            "unused_addresses": self.material.unused,
            "addresses_alone": self.material.alone,
        }


def refine_source(request: Request, tell: Callable[[str], None] | None = None, progress: Progress = False) -> Outcome:
    """Read, cluster, embed, grow and cut; `tell` hears one line at the beginning of a stage and one at its end.

    progress: as in `btcnb.cluster.dendrograms`, for the longest stage
    """
    tell = tell or (lambda line: None)
    encoder, timer, notes = read_encoder(request.encoder), StageTimer(), list[str]()
    refiner = chosen(encoder, request)
    with stage("read", timer, tell), _noted(notes, request.source):
        data = read_source(request.source)
        refiner = _possible(data, refiner, request, notes)
        price = _price(data, encoder.model, request)
        number = None if data.transactions is None else len(data.transactions)
        amount = "no" if number is None else f"{number:,}"
        tell(f"      {amount} transactions ({data.kind}), blocks {_span(data.blocks)}")
    kind, blocks = data.kind, data.blocks
    with stage("graph", timer, tell):
        ready = material(data, price, request.clusters, request.missing, with_groups=refiner.units == "inputs")
        del data  # a million addresses come with a gigabyte of transactions
        tell(f"      {len(ready.names):,} addresses, {ready.graph.num_edges:,} edges, {len(ready.titles):,} clusters")
    notes += _about(ready)
    with stage("embed", timer, tell):
        X = embed(encoder.model, _seen_by(encoder.model, ready.graph))
    with stage("trees", timer, tell), warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # rows without direction are counted, and noted below
        found = refined(X, ready.labels, refiner, ready.groups, progress)
        tell(f"      {len(found.flagged):,} of {len(found.forest.merges):,} merges flagged, λ = {found.threshold:.4g}")
    if found.zero_rows:
        notes.append(f"{found.zero_rows:,} leaves have no embedding: nothing is known about them or their neighbours.")
    if math.isinf(found.threshold):
        notes.append("No cluster was large enough to find a threshold, so nothing was split.")
    for note in notes:
        tell(f"note: {note}")
    return Outcome(request, refiner, encoder, kind, blocks, number, price, ready, found, tuple(notes), timer)


@contextmanager
def stage(name: str, timer: StageTimer, tell: Callable[[str], None]) -> Iterator[None]:
    """Time a stage, and say when it begins and what it took."""
    tell(f"[{list(STAGES).index(name) + 1}/{len(STAGES)}] {STAGES[name]} …")
    with timer(name):
        yield
    tell(f"      {timer.seconds[name]:.1f} s, {timer.peak_mb[name] / 1024:.2f} GB at most")


def chosen(encoder: EncoderFile, request: Request) -> Refiner:
    """The recipe: what the encoder's file says, changed by the request."""
    base = encoder.refiner or Refiner()
    units = base.units if request.units is None else request.units
    asked = request.threshold
    if isinstance(asked, str) and asked not in RULES:
        raise ParameterError(f"threshold is {asked!r:.80}, but must be a number or one of {', '.join(RULES)}.")
    if asked is not None and not isinstance(asked, str):
        return Refiner(units=units, threshold_rule="fixed", threshold=asked, method=base.method)
    rule: Any = asked or base.threshold_rule
    if asked is None and units != base.units:
        rule = "lambda"  # a number that was found for other leaves means nothing for these
    if rule == "fixed" and encoder.threshold is None:
        raise ParameterError("the encoder comes with no threshold of its own: give --threshold a number, or lambda.")
    threshold = encoder.threshold if rule == "fixed" else None
    return Refiner(units=units, threshold_rule=rule, threshold=threshold, method=base.method)


def _possible(data: SourceData, refiner: Refiner, request: Request, notes: list[str]) -> Refiner:
    """The recipe as far as the source allows it: a release has no transactions, so its leaves are single addresses."""
    if refiner.units != "inputs" or data.transactions is not None:
        return refiner
    if request.units is not None:
        problem = "a release has no transactions, so nobody knows which addresses were spent together"
        raise DataError(request.source, "units", problem, "give --units addresses")
    notes.append("Nobody knows which addresses were spent together, so trees are grown over single addresses.")
    if request.threshold is None or request.threshold == "fixed":
        return Refiner(method=refiner.method)  # a number that was found for other leaves means nothing for these
    return replace(refiner, units="addresses")


def _price(data: SourceData, model: Encoder, request: Request) -> float | None:
    """USD for one bitcoin, which must be known where the encoder learnt to see dollars."""
    price = data.price(request.price_usd)
    if price is None and _sees_dollars(model):
        problem = f"is unknown for blocks {_span(data.blocks)}, and the encoder looks at amounts in dollars"
        raise DataError(request.source, "price of a bitcoin", problem, "give --price-usd, a rough one for those days")
    return price


def _sees_dollars(model: Encoder) -> bool:
    return model.in_channels - model.config.landmarks == len(feature_names(usd=True))


def _seen_by(model: Encoder, graph: AddressGraph) -> AddressGraph:
    """The graph as the encoder knows graphs: without dollars where it never saw any."""
    return graph if _sees_dollars(model) else replace(graph, meta={**graph.meta, "price_usd": None})


def _span(blocks: tuple[int, int]) -> str:
    return f"{blocks[0]:,} to {blocks[1]:,}"


def _about(ready: Material) -> list[str]:
    notes = []
    if ready.unused:
        notes.append(f"{ready.unused:,} addresses of the clusters' file are not in the source and were not used.")
    if ready.alone:
        notes.append(f"{ready.alone:,} addresses of the source are not in the clusters' file; each stands alone.")
    return notes


@contextmanager
def _noted(notes: list[str], source: object) -> Iterator[None]:
    """Collect what our readers warn of, as sentences."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    ours: list[Any] = [entry for entry in caught if entry.category.__module__.startswith("btcnb.")]
    sentences = dict.fromkeys(plain(entry.message).removeprefix(f"{plain(source)}: ") for entry in ours)
    notes += [sentence[:1].upper() + sentence[1:] for sentence in sentences]
