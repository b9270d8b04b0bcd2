"""Training: it learns, it can be repeated, interrupted and resumed without a trace, and it says what is wrong."""

from __future__ import annotations

import json
import pickle
import sys
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch
from planted import address_graph, planted, planted_arrays
from sklearn.metrics import roc_auc_score

from btcnb.errors import BtcnbError, DataError, ParameterError
from btcnb.learn import (
    CoinJoinGraph,
    Run,
    TrainConfig,
    disjoint_union,
    embed,
    load_model,
    prepare,
    prepare_arrays,
    train,
)
from btcnb.learn.checkpoints import load, save
from btcnb.learn.config import VALID_STEPS
from btcnb.learn.objectives import CoinJoinPairs, GraphBatches

SMALL = TrainConfig(
    heads=2,
    hidden=8,
    output=8,
    anchors=32,
    fanout=(4, 3),
    epochs=6,
    steps_per_epoch=3,
    rotate_every=2,
    patience=1,
    seed=5,
)
AUTO = replace(SMALL, objective="gae")
JOINT = replace(SMALL, rotation="joint")


def graphs() -> list[object]:
    return [planted(seed=seed) for seed in (1, 2, 3)]


def numbers(history: pd.DataFrame) -> pd.DataFrame:
    return history.drop(columns="seconds")


def weights(run: object) -> dict[str, torch.Tensor]:
    return run.model.state_dict()


def assert_same_weights(first: object, second: object) -> None:
    for name, value in weights(first).items():
        assert torch.equal(value, weights(second)[name]), name


def assert_same_run(first: Run, second: Run) -> None:
    pd.testing.assert_frame_equal(numbers(first.history), numbers(second.history), check_exact=True)
    assert_same_weights(first, second)
    assert first.record["data"] == second.record["data"]


def test_training_separates_planted_clusters():
    config = replace(SMALL, epochs=15, steps_per_epoch=6, output=16)
    valid = planted(seed=9)
    run = train(config, graphs(), valid=valid, progress=False)
    untrained = train(replace(config, epochs=0), graphs(), valid=valid, progress=False)
    assert run.history["valid_loss"].iloc[-1] < 0.6 * run.history["valid_loss"].iloc[0]

    def ranking(model: object) -> float:
        """Chance that a pair of the same cluster is closer than a pair of two clusters."""
        X = embed(model, valid)
        upper = np.triu_indices(len(X), 1)
        same = valid.labels[upper[0]] == valid.labels[upper[1]]
        return float(roc_auc_score(same, (X @ X.T)[upper]))

    assert 1 - ranking(run.model) < 0.5 * (1 - ranking(untrained.model))


def test_history_and_record():
    run = train(SMALL, graphs(), valid=planted(seed=9), progress=False)
    assert run.history["epoch"].tolist() == [1, 2, 3, 4, 5, 6]
    assert run.history["graph"].tolist() == [0, 0, 1, 1, 2, 2]  # two epochs each, in turn
    assert run.history["learning_rate"].iloc[0] == SMALL.learning_rate
    assert np.isfinite(run.history.to_numpy()).all()
    best = run.history["valid_loss"].idxmin() + 1
    assert run.record["best_epoch"] == best
    assert run.record["best_loss"] == run.history["valid_loss"].min()
    for key in ("encoder", "seed", "alpha", "seconds", "peak_mb", "data", "torch", "numpy", "python"):
        assert key in run.record
    assert json.loads(json.dumps(run.record)) == run.record  # flat and plain


def test_the_same_seed_repeats_and_another_does_not():
    first, second = (train(SMALL, graphs(), planted(seed=9), progress=False) for _ in range(2))
    assert_same_run(first, second)
    other = train(replace(SMALL, seed=6), graphs(), planted(seed=9), progress=False)
    assert other.history["train_loss"].iloc[0] != first.history["train_loss"].iloc[0]


def test_the_number_of_threads_changes_nothing():
    """Sums in two threads round differently; a run uses one, and gives the setting back."""
    before = torch.get_num_threads()
    wide = replace(SMALL, heads=4, hidden=64, output=64, anchors=256, epochs=2)
    runs = []
    try:
        for threads in (1, 2):
            torch.set_num_threads(threads)
            runs.append(train(wide, graphs(), planted(seed=9), progress=False))
            assert torch.get_num_threads() == threads
    finally:
        torch.set_num_threads(before)
    assert_same_run(*runs)


