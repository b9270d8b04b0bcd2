"""A whole training step on a graph of the paper's size: tuples, neighbours, forward, backward, Adam.

    python benchmarks/training_step.py         # about 600k nodes and 10M edges, 512 anchors, 4 negatives
    python benchmarks/training_step.py --transactions 5000 --steps 3

Against the same model, parameters, tuples and neighbours with PyG's own convolutions and no trimming. Loss and
gradients are compared without dropout (its masks have other shapes); times are with dropout.
Writes results/benchmarks/training_step.json.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import numpy as np
import torch
from _address_like import address_like
from _measure import in_child, rows, show, stage, write

from btcnb.learn import Encoder, TrainConfig, info_nce
from btcnb.learn.objectives import GraphBatches, encode
from btcnb.learn.sampler import derived_seed

STEPS = 6
WANTED, TOLERANCE = 3.0, 1e-5


class Step:
    """One training step, ours or plain."""

    def __init__(self, batches: GraphBatches, config: TrainConfig) -> None:
        torch.manual_seed(0)
        self.batches, self.config = batches, config
        self.encoder = Encoder(config, batches.graph.x.shape[1])
        self.optimiser = torch.optim.Adam(self.encoder.parameters(), lr=config.learning_rate)

    def loss(self, seed: int, plain: bool) -> torch.Tensor:
        assert self.batches.tuples is not None
        tuples = self.batches.tuples.draw(self.config.anchors, self.config.num_negatives, np.random.default_rng(seed))
        nodes, anchor, positive, negatives = tuples.distinct()
        batch = self.batches.draw(nodes, seed)
        if plain:
            out = self.encoder.plain(batch.x, batch.edge_index, batch.edge_attr, batch.degree)[: len(nodes)]
        else:
            out = encode(self.encoder, batch)
        return info_nce(
            out[torch.from_numpy(anchor)], out[torch.from_numpy(positive)], out[torch.from_numpy(negatives)]
        )

    def gradients(self, seed: int, plain: bool) -> tuple[float, list[torch.Tensor]]:
        self.encoder.eval().zero_grad()
        loss = self.loss(seed, plain)
        loss.backward()
        return loss.item(), [parameter.grad.clone() for parameter in self.encoder.parameters()]

    def run(self, seed: int, plain: bool) -> tuple[float, float]:
        self.encoder.train()
        wall, cpu = time.perf_counter(), time.process_time()
        loss = self.loss(seed, plain)
        self.optimiser.zero_grad()
        loss.backward()
        self.optimiser.step()
        return time.perf_counter() - wall, time.process_time() - cpu


def measure(transactions: int, steps: int) -> dict[str, Any]:
    config = TrainConfig()
    graph = address_like(transactions)
    step = Step(GraphBatches(graph, config), config)
    times: dict[bool, list[tuple[float, float]]] = {False: [], True: []}
    for turn in range(steps + 1):  # by turns, so that a busy machine slows both
        for plain in (False, True):
            with stage("plain" if plain else "ours"):
                seconds = step.run(derived_seed(0, turn), plain)
            if turn:
                times[plain].append(seconds)
    (ours, our_gradients), (theirs, their_gradients) = (step.gradients(99, plain) for plain in (False, True))
    pairs = list(zip(our_gradients, their_gradients, strict=True))
    ours_s, plain_s = (np.median(times[plain], axis=0) for plain in (False, True))
    return {
        "nodes": graph.num_nodes,
        "edges": graph.num_edges,
        "ours_s": float(ours_s[0]),
        "plain_s": float(plain_s[0]),
        "ours_cpu_s": float(ours_s[1]),
        "plain_cpu_s": float(plain_s[1]),
        "loss": ours,
        "loss_difference": abs(ours - theirs),
        "gradient_difference": max(float((a - b).abs().max()) for a, b in pairs),
        "largest_gradient": max(float(b.abs().max()) for _, b in pairs),
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
    value["ratio"], value["wanted"] = round(value["plain_s"] / value["ours_s"], 2), WANTED
    same = max(value["loss_difference"], value["gradient_difference"]) <= TOLERANCE
    value["same"], value["reached"] = same, same and value["ratio"] >= WANTED
    last = {part.name: part for part in run.stages}  # one row for each kind, of its last step
    run.stages = list(last.values())
    records = rows("training_step", run, anchors=512, negatives=4, **value)
    show(records, ["stage", "seconds", "start_mb", "peak_mb"])
    print(
        f"{value['nodes']:,} nodes, {value['edges']:,} edges\n"
        f"ours {value['ours_s']:.3f} s, plain {value['plain_s']:.3f} s: "
        f"{value['ratio']:.1f} times faster, wanted {WANTED:.0f}; loss differs by {value['loss_difference']:.1e}, "
        f"gradients by {value['gradient_difference']:.1e} (largest {value['largest_gradient']:.2g}): "
        f"{'reached' if value['reached'] else 'not reached'}"
    )
    if not options.dry:
        write("training_step", records)


if __name__ == "__main__":
    main()
