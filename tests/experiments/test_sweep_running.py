"""Sweeps: what runs, what is recorded, and what a failure, a kill or a second sweep does to that."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
import threading
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from sweep_fakes import Inline, fake, grid_file, ran, wait_for

from btcnb.build.cli import main
from btcnb.errors import DataError, ParameterError
from btcnb.experiments import measures
from btcnb.experiments.sweep import read_grid
from btcnb.experiments.sweep import run as running
from btcnb.experiments.sweep.records import FIELDS, Plan, Record, Records, plan, run_id
from btcnb.experiments.sweep.run import DaskWorkers, LocalWorkers, Progress, duration, run, versions_here

HERE = Path(__file__).parent


@pytest.fixture(autouse=True)
def fakes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SWEEP_FAKES", str(tmp_path))
    return tmp_path


def planned(folder: Path, rows: list[str], seeds: Any = 2, again: str = "failed") -> Plan:
    grid = read_grid(grid_file(folder, rows, seeds))
    return plan(grid, Records(folder / "fakes.jsonl"), again)


def rows_of(found: Plan) -> list[str]:
    return [f"{job.row}/{job.seed}" for job in found.todo]


def read(folder: Path) -> list[Record]:
    return Records(folder / "fakes.jsonl").read()


def states(folder: Path) -> dict[str, str]:
    return {f"{each['row']}/{each['seed']}": each["state"] for each in read(folder)}


# --- in this process ---


def test_a_record_says_everything_in_one_flat_line(tmp_path: Path) -> None:
    told = planned(tmp_path, ["plain"], seeds=[3])
    assert run([told], Inline(), io.StringIO()).done == 1
    (record,) = read(tmp_path)
    assert list(record)[: len(FIELDS)] == list(FIELDS)
    assert record["grid"] == "fakes" and (record["row"], record["seed"]) == ("plain", 3)
    assert (record["measure"], record["method"], record["state"], record["error"]) == ("scores", "trained", "done", "")
    assert record["run"] == run_id(told.todo[0]) and record["commit"] == versions_here()[1] != ""
    assert record["versions"].startswith("btcnb ") and "torch 2" in record["versions"]
    assert record["data"] == "d3" and record["DP"] == 0.3 and record["NMI"] is None
    assert record["source.seed"] == record["train.seed"] == 3 and record["train.learning_rate"] == 0.001
    assert all(value is None or isinstance(value, str | int | float) for value in record.values())


def test_what_is_recorded_does_not_run_again_and_failures_do(tmp_path: Path) -> None:
    first = run([planned(tmp_path, ["plain", "fails"])], Inline(), io.StringIO())
    assert (first.done, first.failed) == (2, 2)
    assert rows_of(planned(tmp_path, ["plain", "fails"])) == ["fails/1", "fails/2"]
    assert rows_of(planned(tmp_path, ["plain", "fails"], seeds=3)) == ["fails/1", "fails/2", "plain/3", "fails/3"]
    assert rows_of(planned(tmp_path, ["plain", "fails"], again="all")) == ["plain/1", "fails/1", "plain/2", "fails/2"]


def test_an_error_is_one_sentence(tmp_path: Path) -> None:
    run([planned(tmp_path, ["fails", "diverges"], seeds=1)], Inline(), io.StringIO())
    assert [each["error"] for each in read(tmp_path)] == [
        "ValueError: two lines",
        "loss: value: the loss is nan in epoch 3, step 4; lower learning_rate.",
    ]


@pytest.mark.parametrize("metrics", [{"row": 3}, {"commit": "v1"}, {"train.alpha": 0.5}, {"DP": [1, 2]}, {"DP": {}}])
def test_metrics_that_do_not_fit_a_record_fail_the_run(tmp_path: Path, metrics: dict[str, Any]) -> None:
    run([planned(tmp_path, ["plain"], seeds=1)], Inline(lambda job: metrics), io.StringIO())
    (record,) = read(tmp_path)
    assert record["state"] == "failed" and "metric" in record["error"] and record["row"] == "plain"


def test_runs_on_other_data_than_the_newest_of_the_same_source(tmp_path: Path) -> None:
    """Another row's newer run with the same source saw another graph: the data have changed since."""
    run([planned(tmp_path, ["plain"])], Inline(), io.StringIO())

    def moved(job: Any) -> dict[str, Any]:
        return {"data": "another graph"} if job.seed == 1 else fake(job)

    grid = read_grid(grid_file(tmp_path, ["plain", "better"]))
    records = Records(tmp_path / "fakes.jsonl")
    run([plan(grid, records)], Inline(moved), io.StringIO())
    found = planned(tmp_path, ["plain"])
    assert found.todo == () and any("made on other data: 1 of 2 runs" in each for each in found.sentences)
    assert rows_of(planned(tmp_path, ["plain"], again="other-data")) == ["plain/1"]


