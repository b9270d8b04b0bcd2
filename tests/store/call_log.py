"""Counts calls in a module of its own: what a kept function reads in its own module would be part of its key."""

CALLS: list[str] = []


def called(name: str) -> None:
    CALLS.append(name)
