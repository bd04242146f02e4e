"""SMILES to packed graphs by worker processes: how the rate grows with them, and what bounds it.

    python benchmarks/parsing.py [--molecules 50000] [--processes 1,2,4]

Each row parses the same molecules. The peer is PyG's ``from_smiles``, in one process. What the
command's own process does (it reads, hands out, receives and packs) bounds the rate however many
workers there are: it is given as the number of workers that it keeps busy, by processor time. The
last rows are one worker that computes RDKit's descriptors too.
"""

from __future__ import annotations

import argparse
import time

from torch_geometric.utils import from_smiles

from lookhops.core.machine import usable_cores
from lookhops.core.reading import Reading
from lookhops.sources.loading import load
from lookhops.sources.molecules import pack
from lookhops.sources.rdkit.parsing import Parsed, Parsing
from lookhops.sources.rdkit.workers import CHUNK, ParsingPool

#: Molecules that PyG's side is timed on: it takes the same time for each.
PEER = 2000
#: Molecules whose descriptors are computed.
DESCRIBED = 5000


def rate(texts: list[str], processes: int, descriptors: str = "none") -> tuple[float, float]:
    """Molecules a second, and processor seconds of this process a molecule."""
    chunks = [texts[i : i + CHUNK] for i in range(0, len(texts), CHUNK)]
    how = Parsing(Reading(invalid="skip", descriptors=descriptors))
    with ParsingPool(processes) as pool:
        for _ in pool.map(chunks[: 2 * processes], how):  # until all workers have begun
            pass
        start, own = time.perf_counter(), time.process_time()
        graphs = pack(Parsed.join(list(pool.map(chunks, how))))
        took, spent = time.perf_counter() - start, time.process_time() - own
    assert len(graphs) == len(texts)
    return len(texts) / took, spent / len(texts)


def main() -> None:
    """Run all."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--molecules", type=int, default=50_000)
    parser.add_argument("--processes", default="")
    given = parser.parse_args()
    known = load("solubility").columns["smiles"].tolist()
    texts = [known[i % len(known)] for i in range(given.molecules)]
    cores = usable_cores()
    counts = [n for n in (1, 2, 4, 8, 16, 32, 64) if n < cores] + [cores]
    if given.processes:
        counts = [int(word) for word in given.processes.split(",")]
    one, spent = rate(texts, 1)
    start = time.perf_counter()
    for text in texts[:PEER]:
        from_smiles(text)
    peer = PEER / (time.perf_counter() - start)
    print(f"PyG's from_smiles: {peer:,.0f} molecules a second")
    for count in counts:
        found = one if count == 1 else rate(texts, count)[0]
        print(
            f"{count} worker{'s' if count > 1 else ''}: {found:,.0f} molecules a second, "
            f"{found / one:.2f} times one, {found / peer:.1f} times PyG"
        )
    print(
        f"this process takes {spent * 1e6:.1f} us a molecule, a worker {1e6 / one:.1f}: it keeps "
        f"{1 / one / spent:.0f} workers busy"
    )
    for descriptors in ("fast", "all"):
        seconds = 1 / rate(texts[:DESCRIBED], 1, descriptors)[0]
        print(
            f"--descriptors {descriptors}: {1e3 * seconds:.2f} ms a molecule and core, "
            f"{1e3 / one:.2f} ms without"
        )


if __name__ == "__main__":
    main()
