"""One dataclass per run: every choice of the paper's table of hyper-parameters, and every choice it leaves open."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, fields
from typing import Any, Literal, get_args, get_origin, get_type_hints

import torch

from btcnb import gates
from btcnb.data.features import Unit
from btcnb.errors import DataError, ParameterError
from btcnb.store import storable

Architecture = Literal["gat", "gcn", "sage", "mlp"]
Objective = Literal["contrastive", "gae", "dgi"]
Negatives = Literal["uniform", "mixture"]
OutputHeads = Literal["mean", "one"]
Keep = Literal["best", "last"]
Rotation = Literal["cycle", "one", "joint"]
Convolutions = Literal["auto", "compiled", "plain"]

SEE_EDGES: tuple[Architecture, ...] = ("gat",)
"""Convolutions that have a place for edge features."""


@storable("train-config")
@dataclass(frozen=True)
class TrainConfig:
    """The defaults are the paper's table of hyper-parameters; where the paper is silent, the line says so.

    Every field is checked: its type, its range (`RANGES`), its choices. Bool is no number, and NaN is in no range.
    """

    encoder: Architecture = "gat"
    """graph convolution: `gat`, `gcn` or `sage`; `mlp` sees a node's own features and no neighbour (a control)"""
    heads: int = 4
    """attention heads of the GAT"""
    hidden: int = 64
    """size of the hidden embedding; in a GAT, of each head (as the embedding-dimension appendix implies)"""
    output: int = 128
    """size of the embedding"""
    output_heads: OutputHeads = "mean"
    """output layer of the GAT: the mean of `heads` heads, or one head (the paper does not say)"""
    dropout: float = 0.2
    """share of hidden activations dropped while training"""
    attention_dropout: float = 0.2
    """share of attention coefficients dropped while training, as PyG's own GAT model does (the paper does not say)"""

    symmetrise: bool = True
    """add the reverse of every edge before message passing"""
    edge_features: bool = False
    """let the attention see edge features (GAT only)"""
    landmarks: int = 0
    """number of highest-degree landmarks in the positional encoding"""
    unit: Unit = "bitcoin"
    """what amounts are counted in before the logarithm: `bitcoin` (the paper's words) or `satoshi`"""

    learning_rate: float = 2.5e-3
    """initial learning rate of Adam"""
    weight_decay: float = 1e-5
    """weight decay of Adam"""
    factor: float = 0.5
    """reduction of the learning rate on a plateau of the validation loss"""
    patience: int = 20
    """epochs without improvement before a reduction"""

    epochs: int = 250
    """number of epochs; 0 leaves the encoder untrained"""
    steps_per_epoch: int = 10
    """gradient steps in one epoch (the paper does not say what an epoch is)"""
    valid_steps: int = 2
    """batches in one evaluation of the validation loss; the same tuples and neighbours every time"""
    rotate_every: int = 15
    """epochs on one training graph before the next one takes over"""
    rotation: Rotation = "cycle"
    """training graphs are used in turn (`cycle`), only the first (`one`), or side by side in every batch (`joint`)"""
    anchors: int = 512
    """anchors in a batch"""
    num_negatives: int = 4
    """negatives for each anchor (p)"""
    negatives: Negatives = "uniform"
    """clusters of negatives: uniform over the others (appendix), or from the α-mixture (section 3.3)"""
    temperature: float = 0.07
    """temperature of the contrastive loss (τ)"""
    robustness: float = 0.0
    """q of the generalised cross-entropy: 0 is the paper's loss; towards 1, positives that look wrong pull less"""
    alpha: float = 0.5
    """sampling parameter: 1 draws clusters in proportion to size, 0 uniformly (α)"""
    fanout: tuple[int, ...] = (15, 5)
    """neighbours drawn around a seed, then around each of those; one number per layer"""
    objective: Objective = "contrastive"
    """what is minimised: the contrastive loss, or a baseline's (`gae`, `dgi`)"""
    keep: Keep = "best"
    """weights handed back: of the epoch with the lowest validation loss, or the last"""

    coinjoin_weight: float = 1.0
    """weight of the CoinJoin repulsion (λ); used only when CoinJoin graphs are given"""
    coinjoin_temperature: float = 0.30
    """temperature of the CoinJoin repulsion"""
    coinjoin_graphs: int = 50
    """CoinJoin graphs drawn for each step (N_g)"""
    coinjoin_pairs: int = 32
    """pairs of inputs drawn from each of them, at most (N_p)"""

    seed: int = 0
    """seed of everything random in the run"""

    device: str = "auto"
    """where it runs: `auto` (a CUDA device where there is one, else the CPU), `cpu`, `cuda`, any name torch knows"""
    convolutions: Convolutions = "auto"
    """what computes them: `compiled` code (CPU only), `plain` PyG, or `auto`: compiled on the CPU, else plain"""

    def __post_init__(self) -> None:
        for name, kind in _KINDS.items():
            object.__setattr__(self, name, _checked(name, kind, getattr(self, name)))
        try:
            kind = "cpu" if self.device == "auto" else torch.device(self.device).type
        except RuntimeError:
            raise ParameterError(
                f"device is {self.device!r}, but must be 'auto', 'cpu', 'cuda', or another name of torch's."
            ) from None
        if self.convolutions == "compiled" and kind != "cpu":
            raise ParameterError(f"convolutions is 'compiled', which runs on the CPU, but device is {self.device!r}.")
        if self.edge_features and self.encoder not in SEE_EDGES:
            raise ParameterError(
                f"edge_features needs encoder {' or '.join(map(repr, SEE_EDGES))}: "
                f"a {self.encoder} convolution has no place for them."
            )

    @property
    def layers(self) -> int:
        """Number of convolutions: one for each entry of the fan-out."""
        return len(self.fanout)

    def to_json(self) -> str:
        return json.dumps(asdict(self), sort_keys=True)

    @classmethod
    def from_json(cls, text: str) -> TrainConfig:
        """The inverse of `to_json`; unknown fields are refused.

        Text without a unit is older than the choice, and its model learnt amounts in satoshi.
        """
        try:
            values = json.loads(text)
        except (TypeError, ValueError, RecursionError) as error:
            raise DataError("configuration", "JSON", "cannot be read", "give what `to_json` wrote") from error
        return cls.of({"unit": "satoshi", **gates.instance("configuration", values, dict)})

    @classmethod
    def of(cls, values: dict[str, Any]) -> TrainConfig:
        """A configuration from fields by name; unknown ones are refused."""
        known = {field.name for field in fields(cls)}
        unknown = sorted(map(str, set(values) - known))
        if unknown:
            raise ParameterError(f"unknown training parameter {unknown[0]!r}; known are {', '.join(sorted(known))}.")
        return cls(**values)


