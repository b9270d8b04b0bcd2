"""Training: Adam on an objective, a plateau schedule, rotation of graphs, checkpoints, exact resume.

Everything random is derived from (seed, purpose, epoch, step). A resumed run therefore repeats the numbers of an
uninterrupted one from weights, optimiser and schedule alone, and a run leaves torch's global generator as it was.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import torch
from torch import nn
from tqdm import tqdm

from btcnb import gates
from btcnb.data.address_graph import AddressGraph
from btcnb.errors import BtcnbError, DataError, ParameterError
from btcnb.learn import checkpoints
from btcnb.learn.config import TrainConfig
from btcnb.learn.devices import device_of, own_randomness
from btcnb.learn.encoders import Encoder
from btcnb.learn.graphs import PreparedGraph, disjoint_union, prepare
from btcnb.learn.objectives import CoinJoinGraph, CoinJoinPairs, GraphBatches, make_objective
from btcnb.learn.record import flat_record
from btcnb.learn.sampler import derived_seed
from btcnb.store import storable

AnyGraph = AddressGraph | PreparedGraph

INITIALISE, STEP, VALIDATE = 0, 1, 2
"""Purposes that keep the derived seeds of a run apart."""

MAY_CHANGE = ("epochs", "keep", "device", "convolutions")
"""What a resumed run may ask for otherwise: how long, what is handed back, and where it is computed."""

HISTORY = ("epoch", "graph", "train_loss", "valid_loss", "learning_rate", "seconds")


@storable("run")
@dataclass(frozen=True)
class Run:
    """What training hands back.

    model: the encoder in evaluation mode, with the weights `config.keep` asks for
    history: one row per epoch: epoch (from 1), graph (position in the rotation), train_loss, valid_loss,
        learning_rate, seconds
    record: one flat dictionary: configuration, metrics, seconds, peak memory, versions, data fingerprint
    """

    model: Encoder
    config: TrainConfig
    history: pd.DataFrame
    record: dict[str, Any]

    def to_store(self) -> dict[str, Any]:
        """The run as plain values, arrays and a table; nothing of the device it was made on."""
        return {
            "model": self.model.to_store(),
            "config": self.config.to_json(),
            "history": self.history,
            "record": dict(self.record),
        }

    @classmethod
    def from_store(cls, parts: dict[str, Any]) -> Run:
        """The inverse of `to_store`; `DataError` where parts are missing or do not fit together."""
        try:
            model, history, record = parts["model"], parts["history"], parts["record"]
            config = TrainConfig.from_json(parts["config"])
        except (LookupError, TypeError) as error:
            raise DataError("run", "parts", "are not those of a run", "train again") from error
        return cls(Encoder.from_store(model, "run"), config, history, record)


def train(
    config: TrainConfig,
    graphs: AnyGraph | Sequence[AnyGraph],
    valid: AnyGraph | None = None,
    coinjoins: Sequence[CoinJoinGraph] = (),
    directory: str | Path | None = None,
    resume: bool = False,
    progress: bool = True,
) -> Run:
    """Train an encoder.

    graphs: the training graphs, taken in turn, `config.rotate_every` epochs each, or as `config.rotation` says
    valid: the graph whose loss steers the learning rate and picks the best epoch; without it the training loss does
    coinjoins: graphs around one CoinJoin each, for the repulsion term
    directory: where `best.pt` and `last.pt` are kept, written after every epoch
    resume: continue from the directory's `last.pt` (more epochs than before may be asked for)
    progress: show epoch, losses and learning rate while it runs

    It runs where `config.device` says; the model is handed back on the CPU. On the CPU the same configuration gives
    the same numbers on every machine; on a GPU they agree with these up to rounding and the draw of dropout masks.
    """
    gates.instance("config", config, TrainConfig)
    resume, progress = gates.flag("resume", resume), gates.flag("progress", progress)
    if directory is not None:
        gates.instance("directory", directory, (str, Path))  # type: ignore[arg-type]
    trainer = _Trainer(config, graphs, valid, coinjoins, None if directory is None else Path(directory))
    if resume:
        trainer.restore()
    try:
        with _one_thread():
            trainer.run(progress)
    except KeyboardInterrupt:
        raise KeyboardInterrupt(trainer.how_to_resume()) from None
    return trainer.finished()


@contextmanager
def _one_thread() -> Iterator[None]:
    """torch in one thread: steps of this size gain little from more, and sums come out the same on every machine."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _edge_channels(graph: PreparedGraph) -> int:
    return 0 if graph.edge_attr is None else graph.edge_attr.shape[1]


