"""Sweeps: grids of runs, computed here or on a Dask cluster, recorded run by run.

grid.yaml ──> jobs ──> what is not recorded yet ──> workers ──> records, one JSON line a run ──> tables
 grid                   records.plan                 run         records                          report
"""

from btcnb.experiments.sweep.grid import Grid, read_grid

__all__ = ["Grid", "read_grid"]
