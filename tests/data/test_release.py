"""The released format: found by columns wherever it lies, round trips exact, breaches named with file and column."""

from __future__ import annotations

import gzip
import json
import zipfile

import numpy as np
import pandas as pd
import pytest
from builders import BTC, chain

from btcnb.data import AddressGraph, build_graph, features, read_release, write_release
from btcnb.data.graph import CLUSTER_COLUMNS, EDGE_COLUMNS, NODE_COLUMNS
from btcnb.data.readers import release_splits
from btcnb.errors import DataError, ParameterError

FORMATS = ("csv", "csv.gz", "parquet")


def graph(amount: int = BTC) -> AddressGraph:
    """Built from a story: a coinbase, two payments and a join; owners known for three addresses."""
    txs = (
        chain(start_block=599_000)
        .coinbase("pool", 50 * amount)
        .pay("pool", {"alice": 20 * amount, "pool2": 30 * amount - 7})
        .pay(["alice", "pool2"], {"shop": 50 * amount - 9})
        .owners(alice="alice", pool="pool pool2")
        .build("simulated story")
    )
    return build_graph(txs, labels=np.array([0, 1, 1, 2]))


def same(one: AddressGraph, two: AddressGraph) -> None:
    for table in ("nodes", "edges", "clusters"):
        pd.testing.assert_frame_equal(getattr(one, table), getattr(two, table), check_exact=True)
    assert one.fingerprint() == two.fingerprint()
    assert one.meta == two.meta
    for name in ("truth", "addresses"):
        first, second = getattr(one, name), getattr(two, name)
        assert (first is None) == (second is None)
        if first is not None:
            assert first.dtype == second.dtype
            assert first.tolist() == second.tolist()


@pytest.mark.parametrize("format", FORMATS)
def test_a_round_trip_is_exact(tmp_path, format):
    original = graph()
    assert original.truth is not None
    assert original.nodes.isna().any().any()  # the pool never received, the shop never sent
    path = write_release(original, tmp_path / "g", format)
    assert sorted(file.name for file in path.iterdir()) == sorted(
        [*(f"{name}.{format}" for name in ("nodes", "edges", "clusters", "truth")), "meta.json"]
    )
    same(read_release(path), original)


@pytest.mark.parametrize("format", FORMATS)
def test_odd_types_fractions_large_ids_and_missing_extras_survive(tmp_path, format):
    original = graph()
    nodes = original.nodes.astype({"total_sent": "Int64", "degree_in": "int32"})
    nodes["min_sent"] = nodes["min_sent"] / 3
    nodes.loc[0, "total_sent"] = 2**53 + 1  # not a double
    nodes["node_id"] += 2**53 + 1
    edges = original.edges.assign(a=original.edges["a"] + 2**53 + 1, b=original.edges["b"] + 2**53 + 1)
    clusters = original.clusters.assign(node_id=nodes["node_id"], alias=["x", "y", "y", "z"])
    odd = AddressGraph(nodes, edges, clusters, meta={"price_usd": 0.1 + 0.2, "source": "Ω"})
    back = read_release(write_release(odd, tmp_path / "g", format))
    same(back, odd)
    assert (back.truth, back.addresses) == (None, None)


def test_addresses_that_look_like_missing_values_survive(tmp_path):
    original = graph()
    named = AddressGraph(
        original.nodes, original.edges, original.clusters, None, np.array(["NA", "null", "1e5", "007"], dtype=object)
    )
    assert read_release(write_release(named, tmp_path / "g")).addresses.tolist() == ["NA", "null", "1e5", "007"]


def test_splits_have_a_folder_each(tmp_path):
    graphs = {"train1": graph(), "valid": graph(3)}
    path = write_release(graphs, tmp_path / "all", "parquet")
    assert sorted(folder.name for folder in path.iterdir()) == ["train1", "valid"]
    same(read_release(path, "valid"), graphs["valid"])
    same(read_release(path / "train1"), graphs["train1"])
    assert release_splits(path) == ("train1", "valid")
    with pytest.raises(DataError, match="split: there are 2: train1, valid; name one of them"):
        read_release(path)
    with pytest.raises(DataError, match="'test' is not there; it has 'train1', 'valid'"):
        read_release(path, "test")


