"""Change guesses flipped by hand: which addresses a flip joins, how many are flipped, and what is measured of them."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from btcnb.data import Source, heuristic_clusters, heuristic_merges, load_transactions
from btcnb.errors import ParameterError
from btcnb.experiments import recipe
from btcnb.experiments.measures import measure
from btcnb.experiments.recipe import Job
from btcnb.experiments.wrong_change import flipped, flipped_clusters

sys.path.insert(0, str(Path(__file__).parents[1] / "data"))
from builders import chain, groups

TINY = Source(size="tiny", seed=7, disorder=0.0)


def test_a_flipped_guess_joins_the_payee_and_leaves_the_change_alone() -> None:
    """The shop is paid again later, so that c is taken for the change of a; a and a2 are inputs of one payment."""
    txs = chain().pay("a", {"shop": 70, "c": 30}).pay("z", {"shop": 5}).pay(["a", "a2"], {"x": 9}).build()
    together = {frozenset({"a", "a2", "c"}), frozenset({"shop"}), frozenset({"z"}), frozenset({"x"})}
    assert groups(txs, flipped_clusters(txs, 0.0)) == together
    strangers = {frozenset({"a", "a2", "shop"}), frozenset({"c"}), frozenset({"z"}), frozenset({"x"})}
    assert groups(txs, flipped_clusters(txs, 1.0)) == strangers


def test_without_flips_the_clusters_are_the_heuristics() -> None:
    txs = load_transactions(TINY, "test")
    assert np.array_equal(flipped_clusters(txs, 0.0), heuristic_clusters(txs))


def test_so_many_transactions_are_flipped_as_were_asked_for_and_a_seed_decides_which() -> None:
    """At share 1 every guess is flipped, at one half a binomial number of them: counted by what is still together."""
    txs = load_transactions(TINY, "test", sampled=False)
    merges = heuristic_merges(txs)
    guesses = merges[merges["rule"].isin(["change", "round_value"])].drop_duplicates("tx")
    assert len(guesses) > 100
    sender, change = guesses["address_a"].to_numpy(), guesses["address_b"].to_numpy()

    def kept(share: float, seed: int) -> float:
        labels = flipped_clusters(txs, share, seed)
        return float((labels[sender] == labels[change]).mean())

    assert kept(0.0, 0) == 1.0
    assert kept(1.0, 0) < 0.3, "a few hang together by other payments"
    # three standard deviations of a binomial share, plus those that hang together anyway
    slack = 3 * 0.5 / np.sqrt(len(guesses))
    assert 0.5 - slack < kept(0.5, 1) < 0.5 + slack + kept(1.0, 0)
    assert np.array_equal(flipped_clusters(txs, 0.5, 1), flipped_clusters(txs, 0.5, 1))
    assert not np.array_equal(flipped_clusters(txs, 0.5, 1), flipped_clusters(txs, 0.5, 2))


def test_only_the_papers_encoder_sees_flipped_clusters() -> None:
    """Trained on common inputs, or not at all, an encoder is the same whatever was flipped; the clusters are not."""
    common = recipe(TINY, 3, supervision=("common_input",))
    few, many = (flipped(Job("common", 3, common), share) for share in (0.0, 1.0))
    paper_few, paper_many = (flipped(Job("paper", 3, recipe(TINY, 3)), share) for share in (0.0, 1.0))
    assert few["heuristics.ari"] == paper_few["heuristics.ari"] > many["heuristics.ari"] == paper_many["heuristics.ari"]
    assert few["heuristics.precision"] > many["heuristics.precision"], "flips join strangers"
    assert few["lambda.threshold"] != paper_few["lambda.threshold"]
    assert few["at.1.00.clusters"] >= few["heuristics.clusters"], "a cut only splits"


def test_a_job_measures_it_and_methods_without_an_encoder_are_refused() -> None:
    job = Job("untrained", 3, recipe(TINY, 3), "untrained", "flipped", (("share", 0.08),))
    first, second = measure(job), flipped(job, 0.08)
    lasting = [name for name in first if not name.startswith(("seconds.", "peak_mb."))]
    assert str([first[name] for name in lasting]) == str([second[name] for name in lasting])  # NaN is NaN
    with pytest.raises(ParameterError, match="not 'louvain'"):
        measure(Job("louvain", 3, recipe(TINY, 3), "louvain", "flipped", (("share", 0.08),)))