def test_training_leaves_torchs_generator_alone():
    torch.manual_seed(0)
    before = torch.random.get_rng_state()
    train(replace(SMALL, epochs=1), graphs(), progress=False)
    assert torch.equal(before, torch.random.get_rng_state())


@pytest.mark.parametrize("objective", ["contrastive", "gae", "dgi"])
def test_a_resumed_run_repeats_an_uninterrupted_one(tmp_path, monkeypatch, objective):
    config = replace(SMALL, objective=objective)
    valid = planted(seed=9)
    whole = train(config, graphs(), valid, progress=False)

    calls = {"left": 4 * (SMALL.steps_per_epoch + VALID_STEPS) + 2}  # into the middle of the fifth epoch
    original = GraphBatches.draw

    def pull_the_plug(self, seeds, seed):
        calls["left"] -= 1
        if calls["left"] == 0:
            raise KeyboardInterrupt
        return original(self, seeds, seed)

    monkeypatch.setattr(GraphBatches, "draw", pull_the_plug)
    with pytest.raises(KeyboardInterrupt, match=r"stopped after 4 epochs.*resume=True"):
        train(config, graphs(), valid, directory=tmp_path, progress=False)
    calls["left"] = 1
    with pytest.raises(KeyboardInterrupt, match="stopped after 0 epochs; nothing was kept, because no directory"):
        train(config, graphs(), valid, progress=False)
    monkeypatch.undo()
    resumed = train(config, graphs(), valid, directory=tmp_path, resume=True, progress=False)
    assert_same_run(resumed, whole)
    assert resumed.record["best_epoch"] == whole.record["best_epoch"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["best.pt", "last.pt"]


def test_more_epochs_can_be_asked_for_later(tmp_path):
    valid = planted(seed=9)
    train(replace(SMALL, epochs=3), graphs(), valid, directory=tmp_path, progress=False)
    longer = train(SMALL, graphs(), valid, directory=tmp_path, resume=True, progress=False)
    whole = train(SMALL, graphs(), valid, progress=False)
    assert_same_run(longer, whole)


def test_checkpoints_hold_the_best_and_the_last(tmp_path):
    valid = planted(seed=9)
    run = train(SMALL, graphs(), valid, directory=tmp_path, progress=False)
    for name, value in load_model(tmp_path).state_dict().items():
        assert torch.equal(value, weights(run)[name])
    last = train(replace(SMALL, keep="last"), graphs(), valid, progress=False)
    for name, value in load_model(tmp_path / "last.pt").state_dict().items():
        assert torch.equal(value, weights(last)[name])


@pytest.mark.parametrize("kind", [OSError, RuntimeError])  # torch's own, on a full disk
def test_a_failed_write_keeps_the_old_checkpoint(tmp_path, monkeypatch, kind):
    save({"config": "first"}, tmp_path / "last.pt")

    def half(state, path):
        path.write_bytes(b"half")
        raise kind("disk full")

    monkeypatch.setattr(torch, "save", half)
    with pytest.raises(DataError, match=r"cannot be written \(disk full\).*make room"):
        save({"config": "second"}, tmp_path / "last.pt")
    monkeypatch.undo()
    assert load(tmp_path / "last.pt")["config"] == "first"
    assert [path.name for path in tmp_path.iterdir()] == ["last.pt"]
    with pytest.raises(DataError, match="cannot be written"):
        save({"config": "third"}, tmp_path / "last.pt" / "run" / "last.pt")  # a file is in the way


def test_the_learning_rate_falls_on_a_plateau():
    config = replace(SMALL, epochs=8, learning_rate=1e-12, patience=1)  # nothing can improve
    history = train(config, graphs(), planted(seed=9), progress=False).history
    assert history["valid_loss"].max() - history["valid_loss"].min() < 1e-5
    assert history["learning_rate"].tolist() == pytest.approx([1e-12] * 3 + [5e-13] * 2 + [2.5e-13] * 2 + [1.25e-13])


def test_without_validation_the_training_loss_steers():
    run = train(SMALL, graphs()[0], progress=False)
    assert run.history["valid_loss"].isna().all()
    assert run.record["best_loss"] == run.history["train_loss"].min()


def test_progress_shows_loss_and_learning_rate(capsys):
    train(replace(SMALL, epochs=2), graphs(), planted(seed=9))
    shown = capsys.readouterr().err
    assert "loss=" in shown and "lr=2.5e-03" in shown and "2/2" in shown


def test_address_graphs_are_prepared_on_the_way():
    config = replace(SMALL, epochs=1, landmarks=4, edge_features=True)
    graph = address_graph()
    run = train(config, graph, valid=address_graph(seed=1), progress=False)
    assert run.model.in_channels == 24 and run.model.edge_channels == 9  # 14 columns, 6 in dollars, 4 landmarks
    X = embed(run.model, graph)
    assert X.shape == (graph.num_nodes, SMALL.output) and X.dtype == np.float32
    again = train(config, address_graph(), valid=address_graph(seed=1), progress=False)
    assert again.record["data"] == run.record["data"]
    assert train(config, address_graph(seed=2), progress=False).record["data"] != run.record["data"]
    dearer = replace(graph, meta={**graph.meta, "price_usd": 9_000.0})  # features in dollars; no table holds the price
    assert prepare(graph).fingerprint != prepare(dearer).fingerprint


def test_a_rotation_of_one_uses_the_first_graph_alone():
    config = replace(SMALL, rotation="one")
    one = train(config, graphs(), planted(seed=9), progress=False)
    assert one.history["graph"].tolist() == [0] * 6
    assert_same_run(one, train(SMALL, graphs()[0], planted(seed=9), progress=False))
    assert_same_run(one, train(config, [graphs()[0], planted(features=3)], planted(seed=9), progress=False))
    cycle = train(SMALL, graphs(), planted(seed=9), progress=False)
    pd.testing.assert_frame_equal(numbers(one.history)[:2], numbers(cycle.history)[:2], check_exact=True)
    assert one.history["train_loss"][2] != cycle.history["train_loss"][2]


@pytest.mark.parametrize("objective", ["contrastive", "gae", "dgi"])
def test_a_joint_rotation_trains_on_the_graphs_side_by_side(objective):
    config = replace(SMALL, objective=objective, rotation="joint")
    joint = train(config, graphs(), planted(seed=9), progress=False)
    assert joint.history["graph"].tolist() == [0] * 6
    union, first = disjoint_union(graphs())
    assert first.tolist() == [0, 120, 240] and union.num_nodes == 360
    assert_same_run(joint, train(replace(SMALL, objective=objective), union, planted(seed=9), progress=False))


def test_robustness_reaches_the_training_and_the_validation_loss(monkeypatch):
    """One anchor, no dropout, a rate too small to move: each loss is (1 − e^{−q·paper's}) / q of the paper's."""
    monkeypatch.setattr(sys.modules["btcnb.learn.train"], "VALID_STEPS", 1)
    still = replace(SMALL, epochs=1, steps_per_epoch=1, anchors=1, dropout=0.0, attention_dropout=0.0)
    still = replace(still, learning_rate=1e-12)
    paper, robust = (
        train(replace(still, robustness=q), graphs(), planted(seed=9), progress=False).history for q in (0.0, 0.7)
    )
    for name in ("train_loss", "valid_loss"):
        assert paper[name][0] > 0
        assert robust[name][0] == pytest.approx(-np.expm1(-0.7 * paper[name][0]) / 0.7, rel=1e-5)


def coinjoin_graph(seed: int, inputs: int) -> CoinJoinGraph:
    return CoinJoinGraph(planted(clusters=3, size=8, seed=seed), np.arange(inputs) * 2)


def test_coinjoin_pairs_are_distinct_and_stay_in_their_graph():
    items = [coinjoin_graph(seed, inputs) for seed, inputs in ((1, 2), (2, 4), (3, 12))]
    config = replace(SMALL, coinjoin_graphs=3, coinjoin_pairs=20)
    pairs = CoinJoinPairs([item.graph for item in items], [item.inputs for item in items], config)
    first, second, graph = pairs.draw(np.random.default_rng(0))
    assert np.bincount(graph).tolist() == [1, 6, 20]  # all pairs of 2 and of 4 inputs, 20 of the 66 of 12
    assert (first != second).all()
    assert len({tuple(sorted(p)) for p in zip(first.tolist(), second.tolist(), strict=True)}) == 27
    assert (first // 24 == graph).all() and (second // 24 == graph).all()
    few = CoinJoinPairs(
        [item.graph for item in items], [item.inputs for item in items], replace(config, coinjoin_graphs=2)
    )
    assert len(np.unique(few.draw(np.random.default_rng(0))[2])) == 2


def test_repulsion_pushes_coinjoin_inputs_apart():
    items = [coinjoin_graph(seed, 12) for seed in (21, 22, 23)]
    config = replace(SMALL, epochs=10, steps_per_epoch=5, keep="last", output=16, coinjoin_weight=2.0)

    def closeness(run: object) -> float:
        cosines = []
        for item in items:
            X = embed(run.model, item.graph)[item.inputs]
            cosines.append((X @ X.T)[np.triu_indices(len(X), 1)].mean())
        return float(np.mean(cosines))

    without = train(config, graphs(), progress=False)
    with_term = train(config, graphs(), coinjoins=items, progress=False)
    assert closeness(with_term) < closeness(without) - 0.1


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: train(SMALL, []), ParameterError, "at least one graph"),
        (lambda: train(SMALL, planted(clusters=1, size=20)), DataError, "training graph 1: clusters.*only one"),
        (lambda: train(SMALL, [planted(), planted(clusters=0, loners=20)]), DataError, "training graph 2.*two nodes"),
        (lambda: train(SMALL, planted(), planted(features=3)), DataError, "differ in width"),
        (lambda: train(JOINT, [planted(), planted(features=3)]), DataError, "differ in width"),
        (lambda: train(JOINT, [planted(clusters=0, loners=20)] * 2), DataError, "side by side: clusters.*two nodes"),
        (lambda: train(SMALL, planted(), resume=True), ParameterError, "directory"),
        (lambda: train(SMALL, planted(), coinjoins=[coinjoin_graph(1, 1)]), DataError, "CoinJoin graph 0.*distinct"),
        (lambda: train(AUTO, planted(), coinjoins=[coinjoin_graph(1, 2)]), ParameterError, "repulsion"),
        (lambda: load_model("no/such/run"), DataError, "no such file"),
    ],
)
def test_bad_requests_are_named(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_resume_refuses_another_configuration_or_other_graphs(tmp_path):
    train(replace(SMALL, epochs=1), graphs(), directory=tmp_path, progress=False)
    with pytest.raises(ParameterError, match=r"alpha is 0\.9.*0\.5"):
        train(replace(SMALL, alpha=0.9), graphs(), directory=tmp_path, resume=True, progress=False)
    with pytest.raises(ParameterError, match=r"rotation is 'joint'.*'cycle'"):
        train(JOINT, graphs(), directory=tmp_path, resume=True, progress=False)
    with pytest.raises(DataError, match="other graphs"):
        train(SMALL, graphs()[:2], directory=tmp_path, resume=True, progress=False)
    for other in (planted(seed=1, noise=0.31), planted(seed=1, symmetrise=False), planted(seed=1, clusters=11)):
        with pytest.raises(DataError, match="other graphs"):
            train(SMALL, [other, *graphs()[1:]], directory=tmp_path, resume=True, progress=False)
    (tmp_path / "last.pt").write_bytes(b"not a checkpoint")
    with pytest.raises(DataError, match="readable"):
        train(SMALL, graphs(), directory=tmp_path, resume=True, progress=False)


def test_every_flipped_bit_of_a_checkpoint_is_noticed_or_harmless(tmp_path):
    run = train(replace(SMALL, epochs=1), graphs(), directory=tmp_path, progress=False)
    whole = (tmp_path / "best.pt").read_bytes()
    rng = np.random.default_rng(0)
    refused = 0
    for place in rng.integers(0, 8 * len(whole), 400):
        damaged = bytearray(whole)
        damaged[place // 8] ^= 1 << (place % 8)
        (tmp_path / "best.pt").write_bytes(damaged)
        try:
            model = load_model(tmp_path)
        except DataError:
            refused += 1
            continue
        for name, value in model.state_dict().items():  # padding and names of files in the archive
            assert torch.equal(value, weights(run)[name])
    assert refused > 150
    (tmp_path / "best.pt").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(DataError, match="readable"):
        load_model(tmp_path)


def test_a_flipped_weight_is_noticed(tmp_path):
    train(replace(SMALL, epochs=1), graphs(), directory=tmp_path, progress=False)
    for name in ("best.pt", "last.pt"):
        state = torch.load(tmp_path / name, weights_only=True)
        next(iter(state["weights"].values())).view(-1)[0] += 1e-7
        torch.save(state, tmp_path / name)
        with pytest.raises(DataError, match="digest"):
            load_model(tmp_path / name)
    with pytest.raises(DataError, match="digest"):
        train(SMALL, graphs(), directory=tmp_path, resume=True, progress=False)


@pytest.mark.parametrize(
    "spoil",
    [
        lambda state: state.pop("weights"),
        lambda state: state.pop("in_channels"),
        lambda state: state["weights"].pop("convs.0.lin.weight"),
        lambda state: state["weights"].update({"convs.0.lin.weight": torch.zeros(3, 3)}),
        lambda state: state["weights"].update({"convs.0.bias": torch.full((16,), float("nan"))}),
        lambda state: state.update(config=TrainConfig(encoder="sage").to_json()),
        lambda state: state.update(config=replace(SMALL, hidden=9).to_json()),
        lambda state: state.update(config="{}"),
        lambda state: state.update(config='{"epochs": "many"}'),
        lambda state: state.update(config=3),
        lambda state: state.update(in_channels=None),
    ],
)
def test_a_checkpoint_whose_parts_do_not_fit_is_refused(tmp_path, spoil):
    train(replace(SMALL, epochs=0), graphs(), directory=tmp_path, progress=False)
    state = load(tmp_path / "best.pt")
    spoil(state)
    save(state, tmp_path / "best.pt")
    with pytest.raises(DataError, match=r"best\.pt"):
        load_model(tmp_path)


@pytest.mark.parametrize(
    "spoil", [{"best_loss": None}, {"best_loss": "x"}, {"best_epoch": [1]}, {"history": [{"seconds": 1.0}]}]
)
def test_a_state_whose_parts_do_not_fit_is_not_resumed(tmp_path, spoil):
    train(replace(SMALL, epochs=1), graphs(), directory=tmp_path, progress=False)
    save({**load(tmp_path / "last.pt"), **spoil}, tmp_path / "last.pt")
    with pytest.raises(DataError, match="parts do not fit the run"):
        train(SMALL, graphs(), directory=tmp_path, resume=True, progress=False)


def test_a_run_survives_the_store():
    run = train(replace(SMALL, epochs=2), graphs(), planted(seed=9), progress=False)
    assert all(isinstance(value, np.ndarray) for value in run.model.to_store()["weights"].values())
    again = pickle.loads(pickle.dumps(run))  # as the store keeps it
    assert isinstance(again, Run)
    assert again.config == run.config and again.record == run.record
    pd.testing.assert_frame_equal(again.history, run.history)
    assert_same_weights(again, run)
    assert np.array_equal(embed(again.model, planted(seed=9)), embed(run.model, planted(seed=9)))


def test_graphs_with_and_without_edge_features_do_not_mix():
    with pytest.raises(DataError, match="edge features"):
        train(replace(SMALL, edge_features=True), [planted(edge_features=True), planted()], progress=False)
    x, edges, labels, seen = planted_arrays()
    wider = prepare_arrays(x, edges, labels, np.concatenate([seen, seen], axis=1))
    for other in (planted(), wider):
        with pytest.raises(DataError, match="edge features: graphs differ in width"):
            train(replace(JOINT, edge_features=True), [planted(edge_features=True), other], progress=False)


def test_a_diverging_loss_stops_the_run():
    with pytest.raises(BtcnbError, match="learning_rate"):
        train(replace(SMALL, learning_rate=1e30, epochs=5), graphs(), progress=False)
