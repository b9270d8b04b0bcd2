"""Seconds and memory of exact average linkage here and in other libraries, measured in one run.

    python benchmarks/compare.py                                  # 2,000, 5,000 and 20,000 rows
    python benchmarks/compare.py 20000 65000 --memory 8 --timeout 900
    python benchmarks/compare.py 20000 --rows my_embeddings.npy --json figures.json --plot figures.png
    python benchmarks/compare.py --readme README.md               # writes the table between the README's two markers

Contenders: SciPy and fastcluster after `pdist`, scikit-learn's AgglomerativeClustering, and genieclust, which builds
another tree (from a minimum spanning tree) and is timed only. The silhouette is compared with scikit-learn's.
A contender that is not installed is left out. Each measurement is a process of its own. It is warmed up first, so that
neither imports nor compilation count, and it is ended when it exceeds the memory or the time. Memory is the growth of
the process's high-water mark while the contender works: what it needs beyond its input. Only Linux can reset the mark
after the warm-up; elsewhere what the warm-up needed is not counted.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import platform
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from importlib import import_module, metadata
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

Rows = npt.NDArray[np.float32]
Record = dict[str, Any]

SIZES = (2_000, 5_000, 20_000)
CLUSTERS = 746
"""Clusters of the silhouette's partition, a typical number for 10,000 trained embeddings."""
WARM_UP = (600, 8_000)
"""Rows of the calls that do not count: all take the first, ours the second too, which compiles the engine for many."""
MARKERS = ("<!-- benchmark -->", "<!-- /benchmark -->")
COLUMNS = {
    "task": "{}",
    "n": "{:,}",
    "contender": "{}",
    "seconds": "{:.3g}",
    "times_ours": "{:.1f}",
    "extra_mb": "{:,.0f}",
    "difference": "{:.0e}",
}


