"""Layers of other libraries by name: ``pyg:GATv2Conv/heads=4``, ``tgp:kmis``.

- :mod:`~lookhops.nn.others.names`: what such a name says, and options read from a class's own
  signature;
- :mod:`~lookhops.nn.others.convolutions`: every convolution of PyG that fits;
- :mod:`~lookhops.nn.others.poolings`: poolings of PyG and of torch-geometric-pool.
"""

from lookhops.nn.others.convolutions import WIDTHS, find_convolution
from lookhops.nn.others.names import arguments, is_other, with_own_options
from lookhops.nn.others.poolings import find_pooling

__all__ = ["find_convolution", "find_pooling", "is_other", "own_options", "with_own_options"]


def own_options(conv: str, pool: str) -> list[str]:
    """The options that the layers of other libraries among these take themselves."""
    kinds = [find_convolution(conv).kind] if is_other(conv) else []
    kinds += [find_pooling(pool).kind] if is_other(pool) else []
    return [name for kind in kinds for name in arguments(kind) if name not in WIDTHS]
