"""Prediction: packed graphs through all seeds of a model, and the command from call to file.

    python benchmarks/predict.py [--device cuda] [--graphs 102750] [--seeds 10]
    python benchmarks/predict.py --smiles 10000000   (rate and peak memory of a stream)
    python benchmarks/predict.py --packed 10000000   (the same of packed graphs, NCI1 repeated)

Ours asks all networks at once; its peer is what a PyG user writes: the same layers as operators of
MessagePassing, network after network, over the batches of PyG's DataLoader. Both have the same
weights (the network without what is read of whole graphs, which PyG has nothing for), and must give
the same answers. The command runs in a process of its own, with the recommended model.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import torch
from torch_geometric.loader import DataLoader

from lookhops.core.options import RECOMMENDED, Protocol, parse_seeds
from lookhops.encoding import Encoding
from lookhops.encoding.preprocessing import PreparedGraphs, Preprocessing
from lookhops.graphs import Graphs
from lookhops.models import Predictor, train_into
from lookhops.nn import Architecture
from lookhops.sources.loading import load
from lookhops.training.device import seeded_model
from lookhops.training.inference import Ensemble
from shared import best_of, check_alike, repeated
from training import PlainNetwork

#: Graphs that PyG's side is timed on: it takes the same time for each.
PEER = 2048


def fastest(task: Callable[[], object], device: str, rounds: int) -> float:
    """Seconds, after one round to get ready."""
    task()
    return best_of(rounds, task, device=device)[0].wall


@torch.no_grad()
def inside(graphs: Graphs, seeds: int, device: str) -> None:
    """The networks alone, against plain PyG."""
    for pool in ("none", "lookhops"):
        architecture = Architecture(pool=pool)
        encoding = Encoding.fit(graphs, edges=False)
        networks = [
            seeded_model(seed, encoding.width, 2, architecture, **encoding.sizes).to(device).eval()
            for seed in range(seeds)
        ]
        whole = PreparedGraphs.of(graphs.to(device), architecture, encoding)
        ensemble = Ensemble(networks, [Preprocessing()] * seeds, encoding)
        plain = PlainNetwork(encoding.width, 2, architecture).to(device).eval()
        plain.copy_weights(networks[0])
        data = graphs[:PEER].to_pyg()

        def loop(plain=plain, data=data) -> torch.Tensor:
            return torch.cat([plain(b.to(device)) for b in DataLoader(data, batch_size=256)])

        ours = ensemble.outputs(whole)[0][:PEER].log_softmax(-1)
        check_alike(ours, loop().cpu(), pool != "none")
        times = 3 if device == "cuda" else 1
        own = fastest(lambda e=ensemble, w=whole: e.outputs(w), device, times)
        rate = len(graphs) * seeds / own
        theirs = len(data) / fastest(loop, device, times)
        print(
            f"LiCheb, pooling {pool}: {rate:,.0f} graphs a second and model "
            f"({own:.2f} s for {len(graphs):,} graphs and {seeds} seeds); PyG {theirs:,.0f}; "
            f"ratio {rate / theirs:.1f}"
        )


def command(model: Path, source: Path, output: Path, device: str, *more: str) -> float:
    """Seconds from the command to the file; its peak memory is printed by the system's time."""
    start = time.perf_counter()
    words = ["predict", str(model), str(source), "-o", str(output), "--device", device, *more]
    subprocess.run([sys.executable, "-m", "lookhops", *words], check=True)
    return time.perf_counter() - start


def packed(graphs: Graphs, few: Graphs, seeds: int, device: str, folder: Path) -> None:
    """The recommended model on packed graphs: the command twice, and its parts once it runs."""
    protocol = Protocol(parse_seeds(seeds), max_epochs=2)
    train_into(folder / "model", few, RECOMMENDED, protocol, device=device)
    graphs.save(folder / "many.graphs")
    for which in ("first", "second"):
        took = command(folder / "model", folder / "many.graphs", folder / "x.csv", device)
        print(f"command to file, {which} run: {took:.2f} s for {len(graphs):,} graphs")
    predictor = Predictor(folder / "model", device)
    took = fastest(lambda: predictor.predict(graphs), device, 1)
    rate = len(graphs) * seeds / took
    print(f"Predictor.predict: {took:.2f} s, {rate:,.0f} graphs a second and model")
    whole = predictor.prepare(graphs)
    took = fastest(lambda: predictor.outputs_of(whole, predictor.answering), device, 1)
    print(f"of it networks: {took:.2f} s, {len(graphs) * seeds / took:,.0f}")
    reference = predictor.reference
    assert reference is not None
    took = fastest(lambda: reference.index.nearest(whole.graphs), device, 1)
    print(f"of it similarity to {len(reference.index):,} training graphs: {took:.2f} s")


#: Runs the command, and says what it held.
WITH_MEMORY = """
import runpy, sys
from shared import Memory
memory, sys.argv[0] = Memory(), "lookhops"
try:
    runpy.run_module("lookhops", run_name="__main__")
finally:
    print(f"main memory: {memory}")
"""


def stream(few: Graphs, write: Callable[[int], Path], count: int, device: str) -> None:
    """Rate and peak memory of the command at a twentieth of the rows and at all of them.

    A small network: what is measured is all that lies around the networks.

    Args:
        few: What the model is trained on.
        write: Writes a file of so many rows.
        count: Of rows.
        device: Where it answers.
    """
    model = write(1).parent / "model"
    network, protocol = Architecture(hidden=4, layers=1), Protocol((11,), max_epochs=1)
    train_into(model, few, network, protocol, device=device)
    for total in (count // 20, count):
        source = write(total)
        words = ["predict", model, source, "-o", model.parent / "x.csv", "--device", device]
        start = time.perf_counter()
        here = Path(__file__).parent
        subprocess.run([sys.executable, "-c", WITH_MEMORY, *words], check=True, cwd=here)
        took = time.perf_counter() - start
        print(f"{total:,} rows: {took:.1f} s, {total / took:,.0f} a second", flush=True)


def smiles(count: int, device: str, folder: Path) -> None:
    """A stream of SMILES of small molecules."""
    few = load("solubility")[:300]
    texts = sorted(set(few.columns["smiles"].tolist()), key=len)[:40]

    def write(total: int) -> Path:
        with (folder / "many.smi").open("w") as file:
            file.writelines(f"{texts[i % len(texts)]} m{i}\n" for i in range(total))
        return folder / "many.smi"

    stream(few, write, count, device)


def mapped(count: int, device: str, folder: Path) -> None:
    """A stream of packed graphs, from their mapped file."""
    few = load("NCI1")

    def write(total: int) -> Path:
        repeated(few, total).save(folder / "many.graphs")
        return folder / "many.graphs"

    stream(few, write, count, device)


def main() -> None:
    """Run what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--graphs", type=int, default=102_750)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--smiles", type=int, default=0)
    parser.add_argument("--packed", type=int, default=0)
    given = parser.parse_args()
    with TemporaryDirectory() as name:
        folder = Path(name)
        if given.smiles or given.packed:
            measure = smiles if given.smiles else mapped
            measure(given.smiles or given.packed, given.device, folder)
            return
        few = load("NCI1")
        graphs = repeated(few, given.graphs)
        packed(graphs, few, given.seeds, given.device, folder)
        inside(graphs, given.seeds, given.device)


if __name__ == "__main__":
    main()
