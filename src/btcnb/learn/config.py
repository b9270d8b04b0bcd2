"""The configuration of one training run: the paper's table of hyper-parameters, and the choices it leaves open."""

from __future__ import annotations

import json
from dataclasses import asdict, fields, replace
from typing import Annotated, Any, Literal

import torch
from pydantic import Field

from btcnb.configuration import Flag, Real, Whole, configuration
from btcnb.data.features import Unit
from btcnb.errors import DataError, ParameterError

Architecture = Literal["gat", "gcn", "sage", "mlp"]
Objective = Literal["contrastive", "gae", "dgi"]
Negatives = Literal["uniform", "mixture"]
Size = Annotated[Whole, Field(ge=1, le=65536)]
Count = Annotated[Whole, Field(ge=1)]
Share = Annotated[Real, Field(ge=0, le=1)]
Dropout = Annotated[Real, Field(ge=0, lt=1)]
Positive = Annotated[Real, Field(gt=0)]
Fanout = Annotated[tuple[Annotated[Whole, Field(ge=1, lt=2**31)], ...], Field(min_length=1, max_length=16)]

WEIGHT_DECAY = 1e-5
"""Weight decay of Adam (the paper's table of hyper-parameters)."""
VALID_STEPS = 2
"""Batches in one evaluation of the validation loss (the paper does not say)."""
REMOVED: dict[str, Any] = {"weight_decay": WEIGHT_DECAY, "valid_steps": VALID_STEPS, "convolutions": "auto"}
"""Former fields and their only value in use. Older files and records hold them; `of` ignores them at this value."""


