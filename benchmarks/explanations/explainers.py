"""Ways to say how much each node matters to an answer: ours, and those it is measured against."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from lookhops.explain.attributions import attribute
from lookhops.explain.question import Question, Together, find_head
from lookhops.graphs import Graphs
from lookhops.models.predictor import Predictor
from lookhops.nn import GraphBatch, GraphNetwork

Scores = NDArray[np.float64]
#: Scores of all nodes, shape (n), from a model, graphs and the seed whose network is explained.
Explainer = Callable[[Predictor, Graphs, int], Scores]
#: Steps of PyG's GNNExplainer, and their rate: with its own, 0.01, masks stay near the random ones
#: that they begin with.
EPOCHS, RATE = 50, 0.3


def shares(predictor: Predictor, graphs: Graphs, seed: int) -> Scores:
    """Each node's share of the answer with half of those of its edges; first what pulls most
    towards the answer, last what pulls most away from it."""
    return attribute(predictor, graphs, seed=seed).node_with_edges


def sizes(predictor: Predictor, graphs: Graphs, seed: int) -> Scores:
    """The sizes of the shares of each node and of its edges, whichever way they pull."""
    return attribute(predictor, graphs, seed=seed).node_weight


def kept_by_pooling(predictor: Predictor, graphs: Graphs, seed: int) -> Scores:
    """How many pooling layers kept each node; of equals those with the higher last score."""
    network, batch = _told(predictor, graphs, seed)
    every = torch.ones_like(batch.graph, dtype=torch.bool)
    with torch.no_grad():
        _, decisions = network.classify(replace(batch, alive=every), masked=True)
    found = torch.zeros_like(batch.x[:, 0], dtype=torch.float64)
    for pooled in decisions:
        found += pooled.node.double() * (1 + 1e-3 * pooled.score.double().sigmoid())
    return _numpy(found)


def gradient(predictor: Predictor, graphs: Graphs, seed: int) -> Scores:
    """The length of the gradient of the answer with respect to what is told of each node."""
    network, batch = _told(predictor, graphs, seed)
    units = _units(predictor, graphs, seed)
    x = batch.x.detach().clone().requires_grad_()
    outputs, _ = network.classify(replace(batch, x=x))
    (grad,) = torch.autograd.grad(units(outputs).sum(), x)
    return _numpy(grad.norm(dim=1))


def gnn_explainer(predictor: Predictor, graphs: Graphs, seed: int) -> Scores:
    """PyG's GNNExplainer with a mask of nodes, as many steps as :data:`EPOCHS`."""
    from torch_geometric.explain import GNNExplainer

    algorithm = GNNExplainer(epochs=EPOCHS, lr=RATE)
    return _by_pyg(predictor, graphs, seed, algorithm, "object")


def captum(predictor: Predictor, graphs: Graphs, seed: int) -> Scores:
    """Integrated gradients of node features through Captum, from zeros, the edges left alone; first
    what pulls most towards the answer."""
    from torch_geometric.explain import CaptumExplainer

    return _by_pyg(predictor, graphs, seed, CaptumExplainer("IntegratedGradients"), "attributes")


def captum_sizes(predictor: Predictor, graphs: Graphs, seed: int) -> Scores:
    """The sizes of the same, whichever way nodes pull."""
    return np.abs(captum(predictor, graphs, seed))


def degree(predictor: Predictor, graphs: Graphs, seed: int) -> Scores:
    """How many edges each node has."""
    return _numpy(graphs.row_ptr.diff())


def at_random(predictor: Predictor, graphs: Graphs, seed: int) -> Scores:
    """Nothing but chance."""
    return np.random.default_rng(seed).random(graphs.num_nodes)


#: Every row of the benchmark.
EXPLAINERS: Mapping[str, Explainer] = {
    "shares": shares,
    "sizes of shares": sizes,
    "kept by pooling": kept_by_pooling,
    "gradient": gradient,
    "GNNExplainer (PyG)": gnn_explainer,
    "integrated gradients (Captum)": captum,
    "sizes of integrated gradients": captum_sizes,
    "degree": degree,
    "random": at_random,
}


class _Told(nn.Module):
    """A network as PyG's explainers call one: on the node features of graphs that are known."""

    def __init__(self, network: GraphNetwork, batch: GraphBatch) -> None:
        super().__init__()
        self.network, self.batch = network, batch

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        """The outputs of each graph."""
        outputs, _ = self.network.classify(replace(self.batch, x=x))
        return outputs


def _by_pyg(
    predictor: Predictor, graphs: Graphs, seed: int, algorithm: Any, node_mask: str
) -> Scores:
    """Scores by one of PyG's explainers."""
    from torch_geometric.explain import Explainer as PyGExplainer

    network, batch = _told(predictor, graphs, seed)
    explainer = PyGExplainer(
        _Told(network, batch),
        algorithm=algorithm,
        explanation_type="model",
        node_mask_type=node_mask,
        edge_mask_type=None,
        model_config={
            "mode": "multiclass_classification",
            "task_level": "graph",
            "return_type": "raw",
        },
    )
    torch.manual_seed(seed)
    found = explainer(batch.x.detach().clone(), batch.adjacency.edge_index)
    return _numpy(found.node_mask.sum(1))


def _told(predictor: Predictor, graphs: Graphs, seed: int) -> tuple[GraphNetwork, GraphBatch]:
    """The first network of a seed, and all graphs as it is told of them."""
    network, whole = predictor.models[seed], predictor.prepare(graphs)
    network.requires_grad_(False)
    index = torch.arange(len(graphs), device=predictor.device)
    return network, predictor.inputs(whole, seed).batch(network, index)


def _units(predictor: Predictor, graphs: Graphs, seed: int) -> Callable[[Tensor], Tensor]:
    """The log-odds of the class that is answered."""
    _, head = find_head(predictor.task, None)
    classes = torch.from_numpy(predictor.predict(graphs).numbers).long().to(predictor.device)
    fitted = {seed: predictor.fitted[seed][:1]}
    model = Together.of(fitted, 0, head, predictor.calibration)
    units = Question(head, classes).of_networks(model.leaves)
    return lambda outputs: units(outputs[None])[0]


def _numpy(values: Tensor) -> Scores:
    return values.detach().cpu().double().numpy()
