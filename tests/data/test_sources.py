"""The book's graphs: right intervals, right prices, the same graph in every process, one economy each."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import builders
import numpy as np
import pytest
from builders import BTC
from raw_blocks import COIN, SIGNATURE, In, Tx, block, key, p2pkh, push, sha256d

from btcnb import paper
from btcnb.data import (
    DEFAULT_RULES,
    Source,
    build_graph,
    heuristic_clusters,
    load_clusters,
    load_graph,
    load_graphs,
    load_linked_twice,
    load_transactions,
    real_source,
    write_etl,
    write_release,
)
from btcnb.data.heuristics import RULES, linked_twice
from btcnb.data.intervals import SPLITS
from btcnb.data.sources import BLOCKS, CUTS, IN_TIME, ROLES, _sample, price_of, role_facts
from btcnb.errors import DataError, ParameterError

TINY = Source(size="tiny", seed=3)


@pytest.fixture(scope="module", autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BTCNB_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(scope="module")
def graphs(_own_cache):
    return load_graphs(TINY)


def test_five_valid_graphs_in_the_papers_intervals(graphs) -> None:
    table = paper.table("dataset").set_index("split")
    assert tuple(graphs) == ROLES
    for name, graph in graphs.items():
        graph.validated(name)
        assert graph.meta["start_block"] == table.loc[name, "start_block"]
        assert graph.edges["reveal"].min() >= graph.meta["start_block"]
        assert graph.edges["last_seen"].max() <= graph.meta["end_block"] <= table.loc[name, "end_block"]
        assert graph.meta["source"].startswith("simulated")
        assert graph.truth is not None


def test_every_split_is_an_economy_of_its_own(graphs) -> None:
    assert len({TINY.economy(role).seed for role in ROLES}) == 5
    for one in graphs:
        for other in graphs:
            if one < other:
                assert not set(graphs[one].addresses) & set(graphs[other].addresses)


def test_graph_and_sampled_transactions_belong_together(graphs) -> None:
    txs = load_transactions(TINY, "valid")
    graph = graphs["valid"]
    assert graph.meta["transactions"] == len(txs)
    assert np.array_equal(graph.addresses, txs.addresses[graph.nodes["node_id"]])
    chain = load_transactions(TINY, "valid", sampled=False)
    assert set(txs.transactions["hash"]) < set(chain.transactions["hash"])


def test_heuristics_that_see_the_interval_merge_more(graphs) -> None:
    """Every merge of the common-input rule in the sample happens in the interval too."""
    wide = load_graph(replace(TINY, scope="interval"), "valid")
    assert wide.labels().max() < graphs["valid"].labels().max()
    txs = load_transactions(TINY, "valid")
    chain = load_transactions(TINY, "valid", sampled=False)
    narrow = heuristic_clusters(txs, rules=("common_input",))
    broad = heuristic_clusters(txs, rules=("common_input",), context=chain)
    pairs = np.unique(np.stack([narrow, broad]), axis=1)
    assert len(pairs[0]) == narrow.max() + 1, "each cluster of the sample lies in one cluster of the interval"


def test_same_seed_same_graph_in_another_process(graphs, tmp_path) -> None:
    code = "from btcnb.data import Source, load_graph as g; print(g(Source(size='tiny', seed=3), 'test').fingerprint())"
    own = {**os.environ, "BTCNB_CACHE": str(tmp_path), "PYTHONHASHSEED": "5"}
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=own)
    assert answer.stdout.strip() == graphs["test"].fingerprint()
    assert load_graph(Source(size="tiny", seed=4), "test").fingerprint() != graphs["test"].fingerprint()


@pytest.mark.parametrize(
    ("field", "value"),
    [("size", "huge"), ("scope", "all"), ("seed", -1), ("seed", True), ("sample", -5), ("disorder", 11.0),
     ("disorder", float("nan")), ("disorder", "much"), ("price_usd", -1.0)],
)  # fmt: skip
def test_settings_out_of_range_are_named(field: str, value: object) -> None:
    with pytest.raises(ParameterError, match=f"{field} is {value!r}"):
        Source(**{field: value})


def test_a_sample_smaller_than_asked_for_says_so() -> None:
    """A chain whose longest way from a coinbase has 6 transactions: 100, 50, … are tried, 6 come back."""
    story = builders.chain().coinbase("n0", value=100)
    for n in range(1, 6):
        story.pay(f"n{n - 1}", {f"n{n}": 100})
    sample = _sample(story.build(), seed=0, wanted=100)
    assert len(sample) == 6 and sample.source.endswith(", a sample of 6 transactions, where 100 were asked for")
    assert "asked for" not in _sample(story.build(), seed=0, wanted=6).source
    with pytest.raises(DataError, match="no coinbase lies in the interval"):
        _sample(builders.chain().pay([("a", 5)], {"b": 5}).build(), seed=0, wanted=100)


# --- somebody's own data ---


@pytest.fixture(scope="module")
def chain(_own_cache):
    return load_transactions(TINY, "train1", sampled=False)


@pytest.fixture(scope="module")
def etl(chain, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_etl(replace(chain, truth=None), tmp_path_factory.mktemp("own") / "chain.parquet")


def test_a_chain_is_cut_into_five_intervals_in_the_order_of_the_papers_dates(etl: Path, chain) -> None:
    data = Source.of(str(etl))
    parts = {role: load_transactions(data, role) for role in ROLES}
    assert sum(len(part) for part in parts.values()) == len(chain)
    in_time = [parts[role].transactions["block_number"] for role in ("train1", "train2", "valid", "train3", "test")]
    for earlier, later in pairwise(in_time):
        assert earlier.iloc[-1] < later.iloc[0]
    assert max(map(len, in_time)) < 1.3 * min(map(len, in_time))


def test_intervals_are_block_numbers_of_each_role(etl: Path, chain) -> None:
    first = int(chain.transactions["block_number"].iloc[0])
    text = ",".join(f"{first + 10 * i}-{first + 10 * i + 9}" for i in range(5))
    data = Source.of(str(etl), intervals=text)
    blocks = load_transactions(data, "valid").transactions["block_number"]
    assert (blocks.min(), blocks.max()) == (first + 30, first + 39)
    with pytest.raises(DataError, match="test holds no transaction"):
        load_graph(Source.of(str(etl), intervals="1-2,1-2,1-2,1-2,1-2"), "test")


def test_a_graph_of_ones_own_chain_says_so(etl: Path) -> None:
    data = Source.of(str(etl), price_usd=9_000.0)
    graph = load_graph(data, "test")
    graph.validated()
    assert graph.meta["source"] == str(etl)
    assert graph.meta["price_usd"] == 9_000.0
    assert graph.truth is None
    assert str(etl) in data.words
    assert [data.has(what) for what in ("transactions", "truth", "labels", "simulated")] == [True, False, False, False]


def test_another_content_of_the_file_is_another_graph(chain, tmp_path: Path) -> None:
    path = tmp_path / "chain.parquet"
    write_etl(replace(chain, truth=None), path)
    before = load_graph(Source.of(str(path)), "test")
    write_etl(replace(chain.select(np.arange(len(chain) // 2)), truth=None), path)
    after = load_graph(Source.of(str(path)), "test")
    assert before.fingerprint() != after.fingerprint()


def test_five_paths_are_five_roles(chain, tmp_path: Path) -> None:
    paths = []
    for number, role in enumerate(ROLES):
        part = replace(chain.select(np.arange(100 * number, 100 * number + 100)), truth=None)
        paths.append(write_etl(part, tmp_path / f"{role}.parquet"))
    data = Source.of(",".join(map(str, paths)))
    assert load_transactions(data, "train2").transactions["hash"].tolist() == (
        chain.transactions["hash"].iloc[100:200].tolist()
    )
    with pytest.raises(ParameterError, match="source names 2 paths"):
        Source.of(f"{paths[0]},{paths[1]}")


def test_a_release_with_five_graphs_and_one_with_one(graphs, tmp_path: Path) -> None:
    many = Source.of(str(write_release(graphs, tmp_path / "five")))
    assert load_graph(many, "valid").fingerprint() == graphs["valid"].fingerprint()
    assert many.has("truth")
    assert not many.has("transactions")
    with pytest.raises(DataError, match="a release holds graphs only"):
        load_transactions(many, "valid")
    one = Source.of(str(write_release(graphs["test"], tmp_path / "one")))
    assert load_graph(one, "train1").fingerprint() == graphs["test"].fingerprint()
    assert "tested on itself" in one.words


def refines(fine: np.ndarray, coarse: np.ndarray) -> bool:
    return len(np.unique(np.stack([fine, coarse]), axis=1)[0]) == len(np.unique(fine))


@pytest.mark.parametrize("scope", ["sample", "interval"])
def test_clusters_by_all_rules_are_the_graphs_own(scope: str, graphs) -> None:
    data = Source(size="tiny", seed=3, scope=scope)
    for role in ("valid", "test"):
        labels = load_graph(data, role).labels()
        assert np.array_equal(load_clusters(data, role), labels)
        assert np.array_equal(load_clusters(data, role, DEFAULT_RULES[::-1]), labels), "their order does not matter"


def test_clusters_by_other_rules_see_what_the_graph_saw(graphs) -> None:
    data = TINY
    inputs = load_clusters(data, "valid", ["common_input"])
    assert np.array_equal(inputs, heuristic_clusters(load_transactions(data, "valid"), ("common_input",)))
    assert refines(inputs, graphs["valid"].labels()) and inputs.max() > graphs["valid"].labels().max()
    assert refines(graphs["valid"].labels(), load_clusters(data, "valid", tuple(RULES)))
    wide = load_clusters(replace(data, scope="interval"), "valid", ("common_input",))
    assert refines(inputs, wide) and wide.max() < inputs.max()


def test_what_is_linked_twice_refines_the_clusters_of_a_graph(graphs) -> None:
    data = TINY
    clusters, twice = graphs["valid"].labels(), load_linked_twice(data, "valid")
    assert refines(twice, clusters)
    assert clusters.max() < twice.max() < len(clusters) - 1, "some are held together, and fewer than by any link"
    assert np.array_equal(twice, linked_twice(load_transactions(data, "valid")))


@pytest.mark.parametrize("scope", ["sample", "interval"])
@pytest.mark.parametrize("price", [0.0, 9_000.0])
def test_clusters_of_ones_own_chain(etl: Path, scope: str, price: float) -> None:
    data = Source.of(str(etl), scope=scope, price_usd=price)  # type: ignore[arg-type]
    graph = load_graph(data, "train2")
    assert np.array_equal(load_clusters(data, "train2"), graph.labels())
    assert load_linked_twice(data, "train2").shape == (graph.num_nodes,)


def test_a_release_has_no_other_clusters(graphs, tmp_path: Path) -> None:
    release = Source.of(str(write_release(graphs["test"], tmp_path / "one")))
    with pytest.raises(DataError, match="a release holds graphs only, with one clustering"):
        load_clusters(release, "test", ("common_input",))
    with pytest.raises(DataError, match="a release holds graphs only"):
        load_linked_twice(release, "test")


def test_clusters_of_unknown_rules_are_refused() -> None:
    with pytest.raises(ParameterError, match="rules hold 'inputs'"):
        load_clusters(TINY, "test", ("inputs",))


@pytest.mark.parametrize("text", ["1-2", "1-2,3-4,5-6,7-8,9-x", "9-1,3-4,5-6,7-8,9-10", "1,2,3,4,5"])
def test_intervals_are_refused_with_an_example(etl: Path, text: str) -> None:
    with pytest.raises(ParameterError, match="write the first and last block of train1"):
        Source.of(str(etl), intervals=text)


def test_paths_that_nobody_can_read_are_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="nowhere"):
        Source.of(str(tmp_path / "nowhere"))
    (tmp_path / "poem.txt").write_text("Roses are red")
    with pytest.raises(DataError, match=r"poem\.txt: format: is of no kind"):
        Source.of(str(tmp_path / "poem.txt"))


def test_a_new_preset_elsewhere_does_not_change_what_is_simulated() -> None:
    """The source holds the numbers of its size, so that what is kept depends on them and not on the table's file."""
    data = TINY
    assert dict(data.simulation)["blocks"] == data.economy("test").blocks == 180
    assert data.sample == 100


