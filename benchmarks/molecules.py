"""Prediction of molecules: a file of SMILES through three networks, from the command to the file.

    python benchmarks/molecules.py [--count 20000] [--held] [--other ../earlier]

The peer is what a PyG user writes: its ``from_smiles``, a DataLoader, and the same networks as
operators of MessagePassing, one after the other; on the first molecules, since each takes the same.
The model reads RDKit's descriptors; one that was trained without takes its turns.
With ``--other`` the command of another checkout takes its turns, with a model of its own training.
With ``--held`` another program holds one of the cores all the while.
"""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

#: Molecules that PyG's side is timed on.
PEER = 1024


def molecules(count: int) -> list[str]:
    """Molecules that no training set has: two of the bundled ones, joined."""
    from rdkit import Chem, rdBase

    from lookhops.sources.loading import load

    draw = random.Random(0)
    known = [text for text in load("solubility").columns["smiles"].tolist() if "." not in text]
    found: dict[str, None] = {}
    with rdBase.BlockLogs():
        while len(found) < count:
            ends, bridge = draw.choices(known, k=2), draw.choice(["C", "CC", "CCC", "N", "O"])
            molecule = Chem.MolFromSmiles(bridge.join(ends))
            if molecule is not None and molecule.GetNumAtoms() <= 45:
                found[Chem.MolToSmiles(molecule)] = None
    return list(found)


class Version:
    """A checkout, and the model that it trains.

    Args:
        name: What to call it.
        source: Its ``src`` folder; by default the one that is installed.
        folder: Where its model goes.
        options: Of its training.
    """

    def __init__(self, name: str, source: Path | None, folder: Path, *options: str) -> None:
        self.name, self.model, self.answers = name, folder / name, folder / f"{name}.csv"
        self.environment = dict(os.environ)
        if source is not None:
            self.environment["PYTHONPATH"] = str(source)
        training = ("train", "solubility", "--seeds", "3", "--epochs", "3", *options)
        self.run(*training, "-o", str(self.model))

    def run(self, *words: str) -> float:
        """Seconds that a command takes."""
        start, command = time.perf_counter(), [sys.executable, "-m", "lookhops", *words]
        done = subprocess.run(command, env=self.environment, capture_output=True, text=True)
        if done.returncode:
            sys.exit(f"{self.name}: {done.stderr}")
        return time.perf_counter() - start

    def predict(self, file: Path) -> float:
        """Seconds from the command to the file."""
        return self.run("predict", str(self.model), str(file), "-o", str(self.answers))


def plain(texts: list[str]) -> float:
    """Seconds that plain PyG takes for the molecules, once all is imported and warm."""
    import torch
    from torch_geometric.loader import DataLoader
    from torch_geometric.utils import from_smiles

    from lookhops.nn import Architecture
    from training import PlainNetwork

    networks = [PlainNetwork(9, 3, Architecture(pool="lookhops")).eval() for _ in range(3)]

    @torch.inference_mode()
    def answer(texts: list[str]) -> None:
        data = [from_smiles(text) for text in texts]
        for graph in data:
            graph.x = graph.x.float()
        for network in networks:
            for batch in DataLoader(data, batch_size=256):
                network(batch)

    answer(texts[:256])
    start = time.perf_counter()
    answer(texts)
    return time.perf_counter() - start


@contextmanager
def held(wanted: bool):
    """Another program that computes all the while."""
    other = subprocess.Popen([sys.executable, "-c", "while True: pass"]) if wanted else None
    try:
        yield
    finally:
        if other is not None:
            other.kill()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--count", type=int, default=20_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--held", action="store_true", help="While another program holds a core.")
    parser.add_argument("--other", type=Path, help="Another checkout.")
    given = parser.parse_args()
    texts = molecules(given.count)
    with TemporaryDirectory() as name:
        folder = Path(name)
        file = folder / "many.csv"
        file.write_text("id,smiles\n" + "".join(f"m{i},{text}\n" for i, text in enumerate(texts)))
        without = Version("no descriptors", None, folder, "--descriptors", "none")
        versions = [Version("ours", None, folder), without]
        if given.other is not None:
            versions.append(Version("other", given.other.resolve() / "src", folder))
        with held(given.held):
            took = [[version.predict(file) for version in versions] for _ in range(given.rounds)]
            peer = plain(texts[:PEER]) * len(texts) / min(PEER, len(texts))
    fastest = [min(each) for each in zip(*took, strict=True)]
    rows = {version.name: seconds for version, seconds in zip(versions, fastest, strict=True)}
    print(f"{len(texts):,} molecules, three networks, the fastest of {given.rounds} rounds:")
    for called, seconds in (rows | {"plain PyG": peer}).items():
        print(f"{called:14} {seconds:6.2f} s, {seconds / fastest[0]:.2f} times ours")


if __name__ == "__main__":
    main()
