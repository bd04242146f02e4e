"""The neighbourhoods with most weight in a model's fingerprint, with examples."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from lookhops.core.arrays import Array
from lookhops.core.errors import LookHopsError
from lookhops.core.words import counted
from lookhops.explain.drawing.pictures import Fragment, draw_fragment
from lookhops.explain.drawing.sketch import GraphPart, paired
from lookhops.explain.question import find_head
from lookhops.explain.spreading import fingerprint_entries
from lookhops.graphs import Graphs
from lookhops.models.predictor import Predictor
from lookhops.neighbourhoods import Bins, identities
from lookhops.nn import GraphNetwork

#: How many of each side are shown, how many graphs hold each at least, and examples of each.
SHOWN, FEWEST, EXAMPLES = 20, 5, 2


@dataclass(frozen=True, eq=False)
class TopNeighbourhood:
    """A neighbourhood with much weight for a class, or for high or low values."""

    side: str  # the class, or high or low
    weight: float  # what it adds to the class's log-odds, or to the number, on average
    hops: int  # how far it reaches from its centre
    graphs: int  # how many graphs hold it
    examples: Sequence[str]  # names of some of them
    fragment: Fragment  # what it looks like

    @property
    def words(self) -> str:
        """What it is in a line: a fragment as SMILES, or the nodes that it holds."""
        if (smiles := self.fragment.as_smiles) is not None:
            return smiles
        nodes, names = self.fragment.nodes.tolist(), self.fragment.names
        short = {node: names[node].partition(" (")[0] for node in nodes}
        centre = short.pop(self.fragment.centre)
        held = ", ".join(f"{count} {name}" for name, count in Counter(short.values()).most_common())
        return f"{centre} with {held}" if held else centre

    def picture(self, styled: bool = True) -> str:
        """The neighbourhood as SVG, with colours of its own or those of the page it is in."""
        return draw_fragment(self.fragment, f"{self.words}, {counted(self.hops, 'hop')}", styled)

    def record(self) -> dict[str, Any]:
        """As JSON and a table can hold it."""
        return {
            "side": self.side,
            "weight": float(f"{self.weight:.6g}"),
            "hops": self.hops,
            "graphs": self.graphs,
            "neighbourhood": self.words,
            "examples": list(self.examples),
        }


def top_neighbourhoods(
    predictor: Predictor, graphs: Graphs, target: str | None = None, shown: int = SHOWN
) -> dict[str, list[TopNeighbourhood]]:
    r"""The neighbourhoods with most weight, for each class or for high and low values.

    In graph :math:`g` a neighbourhood :math:`f` adds :math:`\gamma W_f / \sqrt{|F_g|}` to the
    outputs; what counts for class :math:`c` is that of :math:`c` less the mean of the others. It is
    averaged over the places where the neighbourhood stands in these graphs, and over all networks.
    Of neighbourhoods that are the same nodes, seen from another one of them or with more hops, only
    the one with most weight is shown.

    Args:
        predictor: The model.
        graphs: The graphs to find them in: best those that it was trained on.
        target: Which target, of a model that answers several.
        shown: How many for each side.
    """
    hops = predictor.architecture.fingerprint
    if hops is None:
        raise LookHopsError(
            f"{predictor.folder}: its network reads no exact neighbourhoods; train one "
            "with `--fingerprint 5`."
        )
    _, head = find_head(predictor.task, target)
    weights = [
        _entry_weights(predictor, graphs, seed, network)[..., head.channels]
        for seed in predictor.answering
        for network in predictor.members[seed]
    ]
    mean = torch.stack(weights).mean(0).flatten(0, 1).cpu().numpy()
    fitted, place = predictor.target_scales, head.fitted or slice(None)
    scales = [fitted[seed][place] for seed in predictor.answering if seed in fitted]
    sides = head.task.sides(mean, scales)
    first = predictor.preprocessing(predictor.answering[0])
    found = _Found(predictor.prepare(graphs).graphs.to("cpu"), hops, first.bins)
    return {side: found.best(side, weight, shown) for side, weight in sides.items()}


def _entry_weights(
    predictor: Predictor, graphs: Graphs, seed: int, network: GraphNetwork
) -> torch.Tensor:
    """What each node's neighbourhood of each size adds to the outputs, (n, h + 1, outputs)."""
    encoding = predictor.preprocessing(seed)
    row, has_row, scale = fingerprint_entries(predictor.prepare(graphs), encoding)
    table = network.readings["fingerprint"].get_parameter("weight").detach()
    if not len(table):
        return table.new_zeros(*row.shape, table.shape[-1])
    return table[row] * has_row[..., None] * scale.to(table)[:, None, None]


class _Found:
    """The neighbourhoods of some graphs, each once."""

    def __init__(self, graphs: Graphs, hops: int, bins: Bins | None) -> None:
        self.graphs, self.hops, numbers = graphs, hops, graphs.nodes.numbers
        if numbers is not None:
            numbers = None if bins is None else bins(numbers)
        identity = identities(graphs, hops, numbers).flatten().numpy()
        _, self.first, self.kind, self.count = np.unique(
            identity, return_index=True, return_inverse=True, return_counts=True
        )
        self.kind = self.kind.ravel()
        graph = graphs.batch.numpy()[np.arange(len(identity)) // (hops + 1)]
        #: Each kind and each graph that holds it, and how many hold each kind.
        self.holders = np.unique(np.stack((self.kind, graph)), axis=1)
        self.held_by = np.bincount(self.holders[0], minlength=len(self.first))

    def best(self, side: str, weight: Array, shown: int) -> list[TopNeighbourhood]:
        """The neighbourhoods with most weight, each shown where it stands in a small graph."""
        mean = np.bincount(self.kind, weight, minlength=len(self.first)) / self.count
        fewest = min(FEWEST, max(self.held_by.max(initial=1), 1))
        order = np.argsort(-np.where(self.held_by >= fewest, mean, -np.inf), kind="stable")
        found: list[TopNeighbourhood] = []
        taken: set[tuple[Any, ...]] = set()
        sizes, ids = self.graphs.nodes_per_graph.numpy(), self.graphs.ids
        for kind in order[: 20 * shown].tolist():
            if len(found) == shown or mean[kind] <= 0 or self.held_by[kind] < fewest:
                break
            holders = self.holders[1, self.holders[0] == kind]
            small = holders[np.argsort(sizes[holders], kind="stable")][:EXAMPLES].tolist()
            fragment, held = self._fragment(kind, small[0]), int(self.held_by[kind])
            same = (small[0], held, *fragment.nodes.tolist())
            if same in taken:  # the same nodes, seen from another one or with more hops
                continue
            taken.add(same)
            hops, names = int(self.first[kind]) % (self.hops + 1), [ids[graph] for graph in small]
            found.append(TopNeighbourhood(side, float(mean[kind]), hops, held, names, fragment))
        return found

    def _fragment(self, kind: int, graph: int) -> Fragment:
        """The neighbourhood as it stands in a graph."""
        part = GraphPart(self.graphs, graph)
        of_nodes = self.kind.reshape(-1, self.hops + 1)[part.nodes]
        centre, hops = np.argwhere(of_nodes == kind)[0].tolist()
        source, target = part.ends
        inside = np.arange(part.size) == centre
        for _ in range(hops):
            inside[source[inside[target]]] = True
        (edges,) = paired(source, target)
        return Fragment(edges, part.names, np.flatnonzero(inside), centre, smiles=part.smiles)