def test_a_renamed_row_keeps_its_runs(tmp_path: Path) -> None:
    run([planned(tmp_path, ["plain"])], Inline(), io.StringIO())
    renamed = planned(tmp_path, ["ordinary"])
    assert renamed.todo == () and len(renamed.renamed) == 2
    run([renamed], Inline(), io.StringIO())
    assert [each["row"] for each in read(tmp_path)] == ["plain", "plain", "ordinary", "ordinary"]
    assert len(ran(tmp_path)) == 2 and planned(tmp_path, ["ordinary"]).renamed == ()


def test_records_of_other_versions_and_of_other_grids_are_told(tmp_path: Path) -> None:
    run([planned(tmp_path, ["plain", "better"], seeds=1)], Inline(), io.StringIO())
    Records(tmp_path / "fakes.jsonl").append({"format": 0, "row": "plain"})
    found = planned(tmp_path, ["plain"], seeds=1)
    assert found.sentences == (
        "fakes: records of another version of the format, which are left out: 1.",
        "fakes: recorded runs that are none of those asked for, which stay in the file: 1.",
    )


def test_what_another_sweep_records_meanwhile_does_not_run(tmp_path: Path) -> None:
    one, other = (planned(tmp_path, ["plain", "fails"], seeds=1) for _ in range(2))
    run([one], Inline(), io.StringIO())
    stream = io.StringIO()
    told = run([other], Inline(), stream)
    assert (told.done, told.failed) == (1, 1) and len(ran(tmp_path)) == 2 and len(read(tmp_path)) == 2


def test_a_full_disk_ends_a_sweep_in_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = planned(tmp_path, ["plain"])

    def full(path: Path, content: bytes) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("btcnb.experiments.sweep.records._replace", full)
        with pytest.raises(DataError, match=r"No space left on device.*; mend that and run the same command again"):
            run([found], Inline(), io.StringIO())
    assert found.records.lock(run_id(found.todo[0])).acquire(timeout=0), "nobody waits for it for ever"


# --- what is said ---


def test_a_warning_is_told_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    stream = io.StringIO()
    run([planned(tmp_path, ["plain"])], Inline(warning), stream)
    assert capsys.readouterr().err == "warning: mind the gap\n" and len(stream.getvalue().splitlines()) == 2


def warning(job: Any) -> dict[str, Any]:
    warnings.warn("mind the\ngap", UserWarning, stacklevel=1)
    return fake(job)


def over(seconds: float, error: str = "") -> Record:
    return {"seconds": seconds, "error": error}