def test_disorder_reaches_the_economy_and_is_said(graphs) -> None:
    tidy, usual = Source.of(size="tiny", seed=3, disorder=0.0), Source.of(size="tiny", seed=3)
    assert usual.disorder == usual.economy("test").disorder == 1.0
    assert tidy.economy("test") == replace(usual.economy("test"), disorder=0.0)
    assert tidy != usual
    assert "disorder 0" in tidy.words and "disorder" not in usual.words
    assert load_graph(usual, "test").fingerprint() == graphs["test"].fingerprint()
    chain = load_transactions(tidy, "test", sampled=False)
    assert chain.truth is not None and set(chain.truth.mechanism) == {""}
    wild = load_transactions(Source.of(size="tiny", seed=3, disorder=2.0), "test", sampled=False)
    assert wild.truth is not None and len(set(wild.truth.mechanism)) > 5


def test_the_mechanism_is_kept_in_samples(graphs) -> None:
    sample = load_transactions(TINY, "valid")
    chain = load_transactions(TINY, "valid", sampled=False)
    told = dict(zip(chain.transactions["hash"], chain.truth.mechanism, strict=True))
    assert [told[name] for name in sample.transactions["hash"]] == sample.truth.mechanism.tolist()


# --- a real chain ---

DATA = Path(os.environ.get("BTCNB_REAL_DATA") or "no-real-data")
SMALL = (12, 14, 16, 18)
"""Cuts of the chain below: blocks 11, 12, …, 19."""


