"""What a user can choose about a search for a configuration."""

from __future__ import annotations

from dataclasses import dataclass

from lookhops.options.fields import option


@dataclass(frozen=True)
class SearchOptions:
    """How configurations are searched for.

    Args:
        trials: Configurations to try for each outer split; the first is the recommended model.
        inner: Inner splits by whose validation parts configurations are judged.
        stack: Configurations of one shape that are tried together, with other learning rates,
            weight decays and dropouts each: on a GPU in one stack.
        space: Options to tune and their values, where they are not the usual ones:
            ``hidden=64,128/k=1..3/pool=none``.
        time_limit: Seconds after which no configuration more is tried; by default none.
    """

    trials: int = option(50, least=1)
    inner: int = option(3, least=1)
    stack: int = option(5, least=1)
    space: str | None = None
    time_limit: float | None = option(None, least=0)
