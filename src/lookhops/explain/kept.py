"""What a model looked at: which nodes each pooling layer kept, and with what score."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from lookhops.core.arrays import Array
from lookhops.core.errors import LookHopsError
from lookhops.explain.drawing.pictures import LayeredGraph, panels
from lookhops.explain.drawing.sketch import DrawnGraph, GraphPart, paired
from lookhops.graphs import Graphs
from lookhops.models.predictor import Predictor
from lookhops.nn import NodePooling, Pooled
from lookhops.training.inputs import BATCH_SIZE

#: Of larger graphs a part is drawn.
MOST_NODES = 250


@dataclass(frozen=True, eq=False)
class LayerView:
    """What one pooling layer did to one graph, nodes numbered as in the graph."""

    nodes: Array  # those that reached the layer, (m)
    score: Array  # of each, (m)
    kept: Array  # whether the layer kept it, (m)
    group: Array  # the node that stands for each node of the graph after the layer, or -1, (n)
    dropped_edges: Array  # those that it dropped although it kept both ends, (r, 2)

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
class Explanation(DrawnGraph):
    """One graph, the model's answer, and what each pooling layer kept of the graph."""

    id: str
    answer: str  # of all seeds together, in words
    record: dict[str, Any]  # the same as JSON can hold it
    num_nodes: int
    layers: list[LayerView]  # one for each pooling layer

    def as_json(self) -> dict[str, Any]:
        """The same as JSON can hold it, nodes numbered from 0."""
        return {
            "id": self.id,
            **({} if self.smiles is None else {"smiles": self.smiles}),
            **self.record,
            "num_nodes": self.num_nodes,
            **({} if self.ids is None else {"node_ids": [*self.ids]}),
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
        parts = self.edges, node_layer, edge_layer, scores
        return LayeredGraph(*parts, smiles=self.smiles, ids=self.ids)

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
    """What the pooling layers of one seed's network, by default the first, kept of each graph."""
    seed = predictor.known_seed(seed)
    model = predictor.models[seed]
    if not model.pools or len(model.convs) < 2:
        raise LookHopsError(
            f"{predictor.folder}: its network has no pooling, so it looks at all nodes "
            "alike; train one with `--pool lookhops` and two layers or more."
        )
    if not model.pools[0].stackable:
        raise LookHopsError(
            f"{predictor.folder}: its pooling is another library's, which does not say "
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
            paired(*part.ends)[0],
            ids[number],
            answers.said(number),
            answers.record(number),
            part.size,
            [view.cut(part.nodes) for view in layers],
            smiles=part.smiles,
            ids=part.ids,
        )


def _layer_views(graphs: Graphs, decisions: list[Pooled], keeps_edges: bool) -> list[LayerView]:
    """Each layer's decision, nodes numbered as in the batch before the first layer.

    With ``keeps_edges`` the edges of every layer are among those of the graph: nodes do not merge.
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
