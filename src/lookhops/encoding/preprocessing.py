"""What is fitted on a training part beside the weights, and saved with them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from torch import Tensor

from lookhops.core.options import Architecture
from lookhops.encoding.graph_encoding import GraphEncoding, PreparedGraphs, nodes_of
from lookhops.encoding.scale import Scale, Scales


@dataclass(frozen=True, eq=False)
class Preprocessing:
    """All that one training part decides beside the weights.

    Args:
        scales: The scales of the numbers of nodes and of edges.
        graphs: Known neighbourhoods, and the scale of totals.
    """

    scales: Scales = field(default_factory=Scales)
    graphs: GraphEncoding = field(default_factory=GraphEncoding)

    @classmethod
    def fit(
        cls, prepared: PreparedGraphs, architecture: Architecture, train: Tensor | None = None
    ) -> Preprocessing:
        """Fit on the training graphs.

        Args:
            prepared: All graphs.
            architecture: The network, which says what is fitted.
            train: Numbers of the training graphs; none means all.
        """
        graphs, kind = prepared.graphs, architecture.scale
        nodes, edges, of_node = None, None, nodes_of(graphs, train)
        if graphs.nodes.numbers is not None:
            nodes = Scale.fit(kind, graphs.nodes.numbers[of_node])
        if graphs.edges.numbers is not None and architecture.reads_edges:
            edges = Scale.fit(kind, graphs.edges.numbers[of_node[graphs.target.long()]])
        return cls(Scales(nodes, edges), GraphEncoding.fit(prepared, train, architecture.bins))

    @property
    def sizes(self) -> dict[str, int]:
        """What a network must know of it to be made."""
        return self.graphs.sizes

    def tensors(self) -> dict[str, Tensor]:
        """What a model folder keeps of it."""
        found = self.graphs.tensors()
        for name, scale in self.scales._asdict().items():
            if scale is not None:
                found |= {f"{name}.{key}": value for key, value in scale.tensors().items()}
        return found

    @classmethod
    def from_tensors(cls, tensors: Mapping[str, Tensor]) -> Preprocessing:
        """What :meth:`tensors` gave."""
        scales: list[Scale | None] = []
        for name in Scales._fields:
            own = {k.partition(".")[2]: v for k, v in tensors.items() if k.startswith(f"{name}.")}
            scales.append(Scale.from_tensors(own) if own else None)
        return cls(Scales(*scales), GraphEncoding.from_tensors(tensors))
