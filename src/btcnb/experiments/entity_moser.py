"""Möser and Narayanan's clusters as a row of the entity table: taught where the encoder is taught, judged where it is.

The forest learns from the whole intervals of the recipe's training and validation economies; which output is change it
decides once, in the whole judged chain, as the original study does. Local graphs take the decisions on their own
transactions.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pandas as pd

from btcnb.data import Transactions, load_transactions
from btcnb.errors import DataError
from btcnb.experiments.change_forest import ForestConfig, train_forest
from btcnb.experiments.local_graphs import Clusters
from btcnb.experiments.moser import change_decisions, moser_clusters
from btcnb.experiments.moser_measure import TEACHERS
from btcnb.experiments.recipe import Recipe

IntArray = npt.NDArray[np.int64]


def moser_on(recipe: Recipe, chain: Transactions) -> Clusters:
    """A function from pieces of `chain` to one label per address; the forest is taught by the recipe's source."""
    teachers = [load_transactions(recipe.source, role, sampled=False) for role in TEACHERS]
    forest = train_forest(teachers, ForestConfig(seed=recipe.train.seed))
    decisions = change_decisions(chain, forest)
    place = pd.Index(chain.transactions["hash"])
    if not place.is_unique:  # two coinbases of the first years have the hashes of earlier ones
        twice = place[place.duplicated()][0]
        raise DataError(chain.source, "transactions.hash", f"{twice} occurs twice", "leave the later one out")

    def clusters(local: Transactions) -> IntArray:
        hashes = local.transactions["hash"]
        ids = place.get_indexer(pd.Index(hashes)).astype(np.int64)
        if (ids < 0).any():
            problem = f"{hashes.iloc[int((ids < 0).argmax())]} is not in the chain that was judged"
            raise DataError(local.source, "transactions", problem, "cut the piece out of that chain")
        return moser_clusters(local, forest, decisions=decisions.local(ids))

    return clusters