@configuration
class TrainConfig:
    """The defaults are the paper's table of hyper-parameters; where the paper is silent, the line says so."""

    encoder: Architecture = "gat"
    """graph convolution: `gat`, `gcn` or `sage`; `mlp` sees a node's own features and no neighbour (a control)"""
    heads: Annotated[Whole, Field(ge=1, le=1024)] = 4
    """attention heads of the GAT"""
    hidden: Size = 64
    """size of the hidden embedding; in a GAT, of each head (as the embedding-dimension appendix implies)"""
    output: Size = 128
    """size of the embedding"""
    output_heads: Literal["mean", "one"] = "mean"
    """output layer of the GAT: the mean of `heads` heads, or one head (the paper does not say)"""
    dropout: Dropout = 0.2
    """share of hidden activations dropped while training"""
    attention_dropout: Dropout = 0.2
    """share of attention coefficients dropped while training, as PyG's own GAT model does (the paper does not say)"""

    symmetrise: Flag = True
    """add the reverse of every edge before message passing"""
    edge_features: Flag = False
    """let the attention see edge features (GAT only)"""
    landmarks: Annotated[Whole, Field(ge=0, le=65536)] = 0
    """number of highest-degree landmarks in the positional encoding"""
    unit: Unit = "bitcoin"
    """unit of amounts before the logarithm: `bitcoin` (the paper's words) or `satoshi`"""

    learning_rate: Positive = 2.5e-3
    """initial learning rate of Adam"""
    factor: Annotated[Real, Field(gt=0, lt=1)] = 0.5
    """reduction of the learning rate on a plateau of the validation loss"""
    patience: Annotated[Whole, Field(ge=0)] = 20
    """epochs without improvement before a reduction"""

    epochs: Annotated[Whole, Field(ge=0)] = 250
    """number of epochs; 0 leaves the encoder untrained"""
    steps_per_epoch: Count = 10
    """gradient steps in one epoch (the paper does not say what an epoch is)"""
    rotate_every: Count = 15
    """epochs on one training graph before the next graph is used"""
    rotation: Literal["cycle", "one", "joint"] = "cycle"
    """training graphs are used in turn (`cycle`), only the first (`one`), or side by side in every batch (`joint`)"""
    anchors: Annotated[Whole, Field(ge=1, le=10_000_000)] = 512
    """anchors in a batch"""
    num_negatives: Annotated[Whole, Field(ge=1, le=100_000)] = 4
    """negatives for each anchor (p)"""
    negatives: Negatives = "uniform"
    """clusters of negatives: uniform over the others (appendix), or from the α-mixture (section 3.3)"""
    temperature: Positive = 0.07
    """temperature of the contrastive loss (τ)"""
    robustness: Share = 0.0
    """q of the generalised cross-entropy: 0 is the paper's loss; towards 1, positives that look wrong pull less"""
    alpha: Share = 0.5
    """sampling parameter: 1 draws clusters in proportion to size, 0 uniformly (α)"""
    fanout: Fanout = (15, 5)
    """neighbours drawn around a seed, then around each of those; one number per layer"""
    objective: Objective = "contrastive"
    """what is minimised: the contrastive loss, or a baseline's (`gae`, `dgi`)"""
    keep: Literal["best", "last"] = "best"
    """weights that are returned: of the epoch with the lowest validation loss, or the last"""

    coinjoin_weight: Annotated[Real, Field(ge=0)] = 1.0
    """weight of the CoinJoin repulsion (λ); used only when CoinJoin graphs are given"""
    coinjoin_temperature: Positive = 0.30
    """temperature of the CoinJoin repulsion"""
    coinjoin_graphs: Count = 50
    """CoinJoin graphs drawn for each step (N_g)"""
    coinjoin_pairs: Count = 32
    """pairs of inputs drawn from each of them, at most (N_p)"""

    seed: Annotated[Whole, Field(ge=0)] = 0
    """seed of everything random in the run"""
    device: str = "auto"
    """where it runs: `auto` (a CUDA device where there is one, else the CPU), `cpu`, `cuda`, any name torch knows"""

    def __post_init__(self) -> None:
        try:
            torch.device("cpu" if self.device == "auto" else self.device)
        except RuntimeError:
            problem = f"device is {self.device!r}; give 'auto', 'cpu', 'cuda' or another device of torch."
            raise ParameterError(problem) from None
        if self.edge_features and self.encoder != "gat":
            raise ParameterError(f"edge_features needs encoder 'gat': a {self.encoder} convolution ignores them.")

    @property
    def layers(self) -> int:
        """Number of convolutions: one for each entry of the fan-out."""
        return len(self.fanout)

    def to_json(self) -> str:
        return json.dumps(asdict(self), sort_keys=True)

    @classmethod
    def from_json(cls, text: str) -> TrainConfig:
        """The inverse of `to_json`. Text without a unit is older than the choice; its model learnt satoshi."""
        try:
            values = dict(json.loads(text))
        except (TypeError, ValueError, RecursionError) as error:
            raise DataError("configuration", "JSON", "cannot be read", "give what `to_json` wrote") from error
        return cls.of({"unit": "satoshi", **values})

    @classmethod
    def of(cls, values: dict[str, Any]) -> TrainConfig:
        """A configuration from fields by name. Unknown names are refused, `REMOVED` fields at their value ignored."""
        known = {field.name for field in fields(cls)}
        unknown = sorted(set(values) - known - {name for name in REMOVED if values.get(name) == REMOVED[name]})
        if unknown:
            raise ParameterError(f"unknown training parameter {unknown[0]!r}; known are {', '.join(sorted(known))}.")
        return cls(**{name: value for name, value in values.items() if name in known})

    def torch_device(self) -> torch.device:
        """The device of a run. `auto` is a CUDA device where there is one, else the CPU."""
        if self.device == "auto":
            return torch.device("cuda" if torch.cuda.is_available() else "cpu")
        try:
            torch.empty(1, device=self.device).item()
        except (RuntimeError, AssertionError, NotImplementedError, ImportError):
            raise ParameterError(f"device is {self.device!r}, but there is no such device here.") from None
        return torch.device(self.device)


BASELINES: dict[str, dict[str, Any]] = {
    "untrained": {"epochs": 0},
    "gae": {"objective": "gae", "epochs": 20},
    "dgi": {"objective": "dgi", "epochs": 20},
}
"""What each of the paper's encoder baselines changes; 20 epochs: appendix on the training of baselines."""


def baseline_config(name: str, config: TrainConfig | None = None) -> TrainConfig:
    """The given configuration (or the paper's) with a baseline's objective and at most its epochs."""
    if name not in BASELINES:
        raise ParameterError(f"baseline is {name!r}, but must be one of {', '.join(map(repr, BASELINES))}.")
    config = config or TrainConfig()
    changes = BASELINES[name]
    return replace(config, **{**changes, "epochs": min(changes["epochs"], config.epochs)})
