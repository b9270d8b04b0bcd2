"""CoinJoins as a measurement: counts by hand, nobody in two economies, the same numbers in another process."""

from __future__ import annotations

import sys
from functools import cache
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

from btcnb.data import Source, build_graph, load_graph, load_transactions
from btcnb.data.heuristics import HeuristicConfig, heuristic_clusters
from btcnb.data.judging.entity_pairs import interval_config
from btcnb.errors import DataError, ParameterError
from btcnb.experiments import recipe
from btcnb.experiments.coinjoin import PROTOCOLS, Apart, Drawn, FeatureSpread, draw_mixes, payment_pairs, surroundings
from btcnb.experiments.coinjoin_trial import MixCounts, MixingTrial, mixing_trial, price
from btcnb.experiments.measures import measure
from btcnb.experiments.pairs import judged_source
from btcnb.experiments.recipe import Job, baseline
from btcnb.experiments.repulsion import (
    STEERING,
    edge_numbers,
    judged_economy,
    leakage,
    owner_numbers,
    repelled,
    shared,
    taught,
    teaching_chains,
    teaching_economy,
    teaching_mixes,
)
from btcnb.experiments.stages import TRAINING, trained
from btcnb.experiments.sweep.run import one_thread
from btcnb.learn import prepare

sys.path.insert(0, str(Path(__file__).parents[1] / "data"))
from builders import chain, ids

TINY = Source(size="tiny", seed=1)
RECIPE = recipe(TINY, 1, epochs=1)
FEW = {"per_protocol": 2, "sets": 2, "width": 2}


@cache
def judged_chain():
    return load_transactions(judged_economy(TINY), "test", sampled=False)


@cache
def trial() -> MixingTrial:
    with one_thread():  # as every run of a sweep: sums do not depend on the number of cores
        return mixing_trial(trained(baseline(RECIPE, "untrained")).model, judged_chain(), seed=1, **FEW)


def test_no_transaction_address_or_owner_is_in_two_of_the_economies_that_teach_train_and_judge() -> None:
    """Owners have no name across economies: they would be shared through their addresses, and none is."""
    judging = [judged_chain(), load_transactions(judged_source(TINY), "test", sampled=False)]
    training = [load_transactions(TINY, role, sampled=False) for role in (*TRAINING, "valid")]
    learning = [*training, *teaching_chains(TINY, (*TRAINING, *STEERING))]
    for one in judging:
        assert shared(one, learning) == {"shared.transactions": 0, "shared.addresses": 0, "shared.owners": 0}
    assert shared(judging[0], [judging[0]])["shared.owners"] == len(np.unique(judging[0].truth.owner)), (
        "it can see some"
    )
    worlds = [judged_economy(Source(size="tiny", seed=i)).seed for i in range(100)]
    worlds += [teaching_economy(Source(size="tiny", seed=i)).seed for i in range(100)]
    assert len(set(worlds)) == 200, "no judged world of one seed teaches another of the first hundred"


def test_what_teaches_is_what_was_asked_for() -> None:
    all_five = [name for _, name, _ in teaching_mixes(TINY)]
    assert set(all_five) == set(PROTOCOLS) and len(all_five) <= 2 * 3 * 5
    four = list(teaching_mixes(TINY, without="whirlpool"))
    assert {name for _, name, _ in four} == set(PROTOCOLS) - {"whirlpool"}
    for txs, name, mix in four[:5]:
        assert np.asarray(txs.truth.coinjoin)[mix.transaction] == name
    same = [mix.transaction for _, name, mix in teaching_mixes(TINY) if name != "whirlpool"]
    assert [mix.transaction for _, _, mix in four] == same, "leaving one out changes nothing about the others"
    steering = list(teaching_mixes(TINY, "whirlpool", STEERING))
    assert {name for _, name, _ in steering} == set(PROTOCOLS) - {"whirlpool"}, "what is withheld does not steer either"
    hashes = [txs.transactions["hash"].iloc[mix.transaction] for txs, _, mix in (*four, *steering)]
    assert len(set(hashes)) == len(hashes), "what steers does not teach"
    with pytest.raises(ParameterError, match="without is 'chaumian'"):
        taught("chaumian")
    with pytest.raises(ParameterError, match="simulated"):
        judged_economy(Source("release", ("x",)))


