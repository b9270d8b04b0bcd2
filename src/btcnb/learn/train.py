"""Training: Adam on an objective, a plateau schedule, rotation of graphs, checkpoints, exact resume.

Everything random is derived from (seed, purpose, epoch, step). A resumed run therefore repeats the numbers of an
uninterrupted one from weights, optimiser and schedule alone, and a run leaves torch's global generator as it was.
"""

from __future__ import annotations

import hashlib
import math
import os
import platform
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pandas as pd
import psutil
import torch
from torch import nn
from tqdm import tqdm

from btcnb.data.graph import AddressGraph
from btcnb.errors import BtcnbError, DataError, ParameterError
from btcnb.learn import checkpoints
from btcnb.learn.config import VALID_STEPS, WEIGHT_DECAY, TrainConfig
from btcnb.learn.encoder import Encoder
from btcnb.learn.graphs import PreparedGraph, disjoint_union, prepare
from btcnb.learn.objectives import CoinJoinGraph, CoinJoinPairs, GraphBatches, make_objective
from btcnb.learn.sampler import derived_seed

AnyGraph = AddressGraph | PreparedGraph

INITIALISE, STEP, VALIDATE = 0, 1, 2
"""Purposes that keep the derived seeds of a run apart."""
MAY_CHANGE = ("epochs", "keep", "device")
"""Fields in which a resumed run may differ: how long it runs, what it returns, where it is computed."""
HISTORY = ("epoch", "graph", "train_loss", "valid_loss", "learning_rate", "seconds")
PACKAGES = ("btcnb", "torch", "torch_geometric", "numpy", "numba")


@dataclass(frozen=True)
class Run:
    """The result of training.

    model: the encoder in evaluation mode, with the weights `config.keep` asks for
    history: one row per epoch: epoch (from 1), graph (position in the rotation), train_loss, valid_loss,
        learning_rate, seconds
    record: one flat dictionary: configuration, metrics, seconds, peak memory of the process (MB), versions, a hash of
        the data
    """

    model: Encoder
    config: TrainConfig
    history: pd.DataFrame
    record: dict[str, Any]


