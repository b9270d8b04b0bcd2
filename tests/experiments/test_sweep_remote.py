"""Sweeps on a real Dask cluster of worker processes, some of which die."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sweep_fakes import fake, grid_file, ran, wait_for

from btcnb.errors import DataError, ParameterError
from btcnb.experiments.sweep import read_grid
from btcnb.experiments.sweep.planning import plan
from btcnb.experiments.sweep.progress import Progress
from btcnb.experiments.sweep.records import Records
from btcnb.experiments.sweep.remote import DaskWorkers
from btcnb.experiments.sweep.running import run
from btcnb.experiments.sweep.work import made_here

HERE = Path(__file__).parent


@pytest.fixture
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Two worker processes; a run that loses two of them is given up."""
    import dask
    import distributed

    monkeypatch.setenv("SWEEP_FAKES", str(tmp_path))
    monkeypatch.setenv("PYTHONPATH", str(HERE))
    with (
        dask.config.set({"distributed.scheduler.allowed-failures": 1, "distributed.worker.memory.terminate": False}),
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0", local_directory=str(tmp_path)
        ) as found,
    ):
        yield found


def swept(folder: Path, address: str, rows: list[str], seeds: Any) -> tuple[Progress, list[dict[str, Any]]]:
    records = Records(folder / "fakes.jsonl")
    todo = plan(read_grid(grid_file(folder, rows, seeds)), records)
    told = run([todo], DaskWorkers(fake, address), Progress(len(todo.todo), 2, io.StringIO()))
    return told, records.read()


def test_runs_of_lost_workers_go_on_elsewhere_or_are_given_up(tmp_path: Path, cluster: Any) -> None:
    address = cluster.scheduler_address
    told, records = swept(tmp_path, address, ["plain", "better"], 2)
    assert (told.done, told.failed) == (4, 0)
    assert {each["threads"] for each in records} == {1}
    assert {each["commit"] for each in records} == {made_here().commit}

    def kill_one() -> None:  # as soon as both workers are in a run
        wait_for(lambda: len([name for name, _ in ran(tmp_path) if name.startswith("waits")]) == 2)
        os.kill(next(process for name, process in ran(tmp_path) if name == "waits/1"), signal.SIGKILL)
        wait_for(lambda: [name for name, _ in ran(tmp_path)].count("waits/1") == 2)
        (tmp_path / "go").touch()

    killer = threading.Thread(target=kill_one, daemon=True)
    killer.start()
    told, records = swept(tmp_path, address, ["plain", "better", "waits"], 2)
    killer.join()
    assert (told.done, told.failed) == (2, 0)
    assert sorted(each["DP"] for each in records if each["row"] == "waits") == [0.1, 0.2]

    told, records = swept(tmp_path, address, ["plain", "better", "waits", "fails", "killed"], 1)
    assert (told.done, told.failed) == (0, 2)
    errors = {each["row"]: each["error"] for each in records if each["error"]}
    assert errors == {"fails": "ValueError: two lines", "killed": "its workers were lost again and again."}


@pytest.mark.nightly
def test_a_scheduler_that_goes_away_fails_no_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As in the manual: a scheduler and a worker, each a process; the scheduler is killed while the worker works."""
    monkeypatch.setenv("SWEEP_FAKES", str(tmp_path))
    monkeypatch.setenv("PYTHONPATH", str(HERE))
    there = tmp_path / "scheduler.json"
    common = ["--scheduler-file", str(there), "--no-dashboard"]
    scheduler = subprocess.Popen([sys.executable, "-m", "dask", "scheduler", "--port", "0", *common], cwd=tmp_path)
    wait_for(lambda: there.exists() and there.read_text().endswith("}"))
    worker = subprocess.Popen(
        [sys.executable, "-m", "dask", "worker", "--nthreads", "1", "--no-nanny", *common], cwd=tmp_path
    )

    def kill() -> None:
        wait_for(lambda: len(ran(tmp_path)) == 1)
        scheduler.kill()

    try:
        threading.Thread(target=kill, daemon=True).start()
        with pytest.raises(DataError, match="scheduler: the connection was lost; start it again and run the same"):
            swept(tmp_path, json.loads(there.read_text())["address"], ["waits"], 1)
    finally:
        for process in (scheduler, worker):
            process.kill()
            process.wait()
    assert not (tmp_path / "fakes.jsonl").exists()


def test_no_scheduler_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("btcnb.experiments.sweep.remote.CONNECT_SECONDS", 1)
    with pytest.raises(DataError, match=r"scheduler: cannot be reached .*; start it with `dask scheduler`"):
        DaskWorkers(fake, "tcp://127.0.0.1:9")
    with pytest.raises(DataError, match="scheduler: cannot be reached"):
        DaskWorkers(fake, "no address: at all")


def test_without_dask(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(ParameterError, match=r"needs Dask, which is not installed; pip install 'btcnb\[dask\]'"):
        DaskWorkers(fake, "tcp://127.0.0.1:8786")