def test_heuristics_keep_nothing_apart_and_safeguards_all_that_is_not_merged_again() -> None:
    found = trial().numbers()
    assert found["heuristics.TN"] == found["heuristics.pooled"] == 0.0
    assert found["heuristics.own"] == 100.0, "everybody is together, so wallets are too"
    txs = judged_chain()
    safe = heuristic_clusters(txs, config=HeuristicConfig())
    assert found["safeguarded.TN"] > 50 and len(np.unique(safe)) > 1
    assert 0 <= found["gnn.average.TN"] <= 100 and found["coinjoins.set"] == 10


def test_numbers_of_a_trial_are_those_of_its_counts() -> None:
    """Rates by set and by protocol, recomputed from the counts one by one."""
    one = trial()
    found, member = one.numbers(), one.drawn.member
    share = np.array([100 * each.pairs.apart / each.pairs.pairs for each in one.counts["hybrid.ward"]])
    by_set = [share[row].mean() for row in member]
    assert found["hybrid.ward.TN"] == pytest.approx(np.mean(by_set))
    assert found["hybrid.ward.TN_sd"] == pytest.approx(np.std(by_set, ddof=1))
    of = one.drawn.protocol == "whirlpool"
    assert found["hybrid.ward.TN.whirlpool"] == pytest.approx(np.mean([share[row & of].mean() for row in member]))
    assert np.mean([found[f"hybrid.ward.TN.{name}"] for name in PROTOCOLS]) == pytest.approx(found["hybrid.ward.TN"])


def _counted(pairs: int, apart_: int, parted: float) -> MixCounts:
    return MixCounts(Apart(pairs, apart_, 0, 0, 0, 0), 0.5, parted, 2)


def test_payments_are_compared_with_the_coinjoins_they_are_near_to_by_hand() -> None:
    """Three CoinJoins, all pairs, half and none apart; near the second there is no payment. Near the others a tenth and
    three tenths of the payments' pairs are parted. One set has the first two, the other all: TN_paid is the mean of
    100 and (100 + 0) / 2, parted that of 10 and (10 + 30) / 2. Of the third set nothing is left."""
    counts = [_counted(4, 4, 0.1), _counted(4, 2, float("nan")), _counted(4, 0, 0.3)]
    member = np.array([[True, True, False], [True, True, True], [False, False, False]])
    drawn = Drawn(np.arange(3), np.array(["whirlpool"] * 3), member, {"whirlpool": 3}, 1)
    found = MixingTrial(drawn, {"gnn.average": counts}).numbers()
    assert found["gnn.average.TN"] == pytest.approx((75 + 50) / 2)
    assert found["gnn.average.TN_sd"] == pytest.approx(25 / np.sqrt(2))
    assert found["gnn.average.TN_paid"] == pytest.approx((100 + 50) / 2)
    assert found["gnn.average.parted"] == pytest.approx((10 + 20) / 2)
    none = MixingTrial(drawn, {"gnn.average": [_counted(4, 1, float("nan"))] * 3}).numbers()
    assert none["gnn.average.parted"] is None and none["gnn.average.TN_paid"] is None


def test_a_coinjoin_of_one_input_is_counted_and_one_with_nobody_around_is_judged() -> None:
    """a mixes with itself, which is one node and no pair; b and c mix with nobody around: two inputs, two outputs."""
    txs = (
        chain()
        .pay(["a"], {"a": 5}, coinjoin="whirlpool")
        .pay(["b", "c"], {"o1": 9, "o2": 9}, coinjoin="whirlpool")
        .owners(a="a", b="b o1", c="c o2")
        .build()
    )
    found = mixing_trial(trained(baseline(RECIPE, "untrained")).model, txs, per_protocol=2, sets=2).numbers()
    assert (found["unpaired"], found["short.whirlpool"], found["coinjoins"], found["paid"]) == (1, 1, 1, 0)
    assert found["heuristics.TN"] == 0.0 and found["gnn.average.TN"] in (0.0, 100.0)
    assert found["gnn.average.parted"] is None, "no payment is near"
    assert owner_numbers(txs)["unpaired"] == 1 and owner_numbers(txs)["own.share"] == 0.0


