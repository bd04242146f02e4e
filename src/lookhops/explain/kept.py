"""What a model looked at: which nodes each pooling layer kept, and with what score."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from lookhops.core.arrays import Array
from lookhops.core.errors import LookHopsError
from lookhops.explain.drawing.pictures import LayeredGraph, panels
from lookhops.explain.drawing.sketch import GraphPart, paired
from lookhops.graphs import Graphs
from lookhops.models.predictor import Predictor
from lookhops.nn import NodePooling, Pooled
from lookhops.training.inputs import BATCH_SIZE

#: Of larger graphs a part is drawn.
MOST_NODES = 250


@dataclass(frozen=True, eq=False)
class LayerView:
    """What one pooling layer did to one graph, in the graph's own node numbers.

    Args:
        nodes: Nodes that reached the layer, shape (m).
        score: The score of each, shape (m).
        kept: Whether the layer kept it, shape (m).
        group: Node that stands for each node of the graph after the layer, shape (n); -1 where it
            is gone. Poolings that merge nodes let one stand for several.
        dropped_edges: Edges that the layer dropped although it kept both ends, shape (r, 2).
    """

    nodes: Array
    score: Array
    kept: Array
    group: Array
    dropped_edges: Array

    def cut(self, nodes: slice) -> LayerView:
        """The part of a batch's view that belongs to the graph with these nodes."""
        first, last = nodes.start, nodes.stop
        low, high = np.searchsorted(self.nodes, (first, last))
        group, ends = self.group[nodes], self.dropped_edges[:, 0]
        return LayerView(
            self.nodes[low:high] - first,
            self.score[low:high],
            self.kept[low:high],
            np.where(group >= 0, group - first, -1),
            self.dropped_edges[(ends >= first) & (ends < last)] - first,
        )

    def as_json(self) -> dict[str, Any]:
        """The same as JSON can hold it."""
        alive = self.group >= 0
        merged = bool((self.group[alive] != np.flatnonzero(alive)).any())
        return {
            "nodes": self.nodes.tolist(),
            "score": [float(f"{value:.6g}") for value in self.score.tolist()],
            "kept": self.nodes[self.kept].tolist(),
            "dropped": self.nodes[~self.kept].tolist(),
            "dropped_edges": self.dropped_edges.tolist(),
            **({"merged_into": self.group.tolist()} if merged else {}),
        }


@dataclass(frozen=True, eq=False)
class Explanation:
    """One graph, the model's answer, and what each pooling layer kept of the graph.

    Args:
        id: What the graph is called.
        answer: What all seeds answer together, in words.
        record: The same as JSON can hold it.
        num_nodes: How many nodes there are.
        edges: Each edge once, shape (e, 2).
        layers: One view for each pooling layer.
        smiles: The molecule, if it is one.
        node_ids: What the source calls each node, where it does.
    """

    id: str
    answer: str
    record: dict[str, Any]
    num_nodes: int
    edges: Array
    layers: list[LayerView]
    smiles: str | None = None
    node_ids: Sequence[str] | None = None

    def as_json(self) -> dict[str, Any]:
        """The same as JSON can hold it, nodes numbered from 0."""
        return {
            "id": self.id,
            **({} if self.smiles is None else {"smiles": self.smiles}),
            **self.record,
            "num_nodes": self.num_nodes,
            **({} if self.node_ids is None else {"node_ids": [*self.node_ids]}),
            "edges": self.edges.tolist(),
            "layers": [{"layer": n, **view.as_json()} for n, view in enumerate(self.layers, 1)],
        }

    def layered(self) -> LayeredGraph:
        """What each layer dropped or merged into another node, and its scores, for drawing."""
        last = len(self.layers) + 1
        node_layer = np.full(self.num_nodes, last)
        scores = np.full((len(self.layers), self.num_nodes), np.nan)
        dropped: dict[tuple[int, ...], int] = {}
        for number, view in reversed(list(enumerate(self.layers, 1))):
            node_layer[view.nodes[~view.kept]] = number
            dropped |= {tuple(pair): number for pair in view.dropped_edges.tolist()}
            if len(view.score):
                low, span = view.score.min(), np.ptp(view.score)
                scores[number - 1, view.nodes] = (view.score - low) / span if span > 0 else 1.0
        itself = [dropped.get(tuple(pair), last) for pair in self.edges.tolist()]
        edge_layer = np.minimum(np.array(itself, dtype=int), node_layer[self.edges].min(1))
        return LayeredGraph(
            self.edges, node_layer, edge_layer, scores, smiles=self.smiles, ids=self.node_ids
        )

    def picture(self) -> str:
        """An SVG with a panel for each layer: nodes shaded by score, dropped ones faded.

        Of a large graph the nodes that are kept longest are drawn.
        """
        captions = [
            (
                f"layer {number}: {int(view.kept.sum())} of {len(view.kept)} kept",
                [f"{end(view.score):.3g}" for end in (np.min, np.max)] if len(view.score) else [],
            )
            for number, view in enumerate(self.layers, 1)
        ]
        graph, head = self.layered(), f"{self.id}: {self.answer}"
        if self.num_nodes > MOST_NODES:
            head += f" ({MOST_NODES} of {self.num_nodes:,} nodes, those kept longest)"
        return panels(graph.lasting(MOST_NODES), self.id, head, captions)