LAYOUTS = {
    "folders": "data/{split}/{table}.csv",
    "tables first": "{table}/{split}.csv",
    "flat": "{split}_{table}.csv",
    "flat, other way round": "{table}-{split}.csv",
    "deep": "release v1/graphs/{split}/my {table} table.csv",
}


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
def test_tables_are_found_by_their_columns_in_any_layout(tmp_path, layout):
    """As strangers might have written them: other names, other order of columns, an index column, no sidecars."""
    graphs = {"train_1": graph(), "test": graph(3)}
    folder = tmp_path / "release"
    for split, one in graphs.items():
        for table in ("nodes", "edges", "clusters"):
            file = folder / layout.format(split=split, table=table)
            file.parent.mkdir(parents=True, exist_ok=True)
            getattr(one, table).iloc[:, ::-1].to_csv(file)
    (folder / "README.txt").write_text("hello, this is data\n")
    (folder / "prices.csv").write_text("date,price\n2020,1\n")
    with zipfile.ZipFile(tmp_path / "release.zip", "w") as archive:
        for file in folder.rglob("*.*"):
            archive.write(file, file.relative_to(folder))
    for place in (folder, tmp_path / "release.zip"):
        assert release_splits(place) == ("test", "train_1")
        found = {split: read_release(place, split) for split in release_splits(place)}
        for split, one in graphs.items():
            for table in ("nodes", "edges", "clusters"):
                pd.testing.assert_frame_equal(getattr(found[split], table), getattr(one, table), check_dtype=False)
        assert read_release(place, "train1").num_nodes == 4  # separators do not matter in a split's name
        assert found["test"].meta["start_block"] == 599_001
        assert found["test"].meta["price_usd"] > 1000  # the paper's interval from block 599,000


def test_names_may_say_nothing_at_all(tmp_path):
    for name, table in zip("xyz", (graph().edges, graph().clusters, graph().nodes), strict=True):
        table.to_csv(tmp_path / f"{name}.csv", sep=";", index=False)
    same_tables = read_release(tmp_path)  # one table of each kind in a folder: one graph
    for table in ("nodes", "edges", "clusters"):
        pd.testing.assert_frame_equal(getattr(same_tables, table), getattr(graph(), table))
    (tmp_path / "z").mkdir()
    (tmp_path / "z.csv").rename(tmp_path / "z" / "z.csv")  # in folders of their own they are not
    with pytest.raises(DataError, match="no table has its columns"):
        read_release(tmp_path, "z")


def test_fractions_survive_csv_to_the_last_bit(tmp_path):
    draw = np.random.default_rng(3)
    values = np.concatenate([draw.random(2000), 10.0 ** draw.uniform(-300, 300, 2000), [0.1, 1 / 3, 5e-324, 2**53 + 2]])
    number = len(values)
    nodes = pd.DataFrame({name: np.zeros(number, dtype=int) for name in NODE_COLUMNS})
    nodes = nodes.assign(node_id=np.arange(number), total_sent=values)
    edges = pd.DataFrame({name: np.zeros(0, dtype=int) for name in EDGE_COLUMNS})
    clusters = pd.DataFrame({"node_id": np.arange(number), "alias": 0})
    back = read_release(write_release(AddressGraph(nodes, edges, clusters), tmp_path / "g"))
    assert (back.nodes["total_sent"].to_numpy() == values).all()


def damaged(tmp_path, table: str, change, format: str = "csv") -> str:
    folder = write_release(graph(), tmp_path / "g", format)
    (folder / "meta.json").unlink()
    (folder / f"truth.{format}").unlink()
    frame = change(getattr(graph(), table).astype(object))
    file = folder / f"{table}.{format}"
    frame.to_csv(file, index=False) if format == "csv" else frame.infer_objects().to_parquet(file, index=False)
    with pytest.raises(DataError) as error:
        read_release(folder)
    return str(error.value)


def cell(row, column, value):
    def change(frame):
        frame.loc[row, column] = value
        return frame

    return change