def test_features_are_those_of_the_prepared_graph() -> None:
    """How unusual inputs are, computed once more from graphs made one at a time."""
    rng = np.random.default_rng(0)
    model, txs = trained(baseline(RECIPE, "untrained")).model, judged_chain()
    (mix,) = surroundings(txs, draw_mixes(txs, 1, 1, 1, ["whirlpool"]).transactions, 1, width=2)
    local = mix.piece.txs
    graph = build_graph(local, np.arange(local.num_addresses), interval_config(txs).price_usd)
    x = prepare(graph, unit=model.config.unit).x.numpy()
    usual = FeatureSpread.of([rng.normal(size=(200, x.shape[1]))])
    far, others = usual.distance(x), np.setdiff1d(np.arange(len(x)), mix.inputs)
    found = mixing_trial(model, txs, 1, 1, sets=1, width=2, only=["whirlpool"], usual=usual).numbers()
    assert found["shift.inputs"] == pytest.approx(np.median(far[mix.inputs]))
    assert found["shift.others"] == pytest.approx(np.median(far[others]))


def test_a_hybrid_that_splits_a_cluster_of_inputs_alone_is_its_own_random_split() -> None:
    """Where the heuristic cluster of a CoinJoin is its inputs and nobody else, true negatives follow from the sizes of
    the parts: no dealing inside the cluster can change them. So true negatives alone do not tell who was parted."""
    one = trial()
    alike = [each.random == pytest.approx(each.pairs.apart / each.pairs.pairs) for each in one.counts["hybrid.average"]]
    assert np.mean(alike) > 0.5


def test_input_pairs_of_payments_by_hand() -> None:
    """p pays with two coins of its own, a joint payment has two owners, and the mix is no payment."""
    txs = (
        chain()
        .pay(["p1", "p2"], {"shop": 5})
        .pay(["q", "r"], {"shop": 5})
        .pay(["a", "b"], {"o1": 1, "o2": 1}, coinjoin="whirlpool")
        .owners(p="p1 p2", q="q", r="r", a="a b o1", b="o2", s="shop")
        .build()
    )
    name = ids(txs)
    (pair,) = payment_pairs(txs, np.random.default_rng(0)).tolist()
    assert set(pair) == {name["p1"], name["p2"]}
    assert len(payment_pairs(chain().pay(["a", "b"], {"c": 1}).build(), np.random.default_rng(0))) == 0, "no truth"


def test_owners_and_edges_of_a_small_economy_by_hand() -> None:
    """One mix of a, b and two coins of w: of six pairs one has one owner. Its outputs are one each."""
    txs = (
        chain()
        .pay(["a", "b", "w1", "w2"], {"oa": 9, "ob": 9, "ow": 9}, coinjoin="joinmarket")
        .pay("oa", {"shop": 4, "change": 5})
        .owners(a="a oa change", b="b ob", w="w1 w2 ow", s="shop")
        .build()
    )
    found = owner_numbers(txs)
    assert found["own.share"] == found["own.pooled"] == found["own.share.joinmarket"] == pytest.approx(100 / 6)
    edges = edge_numbers(txs)
    assert edges["homophily.coinjoin"] == pytest.approx(100 * 4 / 12), "a→oa, b→ob, w1→ow, w2→ow"
    assert edges["homophily.others"] == 50.0


def test_separate_coinjoins_of_one_economy_leak() -> None:
    """The second mix spends an output of the first: around the one lies the other, its inputs and its owners."""
    story = chain().pay(["a", "b"], {"o1": 9, "o2": 9}, coinjoin="whirlpool")
    story = story.pay(["o1", "c"], {"p1": 9, "p2": 9}, coinjoin="whirlpool")
    txs = story.owners(a="a o1 p1", b="b o2", c="c p2").build()
    found = leakage(txs, judged=1, others=1)
    assert (found["leak.inputs"], found["leak.owners"], found["leak.others"]) == (100.0, 100.0, 1)
    with pytest.raises(DataError, match="coinjoin"):
        leakage(chain().pay("a", {"b": 1}).build(), 1, 1)


