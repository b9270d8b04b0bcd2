"""Sweeps: grids of runs, computed here or elsewhere, recorded line by line, and compared.

grid.yaml ──> jobs ──> what is not recorded yet ──> workers ──> records, one JSON line a run ──> tables
 grids                 planning                      local, remote   running, records              comparing, tables
"""

from btcnb.experiments.sweep.comparing import Paired, paired, records_frame, summary
from btcnb.experiments.sweep.grids import Grid, read_grid
from btcnb.experiments.sweep.tables import table

__all__ = ["Grid", "Paired", "paired", "read_grid", "records_frame", "summary", "table"]
