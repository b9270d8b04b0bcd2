"""A whole training step on a graph of the paper's size: tuples, neighbours, forward, backward, Adam.

    python benchmarks/training_step.py         # about 600k nodes and 10M edges, 512 anchors, 4 negatives
    python benchmarks/training_step.py --transactions 5000 --steps 3 --dry

Ours beside PyG's own convolutions, with `trim_to_layer` (the fair peer) and without, on the same parameters, tuples and
neighbours; one thread, as in training. Loss and gradients are compared without dropout (its masks have other shapes);
times are with dropout. Writes results/benchmarks/training_step.json.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import numpy as np
import torch
from _address_like import address_like
from _measure import in_child, rows, show, stage, write
from torch import Tensor
from torch_geometric.nn import GATConv
from torch_geometric.utils import trim_to_layer

from btcnb.learn import Batch, Encoder, TrainConfig, info_nce
from btcnb.learn.objectives import GraphBatches, encode
from btcnb.learn.sampler import derived_seed

STEPS = 6
WANTED, TOLERANCE = 3.0, 1e-5
WAYS = ("ours", "trimmed", "plain")
"""Compiled and trimmed; PyG's convolutions with `trim_to_layer`; PyG's convolutions on the whole sample."""


class Step:
    """One training step, in each of the three ways; PyG's layers share their weights with ours."""

    def __init__(self, batches: GraphBatches, config: TrainConfig) -> None:
        torch.manual_seed(0)
        self.batches, self.config = batches, config
        self.encoder = Encoder(config, batches.graph.x.shape[1])
        self.optimiser = torch.optim.Adam(self.encoder.parameters(), lr=config.learning_rate)
        self.theirs = torch.nn.ModuleList(pyg_layer(conv, config) for conv in self.encoder.convs)

    def loss(self, seed: int, way: str) -> Tensor:
        assert self.batches.tuples is not None
        tuples = self.batches.tuples.draw(self.config.anchors, self.config.num_negatives, np.random.default_rng(seed))
        nodes, anchor, positive, negatives = tuples.distinct()
        batch = self.batches.draw(nodes, seed)
        out = encode(self.encoder, batch) if way == "ours" else self.by_pyg(batch, trimmed=way == "trimmed")
        return info_nce(
            out[torch.from_numpy(anchor)], out[torch.from_numpy(positive)], out[torch.from_numpy(negatives)]
        )

    def by_pyg(self, batch: Batch, trimmed: bool) -> Tensor:
        """Unit rows of the seeds."""
        x, edges = batch.x, batch.edge_index
        self.theirs.train(self.encoder.training)
        for layer, conv in enumerate(self.theirs):
            if trimmed:
                x, edges, _ = trim_to_layer(layer, batch.nodes_per_hop, batch.edges_per_hop, x, edges)
            x = self.encoder.between(layer, conv(x, edges))
        return torch.nn.functional.normalize(x[: batch.nodes_per_hop[0]], dim=-1)

    def gradients(self, seed: int, way: str) -> tuple[float, list[Tensor]]:
        self.encoder.eval().zero_grad()
        loss = self.loss(seed, way)
        loss.backward()
        return loss.item(), [parameter.grad.clone() for parameter in self.encoder.parameters()]

    def run(self, seed: int, way: str) -> tuple[float, float]:
        self.encoder.train()
        wall, cpu = time.perf_counter(), time.process_time()
        loss = self.loss(seed, way)
        self.optimiser.zero_grad()
        loss.backward()
        self.optimiser.step()
        return time.perf_counter() - wall, time.process_time() - cpu


def pyg_layer(conv: torch.nn.Module, config: TrainConfig) -> GATConv:
    """PyG's layer with the parameters of ours: the same tensors, so one optimiser serves both."""
    dropout = config.attention_dropout
    layer = GATConv(conv.in_channels, conv.out_channels, conv.heads, conv.concat, dropout=dropout)
    for name in ("lin", "att_src", "att_dst", "bias"):
        setattr(layer, name, getattr(conv, name))
    return layer


def measure(transactions: int, steps: int) -> dict[str, Any]:
    torch.set_num_threads(1)
    config = TrainConfig()
    graph = address_like(transactions)
    step = Step(GraphBatches(graph, config), config)
    times: dict[str, list[tuple[float, float]]] = {way: [] for way in WAYS}
    for turn in range(steps + 1):  # by turns, so that a busy machine slows all
        for way in WAYS:
            with stage(way):
                seconds = step.run(derived_seed(0, turn), way)
            if turn:
                times[way].append(seconds)
    found: dict[str, Any] = {"nodes": graph.num_nodes, "edges": graph.num_edges, "threads": 1}
    for way in WAYS:
        found[f"{way}_s"], found[f"{way}_cpu_s"] = (float(value) for value in np.median(times[way], axis=0))
    loss, gradients = step.gradients(99, "ours")
    peers = [step.gradients(99, way) for way in WAYS[1:]]
    return {
        **found,
        "loss": loss,
        "loss_difference": max(abs(loss - theirs) for theirs, _ in peers),
        "gradient_difference": max(
            float((a - b).abs().max()) for _, theirs in peers for a, b in zip(gradients, theirs, strict=True)
        ),
        "largest_gradient": max(float(value.abs().max()) for value in gradients),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--transactions", type=int, default=58_000, help="transactions behind the graph")
    parser.add_argument("--steps", type=int, default=STEPS, help="steps timed, of each kind")
    parser.add_argument("--dry", action="store_true", help="do not write the record")
    options = parser.parse_args()
    run = in_child(measure, options.transactions, options.steps, warm_up=(measure, 300, 1))
    if run.error:
        raise SystemExit(run.error)
    value = run.value
    value["ratio"] = round(value["plain_s"] / value["ours_s"], 2)
    value["ratio_trimmed"], value["wanted"] = round(value["trimmed_s"] / value["ours_s"], 2), WANTED
    same = max(value["loss_difference"], value["gradient_difference"]) <= TOLERANCE
    value["same"], value["reached"] = same, same and value["ratio_trimmed"] >= WANTED
    last = {part.name: part for part in run.stages}  # one row for each kind, of its last step
    run.stages = list(last.values())
    records = rows("training_step", run, anchors=512, negatives=4, **value)
    show(records, ["stage", "seconds", "start_mb", "peak_mb"])
    print(
        f"{value['nodes']:,} nodes, {value['edges']:,} edges\n"
        f"ours {value['ours_s']:.3f} s; PyG trimmed {value['trimmed_s']:.3f} s, {value['ratio_trimmed']:.1f} times as "
        f"long (wanted {WANTED:.0f}); untrimmed {value['plain_s']:.3f} s, {value['ratio']:.1f} times; "
        f"loss differs by {value['loss_difference']:.1e}, gradients by {value['gradient_difference']:.1e} "
        f"(largest {value['largest_gradient']:.2g}): {'reached' if value['reached'] else 'not reached'}"
    )
    if not options.dry:
        write("training_step", records)


if __name__ == "__main__":
    main()
