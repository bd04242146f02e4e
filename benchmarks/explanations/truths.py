"""Tasks whose answer rests on known nodes: what explanations are measured against."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import torch
from torch import Tensor

from lookhops.core.errors import LookHopsError
from lookhops.graphs import Graphs
from lookhops.graphs.targets import targets_of
from lookhops.sources.bundled import load_solubility
from lookhops.sources.hop_tasks import BLUE, MARKED, RED, hop_task
from lookhops.sources.molecules import from_smiles

#: Nodes of the Barabási-Albert graph to which a motif is tied, and of the motif itself.
BASE, MOTIF = 20, 5
#: Most edges that are added to the Barabási-Albert tree.
MOST_CHORDS = 4
CLASSES = ("without", "with")
#: Substructures as SMARTS.
NITRO, BENZENE, CARBONYL = "[N+](=O)[O-]", "c1ccccc1", "C=O"


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

    def parts(self) -> tuple[Tensor, ...]:
        """The truth of each graph."""
        return self.truth.split(self.graphs.nodes_per_graph.tolist())


def hops_truth(k: int, size: int = 1000, seed: int = 0) -> TruthTask:
    """The hop task ``hops-K``: the painted ends of the arms decide.

    They are the red and blue nodes exactly ``k`` hops from the marked node of their tree.
    """
    graphs = hop_task(k, size, seed)
    assert graphs.nodes.labels is not None
    label = graphs.nodes.labels[:, 0]
    source, target = graphs.source.long(), graphs.target.long()
    distance = torch.where(label == MARKED, 0, k + 1)
    for step in range(1, k + 1):
        reached = torch.zeros_like(distance, dtype=torch.bool)
        reached[target[distance[source] == step - 1]] = True
        distance = torch.where(reached & (distance > step), step, distance)
    return TruthTask(graphs, (distance == k) & ((label == RED) | (label == BLUE)))


def ba_2motifs(size: int = 1000, seed: int = 0) -> TruthTask:
    """BA-2Motifs of Luo et al. (2020): a Barabási-Albert tree with a house, or with a cycle of 5.

    Nodes have no features; the motif's five nodes decide. As it was published, the number of edges
    alone tells the classes, and nobody needs to look at the motif. Here the tree gets up to four
    more edges, a number that knows nothing of the class, between nodes at least five steps apart:
    the motif stays the only place with a cycle of five or fewer.
    """
    import networkx as nx

    draws = np.random.default_rng(seed)
    graphs, y = [], draws.permutation(np.arange(size) % 2)
    for kind in y:
        graph = nx.barabasi_albert_graph(BASE, 1, seed=int(draws.integers(2**31)))
        for _ in range(draws.integers(MOST_CHORDS + 1)):
            far = [
                (i, j)
                for i, lengths in nx.all_pairs_shortest_path_length(graph)
                for j, length in lengths.items()
                if i < j and length >= MOTIF
            ]
            graph.add_edges_from(draws.permutation(far)[:1].tolist())
        motif = nx.house_graph() if kind else nx.cycle_graph(MOTIF)
        graph = nx.disjoint_union(graph, motif)
        graph.add_edge(int(draws.integers(BASE)), BASE + int(draws.integers(MOTIF)))
        graphs.append(graph)
    packed = Graphs.from_networkx(graphs, y=torch.from_numpy(y), name="BA-2Motifs")
    packed = replace(packed, targets=targets_of(packed.y, ("cycle", "house")))
    return TruthTask(packed, (torch.arange(BASE + MOTIF) >= BASE).repeat(size))


def benzene(size: int = 1000, seed: int = 0) -> TruthTask:
    """Some of the bundled molecules by whether they hold a benzene ring, whose atoms decide.

    Args:
        size: Number of molecules, at most all 1,282 of them.
        seed: Of the draw.
    """
    every = load_solubility().columns["smiles"]
    chosen = np.random.default_rng(seed).permutation(len(every))[:size]
    return _by_atoms("benzene", [every[i] for i in chosen], (BENZENE,))


def nitro(size: int = 1000, seed: int = 0) -> TruthTask:
    """Molecules with a nitro group, whose three atoms decide, and as many without.

    Few of the bundled molecules have one (42), so it is put in place of one hydrogen of a carbon of
    the others, drawn at random.

    Args:
        size: Number of molecules.
        seed: Of the draws.
    """
    draws = np.random.default_rng(seed)
    plain = [s for s in _substitutable() if not atoms_of(s, (NITRO,)).any()]
    chosen = draws.choice(len(plain), size)
    changed = np.arange(size) < size // 2
    made = [
        _substituted(plain[i], "[N+](=O)[O-]", draws) if c else plain[i]
        for i, c in zip(chosen, changed, strict=True)
    ]
    return _by_atoms("nitro", made, (NITRO,))


def fluorine_carbonyl(size: int = 1000, seed: int = 0) -> TruthTask:
    """Molecules with fluorine and a carbonyl group, against those with one of the two.

    Few of the bundled molecules have both (18), so fluorine is put in place of one hydrogen of a
    carbon, drawn at random: half of the graphs have both, a quarter only fluorine, a quarter only
    a carbonyl group. Neither part tells the class alone.

    Args:
        size: Number of molecules.
        seed: Of the draws.
    """
    draws = np.random.default_rng(seed)
    plain = [s for s in _substitutable() if "F" not in s]
    has = np.array([bool(atoms_of(smiles, (CARBONYL,)).any()) for smiles in plain])
    both, one = size // 2, size // 4
    chosen = [
        *((i, True) for i in draws.choice(np.flatnonzero(has), both)),
        *((i, True) for i in draws.choice(np.flatnonzero(~has), size - both - one)),
        *((i, False) for i in draws.choice(np.flatnonzero(has), one)),
    ]
    made = [_substituted(plain[i], "F", draws) if change else plain[i] for i, change in chosen]
    return _by_atoms("fluorine-carbonyl", made, ("F", CARBONYL))


def _by_atoms(name: str, smiles: Sequence[str], patterns: Sequence[str]) -> TruthTask:
    """Molecules by whether they hold all of some substructures, whose atoms decide."""
    truth = [atoms_of(one, patterns) for one in smiles]
    y = [int(atoms.any()) for atoms in truth]
    return TruthTask(from_smiles(smiles, y, class_names=CLASSES, name=name), torch.cat(truth))


def atoms_of(smiles: str, patterns: Sequence[str]) -> Tensor:
    """The atoms of some substructures, shape (n), where a molecule holds all of them; else none.

    Args:
        smiles: The molecule.
        patterns: SMARTS of the substructures.
    """
    from rdkit import Chem

    molecule = Chem.MolFromSmiles(smiles)
    found = [molecule.GetSubstructMatches(Chem.MolFromSmarts(pattern)) for pattern in patterns]
    atoms = torch.zeros(molecule.GetNumAtoms(), dtype=torch.bool)
    if all(found):
        atoms[[atom for matches in found for match in matches for atom in match]] = True
    return atoms


def _substitutable() -> list[str]:
    """The bundled molecules that have a carbon with a hydrogen."""
    return [smiles for smiles in load_solubility().columns["smiles"] if _carbons(smiles)]


def _carbons(smiles: str) -> list[int]:
    """The carbon atoms that have a hydrogen."""
    from rdkit import Chem

    atoms = Chem.MolFromSmiles(smiles).GetAtoms()
    return [a.GetIdx() for a in atoms if a.GetSymbol() == "C" and a.GetTotalNumHs()]


def _substituted(smiles: str, group: str, draws: np.random.Generator) -> str:
    """The molecule with a group, bound by its first atom, in place of a hydrogen of a carbon."""
    from rdkit import Chem

    molecule = Chem.MolFromSmiles(smiles)
    both = Chem.RWMol(Chem.CombineMols(molecule, Chem.MolFromSmiles(group, sanitize=False)))
    carbon = int(draws.choice(_carbons(smiles)))
    both.AddBond(carbon, molecule.GetNumAtoms(), Chem.BondType.SINGLE)
    Chem.SanitizeMol(both)
    return str(Chem.MolToSmiles(both))


#: Every task by its name, made from a number of graphs and a seed.
TRUTHS: Mapping[str, Callable[[int, int], TruthTask]] = {
    "hops-1": partial(hops_truth, 1),
    "hops-2": partial(hops_truth, 2),
    "ba-2motifs": ba_2motifs,
    "nitro": nitro,
    "benzene": benzene,
    "fluorine-carbonyl": fluorine_carbonyl,
}


def truth_task(name: str, size: int = 1000, seed: int = 0) -> TruthTask:
    """The task of this name.

    Args:
        name: One of :data:`TRUTHS`.
        size: Number of graphs.
        seed: Of their draw.
    """
    if name not in TRUTHS:
        raise LookHopsError(f"There is no task {name!r}; known are {', '.join(TRUTHS)}.")
    return TRUTHS[name](size, seed)
