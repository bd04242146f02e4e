"""The network: the same for every row of the paper's tables."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn

from lookhops.errors import LookHopsError
from lookhops.graphs import Graphs
from lookhops.hops import Adjacency, Anchors
from lookhops.nn.conv.base import Convolution
from lookhops.nn.conv.light import LightConv
from lookhops.nn.level import Level, Pooled
from lookhops.nn.linear import Linear, unit
from lookhops.nn.pool.base import Pooling, check_ratio
from lookhops.nn.pool.lookhops import LookHopsPooling
from lookhops.nn.readout import readout
from lookhops.nn.registry import CONVOLUTIONS, POOLINGS, find


@dataclass(frozen=True)
class Architecture:
    """Everything that shapes a :class:`GraphClassifier` but its input and its classes.

    Args:
        conv: Name of the convolution.
        pool: Name of the pooling.
        k: Hops that each layer looks.
        hidden: Channels of each layer.
        layers: Number of layers.
        ratio: Fraction of nodes that pooling keeps.
        edge_ratio: Fraction of edges that LookHops pooling keeps; none keeps all.
        normalize: Whether features go onto the unit sphere before the activation (NF). None means
            as in the paper: yes for the light convolutions, no for the others.
        activation: Activation of LookHops pooling's score.
    """

    conv: str = "licheb"
    pool: str = "none"
    k: int = 2
    hidden: int = 128
    layers: int = 5
    ratio: float = 0.9
    edge_ratio: float | None = None
    normalize: bool | None = None
    activation: str = "sigmoid"


class GraphClassifier(nn.Module):
    r"""The paper's network.

    Each layer: convolution, ReLU, pooling (not after the last), readout, ReLU. The readouts of all
    layers are summed and go through a dense network :math:`2h \to h \to h/2 \to` classes.

    .. math::
        r = \sum_l \mathrm{ReLU}\bigl(\max_i x_i^{(l)} \,\|\, \mathrm{mean}_i\, x_i^{(l)}\bigr),
        \qquad \log p = \mathrm{log\,softmax}(\mathrm{MLP}(r))

    LookHops pooling reads the convolution's anchors, and its score gates the last layer too, where
    nothing is dropped; it is one module a layer. Other poolings are one module for all layers.

    Args:
        in_channels: Node features, :math:`d`.
        num_classes: Number of classes.
        options: The fields of :class:`Architecture`: ``conv``, ``pool``, ``k``, ``hidden``, ...

    Shapes:
        - a batch of graphs: :class:`~lookhops.Graphs`, or a PyG ``Batch``
        - output: log-probabilities, shape :math:`(g, \text{classes})`
    """

    def __init__(self, in_channels: int, num_classes: int, **options: Any) -> None:
        super().__init__()
        self.in_channels = in_channels
        self.num_classes = num_classes
        self.architecture = a = Architecture(**options)
        check_ratio(self, "ratio", a.ratio)
        if a.layers < 1 or a.hidden < 2 or num_classes < 1:
            raise LookHopsError(
                "A network needs at least one layer, two hidden channels and one class, "
                f"not layers={a.layers}, hidden={a.hidden}, num_classes={num_classes}."
            )
        make_conv = find("convolution", CONVOLUTIONS, a.conv)
        make_pool = find("pooling", POOLINGS, a.pool)
        widths = [in_channels] + [a.hidden] * a.layers
        self.convs = nn.ModuleList(make_conv(d_in, d_out, a.k) for d_in, d_out in pairwise(widths))
        light = isinstance(self.convs[0], LightConv)
        self.normalize = light if a.normalize is None else a.normalize

        def pool() -> nn.Module | None:
            return make_pool(
                a.hidden,
                k=a.k,
                ratio=a.ratio,
                edge_ratio=a.edge_ratio,
                normalize=a.normalize is not False,
                activation=a.activation,
            )

        first = pool()
        more = (pool() for _ in self.convs[1:]) if isinstance(first, LookHopsPooling) else ()
        self.pools = nn.ModuleList(module for module in (first, *more) if module is not None)
        self.mlp = nn.Sequential(
            Linear(2 * a.hidden, a.hidden),
            nn.ReLU(),
            Linear(a.hidden, a.hidden // 2),
            nn.ReLU(),
            Linear(a.hidden // 2, num_classes),
        )

    @classmethod
    def from_architecture(
        cls, in_channels: int, num_classes: int, architecture: Architecture
    ) -> GraphClassifier:
        """A network of this architecture."""
        return cls(in_channels, num_classes, **asdict(architecture))

    def reset_parameters(self) -> None:
        """Draw new parameters everywhere."""
        for module in (*self.convs, *self.pools, *self.mlp):
            if hasattr(module, "reset_parameters"):
                module.reset_parameters()

    def forward(self, graphs: Graphs | Any) -> Tensor:
        """Log-probabilities of each graph's classes."""
        return self.classify(self.level(graphs))[0]

    def level(self, graphs: Graphs | Any) -> Level:
        """The batch as the first layer sees it."""
        x = graphs.x
        if x.shape[-1] != self.in_channels:
            raise LookHopsError(
                f"The model takes {self.in_channels} features a node; these graphs have "
                f"{x.shape[-1]}."
            )
        if isinstance(graphs, Graphs):
            return Level(x, Adjacency.from_graphs(graphs), graphs.batch.long(), len(graphs))
        batch = getattr(graphs, "batch", None)
        batch = torch.zeros(len(x), dtype=torch.long, device=x.device) if batch is None else batch
        weight = getattr(graphs, "edge_weight", None)
        adjacency = Adjacency.of(graphs.edge_index, len(x), weight)
        return Level(x, adjacency, batch, getattr(graphs, "num_graphs", 1))

    def classify(self, level: Level, masked: bool = False) -> tuple[Tensor, list[Pooled]]:
        """Log-probabilities of each graph's classes, and what each pooling decided.

        Args:
            level: The batch; stacked seeds are leading axes of its ``x``.
            masked: Whether pooling keeps all shapes and masks what it drops.
        """
        total: Tensor | None = None
        decisions: list[Pooled] = []
        for layer, conv in enumerate(self.convs):
            pool = self.pools[min(layer, len(self.pools) - 1)] if self.pools else None
            level, pooled = self._layer(conv, pool, level, layer == len(self.convs) - 1, masked)
            if pooled is not None:
                decisions.append(pooled)
            read = torch.relu(readout(level))
            total = read if total is None else total + read
        return torch.log_softmax(self.mlp(total), dim=-1), decisions

    def _layer(
        self, conv: nn.Module, pool: nn.Module | None, level: Level, last: bool, masked: bool
    ) -> tuple[Level, Pooled | None]:
        """Convolution, ReLU and pooling."""
        pooled = None
        if isinstance(pool, LookHopsPooling):  # x' = w z' / |z'| comes before the ReLU
            z, anchors = _convolve(conv, level, want_anchors=True)
            level = level.with_x(z)
            if last:
                level = level.with_x(pool.reduce(z, pool.score(z, level.adjacency, anchors)))
            else:
                level, pooled = pool.pool(level, anchors, masked)
            return level.with_x(torch.relu(level.x)), pooled
        z, _ = _convolve(conv, level, want_anchors=False)
        level = level.with_x(torch.relu(z * unit(z) if self.normalize else z))
        if isinstance(pool, Pooling) and not last:
            level, pooled = pool.pool(level, masked=masked)
        return level, pooled

    def extra_repr(self) -> str:
        """The architecture, as printing the module shows it."""
        options = ", ".join(f"{key}={value!r}" for key, value in asdict(self.architecture).items())
        return f"{self.in_channels}, {self.num_classes}, {options}"


def _convolve(conv: nn.Module, level: Level, want_anchors: bool) -> tuple[Tensor, Anchors | None]:
    """Run a convolution: ours on the adjacency, anybody else's on PyG's edge_index."""
    if want_anchors and isinstance(conv, LightConv):
        return conv(level.x, level.adjacency, return_anchors=True)
    if isinstance(conv, Convolution):
        return conv(level.x, level.adjacency), None
    weight = level.adjacency.weight
    arguments = (
        (level.adjacency.edge_index,) if weight is None else (level.adjacency.edge_index, weight)
    )
    return conv(level.x, *arguments), None
