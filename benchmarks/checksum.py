"""What the checksum costs when packed graphs are read: DD with it and without.

LOOKHOPS_DATA=... python benchmarks/checksum.py
"""

import tempfile
from pathlib import Path

from lookhops.graphs import Graphs, storage
from lookhops.sources.loading import load
from shared import best_of


def reading(path: Path) -> float:
    """Milliseconds of the fastest of several readings."""
    return 1000 * best_of(20, lambda: Graphs.load(path))[0].wall


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "dd.graphs"
        load("DD").save(path)
        checked = reading(path)
        storage.check_content = lambda *given: None
        size = path.stat().st_size / 1e6
        print(f"DD, {size:.1f} MB: {checked:.1f} ms with the checksum, {reading(path):.1f} without")
