"""`btcnb refine` as a function: whatever the source, results that fit each other, and refusals in one sentence."""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.cluster.hierarchy import is_valid_linkage

from btcnb.data import (
    AddressGraph,
    SimulationConfig,
    build_graph,
    heuristic_clusters,
    simulate,
    write_etl,
    write_release,
)
from btcnb.errors import DataError, ParameterError
from btcnb.experiments.encoder import SHIPPED, SHIPPED_BY, Making, read_encoder, write_encoder
from btcnb.experiments.refine import Refiner, refined
from btcnb.experiments.selection import by_factors, choose
from btcnb.experiments.tool.drawing import condensed
from btcnb.experiments.tool.run import Outcome, Request, chosen, refine_source
from btcnb.experiments.tool.write import FILES, most_concerned, partition_table, report, require_place, summary, write
from btcnb.learn import embed
from btcnb.learn.checkpoints import digest, model_state
from btcnb.learn.config import REMOVED

TXS = simulate(SimulationConfig.preset("tiny"))
PRICE = 8_000.0
PAPERS: dict[str, Any] = {"units": "addresses", "threshold": "lambda"}
"""The paper's way, whatever ships with the package."""
ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same transactions in three shapes."""
    place = tmp_path_factory.mktemp("sources")
    write_etl(TXS, place / "chain.parquet", sidecar=False)
    write_etl(TXS, place / "chain.jsonl.gz", sidecar=False)
    write_release(graph(), place / "release")
    return place


def graph() -> AddressGraph:
    return build_graph(TXS, price_usd=PRICE)


@pytest.fixture(scope="module")
def outcome(folder: Path) -> Outcome:
    return refine_source(Request(folder / "chain.parquet", price_usd=PRICE, **PAPERS))


def clusters(path: Path, rows: list[tuple[Any, Any]]) -> Path:
    table = pd.DataFrame(rows, columns=["address", "cluster"])
    table.to_csv(path, index=False) if path.suffix == ".csv" else table.to_parquet(path, index=False)
    return path


def everybody(cluster: str = "one") -> list[tuple[str, str]]:
    return [(address, cluster) for address in sorted(TXS.addresses)]


# --- results ---


def test_it_is_the_papers_refinement_of_the_whole_source(outcome: Outcome) -> None:
    names = outcome.material.names
    assert sorted(names) == sorted(TXS.addresses)
    whole = graph()
    by_hand = refined(embed(read_encoder().model, whole), whole.labels(), Refiner(), progress=False)
    mine = pd.Series(outcome.found.partition, index=names)[whole.addresses].to_numpy()
    assert np.array_equal(pd.factorize(mine)[0], pd.factorize(by_hand.partition)[0])
    assert outcome.found.threshold == pytest.approx(by_hand.threshold)


def test_the_four_files_fit_each_other(outcome: Outcome, tmp_path: Path) -> None:
    place = write(outcome, tmp_path / "out", top=3)
    assert {path.name for path in place.iterdir()} == FILES
    flagged = pd.read_csv(place / "flagged.csv", dtype={"cluster": str})
    whole = pd.read_csv(place / "partition.csv", dtype={"cluster": str})
    told = json.loads((place / "summary.json").read_text())
    assert (flagged["suspicion"].diff().dropna() <= 0).all() and (flagged["excess"] >= 0).all()
    assert (flagged["size_left"] >= flagged["size_right"]).all()
    assert set(flagged["address_left"]) | set(flagged["address_right"]) <= set(whole["address"])
    cluster_of = whole.set_index("address")["cluster"]
    assert (cluster_of[flagged["address_right"]].to_numpy() == flagged["cluster"].to_numpy()).all()
    parts = whole.groupby("cluster")["refined_cluster"].nunique()
    assert parts.sum() - len(parts) == len(flagged)  # each undone merge makes one part more
    assert whole.groupby("refined_cluster")["cluster"].nunique().max() == 1
    counts = told["counts"]
    assert (counts["flagged"], counts["addresses"]) == (len(flagged), len(whole))
    assert counts["refined_clusters"] == whole["refined_cluster"].nunique()
    assert counts["transactions"] == len(TXS)
    assert told["encoder"]["digest"] == read_encoder().digest
    assert told["threshold"] == outcome.found.threshold
    assert set(told["seconds"]) == set(told["peak_mb"]) == {"read", "graph", "embed", "trees", "write"}
    assert told["recipe"]["units"] == "addresses" and "numpy" in told["versions"]


@pytest.mark.parametrize("name", ["chain.jsonl.gz", "release"])
def test_every_kind_of_source_gives_the_same(folder: Path, outcome: Outcome, name: str) -> None:
    other = refine_source(Request(folder / name, price_usd=PRICE, **PAPERS))
    assert other.transactions == (None if name == "release" else len(TXS))
    assert other.found.threshold == pytest.approx(outcome.found.threshold)
    both = [partition_table(each).set_index("address")["refined_cluster"] for each in (outcome, other)]
    assert np.array_equal(pd.factorize(both[0])[0], pd.factorize(both[1][both[0].index])[0])


def test_a_release_without_addresses_names_nodes_by_their_ids(tmp_path: Path) -> None:
    write_release(replace(graph(), addresses=None, truth=None), tmp_path / "bare")
    found = refine_source(Request(tmp_path / "bare", price_usd=PRICE))
    assert found.material.names[:2].tolist() == ["0", "1"]
    assert summary(found)["source"]["clusters"] == "of the release"


def test_groups_of_inputs_stay_together(folder: Path) -> None:
    found = refine_source(Request(folder / "chain.parquet", price_usd=PRICE, units="inputs", threshold=0.05))
    assert found.refiner == Refiner("inputs", "fixed", 0.05) and len(found.found.flagged)
    together = pd.Series(heuristic_clusters(TXS, ("common_input",)), index=TXS.addresses)
    table = partition_table(found).set_index("address")
    keys = [table["cluster"], together[table.index].to_numpy()]
    assert table.groupby(keys)["refined_cluster"].nunique().max() == 1


# --- clusters of one's own ---


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_clusters_of_ones_own(folder: Path, tmp_path: Path, suffix: str) -> None:
    rows = [(address, i % 7) for i, (address, _) in enumerate(everybody())]
    file = clusters(tmp_path / f"mine.{suffix}", [*rows, rows[0], ("unknown-1", 3), ("unknown-2", 9)])
    found = refine_source(Request(folder / "chain.parquet", file, price_usd=PRICE))
    assert found.counts()["clusters"] == 7
    assert found.material.unused == 2
    assert any("2 addresses of the clusters' file are not in the source" in note for note in found.notes)
    table = partition_table(found)
    assert dict(zip(table["address"], table["cluster"], strict=True)) == {a: str(c) for a, c in rows}


def test_addresses_that_a_file_does_not_name(folder: Path, tmp_path: Path) -> None:
    file = clusters(tmp_path / "some.csv", everybody()[5:])
    lost = {address for address, _ in everybody()[:5]}
    asked = Request(folder / "chain.parquet", file, price_usd=PRICE)
    with pytest.raises(DataError, match=rf"5 of {len(TXS.addresses):,} addresses .* missing, the first is") as error:
        refine_source(asked)
    assert any(address in str(error.value) for address in lost) and "--missing alone" in str(error.value)
    found = refine_source(replace(asked, missing="alone"))
    assert found.material.alone == 5 and found.counts()["clusters"] == 6
    table = partition_table(found).set_index("address")["cluster"]
    assert all(table[address] == address for address in lost)


def test_a_lone_address_never_shares_its_name_with_a_cluster(folder: Path, tmp_path: Path) -> None:
    (first, _), *rest = everybody()
    file = clusters(tmp_path / "named.csv", [(address, first) for address, _ in rest])
    found = refine_source(Request(folder / "chain.parquet", file, "alone", price_usd=PRICE))
    assert found.material.titles.tolist() == [first, f"{first} (alone)"]


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("twice.csv", "address,cluster\nx,1\nx,2\n", "x is in 1 and 2; keep one cluster"),
        ("column.csv", "address,alias\nx,1\n", "cluster: column is missing"),
        ("both.csv", "address,cluster,cluster\nx,1,2\n", "cluster: column stands twice"),
        ("empty.csv", "address,cluster\nx,\n", "cluster: row 1 is empty"),
        ("none.csv", "address,cluster\n", "rows: there are none"),
        ("nothing.csv", "", "cannot be read"),
        ("long.csv", "address,cluster\nx,1,2,3\n", "more fields than there are columns"),
        ("binary.csv", b"\xff\xfe\x00\x01address", "cannot be read"),
        ("broken.parquet", b"PAR1 and nothing else PAR1", "cannot be read"),
        ("absent.csv", None, "does not exist"),
    ],
)
def test_files_of_clusters_that_are_refused(folder: Path, tmp_path: Path, name: str, content: Any, words: str) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(DataError, match=words) as error:
        refine_source(Request(folder / "chain.parquet", tmp_path / name, price_usd=PRICE))
    assert name in str(error.value) and "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ({"address": ["x"], "cluster": [1.5]}, "cluster: holds double, not text"),
        ({"address": [7], "cluster": [1]}, "address: holds int64, not text"),
        ({"address": ["x", None], "cluster": [1, 2]}, "address: row 2 is empty"),
        ({"address": ["x"], "alias": [1]}, "cluster: column is missing"),
    ],
)
def test_parquet_files_of_clusters_that_are_refused(folder: Path, tmp_path: Path, table: Any, words: str) -> None:
    pd.DataFrame(table).to_parquet(tmp_path / "mine.parquet", index=False)
    with pytest.raises(DataError, match=words):
        refine_source(Request(folder / "chain.parquet", tmp_path / "mine.parquet", price_usd=PRICE))


# --- sources and settings that are refused ---


def test_sources_that_are_refused(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text("hello")
    (tmp_path / "nothing").mkdir()
    write_etl(TXS.select(np.zeros(len(TXS), dtype=bool)), tmp_path / "empty.parquet", sidecar=False)
    write_release({"train1": graph(), "test": graph()}, tmp_path / "five")
    for name, words in {
        "text.txt": "of no kind that btcnb reads",
        "nothing": "of no kind that btcnb reads",
        "missing": "does not exist",
        "empty.parquet": "there are none",
        "five": "holds 2 graphs .* name the folder of one of them",
    }.items():
        with pytest.raises(DataError, match=words):
            refine_source(Request(tmp_path / name, price_usd=PRICE))
    with pytest.raises(DataError, match=r"no transactions, .* give --units addresses"):
        refine_source(Request(folder / "release", price_usd=PRICE, units="inputs"))


def test_a_price_is_needed_where_nobody_knows_it(tmp_path: Path) -> None:
    table = TXS.transactions.assign(block_number=TXS.transactions["block_number"] - 300_000)
    write_etl(replace(TXS, transactions=table), tmp_path / "early.jsonl", sidecar=False)
    with pytest.raises(DataError, match=r"price of a bitcoin: is unknown for blocks 299,.* give --price-usd"):
        refine_source(Request(tmp_path / "early.jsonl"))
    with pytest.raises(ParameterError, match="price_usd is"):
        refine_source(Request(tmp_path / "early.jsonl", price_usd=-1.0))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"threshold": "best"}, "must be a number or one of fixed, lambda, local"),
        ({"threshold": float("nan")}, "threshold is nan"),
        ({"threshold": 0.0}, "threshold is 0.0"),
        ({"units": "coins"}, "units is 'coins'"),
    ],
)
def test_settings_that_are_refused_before_anything_is_read(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(ParameterError, match=words):
        refine_source(Request("nowhere", **changes))


# --- encoders ---


def test_the_encoder_of_the_package_is_small_and_is_what_its_constant_says() -> None:
    shipped = read_encoder()
    assert SHIPPED.stat().st_size < 1_000_000
    flat = SHIPPED_BY.recipe().flat() | {f"train.{name}": value for name, value in REMOVED.items()}
    made = shipped.made["recipe"]
    assert {name: flat.get(name) for name in made} == made, "made by another recipe: run `btcnb encoder` again"
    assert shipped.refiner == replace(SHIPPED_BY.refiner, threshold=None)
    assert shipped.threshold is not None and 0.0 < shipped.threshold < 2.0


def test_what_ships_is_what_the_validation_worlds_chose() -> None:
    """The records of the validation worlds choose a recipe by a rule fixed before they were run; the package has it."""
    records = pd.read_json(ROOT / "results" / "sweeps" / "refinement_valid.jsonl", lines=True)
    best = choose(by_factors(records))
    changes = {"paper": {}, "common": {"supervision": ("common_input",)}, "robust": {"robustness": 0.7}}
    assert SHIPPED_BY.changes == changes[best.encoder]
    refiner = Refiner(best.units, "fixed", float(best.cut[3:])) if best.cut.startswith("at.") else None
    assert SHIPPED_BY.refiner == (refiner or Refiner(best.units, best.cut))


def test_without_transactions_leaves_are_addresses_and_the_outcome_says_so(folder: Path) -> None:
    whole, bare = (refine_source(Request(folder / name, price_usd=PRICE)) for name in ("chain.parquet", "release"))
    assert whole.refiner == SHIPPED_BY.refiner and not any("spent together" in note for note in whole.notes)
    assert bare.refiner == Refiner() and any("spent together" in note for note in bare.notes)
    kept = refine_source(Request(folder / "release", price_usd=PRICE, threshold=0.3))
    assert kept.refiner == Refiner("addresses", "fixed", 0.3)


def test_what_an_encoder_says_and_what_the_user_says() -> None:
    shipped = replace(read_encoder(), refiner=Refiner("inputs", "fixed"), threshold=0.25)
    assert chosen(shipped, Request("x")) == Refiner("inputs", "fixed", 0.25)
    assert chosen(shipped, Request("x", threshold=0.4)) == Refiner("inputs", "fixed", 0.4)
    assert chosen(shipped, Request("x", threshold="local")) == Refiner("inputs", "local")
    assert chosen(shipped, Request("x", units="addresses")) == Refiner()  # 0.25 was found for other leaves
    bare = replace(shipped, refiner=None, threshold=None)
    assert chosen(bare, Request("x")) == Refiner()
    with pytest.raises(ParameterError, match="no threshold of its own"):
        chosen(bare, Request("x", threshold="fixed"))


def test_encoders_go_to_files_and_back(tmp_path: Path) -> None:
    shipped = read_encoder()
    path = write_encoder(shipped, tmp_path)
    again = read_encoder(tmp_path)
    assert (again.refiner, again.threshold) == (shipped.refiner, shipped.threshold)
    assert again.digest == digest(model_state(shipped.model)), "of the file that was written"
    assert read_encoder(write_encoder(again, tmp_path / "copy")).digest == again.digest
    path.with_suffix(".json").unlink()
    assert read_encoder(path).refiner is None


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"digest": "0" * 64}, "belongs to another encoder"),
        ({"format": 2}, "format 2 is not 1"),
        ({"threshold": -1.0}, "threshold is -1.0"),
        ({"refiner": {"units": "coins"}}, "units is 'coins'"),
        ({"refiner": {"spell": 1}}, "does not describe an encoder"),
        ("[1, 2", "does not describe an encoder"),
        ("[]", "does not describe an encoder"),
    ],
)
def test_what_stands_beside_an_encoder_is_checked(tmp_path: Path, change: Any, words: str) -> None:
    beside = write_encoder(read_encoder(), tmp_path).with_suffix(".json")
    told = json.loads(beside.read_text())
    beside.write_text(change if isinstance(change, str) else json.dumps(told | change))
    with pytest.raises(DataError, match=words) as error:
        read_encoder(tmp_path)
    assert "btcnb encoder" in str(error.value)


def test_encoders_that_are_none(tmp_path: Path) -> None:
    (tmp_path / "encoder.pt").write_bytes(b"not a checkpoint")
    for path in (tmp_path / "encoder.pt", tmp_path / "absent.pt", tmp_path):
        with pytest.raises(DataError):
            read_encoder(path)
    with pytest.raises(ParameterError, match="size is 'huge'"):
        Making(size="huge").recipe()


# --- the folder ---


def test_a_folder_that_is_in_use_is_left_alone(outcome: Outcome, tmp_path: Path) -> None:
    place = write(outcome, tmp_path / "out")
    with pytest.raises(DataError, match=r"is not empty; .* --force"):
        write(outcome, place)
    write(outcome, place, force=True)
    assert {path.name for path in tmp_path.iterdir()} == {"out"}
    (place / "thesis.tex").write_text("years of work")
    with pytest.raises(DataError, match=r"holds thesis\.tex"):
        write(outcome, place, force=True)
    assert (place / "thesis.tex").exists()
    (tmp_path / "file").write_text("")
    with pytest.raises(DataError, match="is a file"):
        require_place(tmp_path / "file", force=True)
    with pytest.raises(DataError):
        require_place(tmp_path / "file" / "below")
    with pytest.raises(DataError):
        require_place("a\0b")


@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError, DataError("x", "y", "z", "w")])
@pytest.mark.parametrize("before", [False, True])
def test_nothing_half_written_is_left(
    outcome: Outcome, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Any, before: bool
) -> None:
    if before:
        write(outcome, tmp_path / "out")
    old = sorted(path.name for path in tmp_path.rglob("*"))

    def fails(*_: Any) -> str:
        raise error

    monkeypatch.setattr("btcnb.experiments.tool.write.report", fails)
    with pytest.raises((KeyboardInterrupt, DataError)):
        write(outcome, tmp_path / "out", force=True)
    assert sorted(path.name for path in tmp_path.rglob("*")) == old


# --- the report ---


class Page(HTMLParser):
    """Tags, attributes and text as a browser would see them."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: set[str] = set()
        self.attributes: set[tuple[str, str]] = set()
        self.said: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {(name, value or "") for name, value in attrs}

    def handle_data(self, data: str) -> None:
        self.said.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.said).split())


