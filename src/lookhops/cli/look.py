"""``lookhops look``: how many hops are worth looking at."""


def look() -> None:
    """How many hops are worth looking at."""