class _Trainer:
    """The state of one run, and the loop over epochs."""

    def __init__(
        self,
        config: TrainConfig,
        graphs: AnyGraph | Sequence[AnyGraph],
        valid: AnyGraph | None,
        coinjoins: Sequence[CoinJoinGraph],
        directory: Path | None,
    ) -> None:
        self.config = config
        self.directory = directory
        self.device = device_of(config)
        listed = [graphs] if isinstance(graphs, AddressGraph | PreparedGraph) else gates.items("graphs", graphs)
        if not listed:
            raise ParameterError("graphs is empty, but training needs at least one graph.")
        self.train = self._training(listed)
        self.valid = None if valid is None else self._batches(valid, "validation graph")
        first = self.train[0].graph
        used = [batches.graph for batches in (*self.train, *([self.valid] if self.valid else []))]
        for graph in used:
            if graph.x.shape[1] != first.x.shape[1]:
                raise DataError("graphs", "features", "graphs differ in width", "prepare all graphs the same way")
        pairs = self._coinjoin_pairs(gates.items("coinjoins", coinjoins))
        self.fingerprint = "+".join(graph.fingerprint for graph in (*used, *([pairs.graph] if pairs else [])))
        with own_randomness(self.device):
            torch.manual_seed(derived_seed(config.seed, INITIALISE))
            self.encoder = Encoder(config, first.x.shape[1], _edge_channels(first))
            self.objective = make_objective(config, pairs)
        for graph in (*used, *([pairs.graph] if pairs else [])):
            self.encoder.require_edge_features(_edge_channels(graph), "graphs")
        self.learnt = nn.ModuleList([self.encoder, self.objective]).to(self.device)
        self.optimiser = torch.optim.Adam(
            self.learnt.parameters(), lr=config.learning_rate, weight_decay=config.weight_decay
        )
        self.schedule = torch.optim.lr_scheduler.ReduceLROnPlateau(
            self.optimiser, factor=config.factor, patience=config.patience
        )
        self.history: list[dict[str, float]] = []
        self.best_loss, self.best_epoch = math.inf, 0
        self.best = checkpoints.model_state(self.encoder)
        self.seconds = 0.0

    def _training(self, listed: Sequence[AnyGraph]) -> list[GraphBatches]:
        """What the rotation goes through: every graph, the first one alone, or all of them as one graph."""
        if self.config.rotation != "joint":
            used = listed[:1] if self.config.rotation == "one" else listed
            return [self._batches(graph, f"training graph {i + 1}") for i, graph in enumerate(used)]
        parts = [self._prepared(graph, f"training graph {i + 1}") for i, graph in enumerate(listed)]
        for field, widths in (
            ("features", {part.x.shape[1] for part in parts}),
            ("edge features", {_edge_channels(part) for part in parts}),
        ):
            if len(widths) > 1:
                raise DataError("graphs", field, "graphs differ in width", "prepare all graphs the same way")
        return [self._batches(disjoint_union(parts)[0], "training graphs side by side")]

    def _batches(self, graph: AnyGraph, name: str) -> GraphBatches:
        return GraphBatches(self._prepared(graph, name), self.config, name)

    def _prepared(self, graph: AnyGraph, name: str) -> PreparedGraph:
        config = self.config
        return prepare(graph, config.symmetrise, config.edge_features, config.landmarks, name, config.unit)

    def _coinjoin_pairs(self, coinjoins: Sequence[CoinJoinGraph]) -> CoinJoinPairs | None:
        if not coinjoins:
            return None
        for item in coinjoins:
            gates.instance("an item of coinjoins", item, CoinJoinGraph)
        prepared = [self._prepared(item.graph, f"CoinJoin graph {i}") for i, item in enumerate(coinjoins)]
        return CoinJoinPairs(prepared, [item.inputs for item in coinjoins], self.config)

    def run(self, progress: bool) -> None:
        """Epochs from where the run stands to `config.epochs`."""
        config = self.config
        done = len(self.history)
        if done == 0:
            self._save()
        with tqdm(total=config.epochs, initial=done, disable=not progress, unit="epoch", desc="training") as bar:
            for epoch in range(done, config.epochs):
                start = time.perf_counter()
                rate = self.optimiser.param_groups[0]["lr"]
                which = (epoch // config.rotate_every) % len(self.train)
                train_loss = self._train_epoch(epoch, self.train[which])
                valid_loss = self._valid_loss() if self.valid else math.nan
                steering = valid_loss if self.valid else train_loss
                self.schedule.step(steering)
                seconds = time.perf_counter() - start
                row = (epoch + 1, which, train_loss, valid_loss, rate, seconds)
                self._close_epoch(dict(zip(HISTORY, row, strict=True)), steering)
                bar.set_postfix(loss=f"{train_loss:.4f}", valid=f"{valid_loss:.4f}", lr=f"{rate:.1e}", refresh=False)
                bar.update()

    def _train_epoch(self, epoch: int, batches: GraphBatches) -> float:
        self.learnt.train()
        total = 0.0
        with own_randomness(self.device):
            for step in range(self.config.steps_per_epoch):
                seed = derived_seed(self.config.seed, STEP, epoch, step)
                torch.manual_seed(seed)  # dropout
                loss = self.objective(self.encoder, batches, seed)
                if not torch.isfinite(loss):
                    raise BtcnbError(
                        f"the loss is {loss.item()} in epoch {epoch + 1}, step {step + 1}; lower learning_rate."
                    )
                self.optimiser.zero_grad()
                loss.backward()
                self.optimiser.step()
                total += loss.item()
        return total / self.config.steps_per_epoch

    def _valid_loss(self) -> float:
        """The objective on the validation graph: no dropout, the same tuples and neighbours at every epoch."""
        assert self.valid is not None
        self.learnt.eval()
        with torch.no_grad():
            losses = [
                self.objective(self.encoder, self.valid, derived_seed(self.config.seed, VALIDATE, step)).item()
                for step in range(self.config.valid_steps)
            ]
        return sum(losses) / len(losses)

    def _close_epoch(self, row: dict[str, float], steering: float) -> None:
        self.history.append(row)
        self.seconds += row["seconds"]
        improved = steering < self.best_loss
        if improved:
            self.best_loss, self.best_epoch = steering, len(self.history)
            self.best = checkpoints.model_state(self.encoder)
        self._save(improved)

    def _save(self, improved: bool = True) -> None:
        if self.directory is None:
            return
        state = checkpoints.model_state(self.encoder) | {
            "objective": self.objective.state_dict(),
            "optimiser": self.optimiser.state_dict(),
            "schedule": self.schedule.state_dict(),
            "history": self.history,
            "best": self.best,
            "best_loss": self.best_loss,
            "best_epoch": self.best_epoch,
            "fingerprint": self.fingerprint,
        }
        if improved:
            checkpoints.save(self.best, self.directory / checkpoints.BEST)
        checkpoints.save(state, self.directory / checkpoints.LAST)

    def restore(self) -> None:
        """Take up `last.pt` of the run's folder; a folder without one is a fresh start."""
        if self.directory is None:
            raise ParameterError("resume is set, but directory is not: name the folder of the run.")
        path = self.directory / checkpoints.LAST
        if not checkpoints.exists(path):
            return
        state = checkpoints.load(path)
        before = TrainConfig.from_json(state["config"])
        for name, value in vars(self.config).items():
            if name not in MAY_CHANGE and getattr(before, name) != value:
                raise ParameterError(
                    f"{name} is {value!r}, but the run in {self.directory} was made with {getattr(before, name)!r}."
                )
        if state.get("fingerprint") != self.fingerprint:
            raise DataError(path, "graphs", "the run was made on other graphs", "give the same graphs, or a new folder")
        try:
            self.encoder.load_state_dict(state["weights"])
            self.objective.load_state_dict(state["objective"])
            self.optimiser.load_state_dict(state["optimiser"])
            self.schedule.load_state_dict(state["schedule"])
            self.history = [{name: row[name] for name in HISTORY} for row in state["history"]]
            self.best, self.best_loss, self.best_epoch = (
                state["best"],
                float(state["best_loss"]),
                int(state["best_epoch"]),
            )
            self.seconds = sum(row["seconds"] for row in self.history)
        except (LookupError, AttributeError, TypeError, ValueError, RuntimeError) as error:
            raise DataError(path, "checkpoint", "its parts do not fit the run", "delete it and train again") from error

    def how_to_resume(self) -> str:
        done = len(self.history)
        if self.directory is None:
            return f"stopped after {done} epochs; nothing was kept, because no directory was given to train()."
        return (
            f"stopped after {done} epochs, which are kept in {self.directory}; "
            f"continue with train(config, graphs, …, directory={str(self.directory)!r}, resume=True)."
        )

    def finished(self) -> Run:
        history = pd.DataFrame(self.history, columns=list(HISTORY))
        history = history.astype({"epoch": "int64", "graph": "int64"})
        state = self.best if self.config.keep == "best" else checkpoints.model_state(self.encoder)
        model = Encoder.from_store(state | {"config": self.config.to_json()})
        metrics = {
            "epochs_run": len(history),
            "best_epoch": self.best_epoch,
            "best_loss": self.best_loss if len(history) else math.nan,
            "train_loss": float(history["train_loss"].iloc[-1]) if len(history) else math.nan,
            "valid_loss": float(history["valid_loss"].iloc[-1]) if len(history) else math.nan,
            "device": str(self.device),  # what `auto` came to
            "convolutions": "compiled" if self.encoder.compiled else "plain",
        }
        return Run(model, self.config, history, flat_record(self.config, metrics, self.seconds, self.fingerprint))