def harmless(page: Page) -> bool:
    """No script, no event, nothing that is fetched."""
    active = {"script", "iframe", "object", "embed", "link", "img", "base", "form", "a", "image", "use", "animate"}
    fetched = {"src", "href", "xlink:href", "srcset", "action", "style", "background"}
    return not page.tags & active and not any(name in fetched or name.startswith("on") for name, _ in page.attributes)


def test_the_page_says_what_was_found_and_what_it_is_not(outcome: Outcome) -> None:
    text = report(outcome, top=4)
    page = Page(text)
    assert harmless(page)
    assert ("content", "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'") in (
        page.attributes
    )
    assert "Suspicion, not proof." in page.text and "simulated economies" in page.text
    assert f"{len(outcome.found.flagged):,}" in page.text and f"λ = {outcome.found.threshold:.3f}" in page.text
    assert text.count("<figure") == 5 and text.count("<tr><td") == 4  # heights and four trees; four merges
    assert "url(" not in text and "@import" not in text and "//" not in text.replace("https://", "//x")
    assert f"Cluster {outcome.material.titles[most_concerned(outcome.found.flagged)[0]]}" in page.text


HOSTILE = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "=HYPERLINK(1)",
    "line\nbreak",
    "a,b;c\t",
    "\u202egnp.exe",
    "&amp;</title><svg onload=1>",
    "x" * 500,
]


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Every address of the source is hostile, and so is the name of its file."""
    names = np.array([f"{HOSTILE[i % len(HOSTILE)]} {i}" for i in range(len(TXS.addresses))], dtype=object)
    txs = replace(TXS, addresses=names, truth=None)
    return write_etl(txs, tmp_path_factory.mktemp("hostile") / "<script>'\".jsonl")


def test_text_from_data_is_shown_and_never_acted_on(hostile: Path, tmp_path: Path) -> None:
    path = hostile
    read = refine_source(Request(path, price_usd=PRICE))
    rows = [(address, f"<b onclick=x>{HOSTILE[i % 8]}") for i, address in enumerate(read.material.names)]
    file = clusters(tmp_path / "mine.parquet", rows)
    found = refine_source(Request(path, file, price_usd=PRICE, threshold=0.01))
    place = write(found, tmp_path / "out")
    page = Page((place / "report.html").read_text())
    assert harmless(page) and "b" not in page.tags
    assert "<script>alert(1)</script>" in page.text and "\u202e" not in page.text
    assert max(len(word) for word in page.text.split()) < 100
    with (place / "partition.csv").open(newline="") as stream:
        written = [(row["address"], row["cluster"]) for row in csv.DictReader(stream)]
    assert written == [(str(a), str(c)) for a, c in rows]


def test_a_source_in_which_everybody_is_alone(folder: Path, tmp_path: Path) -> None:
    rows = [(address, str(i)) for i, (address, _) in enumerate(everybody())]
    file = clusters(tmp_path / "alone.csv", rows)
    found = refine_source(Request(folder / "chain.parquet", file, price_usd=PRICE, **PAPERS))
    assert not len(found.found.flagged) and found.counts()["merges"] == 0
    place = write(found, tmp_path / "out")
    assert json.loads((place / "summary.json").read_text())["threshold"] is None
    page = Page((place / "report.html").read_text())
    assert "None of the 0 clusters with several addresses" in page.text
    assert any("No cluster was large enough" in note for note in found.notes)
    assert len((place / "flagged.csv").read_text().splitlines()) == 1


# --- drawings ---


@given(st.integers(2, 120), st.integers(0, 99), st.floats(0.01, 1.5))
def test_a_condensed_tree_loses_nobody(n: int, seed: int, threshold: float) -> None:
    rng = np.random.default_rng(seed)
    groups = rng.integers(0, n, n)
    found = refined(rng.normal(size=(n, 3)), np.zeros(n, dtype=int), Refiner("inputs", "fixed", threshold), groups)
    if len(found.forest.merges) < 1:
        return
    tree = condensed(found, 0)
    ends = tree.ends.addresses
    assert tree.all_addresses == n == ends.sum() + tree.left_out
    assert tree.all_parts == len(np.unique(found.partition))
    assert len(ends) <= 40 and is_valid_linkage(tree.Z)
    if len(found.forest.merges) <= 11:
        assert len(ends) == len(found.forest.merges) + 1 and not tree.left_out
    heights, addresses = np.concatenate([np.zeros(len(ends)), tree.Z[:, 2]]), np.concatenate([ends, tree.addresses])
    for merge, sides in enumerate(tree.Z[:, :2].astype(int)):
        assert (heights[sides] <= tree.Z[merge, 2] + 1e-12).all()
        assert addresses[sides].sum() <= tree.addresses[merge] and addresses[sides[0]] >= addresses[sides[1]]
    if len(found.flagged):
        assert found.flagged["height"][0] in tree.Z[tree.undone, 2]
