"""Explaining a thousand molecules: shares of every node and edge, against PyG's explainers.

    python benchmarks/explain.py [--graphs 1000] [--epochs 3] [--networks 1]
    python benchmarks/explain.py --device cuda --networks 5 [--input molecules.graphs]

The recommended model is trained for a few epochs on the bundled molecules, or on graphs with
classes from a file (`lookhops data convert solubility molecules.graphs` makes one for a machine
without RDKit): how well it answers does not matter here. Of several networks ours are explained
stacked and one after another. The peers are Captum's integrated gradients of node features (50
points, PyG's default) and GNNExplainer (50 steps), both through PyG, one network after another,
with all graphs in one batch, which is their fastest way. They give nodes alone, ours edges, totals
and exact neighbourhoods too.
"""

import argparse
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path

import torch

import lookhops
from explanations.explainers import captum, gnn_explainer
from lookhops.core.options import RECOMMENDED, Protocol
from lookhops.core.words import counted
from lookhops.explain import attribute
from lookhops.models.predictor import Predictor
from lookhops.models.training import train_into
from shared import seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--graphs", type=int, default=1000)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--networks", type=int, default=1, help="seeds of the model")
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    parser.add_argument("--input", default="solubility", help="graphs with classes")
    given = parser.parse_args()
    warnings.filterwarnings("ignore")
    graphs, seeds = lookhops.load(given.input), tuple(range(1, given.networks + 1))
    with tempfile.TemporaryDirectory() as folder:
        model = Path(folder) / "model"
        protocol = Protocol(seeds=seeds, max_epochs=given.epochs)
        train_into(model, graphs, RECOMMENDED, protocol, device=given.device)
        predictor = Predictor(model, given.device)
    asked = graphs[: given.graphs]
    where = counted(torch.get_num_threads(), "thread")
    where = torch.cuda.get_device_name() if given.device == "cuda" else where
    networks = counted(given.networks, "network")
    print(f"{len(asked):,} graphs, {asked.num_nodes:,} nodes, {networks}, {where}", flush=True)

    def peer(way: Callable[..., object]) -> Callable[..., object]:
        return lambda some: [way(predictor, some, seed) for seed in seeds]

    rows: dict[str, Callable[..., object]] = {"ours": lambda some: attribute(predictor, some)}
    if given.networks > 1:
        rows = {
            "ours, stacked": lambda some: attribute(predictor, some, stacked=True),
            "ours, one after another": lambda some: attribute(predictor, some, stacked=False),
        }
    rows |= {"Captum": peer(captum), "GNNExplainer": peer(gnn_explainer)}
    first: tuple[float, float] | None = None
    for name, way in rows.items():
        try:
            way(asked[:32])  # so that nothing is made for the first time
        except ImportError as error:
            print(f"{name}: not here ({error})", flush=True)
            continue
        clock, cores = seconds(lambda way=way: way(asked), given.device)
        first = first or (clock, cores)
        ratio = clock / first[0] if given.device == "cuda" else cores / first[1]
        print(f"{name}: {clock:.2f} s ({cores:.1f} s of cores), {ratio:.1f} times", flush=True)


if __name__ == "__main__":
    main()