def train(
    config: TrainConfig,
    graphs: AnyGraph | Sequence[AnyGraph],
    valid: AnyGraph | None = None,
    coinjoins: Sequence[CoinJoinGraph] = (),
    directory: str | Path | None = None,
    resume: bool = False,
    progress: bool = True,
    valid_coinjoins: Sequence[CoinJoinGraph] = (),
) -> Run:
    """Train an encoder.

    graphs: the training graphs, used in turn, `config.rotate_every` epochs each, or as `config.rotation` says
    valid: the graph whose loss lowers the learning rate and picks the best epoch; without it the training loss does
    coinjoins: graphs around one CoinJoin each, for the repulsion term
    directory: where `best.pt` and `last.pt` are kept, written after every epoch
    resume: continue from the directory's `last.pt` (more epochs than before may be asked for)
    progress: show epoch, losses and learning rate while it runs
    valid_coinjoins: graphs around other CoinJoins. Their repulsion, times λ, becomes part of the validation loss: the
        paper monitors "the same loss on a validation graph". The record's `best_repulsion` is its part of `best_loss`.
        Without them the validation loss is the contrastive term alone.

    It runs where `config.device` says; the model is returned on the CPU. On the CPU one machine repeats its numbers
    bit by bit, whatever the number of threads. Other machines agree up to rounding, because matrix products and
    compiled sums may be ordered for their processor. On a GPU the masks of dropout differ as well.
    """
    trainer = _Trainer(
        config, graphs, valid, coinjoins, valid_coinjoins, None if directory is None else Path(directory)
    )
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
    """torch in one thread: steps of this size gain little from more, and sums do not depend on the number of cores."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


class _Trainer:
    """The state of one run, and the loop over epochs."""

    def __init__(
        self,
        config: TrainConfig,
        graphs: AnyGraph | Sequence[AnyGraph],
        valid: AnyGraph | None,
        coinjoins: Sequence[CoinJoinGraph],
        valid_coinjoins: Sequence[CoinJoinGraph],
        directory: Path | None,
    ) -> None:
        self.config, self.directory, self.device = config, directory, config.torch_device()
        listed = [graphs] if isinstance(graphs, AddressGraph | PreparedGraph) else list(graphs)
        if not listed:
            raise ParameterError("graphs is empty, but training needs at least one graph.")
        if valid_coinjoins and (valid is None or not coinjoins):
            raise ParameterError("valid_coinjoins are given, but repulsion is validated only with valid and coinjoins.")
        self.train = self._training(listed)
        self.valid = None if valid is None else self._batches(valid, "validation graph")
        pairs, self.valid_pairs = self._coinjoin_pairs(coinjoins), self._coinjoin_pairs(valid_coinjoins)
        used = [item.graph for item in (*self.train, self.valid, pairs, self.valid_pairs) if item is not None]
        _require_equal_widths([graph.x.shape[1] for graph in used], "features")
        self.fingerprint = "+".join(graph.fingerprint for graph in used)
        with self._own_randomness():
            torch.manual_seed(derived_seed(config.seed, INITIALISE))
            self.encoder = Encoder(config, used[0].x.shape[1], used[0].edge_channels)
            self.objective = make_objective(config, pairs)
        for graph in used:
            self.encoder.require_edge_features(graph.edge_channels, "graphs")
        self.learnt = nn.ModuleList([self.encoder, self.objective]).to(self.device)
        self.optimiser = torch.optim.Adam(self.learnt.parameters(), lr=config.learning_rate, weight_decay=WEIGHT_DECAY)
        self.schedule = torch.optim.lr_scheduler.ReduceLROnPlateau(
            self.optimiser, factor=config.factor, patience=config.patience
        )
        self.history: list[dict[str, float]] = []
        self.best = checkpoints.model_state(self.encoder)
        self.best_loss, self.best_epoch, self.best_repulsion = math.inf, 0, math.nan

    def _training(self, listed: Sequence[AnyGraph]) -> list[GraphBatches]:
        """What the rotation goes through: every graph, the first one alone, or all of them as one graph."""
        if self.config.rotation != "joint":
            used = listed[:1] if self.config.rotation == "one" else listed
            return [self._batches(graph, f"training graph {i + 1}") for i, graph in enumerate(used)]
        parts = [self._prepared(graph, f"training graph {i + 1}") for i, graph in enumerate(listed)]
        _require_equal_widths([part.x.shape[1] for part in parts], "features")
        _require_equal_widths([part.edge_channels for part in parts], "edge features")
        return [self._batches(disjoint_union(parts)[0], "training graphs side by side")]

    def _batches(self, graph: AnyGraph, name: str) -> GraphBatches:
        return GraphBatches(self._prepared(graph, name), self.config, name)

    def _prepared(self, graph: AnyGraph, name: str) -> PreparedGraph:
        config = self.config
        return prepare(graph, config.symmetrise, config.edge_features, config.landmarks, name, config.unit)

    def _coinjoin_pairs(self, coinjoins: Sequence[CoinJoinGraph]) -> CoinJoinPairs | None:
        if not coinjoins:
            return None
        prepared = [self._prepared(item.graph, f"CoinJoin graph {i}") for i, item in enumerate(coinjoins)]
        return CoinJoinPairs(prepared, [item.inputs for item in coinjoins], self.config)

    @contextmanager
    def _own_randomness(self) -> Iterator[None]:
        """torch's generators, of the CPU and of the device, are left as they were."""
        with torch.random.fork_rng(devices=[self.device] if self.device.type == "cuda" else []):
            yield

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
                valid_loss, repulsion = self._valid_loss()
                monitored = train_loss if self.valid is None else valid_loss
                self.schedule.step(monitored)
                row = (epoch + 1, which, train_loss, valid_loss, rate, time.perf_counter() - start)
                self.history.append(dict(zip(HISTORY, row, strict=True)))
                if improved := monitored < self.best_loss:
                    self.best_loss, self.best_epoch, self.best_repulsion = monitored, epoch + 1, repulsion
                    self.best = checkpoints.model_state(self.encoder)
                self._save(improved)
                bar.set_postfix(loss=f"{train_loss:.4f}", valid=f"{valid_loss:.4f}", lr=f"{rate:.1e}", refresh=False)
                bar.update()

    def _train_epoch(self, epoch: int, batches: GraphBatches) -> float:
        """The mean loss of an epoch's steps."""
        self.learnt.train()
        total = 0.0
        with self._own_randomness():
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

    def _valid_loss(self) -> tuple[float, float]:
        """The validation loss and the part of it that is repulsion; NaN where there is none.

        No dropout; the same tuples, pairs and neighbours at every epoch.
        """
        if self.valid is None:
            return math.nan, math.nan
        self.learnt.eval()
        seeds = [derived_seed(self.config.seed, VALIDATE, step) for step in range(VALID_STEPS)]
        with torch.no_grad():
            losses = [self.objective(self.encoder, self.valid, seed).item() for seed in seeds]
            contrastive = sum(losses) / len(losses)
            if self.valid_pairs is None:
                return contrastive, math.nan
            losses = [self.valid_pairs.loss(self.encoder, seed).item() for seed in seeds]
        repulsion = self.config.coinjoin_weight * sum(losses) / len(losses)
        return contrastive + repulsion, repulsion

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
            "best_repulsion": self.best_repulsion,
            "fingerprint": self.fingerprint,
        }
        if improved:
            checkpoints.save(self.best, self.directory / checkpoints.BEST)
        checkpoints.save(state, self.directory / checkpoints.LAST)

    def restore(self) -> None:
        """Continue from `last.pt` of the run's folder; a folder without one is a fresh start."""
        if self.directory is None:
            raise ParameterError("resume is set, but directory is not: name the folder of the run.")
        path = self.directory / checkpoints.LAST
        if not os.path.isfile(path):  # noqa: PTH113, since Path.is_file raises where a name is too long
            return
        state = checkpoints.load(path)
        before = TrainConfig.from_json(state["config"])
        for name, value in asdict(self.config).items():
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
            self.best, self.best_loss = state["best"], float(state["best_loss"])
            self.best_epoch, self.best_repulsion = (
                int(state["best_epoch"]),
                float(state.get("best_repulsion", math.nan)),
            )
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
        """The run with the weights that the configuration asks for, and its record."""
        history = pd.DataFrame(self.history, columns=list(HISTORY)).astype({"epoch": "int64", "graph": "int64"})
        state = self.best if self.config.keep == "best" else checkpoints.model_state(self.encoder)
        model = Encoder.from_store(state | {"config": self.config.to_json()})
        last = self.history[-1] if self.history else {}
        settings = asdict(self.config) | {"fanout": " ".join(map(str, self.config.fanout))}
        record = (
            settings
            | {
                "epochs_run": len(history),
                "best_epoch": self.best_epoch,
                "best_loss": self.best_loss if last else math.nan,
                "train_loss": last.get("train_loss", math.nan),
                "valid_loss": last.get("valid_loss", math.nan),
                **({} if self.valid_pairs is None else {"best_repulsion": self.best_repulsion}),
                "device": str(self.device),  # the device that `auto` chose
                "seconds": sum(row["seconds"] for row in self.history),
                "peak_mb": _peak_memory_mb(),
                "data": hashlib.sha256(self.fingerprint.encode()).hexdigest()[:16],
                "python": platform.python_version(),
                **{package: version(package) for package in PACKAGES},
            }
        )
        return Run(model, self.config, history, record)


def _require_equal_widths(widths: list[int], field: str) -> None:
    if len(set(widths)) > 1:
        raise DataError("graphs", field, "graphs differ in width", "prepare all graphs the same way")


def _peak_memory_mb() -> float:
    """The highest resident memory of this process so far, in MB."""
    if sys.platform == "win32":
        return float(psutil.Process().memory_info().peak_wset) / 2**20
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / 2**20 if sys.platform == "darwin" else peak / 2**10