def test_one_plain_line_a_run(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter([0.0, 30.0, 60.0, 80.0, 110.0])
    monkeypatch.setattr(running.time, "monotonic", lambda: next(clock))
    stream = io.StringIO()
    told = Progress(4, stream)
    told.run("g · gat · seed 1", over(60), elsewhere=False)
    told.run("g · gat · seed 2", over(120, "the loss is nan."), elsewhere=False)
    told.run("g · gat · seed 3", over(9_999), elsewhere=True)
    told.run("g · gat · seed 4", over(3600), elsewhere=False)
    lines = [line.split(" · ", 1)[1] for line in stream.getvalue().splitlines()]
    assert lines == [
        "g · gat · seed 1 · 1:00 · 1 done, 0 failed, 3 to go, about 1:30 left",
        "g · gat · seed 2 · failed after 2:00 (the loss is nan) · 1 done, 1 failed, 2 to go, about 1:00 left",
        "g · gat · seed 3 · 2:46:39 · 2 done, 1 failed, 1 to go, about 0:40 left",
        "g · gat · seed 4 · 1:00:00 · 3 done, 1 failed, 0 to go",
    ]
    assert duration(59.6) == "1:00"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_bar_on_a_terminal() -> None:
    stream = Terminal()
    told = Progress(2, stream)
    told.run("g · gat · seed 1", over(60, "no."), elsewhere=False)
    told.run("g · gat · seed 2", over(60), elsewhere=False)
    told.close()
    assert "0 done, 1 failed, 1 to go" in stream.getvalue()
    assert stream.getvalue().count("seed 1 · failed after 1:00 (no)") == 1 and "seed 2" not in stream.getvalue()
    assert "1 done, 1 failed, 0 to go" in stream.getvalue() and "2/2" in stream.getvalue()


# --- real processes ---


def test_processes_of_one_thread_survive_one_anothers_end(tmp_path: Path) -> None:
    """The killed worker's run failed; everything else is done, also what the same slot does next."""
    rows = ["plain", "killed", "fails", "better"]
    told = run([planned(tmp_path, rows)], LocalWorkers(fake, 2), io.StringIO())
    assert (told.done, told.failed) == (4, 4)
    assert {name for name, state in states(tmp_path).items() if state == "done"} == {
        f"{row}/{seed}" for row in ("plain", "better") for seed in (1, 2)
    }
    by_row = {each["row"]: each for each in read(tmp_path)}
    assert by_row["killed"]["error"] == "the worker was lost (killed, or out of memory)."
    assert by_row["killed"]["commit"] == by_row["plain"]["commit"] == versions_here()[1]
    assert {each["threads"] for each in read(tmp_path) if each["state"] == "done"} == {1}
    assert os.getpid() not in {process for _, process in ran(tmp_path)}


def _listens() -> None:
    """A shell in the background starts its children deaf to Ctrl-C; this one is to hear it."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def command(folder: Path, *options: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, str(HERE / "sweep_driver.py"), "sweep", str(folder / "grid.yaml"),
         "--results", str(folder), *options],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=_listens)  # fmt: skip


def test_a_killed_sweep_loses_only_what_was_running(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    grid_file(tmp_path, ["plain", "waits"])
    process = command(tmp_path, "--jobs", "2")
    wait_for(lambda: len(ran(tmp_path)) == 4 and len(read(tmp_path)) == 2)  # both slots wait
    process.kill()
    process.communicate(timeout=300)
    wait_for(lambda: not any(psutil.pid_exists(worker) for _, worker in ran(tmp_path)))  # nobody outlives it
    assert states(tmp_path) == {"plain/1": "done", "plain/2": "done"}
    (tmp_path / "go").touch()
    monkeypatch.setattr(measures, "measure", fake)
    assert main(["sweep", str(tmp_path / "grid.yaml"), "--results", str(tmp_path)]) == 0  # the same command, in here
    assert "fakes: 4 runs, 2 recorded, 2 to do." in capsys.readouterr().out
    assert set(states(tmp_path).values()) == {"done"} and len(read(tmp_path)) == 4
    assert sorted(name for name, _ in ran(tmp_path)).count("plain/1") == 1


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), pytest.param(signal.SIGTERM, 143, marks=pytest.mark.nightly)]
)
def test_an_interrupted_sweep_says_so_and_takes_its_workers_along(tmp_path: Path, number: int, code: int) -> None:
    grid_file(tmp_path, ["plain", "waits"], seeds=1)
    process = command(tmp_path)
    wait_for(lambda: len(ran(tmp_path)) == 2 and len(read(tmp_path)) == 1)
    process.send_signal(number)
    out, told = process.communicate(timeout=300)
    assert process.returncode == code
    assert "Interrupted; the recorded runs are kept, and the same command goes on." in told and "Traceback" not in told
    assert not any(psutil.pid_exists(worker) for _, worker in ran(tmp_path))
    assert states(tmp_path) == {"plain/1": "done"} and out.count("seed 1") == 1


@pytest.mark.nightly
def test_two_sweeps_on_one_file_share_the_work(tmp_path: Path) -> None:
    grid_file(tmp_path, ["waits a", "waits b", "plain", "better"])
    both = [command(tmp_path) for _ in range(2)]
    wait_for(lambda: len({process for _, process in ran(tmp_path)}) == 2)  # each is in a run of its own
    (tmp_path / "go").touch()
    told = [process.communicate(timeout=300) for process in both]
    assert [process.returncode for process in both] == [0, 0], told
    assert sorted(name for name, _ in ran(tmp_path)) == sorted(states(tmp_path)) and len(read(tmp_path)) == 8
    assert set(states(tmp_path).values()) == {"done"}


# --- a Dask cluster of worker processes, some of which die ---


@pytest.fixture
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Two worker processes; a run that loses two of them is given up."""
    import dask
    import distributed

    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(HERE), os.environ.get("PYTHONPATH", "")]))
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
    told = run([todo], DaskWorkers(fake, address), io.StringIO())
    return told, records.read()


def test_runs_of_lost_workers_go_on_elsewhere_or_are_given_up(tmp_path: Path, cluster: Any) -> None:
    address = cluster.scheduler_address
    told, records = swept(tmp_path, address, ["plain", "better"], 2)
    assert (told.done, told.failed) == (4, 0)
    assert {each["threads"] for each in records} == {1}
    assert {each["commit"] for each in records} == {versions_here()[1]}

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
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(HERE), os.environ.get("PYTHONPATH", "")]))
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
    monkeypatch.setattr("btcnb.experiments.sweep.run.CONNECT_SECONDS", 1)
    with pytest.raises(DataError, match=r"scheduler: cannot be reached .*; start it with `dask scheduler`"):
        DaskWorkers(fake, "tcp://127.0.0.1:9")
    with pytest.raises(DataError, match="scheduler: cannot be reached"):
        DaskWorkers(fake, "no address: at all")


def test_without_dask(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(ParameterError, match=r"needs Dask, which is not installed; pip install 'btcnb\[dask\]'"):
        DaskWorkers(fake, "tcp://127.0.0.1:8786")
