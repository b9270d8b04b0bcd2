"""The commands `btcnb refine` and `btcnb encoder` as a user types them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from btcnb.build import cli
from btcnb.data import SimulationConfig, simulate, write_etl
from btcnb.experiments.tool import run

FILES = {"flagged.csv", "partition.csv", "summary.json", "report.html"}


@pytest.fixture(scope="module")
def chain(tmp_path_factory: pytest.TempPathFactory) -> Path:
    txs = simulate(SimulationConfig.preset("tiny"))
    return write_etl(txs, tmp_path_factory.mktemp("chain") / "chain.parquet", sidecar=False)


@pytest.fixture(autouse=True)
def no_book(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The tools work where no book is."""

    def fails(*_: Any) -> None:
        raise AssertionError("a book was looked for")

    monkeypatch.setattr("btcnb.build.project.find_project", fails)
    monkeypatch.setenv("BTCNB_CACHE", str(tmp_path / "cache"))


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def test_a_run_tells_every_stage_and_leaves_four_files(
    chain: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "new" / "refined"
    assert cli.main(["refine", str(chain), "--out", str(out), "--top", "2"]) == 0
    told = capsys.readouterr()
    assert names(out) == FILES and names(out.parent) == {"refined"}
    assert f"the report: {out / 'report.html'}" in told.out
    assert [line[:5] for line in told.err.splitlines() if line.startswith("[")] == [f"[{i}/5]" for i in range(1, 6)]
    assert json.loads((out / "summary.json").read_text())["source"]["kind"] == "etl"


def test_quiet_is_quiet(chain: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "refined"
    assert cli.main(["refine", str(chain), "--out", str(out), "--quiet", "--threshold", "0.2"]) == 0
    told = capsys.readouterr()
    assert (told.out, told.err) == ("", "")
    assert json.loads((out / "summary.json").read_text())["threshold"] == 0.2


@pytest.mark.parametrize(
    ("options", "status", "words"),
    [
        (["--threshold", "high"], 2, "a number or one of fixed, lambda, local"),
        (["--price-usd", "0"], 2, "price_usd is 0.0"),
        (["--clusters", "absent.csv"], 1, "absent.csv: path: does not exist"),
        (["--encoder", "absent.pt"], 1, "absent.pt: checkpoint: there is no such file"),
    ],
)
def test_what_is_refused_is_refused_in_one_sentence(
    chain: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], options: list[str], status: int, words: str
) -> None:
    out = tmp_path / "refined"
    assert cli.main(["refine", str(chain), "--out", str(out), "--quiet", *options]) == status
    told = capsys.readouterr().err
    assert words in told and told.startswith("btcnb: ") and len(told.splitlines()) == 1
    assert not out.exists()


def test_a_folder_in_use_is_refused_before_anything_is_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], chain: Path
) -> None:
    (tmp_path / "report.html").write_text("earlier")
    assert cli.main(["refine", "nowhere", "--out", str(tmp_path), "--quiet"]) == 1
    assert "is not empty" in capsys.readouterr().err
    assert cli.main(["refine", str(chain), "--out", str(tmp_path), "--quiet", "--force"]) == 0
    assert names(tmp_path) == FILES


@pytest.mark.parametrize(("kind", "status"), [(KeyboardInterrupt, 130), (cli._Terminated, 143)])
def test_an_interrupt_is_answered_in_one_sentence(
    chain: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    kind: type[BaseException],
    status: int,
) -> None:
    def interrupted(*_: Any) -> None:
        raise kind

    monkeypatch.setattr(run, "embed", interrupted)
    out = tmp_path / "refined"
    assert cli.main(["refine", str(chain), "--out", str(out), "--quiet"]) == status
    assert capsys.readouterr().err.strip() == "btcnb: Interrupted; nothing was written."
    assert not out.exists()


def test_an_encoder_is_made_and_used(chain: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place = tmp_path / "encoder"
    made = ["encoder", "--out", str(place), "--size", "tiny", "--seed", "3", "--supervision", "common_input"]
    assert cli.main(made) == 0
    assert names(place) == {"encoder.pt", "encoder.json"}
    told = json.loads((place / "encoder.json").read_text())
    assert told["made"]["recipe"]["supervision"] == "common_input"
    assert (told["made"]["recipe"]["source.seed"], told["made"]["recipe"]["train.seed"]) == (3, 3)
    capsys.readouterr()
    assert cli.main(made) == 1
    assert "exists already" in capsys.readouterr().err
    out = tmp_path / "refined"
    using = ["refine", str(chain), "--out", str(out), "--encoder", str(place), "--threshold", "fixed", "--quiet"]
    assert cli.main(using) == 0
    summary = json.loads((out / "summary.json").read_text())
    assert summary["encoder"]["digest"] == told["digest"] and summary["threshold"] == told["threshold"]


def test_an_encoder_of_an_unknown_rule_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["encoder", "--out", str(tmp_path / "encoder"), "--supervision", "magic"]) == 2
    assert "'magic'" in capsys.readouterr().err and not (tmp_path / "encoder").exists()