@pytest.fixture
def small(tmp_path: Path) -> Source:
    """One payment a block, 11 to 19; `a` pays in the first block and again in the last."""
    story = builders.chain(start_block=11)
    for height in range(11, 20):
        payer = "a" if height in (11, 19) else f"p{height}"
        story.pay([(payer, 10 * BTC)], {f"q{height}": 4 * BTC, f"c{height}": 6 * BTC})
    write_etl(story.build(), tmp_path / "txs.jsonl")
    return real_source(str(tmp_path / "txs.jsonl"), SMALL)


def test_a_block_at_a_cut_belongs_to_the_later_role(small: Source) -> None:
    heights = [load_transactions(small, role).transactions["block_number"].tolist() for role in IN_TIME]
    assert heights == [[11], [12, 13], [14, 15], [16, 17], [18, 19]]


def test_the_real_chain_and_ones_own_are_cut_in_one_order(small: Source) -> None:
    """That of the paper's dates: the validation graph lies between the second and the third training graph."""
    assert IN_TIME == ("train1", "train2", "valid", "train3", "test")
    whole = Source.of(small.paths[0])
    for data in (small, whole):
        first = {role: load_transactions(data, role).transactions["block_number"].iloc[0] for role in ROLES}
        assert sorted(first, key=lambda role: first[role]) == list(IN_TIME)