RANGES: dict[str, str] = {
    "heads": "[1, 1024]",
    "hidden": "[1, 65536]",
    "output": "[1, 65536]",
    "dropout": "[0, 1)",
    "attention_dropout": "[0, 1)",
    "landmarks": "[0, 65536]",
    "learning_rate": "(0, inf)",
    "weight_decay": "[0, inf)",
    "factor": "(0, 1)",
    "patience": "[0, inf)",
    "epochs": "[0, inf)",
    "steps_per_epoch": "[1, inf)",
    "valid_steps": "[1, inf)",
    "rotate_every": "[1, inf)",
    "anchors": "[1, 10000000]",
    "num_negatives": "[1, 100000]",
    "temperature": "(0, inf)",
    "robustness": "[0, 1]",
    "alpha": "[0, 1]",
    "coinjoin_weight": "[0, inf)",
    "coinjoin_temperature": "(0, inf)",
    "coinjoin_graphs": "[1, inf)",
    "coinjoin_pairs": "[1, inf)",
    "seed": "[0, inf)",
}
"""The range of every number, in interval notation; what decides the size of arrays ends somewhere."""

_KINDS = get_type_hints(TrainConfig)


def checked_fanout(value: Any) -> tuple[int, ...]:
    """A fan-out: one positive number of neighbours per layer, at most 16 layers."""
    numbers = gates.items("fanout", value)
    if not 1 <= len(numbers) <= 16:
        raise ParameterError(f"fanout has {len(numbers)} entries, but must hold one for each of 1 to 16 layers.")
    return tuple(gates.whole("fanout", number, f"[1, {gates.LARGEST}]") for number in numbers)


def _checked(name: str, kind: Any, value: Any) -> Any:
    if name == "fanout":
        return checked_fanout(value)
    if get_origin(kind) is Literal:
        return gates.choice(name, value, get_args(kind))
    if kind is bool:
        return gates.flag(name, value)
    if kind is str:
        return gates.instance(name, value, str)
    return (gates.whole if kind is int else gates.real)(name, value, RANGES[name])
