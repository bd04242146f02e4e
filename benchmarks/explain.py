"""Explaining a thousand molecules: shares of every node and edge, against PyG's explainers.

    python benchmarks/explain.py [--graphs 1000] [--epochs 3]

The recommended model is trained on the bundled molecules for a few epochs: how well it answers does
not matter here. The peers are Captum's integrated gradients of node features (50 points, PyG's
default) and GNNExplainer (50 steps), both through PyG, with all graphs in one batch, which is their
fastest way. They give nodes alone, ours edges, totals and exact neighbourhoods too.
"""

import argparse
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import torch

from lookhops.datasets.solubility import load_solubility
from lookhops.explanations import attribute
from lookhops.explanations.explainers import captum, gnn_explainer
from lookhops.models.predictor import Predictor
from lookhops.models.resumable_training import train_into
from lookhops.options import RECOMMENDED, Protocol
from lookhops.words import counted


def seconds(run: Callable[[], object]) -> tuple[float, float]:
    """By the clock, and of all cores together: the second says more on a busy machine."""
    began = time.perf_counter(), time.process_time()
    run()
    return time.perf_counter() - began[0], time.process_time() - began[1]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--graphs", type=int, default=1000)
    parser.add_argument("--epochs", type=int, default=3)
    given = parser.parse_args()
    warnings.filterwarnings("ignore")
    graphs = load_solubility()
    with tempfile.TemporaryDirectory() as folder:
        model = Path(folder) / "model"
        protocol = Protocol(seeds=(1,), max_epochs=given.epochs)
        train_into(model, graphs, RECOMMENDED, protocol, device="cpu")
        predictor = Predictor(model, "cpu")
    asked = graphs[: given.graphs]
    attribute(predictor, asked[:32])  # so that nothing is made for the first time
    ours = seconds(lambda: attribute(predictor, asked))
    threads = counted(torch.get_num_threads(), "thread")
    said = f"{len(asked):,} molecules, {asked.num_nodes:,} atoms, {threads}"
    print(f"{said}\nours: {ours[0]:.1f} s ({ours[1]:.1f} s of cores)", flush=True)
    for name, peer in (("Captum", captum), ("GNNExplainer", gnn_explainer)):
        theirs = seconds(lambda peer=peer: peer(predictor, asked, 1))
        ratio = theirs[1] / ours[1]
        print(f"{name}: {theirs[0]:.1f} s ({theirs[1]:.1f} s of cores), {ratio:.1f} times ours")


if __name__ == "__main__":
    main()
