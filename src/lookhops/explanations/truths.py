"""Tasks whose answer rests on known nodes: what explanations are measured against."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import networkx as nx
import numpy as np
import torch
from torch import Tensor

from lookhops.datasets.hop_tasks import BLUE, MARKED, RED, hop_task
from lookhops.datasets.solubility import load_solubility
from lookhops.errors import LookHopsError
from lookhops.graphs import Graphs, Target

#: Nodes of the Barabási-Albert graph to which a motif is tied, and of the motif itself.
BASE, MOTIF = 20, 5
#: Graphs without a substructure for each one that has it: rare ones stay a class of weight.
MOST_WITHOUT = 3


@dataclass(frozen=True, eq=False)
class TruthTask:
    """Graphs with classes, and the nodes that decide them.

    Args:
        graphs: The graphs.
        truth: Which nodes the class rests on, shape (n). Graphs without any such node are not
            asked about: there is nothing to point at.
    """

    graphs: Graphs
    truth: Tensor

    def select(self, index: Tensor) -> TruthTask:
        """The graphs at ``index``, in that order."""
        ptr = self.graphs.node_ptr.long()
        nodes = [torch.arange(int(ptr[i]), int(ptr[i + 1])) for i in index.tolist()]
        return TruthTask(self.graphs.select(index), self.truth[torch.cat(nodes)])


def hops_truth(k: int, size: int = 1000, seed: int = 0) -> TruthTask:
    """The hop task ``hops-K``: the painted ends of the arms decide.

    They are the red and blue nodes exactly ``k`` hops from the marked node of their tree.
    """
    graphs = hop_task(k, size, seed)
    assert graphs.labels is not None
    label = graphs.labels[:, 0]
    source, target = graphs.source.long(), graphs.target.long()
    distance = torch.where(label == MARKED, 0, k + 1)
    for step in range(1, k + 1):
        reached = torch.zeros_like(distance, dtype=torch.bool)
        reached[target[distance[source] == step - 1]] = True
        distance = torch.where(reached & (distance > step), step, distance)
    return TruthTask(graphs, (distance == k) & ((label == RED) | (label == BLUE)))


def ba_2motifs(size: int = 1000, seed: int = 0) -> TruthTask:
    """BA-2Motifs of Luo et al. (2020): a Barabási-Albert tree with a house, or with a cycle of 5.

    Nodes have no features; the motif's five nodes decide.
    """
    draws = np.random.default_rng(seed)
    graphs, y = [], draws.permutation(np.arange(size) % 2)
    for kind in y:
        graph = nx.barabasi_albert_graph(BASE, 1, seed=int(draws.integers(2**31)))
        motif = nx.house_graph() if kind else nx.cycle_graph(MOTIF)
        graph = nx.disjoint_union(graph, motif)
        graph.add_edge(int(draws.integers(BASE)), BASE + int(draws.integers(MOTIF)))
        graphs.append(graph)
    packed = Graphs.from_networkx(graphs, y=torch.from_numpy(y), name="BA-2Motifs")
    packed = replace(packed, targets=(Target("motif", ("cycle", "house")),))
    return TruthTask(packed, (torch.arange(BASE + MOTIF) >= BASE).repeat(size))


def substructure_truth(name: str, patterns: Sequence[str], seed: int = 0) -> TruthTask:
    """The bundled molecules by whether they hold all of some substructures: their atoms decide.

    Args:
        name: What to call the task.
        patterns: SMARTS of the substructures.
        seed: Of the molecules without them, of which at most three are taken for each one with.
    """
    from rdkit import Chem

    molecules = load_solubility()
    queries = [Chem.MolFromSmarts(pattern) for pattern in patterns]
    truth, holds = [], []
    for smiles in molecules.columns["smiles"]:
        molecule = Chem.MolFromSmiles(smiles)
        found = [molecule.GetSubstructMatches(query) for query in queries]
        atoms = torch.zeros(molecule.GetNumAtoms(), dtype=torch.bool)
        if all(found):
            atoms[[atom for matches in found for match in matches for atom in match]] = True
        truth.append(atoms)
        holds.append(int(all(found)))
    y = torch.tensor(holds)
    order = torch.randperm(len(y), generator=torch.Generator().manual_seed(seed))
    without = order[y[order] == 0][: MOST_WITHOUT * int(y.sum())]
    chosen = torch.cat((y.nonzero().flatten(), without)).sort().values
    targets = (Target(name, ("without", "with")),)
    graphs = replace(molecules, y=y, targets=targets, name=name)
    return TruthTask(graphs, torch.cat(truth)).select(chosen)


#: Every task by its name.
TRUTHS: Mapping[str, Callable[[], TruthTask]] = {
    "hops-2": partial(hops_truth, 2),
    "hops-3": partial(hops_truth, 3),
    "ba-2motifs": ba_2motifs,
    "nitro": partial(substructure_truth, "nitro", ("[N+](=O)[O-]",)),
    "benzene": partial(substructure_truth, "benzene", ("c1ccccc1",)),
    "fluorine-carbonyl": partial(substructure_truth, "fluorine-carbonyl", ("F", "C=O")),
}


def truth_task(name: str) -> TruthTask:
    """The task of this name."""
    if name not in TRUTHS:
        raise LookHopsError(f"There is no task {name!r}; known are {', '.join(TRUTHS)}.")
    return TRUTHS[name]()
