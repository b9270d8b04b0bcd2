"""The command `btcnb simulate`: what it writes reads back, with and without btcnb."""

from __future__ import annotations

import pandas as pd
import pytest

from btcnb.build.cli import main
from btcnb.data import ROLES, Source, load_graph, load_transactions, read_etl, read_release
from btcnb.data.export import write_simulation
from btcnb.errors import ParameterError


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("simulated") / "out"
    assert main(["simulate", "tiny", "--seed", "3", "--out", str(place)]) == 0
    return place


def test_transactions_graphs_and_truth_read_back(folder):
    source = Source(size="tiny", seed=3)
    for role in ROLES:
        txs, graph = load_transactions(source, role), load_graph(source, role)
        back, released = read_etl(folder / "transactions" / f"{role}.parquet"), read_release(folder / "release", role)
        assert back.fingerprint() == txs.fingerprint()
        assert released.fingerprint() == graph.fingerprint()
        assert released.meta == graph.meta
        assert released.truth.tolist() == txs.truth.owner.tolist()
        assert released.addresses.tolist() == txs.addresses.tolist()
        for name in ("owner", "label", "coinjoin", "change", "mechanism"):
            assert getattr(back.truth, name).tolist() == getattr(txs.truth, name).tolist()


def test_plain_tables_tell_the_truth_without_btcnb(folder):
    truth = load_transactions(Source(size="tiny", seed=3), "test").truth
    owners = pd.read_csv(folder / "truth" / "test_addresses.csv", keep_default_na=False)
    etl = pd.read_parquet(folder / "transactions" / "test.parquet")
    used = {a for side in ("inputs", "outputs") for row in etl[side] for one in row for a in one["addresses"]}
    assert set(owners["address"]) == used
    assert owners["owner"].tolist() == truth.owner.tolist()
    known = owners[owners["owner"] >= 0]
    assert known["name"].tolist() == truth.entities["name"].to_numpy()[known["owner"]].tolist()
    assert owners["label"].tolist() == truth.label.tolist()
    told = pd.read_csv(folder / "truth" / "test_transactions.csv", keep_default_na=False)
    assert told["hash"].tolist() == etl["hash"].tolist()
    for name in ("coinjoin", "change", "mechanism"):
        assert told[name].tolist() == getattr(truth, name).tolist()


def test_the_readme_names_every_kind_of_file(folder):
    text = (folder / "README.md").read_text()
    assert "btcnb simulate tiny --seed 3" in text
    assert "{" not in text
    for file in folder.rglob("*test*"):
        if file.is_file():
            assert file.name.replace("test", "ROLE") in text
    assert all(file.name in text for file in (folder / "release" / "test").iterdir())


def test_a_folder_with_files_is_refused_and_an_interrupted_run_leaves_nothing(tmp_path, monkeypatch, capsys):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("years")
    with pytest.raises(ParameterError, match="is not empty; name a new or an empty folder"):
        write_simulation("tiny", 3, tmp_path / "mine")
    (tmp_path / "empty").mkdir()

    def interrupted(*_args):
        raise KeyboardInterrupt

    monkeypatch.setattr("btcnb.data.export.load_graph", interrupted)
    assert main(["simulate", "tiny", "--seed", "3", "--out", str(tmp_path / "empty")]) == 130
    assert "nothing was written" in capsys.readouterr().err
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["empty", "mine", "thesis.txt"]