def explain(predictor: Predictor, graphs: Graphs, seed: int | None = None) -> Iterator[Explanation]:
    """What the pooling layers of one seed's network, by default the first, kept of each graph.

    The answer is that of all seeds together.
    """
    seed = predictor.known_seed(seed)
    model = predictor.models[seed]
    if not model.pools or len(model.convs) < 2:
        raise LookHopsError(
            f"{predictor.checkpoint.folder}: its network has no pooling, so it looks at all nodes "
            "alike; train one with `--pool lookhops` and two layers or more."
        )
    if not model.pools[0].stackable:
        raise LookHopsError(
            f"{predictor.checkpoint.folder}: its pooling is another library's, which does not say "
            "what became of each node; train one with `--pool lookhops`."
        )
    graphs = predictor.read(graphs)
    ids = graphs.ids
    for start in range(0, len(graphs), BATCH_SIZE):
        part = slice(start, start + BATCH_SIZE)
        yield from _explain_batch(predictor, graphs.select(part), seed, ids[part])


@torch.inference_mode()
def _explain_batch(
    predictor: Predictor, graphs: Graphs, seed: int, ids: list[str]
) -> Iterator[Explanation]:
    answers, model = predictor.predict(graphs), predictor.models[seed]
    [batch] = predictor.inputs(predictor.prepare(graphs), seed).batches(model, len(graphs))
    _, decisions = model.classify(batch)
    layers = _layer_views(graphs, decisions, isinstance(model.pools[0], NodePooling))
    for number in range(len(graphs)):
        part = GraphPart(graphs, number)
        yield Explanation(
            ids[number],
            answers.said(number),
            answers.record(number),
            part.size,
            paired(*part.ends)[0],
            [view.cut(part.nodes) for view in layers],
            part.smiles,
            part.ids,
        )


def _layer_views(graphs: Graphs, decisions: list[Pooled], keeps_edges: bool) -> list[LayerView]:
    """Each layer's decision, nodes numbered as in the batch before the first layer.

    ``keeps_edges`` says whether the edges of every layer are among those of the graph, as they are
    unless nodes are merged.
    """
    layers = []
    nodes = np.arange(graphs.num_nodes)  # the batch's node behind each node of the layer
    place = np.arange(graphs.num_nodes)  # the layer's node for each node of the batch, or -1
    source, target = graphs.source.numpy(), graphs.target.numpy()
    for pooled in decisions:
        keep = pooled.node.cpu().numpy()
        into = np.arange(len(nodes)) if pooled.cluster is None else pooled.cluster.cpu().numpy()
        # Where does each of the layer's nodes stand in the next one?
        then = np.where(keep, keep.cumsum() - 1, -1)[into]
        place = np.where(place >= 0, then[place], -1)
        kept = nodes[keep]
        dropped = np.empty((0, 2), dtype=int)
        if keeps_edges:
            keep_edge = pooled.edge.cpu().numpy()
            lost = np.isin(source, kept) & np.isin(target, kept) & ~keep_edge
            (dropped,) = paired(source[lost], target[lost])
            source, target = source[keep_edge], target[keep_edge]
        group = np.where(place >= 0, kept[place], -1)
        score = pooled.score.float().cpu().numpy()
        layers.append(LayerView(nodes, score, keep, group, dropped))
        nodes = kept
    return layers