@pytest.mark.parametrize("format", ["csv", "parquet"])
@pytest.mark.parametrize(
    ("table", "change", "message"),
    [
        ("nodes", lambda t: t.drop(columns="degree_out"), "nodes.degree_out: column is missing"),
        ("nodes", lambda t: t.rename(columns={"min_sent": "minsent"}), "nodes.min_sent: column is missing"),
        ("edges", lambda t: t.rename(columns={"a": "source"}), "edges.a: column is missing"),
        ("clusters", lambda t: t.rename(columns={"alias": "cluster"}), "clusters.alias: column is missing"),
        ("nodes", cell(1, "node_id", 0), "nodes.node_id: 0 stands twice"),
        ("edges", cell(1, "b", 99), "edges.b: row 1 holds 99; name nodes of the nodes table"),
        ("edges", cell(1, "total_sent", -3), "edges.total_sent: row 1 holds -3"),
        ("nodes", cell(2, "degree_in", np.nan), "nodes.degree_in: row 2 is empty or NaN"),
        ("edges", cell(0, "reveal", np.nan), "edges.reveal: row 0 is empty or NaN"),
        ("nodes", lambda t: t.iloc[:0].astype(float), "nodes: the table is empty"),
        ("clusters", lambda t: t.iloc[:-1], "clusters.node_id: 3 rows for 4 nodes"),
        ("clusters", cell(3, "alias", np.nan), "clusters.alias: row 3 is empty or NaN"),
        ("clusters", cell(3, "alias", np.inf), "clusters.alias: row 3 holds inf"),
        ("edges", cell(0, "reveal", np.inf), "edges.reveal: row 0 holds inf"),
    ],
)
def test_a_breach_is_named_with_file_and_column(tmp_path, table, change, message, format):
    said = damaged(tmp_path, table, change, format)
    assert message in said
    assert f"{table}.{format}: " in said


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("keep", [1, 2, 7, 12, 29])
def test_a_file_cut_anywhere_is_named(tmp_path, format, keep):
    folder = write_release(graph(), tmp_path / "g", format)
    file = folder / f"edges.{format}"
    file.write_bytes(file.read_bytes()[:-keep])
    with pytest.raises(DataError, match=r"edges\."):
        read_release(folder)


@pytest.mark.parametrize("alias", [2**63, 2**64 + 1, "1.5", "1e30"])
def test_an_alias_is_never_rounded_nor_does_its_sign_turn(tmp_path, alias):
    folder = write_release(graph(), tmp_path / "g")
    text = (folder / "clusters.csv").read_text()
    assert "3,2" in text
    (folder / "clusters.csv").write_text(text.replace("3,2", f"3,{alias}"))
    with pytest.raises(DataError, match=r"clusters\.csv"):
        read_release(folder)


def test_empty_missing_doubled_and_pickled_files(tmp_path):
    folder = write_release(graph(), tmp_path / "g")
    (folder / "edges.csv").write_text("")
    with pytest.raises(DataError, match=r"edges\.csv: edges\.a: column is missing; .*found none"):
        read_release(folder)
    (folder / "edges.csv").unlink()
    with pytest.raises(DataError, match="edges: no table has its columns; expected a, b, reveal"):
        read_release(folder)
    graph().edges.to_csv(folder / "edges.csv", index=False)
    graph().edges.to_csv(folder / "edges_table.csv", index=False)
    with pytest.raises(DataError, match=r"edges\.csv and edges_table\.csv both look like it"):
        read_release(folder)
    only = tmp_path / "pickled"
    only.mkdir()
    (only / "graph.pkl").write_bytes(b"cos\nsystem\n(S'exit'\ntR.")
    with pytest.raises(DataError, match=r"graph\.pkl is not opened because it could run code"):
        read_release(only)
    with pytest.raises(DataError, match="does not exist"):
        read_release(tmp_path / "nowhere")