def trained_like(n: int, d: int = 128, seed: int = 0) -> Rows:
    """Unit rows (n, d) that resemble the output of a trained encoder.

    Each row is a copy of an earlier one, moved by a step of log-uniform length: clusters lie inside clusters, and
    heights of the tree spread evenly over seven orders of magnitude. One row in fifty is an exact copy. Some fifteen
    directions carry most of the variance, and all rows lean to one side.
    """
    rng = np.random.default_rng(seed)
    spread = (1 + np.arange(d) / 4) ** -1.2
    spread /= np.linalg.norm(spread)
    rows = rng.normal(size=d) / np.sqrt(d) + 0.94 * spread * rng.normal(size=(max(2, n // 100), d))
    while len(rows) < n:
        more = min(len(rows), n - len(rows))
        step = np.exp(rng.uniform(np.log(3e-4), np.log(1.2), size=(more, 1)))
        step[rng.random(more) < 0.02] = 0.0
        parents = rows[rng.integers(len(rows), size=more)]
        rows = np.concatenate([rows, parents + step * spread * rng.normal(size=(more, d))])
    rows = rows[rng.permutation(len(rows))[:n]]
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


def _ours(X: Rows, labels: Any) -> Any:
    return import_module("meanlink").linkage(X, progress=False)[:, 2]


def _scipy(X: Rows, labels: Any) -> Any:
    distances = import_module("scipy.spatial.distance").pdist(X.astype(np.float64), "cosine")
    return import_module("scipy.cluster.hierarchy").linkage(distances, "average")[:, 2]


def _fastcluster(X: Rows, labels: Any) -> Any:
    distances = import_module("scipy.spatial.distance").pdist(X.astype(np.float64), "cosine")
    return import_module("fastcluster").linkage(distances, "average")[:, 2]


def _scikit_learn(X: Rows, labels: Any) -> Any:
    settings = {"n_clusters": None, "distance_threshold": 0.0, "metric": "cosine", "linkage": "average"}
    return import_module("sklearn.cluster").AgglomerativeClustering(**settings).fit(X.astype(np.float64)).distances_


def _genieclust(X: Rows, labels: Any) -> None:
    import_module("genieclust").Genie().fit(X)  # Euclidean distances of unit rows have the order of cosine distances


def _our_silhouette(X: Rows, labels: Any) -> Any:
    return import_module("meanlink").silhouette(X, labels)


def _their_silhouette(X: Rows, labels: Any) -> Any:
    return import_module("sklearn.metrics").silhouette_score(X.astype(np.float64), labels, metric="cosine")


CONTENDERS: dict[str, dict[str, tuple[str, Callable[[Rows, Any], Any], float]]] = {
    "linkage": {
        "meanlink": ("meanlink", _ours, 0.0),
        "pdist + fastcluster": ("fastcluster", _fastcluster, 8.0),
        "pdist + SciPy": ("scipy", _scipy, 8.0),
        "scikit-learn": ("sklearn", _scikit_learn, 8.0),
        "genieclust": ("genieclust", _genieclust, 0.0),
    },
    "silhouette": {
        "meanlink": ("meanlink", _our_silhouette, 0.0),
        "scikit-learn": ("sklearn", _their_silhouette, 0.0),
    },
}
"""By task: the module, the call, and the bytes that it takes for each of the n² pairs of rows, at least."""


def measured(task: str, name: str, n: int, options: argparse.Namespace) -> tuple[Record, Any]:
    """The record of one contender and the numbers that it found; `status` says why there are none."""
    record: Record = {"task": task, "contender": name, "n": n, "d": options.dimension, "status": "measured"}
    module, _, square = CONTENDERS[task][name]
    if find_spec(module) is None:
        return record | {"status": "not installed"}, None
    if square * n * n > options.memory * 2**30:
        return record | {"status": f"needs {square * n * n / 2**30:.0f} GB"}, None
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe(duplex=False)
    child = context.Process(target=_child, args=(theirs, task, name, n, vars(options)), daemon=True)
    child.start()
    theirs.close()
    try:
        status = _watch(ours, child.pid, options)
        found, numbers = ({"status": status}, None) if status else ours.recv()
    except EOFError:
        found, numbers = {"status": "out of memory, or crashed"}, None
    finally:
        child.kill()
        child.join()
    return record | found, numbers


def _watch(answer: Any, pid: int | None, options: argparse.Namespace) -> str:
    """Wait for an answer. The text says what the child exceeded; psutil, if installed, sees its memory."""
    begin = time.monotonic()
    process = import_module("psutil").Process(pid) if find_spec("psutil") else None
    while not answer.poll(0.1):
        if time.monotonic() - begin > options.timeout:
            return f"more than {options.timeout:.0f} s"
        with suppress(Exception):  # the child may end between two looks
            if process is not None and process.memory_info().rss > options.memory * 2**30:
                return f"more than {options.memory:g} GB"
    return ""


def _child(answer: Any, task: str, name: str, n: int, options: dict[str, Any]) -> None:
    """Measure one contender and send its record and its numbers."""
    X = _rows(n, options)
    with suppress(ImportError, ValueError, OSError):  # Windows has no such module; psutil watches there
        import resource

        limit = int(options["memory"] * 2**30)
        resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
    call = CONTENDERS[task][name][1]
    nearest = (X @ X[: min(CLUSTERS, n // 4)].T).argmax(axis=1) if task == "silhouette" else np.zeros(n)
    try:
        for rows in WARM_UP if name == "meanlink" else WARM_UP[:1]:
            call(X[:rows], nearest[:rows])
        with suppress(OSError):  # Linux can forget the mark of the warm-up
            Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
        before, begin = _high_water(), time.perf_counter()
        found = call(X, nearest)
        seconds, peak = time.perf_counter() - begin, _high_water()
        record = {"seconds": round(seconds, 4), "extra_mb": round(peak - before, 1), "peak_mb": round(peak, 1)}
        answer.send((record, found))
    except MemoryError:
        answer.send(({"status": f"more than {options['memory']:g} GB"}, None))
    except Exception as error:
        answer.send(({"status": f"{type(error).__name__}: {error!s:.80}"}, None))


def _rows(n: int, options: dict[str, Any]) -> Rows:
    if options["rows"] is None:
        return trained_like(n, options["dimension"], options["seed"])
    stored = np.load(options["rows"], mmap_mode="r")
    chosen = np.random.default_rng(options["seed"]).permutation(len(stored))[:n]
    rows = np.array(stored[np.sort(chosen)], dtype=np.float32)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def _high_water() -> float:
    """Highest resident memory of this process, in MB: since the mark was reset, or so far."""
    with suppress(OSError):
        status = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
        return next(int(line.split()[1]) / 1024 for line in status if line.startswith("VmHWM"))
    try:
        import resource
    except ImportError:  # Windows
        return float(import_module("psutil").Process().memory_info().peak_wset) / 2**20
    return float(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss) / (2**20 if sys.platform == "darwin" else 2**10)


def run(options: argparse.Namespace) -> list[Record]:
    """Records of all contenders at all sizes; those of the peers have their ratio and their difference to ours."""
    records = []
    for task in options.tasks:
        for n in options.sizes:
            own, our_numbers = measured(task, "meanlink", n, options)
            for name in CONTENDERS[task]:
                record, numbers = (own, None) if name == "meanlink" else measured(task, name, n, options)
                if record is not own and "seconds" in record and "seconds" in own:
                    record["times_ours"] = record["seconds"] / own["seconds"]
                    record["memory_times_ours"] = record["extra_mb"] / max(own["extra_mb"], 1.0)
                if numbers is not None and our_numbers is not None:
                    record["difference"] = float(np.abs(np.sort(np.atleast_1d(numbers)) - our_numbers).max())
                records.append(record | machine())
                print("".join(cell.ljust(20) for cell in _cells(record)), flush=True)
    return records


def machine() -> Record:
    """What the numbers depend on beside the code."""
    found: Record = {"cores": os.cpu_count(), "machine": platform.machine(), "python": platform.python_version()}
    for name in ("meanlink", "numpy", "scipy", "numba", "fastcluster", "scikit-learn", "genieclust"):
        with suppress(metadata.PackageNotFoundError):
            found[name] = metadata.version(name)
    return found


def _cells(record: Record) -> list[str]:
    cells = {name: form.format(record[name]) if name in record else "" for name, form in COLUMNS.items()}
    return list((cells | {"seconds": cells["seconds"] or record["status"]}).values())


def write_table(path: Path, records: Sequence[Record]) -> None:
    """Replace what a Markdown file has between the two markers by a table of the records."""
    before, _, rest = path.read_text(encoding="utf-8").partition(MARKERS[0])
    _, found, after = rest.partition(MARKERS[1])
    if not found:
        raise SystemExit(f"{path} has no line {MARKERS[0]} followed by {MARKERS[1]}.")
    head = ["task", "rows", "library", "seconds", "times ours", "MB beyond the input", "largest difference to ours"]
    lines = [f"| {' | '.join(row)} |" for row in [head, ["---"] * len(head), *map(_cells, records)]]
    told = f"{records[0]['cores']} cores, {records[0]['machine']}, Python {records[0]['python']}."
    path.write_text("\n".join([before + MARKERS[0], *lines, "", told, MARKERS[1] + after]), encoding="utf-8")


def figure(records: Sequence[Record]) -> Any:
    """Seconds and memory of the linkages over the number of rows, both axes logarithmic, as a matplotlib figure."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise SystemExit("--plot needs matplotlib (pip install matplotlib).") from None
    drawn = Figure(figsize=(9, 4), layout="constrained")
    panels = {"seconds": "seconds", "extra_mb": "MB beyond the input"}
    for axes, (column, title) in zip(drawn.subplots(1, 2), panels.items(), strict=True):
        for name in CONTENDERS["linkage"]:
            own = [r for r in records if r["task"] == "linkage" and r["contender"] == name and column in r]
            axes.plot([r["n"] for r in own], [max(r[column], 0.001) for r in own], "o-", label=name)
        axes.set(xscale="log", yscale="log", xlabel="rows", title=title)
    drawn.axes[0].legend()
    return drawn


def main(arguments: Sequence[str] | None = None) -> None:
    """The command; see the top of the module."""
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=raw)
    parser.add_argument("sizes", type=int, nargs="*", default=list(SIZES), help="numbers of rows")
    parser.add_argument("--tasks", nargs="+", choices=CONTENDERS, default=list(CONTENDERS), help="what to measure")
    parser.add_argument("--dimension", type=int, default=128, help="columns of the generated rows")
    parser.add_argument("--seed", type=int, default=0, help="of the generated rows, or of the choice among --rows")
    parser.add_argument("--rows", type=Path, help="a .npy file of embeddings to use instead of generated rows")
    parser.add_argument("--memory", type=float, default=8.0, help="GB that a contender may use")
    parser.add_argument("--timeout", type=float, default=1800.0, help="seconds that a contender may take")
    parser.add_argument("--json", type=Path, help="file for the records")
    parser.add_argument("--plot", type=Path, help="file for a plot (needs matplotlib)")
    parser.add_argument("--readme", type=Path, help="Markdown file whose table is replaced")
    options = parser.parse_args(arguments)
    records = run(options)
    if options.json:
        options.json.write_text(json.dumps(records, indent=1) + "\n", encoding="utf-8")
    if options.plot:
        figure(records).savefig(options.plot)
    if options.readme:
        write_table(options.readme, records)


if __name__ == "__main__":
    main()
