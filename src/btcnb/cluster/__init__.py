"""Part III, second half: dendrograms of embeddings without the distance matrix, their cuts, and how good they are."""

import os

# Compiled loops share their cores with BLAS and with other processes. A waiting OpenMP thread spins for milliseconds
# by default, which stalls everybody on a busy machine; a thousand turns (microseconds) are plenty. Read when numba
# loads OpenMP.
os.environ.setdefault("GOMP_SPINCOUNT", "1000")

from btcnb.cluster.linkage import linkage
from btcnb.cluster.silhouette import silhouette, silhouette_samples

__all__ = ["linkage", "silhouette", "silhouette_samples"]
