"""The actors of the economy. Each has a constructor that registers entities, `settle` for its first coins, and `plan`
for a block."""

GOLDEN = 0.6180339887498949


def spread(position: int, low: float, high: float) -> float:
    """A number between low and high, the same in every economy, evenly spread over positions 0, 1, 2, …

    The habits of the few large services are dealt out so: drawn at random, they would make two economies differ by more
    than the real chain does from year to year.
    """
    return low + (high - low) * ((0.5 + position * GOLDEN) % 1.0)
