"""One dataclass per run: every choice of the paper's table of hyper-parameters, and every choice it leaves open."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, fields
from typing import Any, Literal, get_args

from btcnb.errors import ParameterError
from btcnb.store import storable

Architecture = Literal["gat", "gcn", "sage"]
Objective = Literal["contrastive", "gae", "dgi"]
Negatives = Literal["uniform", "mixture"]
OutputHeads = Literal["mean", "one"]
Keep = Literal["best", "last"]


@storable("train-config")
@dataclass(frozen=True)
class TrainConfig:
    """The defaults are the paper's table of hyper-parameters; where the paper is silent, the line says so."""

    encoder: Architecture = "gat"
    """graph convolution: `gat`, `gcn` or `sage`"""
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
    anchors: int = 512
    """anchors in a batch"""
    num_negatives: int = 4
    """negatives for each anchor (p)"""
    negatives: Negatives = "uniform"
    """clusters of negatives: uniform over the others (appendix), or from the α-mixture (section 3.3)"""
    temperature: float = 0.07
    """temperature of the contrastive loss (τ)"""
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

    def __post_init__(self) -> None:
        object.__setattr__(self, "fanout", tuple(int(k) for k in self.fanout))
        self._require_choices()
        for name in ("heads", "hidden", "output", "steps_per_epoch", "rotate_every", "anchors", "num_negatives"):
            _require(getattr(self, name) >= 1, name, getattr(self, name), "at least 1")
        for name in ("valid_steps", "coinjoin_graphs", "coinjoin_pairs"):
            _require(getattr(self, name) >= 1, name, getattr(self, name), "at least 1")
        for name in ("epochs", "landmarks", "patience", "weight_decay", "coinjoin_weight", "seed"):
            _require(getattr(self, name) >= 0, name, getattr(self, name), "at least 0")
        for name in ("temperature", "coinjoin_temperature", "learning_rate"):
            _require(getattr(self, name) > 0, name, getattr(self, name), "above 0")
        for name in ("dropout", "attention_dropout"):
            _require(0 <= getattr(self, name) < 1, name, getattr(self, name), "in [0, 1)")
        _require(0 < self.factor < 1, "factor", self.factor, "between 0 and 1")
        _require(0 <= self.alpha <= 1, "alpha", self.alpha, "in [0, 1]")
        _require(
            len(self.fanout) >= 1 and min(self.fanout) >= 1,
            "fanout",
            self.fanout,
            "one positive number of neighbours per layer",
        )
        if self.edge_features and self.encoder != "gat":
            raise ParameterError(
                f"edge_features needs encoder 'gat': a {self.encoder} convolution has no place for them."
            )

    def _require_choices(self) -> None:
        choices = (
            ("encoder", Architecture),
            ("objective", Objective),
            ("negatives", Negatives),
            ("output_heads", OutputHeads),
            ("keep", Keep),
        )
        for name, allowed in choices:
            value = getattr(self, name)
            _require(value in get_args(allowed), name, value, "one of " + ", ".join(map(repr, get_args(allowed))))

    @property
    def layers(self) -> int:
        """Number of convolutions: one for each entry of the fan-out."""
        return len(self.fanout)

    def to_json(self) -> str:
        return json.dumps(asdict(self), sort_keys=True)

    @classmethod
    def from_json(cls, text: str) -> TrainConfig:
        """The inverse of `to_json`; unknown fields are refused."""
        values: dict[str, Any] = json.loads(text)
        known = {field.name for field in fields(cls)}
        unknown = sorted(set(values) - known)
        if unknown:
            raise ParameterError(f"unknown training parameter {unknown[0]!r}; known are {', '.join(sorted(known))}.")
        return cls(**values)


def _require(holds: bool, name: str, value: object, wanted: str) -> None:
    if not holds:
        raise ParameterError(f"{name} is {value!r}, but must be {wanted}.")