def test_a_graph_of_the_real_chain_is_that_of_all_transactions_at_the_roles_price(small: Source) -> None:
    graph = load_graph(small, "test")
    whole = build_graph(load_transactions(small, "test"), price_usd=price_of(small, "test"))
    assert graph.fingerprint() == whole.fingerprint()
    facts = role_facts(small, "test")
    assert (facts["first_block"], facts["last_block"], facts["blocks"], facts["transactions"]) == (18, 19, 2, 2)
    assert (facts["nodes"], facts["edges"], facts["imputed"], facts["data"]) == (6, 4, 0.0, graph.fingerprint())


def test_each_role_has_the_price_of_its_own_interval(small: Source) -> None:
    assert [price_of(real_source(small.paths[0]), role) for role in ROLES] == [SPLITS[role].price_usd for role in ROLES]
    for (first, last), role in zip(real_source(small.paths[0]).intervals, ROLES, strict=True):
        assert [name for name, split in SPLITS.items() if first <= split.start_block <= last] == [role]
    assert price_of(small, "test") == SPLITS["train1"].price_usd, "the nearest, where none is inside"


def test_unknown_values_of_raw_blocks_are_imputed_and_the_share_is_told(tmp_path: Path) -> None:
    """Every block has a payment of 10 from two coins that lie outside: they are given 5 each, whatever they were."""
    for number, height in enumerate((610_000, *CUTS)):
        outside = tuple(In(bytes([number + 1]) * 32, i, push(SIGNATURE, key(2 * number + i + 1))) for i in range(2))
        one = block(
            height,
            sha256d(bytes([number])),
            Tx(outside, ((10 * COIN, p2pkh(key(40 + number))),)),
            to=p2pkh(key(60 + number)),
        )
        (tmp_path / one.file).write_bytes(one.raw())
    real = real_source(str(tmp_path))
    txs = load_transactions(real, "test")
    assert txs.inputs["value"].tolist() == [5 * COIN, 5 * COIN] and txs.inputs["imputed"].all()
    assert "10 of 10 inputs imputed" in txs.source
    assert role_facts(real, "test")["imputed"] == 1.0
    assert load_graph(real, "test").edges["total_sent"].tolist() == [5 * COIN, 5 * COIN]


def test_the_real_chain_is_looked_for_where_the_environment_says_and_nowhere_else(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for folder in (None, str(tmp_path)):
        monkeypatch.delenv("BTCNB_REAL_DATA") if folder is None else monkeypatch.setenv("BTCNB_REAL_DATA", folder)
        with pytest.raises(DataError, match=f"{BLOCKS}: folder: is not at hand; set BTCNB_REAL_DATA"):
            real_source()


@pytest.mark.skipif(not (DATA / BLOCKS).is_dir(), reason=f"no {BLOCKS} at {DATA}; set BTCNB_REAL_DATA to their folder")
def test_the_real_blocks_fall_into_five_roles() -> None:
    """Counted by hand from the files' names: 67 heights, of which ten are 685,000 and more."""
    heights = np.array([int(path.name.split("-")[0]) for path in (DATA / BLOCKS).iterdir()])
    spans = dict(zip(ROLES, real_source().intervals, strict=True))
    inside = [int(((heights >= spans[role][0]) & (heights <= spans[role][1])).sum()) for role in IN_TIME]
    assert inside == [16, 11, 13, 17, 10]
