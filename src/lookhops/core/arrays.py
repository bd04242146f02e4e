"""The type of NumPy arrays."""

from typing import Any

from numpy.typing import NDArray

Array = NDArray[Any]