def test_a_broken_sidecar_is_named(tmp_path):
    folder = write_release(graph(), tmp_path / "g")
    good = (folder / "meta.json").read_text()
    (folder / "meta.json").write_text(good[:20])
    with pytest.raises(DataError, match=r"meta\.json: JSON: is broken or cut short"):
        read_release(folder)
    told = json.loads(good)
    told["dtypes"]["edges"]["a"] = "datetime64[ns]"
    (folder / "meta.json").write_text(json.dumps(told))
    with pytest.raises(DataError, match=r"meta\.json: dtypes\.edges\.a: "):
        read_release(folder)
    (folder / "meta.json").write_text(good)
    (folder / "truth.csv").write_text("node_id,owner\n0,1\n")
    with pytest.raises(DataError, match=r"truth\.csv: node_id: does not list every node once"):
        read_release(folder)


def test_writing_replaces_a_release_and_nothing_else(tmp_path):
    path = tmp_path / "g"
    write_release({"a": graph(), "b": graph(3)}, path)
    write_release(graph(), path, "csv.gz")  # another layout and format: the old files go
    assert sorted(file.name for file in path.rglob("*")) == sorted(
        [*(f"{name}.csv.gz" for name in ("nodes", "edges", "clusters", "truth")), "meta.json"]
    )
    (path / "thesis.docx").write_text("years of work")
    with pytest.raises(DataError, match="holds files that are no release"):
        write_release(graph(), path)
    assert (path / "thesis.docx").read_text() == "years of work"
    (tmp_path / "file").write_text("x")
    with pytest.raises(DataError, match="holds files that are no release"):
        write_release(graph(), tmp_path / "file")


def test_a_write_that_fails_leaves_what_was_there(tmp_path, monkeypatch):
    path = write_release(graph(), tmp_path / "g")
    monkeypatch.setattr("btcnb.data.readers.release.json.dumps", lambda *_, **__: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        write_release(graph(3), path)
    monkeypatch.undo()
    same(read_release(path), graph())
    bad = AddressGraph(graph().nodes, graph().edges.drop(columns="total"), graph().clusters)
    with pytest.raises(DataError, match=r"edges\.total: column is missing"):
        write_release({"fine": graph(), "broken": bad}, tmp_path / "new")
    assert [entry.name for entry in tmp_path.iterdir()] == ["g"]


def test_wrong_parameters(tmp_path):
    with pytest.raises(ParameterError, match="format is 'xlsx'"):
        write_release(graph(), tmp_path / "g", "xlsx")
    with pytest.raises(ParameterError, match="cannot name a folder"):
        write_release({"../up": graph()}, tmp_path / "g")
    assert list(tmp_path.iterdir()) == []


def test_equal_graphs_make_equal_bytes(tmp_path):
    for name in ("one", "two"):
        write_release(graph(), tmp_path / name, "csv.gz")
    for file in (tmp_path / "one").iterdir():
        assert file.read_bytes() == (tmp_path / "two" / file.name).read_bytes()
    assert gzip.decompress((tmp_path / "one" / "clusters.csv.gz").read_bytes()).startswith(b"node_id,alias\n")
    assert len(EDGE_COLUMNS) + len(CLUSTER_COLUMNS) == 10


@pytest.mark.parametrize("name", ["start_block", "end_block"])
def test_a_height_that_is_null_is_read_off_the_edges(tmp_path, name):
    """Features count blocks from the first one; an unknown price stays unknown, because features can do without."""
    folder = write_release(graph(), tmp_path / "g")
    told = json.loads((folder / "meta.json").read_text())
    told["meta"] |= {"price_usd": None, name: None}
    (folder / "meta.json").write_text(json.dumps(told))
    back = read_release(folder)
    assert back.meta["price_usd"] is None
    assert name not in back.meta
    assert np.isfinite(features(back)).all()


@pytest.mark.parametrize("value", [-1, "7", True, [], {}, float("nan"), float("inf")])
@pytest.mark.parametrize("name", ["start_block", "price_usd"])
def test_a_height_or_price_that_is_no_number_is_refused(tmp_path, name, value):
    folder = write_release(graph(), tmp_path / "g")
    told = json.loads((folder / "meta.json").read_text())
    told["meta"][name] = value
    (folder / "meta.json").write_text(json.dumps(told))
    with pytest.raises(DataError, match=rf"meta\.json: meta\.{name}: .*; fix or delete it"):
        read_release(folder)
