"""The linear reading of exact neighbourhoods, in plain PyTorch: what the engines are held to."""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from lookhops.classical.outputs import Outputs, classes_of
from lookhops.datasets.splits import Split
from lookhops.graphs import Graphs
from lookhops.neighbourhoods import SparseRows, Vocabulary, graph_totals, identities, unary_codes
from lookhops.neighbourhoods.bag import bag


@dataclass(frozen=True)
class Reading:
    """How the linear model reads neighbourhoods, and how it is trained.

    Args:
        hops: How far to look.
        min_graphs: A feature is in at least this many training graphs.
        totals: Whether :func:`~lookhops.neighbourhoods.graph_totals` are read beside it.
        scale: Length of each graph's vector of features. As Adam's steps do not depend on the
            size of a gradient, a smaller one slows the features down against the totals.
        edge_labels: Whether labels of edges count.
        learning_rate: Of AdamW.
        weight_decay: Of AdamW.
        batch_size: Graphs in a batch.
        max_epochs: Training is never longer.
        patience: Epochs without a lower validation loss before it stops.
    """

    hops: int = 5
    min_graphs: int = 2
    totals: bool = True
    scale: float = 3.0
    edge_labels: bool = True
    learning_rate: float = 1e-3
    weight_decay: float = 0.1
    batch_size: int = 256
    max_epochs: int = 500
    patience: int = 30


class LinearReading(torch.nn.Module):
    r"""Log-probabilities :math:`\mathrm{log\,softmax}(s \hat f W + \hat z V + b)`.

    :math:`\hat f` is a graph's sparse row of features scaled to length one, :math:`s` the scale,
    :math:`\hat z` its totals. All weights start at zero.

    Args:
        num_features: Rows of :math:`W`: the size of the vocabulary.
        num_totals: Rows of :math:`V`.
        num_classes: Columns of both.
        scale: The scale :math:`s`.
    """

    def __init__(self, num_features: int, num_totals: int, num_classes: int, scale: float) -> None:
        super().__init__()
        self.scale = scale
        self.features = torch.nn.Parameter(torch.zeros(num_features, num_classes))
        self.totals = torch.nn.Parameter(torch.zeros(num_totals, num_classes))
        self.bias = torch.nn.Parameter(torch.zeros(num_classes))

    def forward(self, rows: SparseRows, totals: Tensor) -> Tensor:
        """Log-probabilities, shape (graphs, classes), of sparse rows and totals (graphs, t)."""
        read = bag(self.features, rows.indices, rows.offsets, rows.weights() * self.scale)
        return (read + totals @ self.totals + self.bias).log_softmax(1)


def fit_fingerprint(
    graphs: Graphs, split: Split, seed: int = 0, reading: Reading | None = None
) -> Outputs:
    """Train the linear reading with AdamW; test with the weights of the lowest validation loss.

    Args:
        graphs: All graphs.
        split: The parts; vocabulary, scale of the totals and weights come from the training part.
        seed: Of the order of the batches; all weights start at zero.
        reading: Options; by default those of :class:`Reading`.
    """
    reading = reading or Reading()
    y = torch.from_numpy(classes_of(graphs))
    graphs = graphs.to("cpu")
    identity = identities(graphs, reading.hops, edge_labels=reading.edge_labels)
    codes = unary_codes(graphs, identity)
    vocabulary = Vocabulary.choose(graphs, codes, split.train, reading.min_graphs)
    rows = vocabulary.rows(graphs, codes)
    totals = _standardised(graphs, split.train) if reading.totals else torch.zeros(len(graphs), 0)
    model = LinearReading(len(vocabulary), totals.shape[1], graphs.num_classes, reading.scale)
    epochs = _train(model, rows, totals, y, split, seed, reading)
    with torch.no_grad():
        predictions = {
            name: model(rows.select(part), totals[part])
            for name, part in (("val", split.val), ("test", split.test))
        }
    weights = sum(parameter.numel() for parameter in model.parameters())
    return Outputs(predictions, {"epochs": epochs, "parameters": weights})


def _train(
    model: LinearReading,
    rows: SparseRows,
    totals: Tensor,
    y: Tensor,
    split: Split,
    seed: int,
    reading: Reading,
) -> int:
    """Leave the weights of the lowest validation loss in the model; the epoch that had them."""
    optimiser = torch.optim.AdamW(
        model.parameters(), reading.learning_rate, weight_decay=reading.weight_decay, fused=True
    )
    generator = torch.Generator().manual_seed(seed)
    val_rows = rows.select(split.val)
    best_loss, best_epoch = float("inf"), 0
    weights = {}
    for epoch in range(1, reading.max_epochs + 1):
        order = split.train[torch.randperm(len(split.train), generator=generator)]
        for part in order.split(reading.batch_size):
            optimiser.zero_grad()
            F.nll_loss(model(rows.select(part), totals[part]), y[part]).backward()
            optimiser.step()
        with torch.no_grad():
            loss = F.nll_loss(model(val_rows, totals[split.val]), y[split.val]).item()
        if loss < best_loss:
            best_loss, best_epoch = loss, epoch
            weights = {name: value.clone() for name, value in model.state_dict().items()}
        if epoch - best_epoch >= reading.patience:
            break
    model.load_state_dict(weights)
    return best_epoch


def _standardised(graphs: Graphs, train: Tensor) -> Tensor:
    """Totals less the mean of the training part, over its spread, float32."""
    totals = graph_totals(graphs)
    known = totals[train]
    spread = known.std(0, unbiased=False)
    # A column that is constant in training says nothing, whatever it is elsewhere.
    inverse = torch.where(spread > 1e-9, 1 / spread, 0)
    return ((totals - known.mean(0)) * inverse).float()
