"""The actors of the economy. Each has a constructor that registers entities, `settle` for its first coins, and `plan`
for a block."""

GOLDEN = 0.6180339887498949


def spread(position: int, low: float, high: float, phase: float = 0.5) -> float:
    """A number between low and high, evenly spread over positions 0, 1, 2, … from a phase that an economy draws.

    The habits of the few large services are dealt out so: drawn one by one, they would make two economies differ by
    more than the real chain does from year to year.
    """
    return low + (high - low) * ((phase + position * GOLDEN) % 1.0)