def test_a_protocol_with_too_few_and_surroundings_too_large_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    model, txs = trained(baseline(RECIPE, "untrained")).model, judged_chain()
    mixes = np.asarray(txs.truth.coinjoin)
    first = np.concatenate([np.flatnonzero(mixes == name)[:2] for name in ("whirlpool", "joinmarket")])
    part = txs.select(np.unique(np.concatenate([first, np.arange(40)])))
    found = mixing_trial(model, part, per_protocol=50, sets=2, width=2)
    assert found.drawn.short.keys() == set(PROTOCOLS)
    numbers = found.numbers()
    assert numbers["short.whirlpool"] >= 2 and numbers["coinjoins"] == sum(found.drawn.short.values())
    assert numbers["gnn.average.TN_sd"] == 0.0, "both sets hold all there is"
    absent = [name for name in PROTOCOLS if not found.drawn.short[name]]
    assert not any(f"gnn.average.TN.{name}" in numbers for name in absent), "no rate where there is nothing"
    monkeypatch.setattr("btcnb.experiments.coinjoin_trial.MOST_ADDRESSES", 30)
    fewer = mixing_trial(model, part, per_protocol=50, sets=2, width=2).numbers()
    by_protocol = [number for name, number in fewer.items() if name.startswith("too_large.")]
    assert sum(by_protocol) == fewer["too_large"] and all(by_protocol)
    assert fewer["too_large"] > 0 and fewer["coinjoins"] + fewer["too_large"] == numbers["coinjoins"]


def test_repulsion_is_a_training_of_its_own() -> None:
    """The encoder of a recipe, one that saw CoinJoins, one that saw four protocols: three models."""
    runs = [trained(RECIPE), repelled(RECIPE), repelled(RECIPE, "whirlpool")]
    weights = [np.concatenate([w.detach().numpy().ravel() for w in run.model.parameters()]) for run in runs]
    assert all(not np.array_equal(one, other) for one, other in combinations(weights, 2))
    assert runs[1].history["train_loss"].iloc[0] > runs[0].history["train_loss"].iloc[0] + 0.5, (
        "log(1 + e^(cos/τ)) more"
    )
    assert runs[1].record["coinjoin_training_graphs"] > runs[2].record["coinjoin_training_graphs"]
    lessons = [{k: v for k, v in run.record.items() if k.startswith("taught.")} for run in runs]
    assert not lessons[0] and set(lessons[1]) == {f"taught.{name}" for name in PROTOCOLS}
    assert sum(lessons[1].values()) == runs[1].record["coinjoin_training_graphs"]
    assert lessons[2] == {name: number for name, number in lessons[1].items() if name != "taught.whirlpool"}
    steered = runs[1].history["valid_loss"].iloc[0] - runs[1].record["best_repulsion"]
    assert 0.69 < runs[1].record["best_repulsion"] < 3.4, "between log 2 (cosine 0) and log(1 + e^(1/0.3)) (cosine 1)"
    assert 0 < steered < runs[1].history["valid_loss"].iloc[0]


def test_what_cannot_be_judged_is_refused() -> None:
    for repulsion, method in ((False, "louvain"), (True, "untrained")):
        with pytest.raises(ParameterError, match=f"{method!r} is none"):
            measure(Job("x", 1, RECIPE, method, "mixing", (("repulsion", repulsion),)))


def test_the_price_is_measured_on_the_ordinary_graph() -> None:
    model = trained(baseline(RECIPE, "untrained")).model
    found = price(Job("x", 1, RECIPE, "trained", "mixing"), model)
    assert {"price.DP", "price.NMI", "price.ARI", "price.owner_ARI", "price.entity.hybrid.bACC"} <= set(found)
    assert -1e-6 < found["distance.entity_same.p0"] < found["distance.entity_two.p100"] < 2 + 1e-6
    near, far = found["distance.positive.median"], found["distance.negative.median"]
    assert 0 <= near < far, "even untrained, pairs of one cluster are nearer than pairs of two"
    assert load_graph(TINY, "test").num_nodes > 0
