"""What the checksum costs when packed graphs are read: DD with it and without.

LOOKHOPS_DATA=... python benchmarks/checksum.py
"""

import tempfile
import time
from pathlib import Path

from lookhops.graphs import Graphs, storage
from lookhops.sources.loading import load


def best(path: Path) -> float:
    """Milliseconds of the fastest of several readings."""
    seconds = []
    for _ in range(20):
        start = time.perf_counter()
        Graphs.load(path)
        seconds.append(time.perf_counter() - start)
    return 1000 * min(seconds)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "dd.graphs"
        load("DD").save(path)
        checked = best(path)
        storage.check_content = lambda *given: None
        size = path.stat().st_size / 1e6
        print(f"DD, {size:.1f} MB: {checked:.1f} ms with the checksum, {best(path):.1f} without")
