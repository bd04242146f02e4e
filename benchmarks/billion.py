"""On paper: what a billion molecules take, from rates that are measured.

    python benchmarks/billion.py [--train-ms 1.0] [--predict 800000]

Measures here how long a core takes to parse and pack a molecule, and how many bytes it has on disk;
the rates of a GPU are given: milliseconds a streamed step of 256 graphs (benchmarks/scale_gpu.py)
and graphs a second and model (benchmarks/predict.py --device cuda).
"""

from __future__ import annotations

import argparse
import resource
import tempfile
from dataclasses import replace
from pathlib import Path

import lookhops
from lookhops.core.tables import csv_text
from lookhops.graphs import Graphs

#: Of one packed file.
MOST_EDGES = 2**31 - 1


def spent() -> float:
    """Seconds of the processor that this process and those that it started have used."""
    own, others = (
        resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    )
    return own.ru_utime + own.ru_stime + others.ru_utime + others.ru_stime


def parsed(folder: Path, count: int) -> tuple[Graphs, float]:
    """The bundled molecules, repeated, and the seconds of a core that parsing them took."""
    smiles = lookhops.load("solubility").columns["smiles"]
    rows = [[smiles[number % len(smiles)]] for number in range(count)]
    path = folder / "molecules.csv"
    path.write_text(csv_text(["smiles"], rows))
    start = spent()
    return lookhops.load(path), spent() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--molecules", type=float, default=1e9)
    parser.add_argument("--parse", type=int, default=20_000, help="molecules that are parsed here")
    parser.add_argument("--train-ms", type=float, required=True)
    parser.add_argument("--predict", type=float, required=True)
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--cores", type=int, default=16)
    args = parser.parse_args()
    lookhops.load("solubility")[:10]
    with tempfile.TemporaryDirectory() as folder:
        few, little = parsed(Path(folder), args.parse // 10)
        graphs, seconds = parsed(Path(folder), args.parse)
        rate = (len(graphs) - len(few)) / (seconds - little)  # without what is loaded once
        packed = Path(folder) / "packed.graphs"
        replace(graphs, columns={}).save(packed)
        size = packed.stat().st_size / len(graphs)
    n, hour = args.molecules, 3600
    files = -(-n * graphs.num_edges // len(graphs) // MOST_EDGES)
    train = 0.8 * n / 256 * args.train_ms / 1000 * args.epochs
    cores, parse, answer = args.cores, n / rate, n * args.seeds / args.predict
    print(
        f"a core parses and packs {rate:,.0f} molecules a second; packed one takes {size:.0f} bytes"
    )
    print(f"{n:,.0f} molecules ({graphs.num_nodes / len(graphs):.1f} atoms in the mean):")
    print(f"  packed: {n * size / 1e12:.2f} TB in {files:.0f} files")
    print(f"  parsing: {parse / hour:,.0f} core hours, {parse / hour / cores:.1f} on {cores} cores")
    print(f"  training, {args.epochs} epochs of one seed on 80 %: {train / hour:.1f} GPU hours")
    print(f"  predicting packed graphs, {args.seeds} models: {answer / hour:.1f} GPU hours")
    print(f"  predicting SMILES as fast: {parse / answer:,.0f} cores that parse, for each GPU")


if __name__ == "__main__":
    main()
