"""What a member learnt to be told: all that its training part decides."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from torch import Tensor

from lookhops.core.options import Architecture
from lookhops.encoding.scale import Scale, Scales
from lookhops.encoding.whole import WholeEncoding, WholeGraphs, nodes_of


@dataclass(frozen=True, eq=False)
class Preprocessing:
    """What was learnt from one training part, beside the weights, and is saved with them.

    Args:
        scales: The scales of the numbers of nodes and of edges.
        whole: What is known of whole graphs.
    """

    scales: Scales = field(default_factory=Scales)
    whole: WholeEncoding = field(default_factory=WholeEncoding)

    @classmethod
    def fit(
        cls, whole: WholeGraphs, architecture: Architecture, train: Tensor | None = None
    ) -> Preprocessing:
        """Learn from the training graphs.

        Args:
            whole: All graphs.
            architecture: The network, which says what is to be learnt.
            train: Numbers of the training graphs; none means all.
        """
        graphs, kind = whole.graphs, architecture.scale
        nodes, edges, of_node = None, None, nodes_of(graphs, train)
        if graphs.nodes.numbers is not None:
            nodes = Scale.fit(kind, graphs.nodes.numbers[of_node])
        if graphs.edges.numbers is not None and architecture.reads_edges:
            edges = Scale.fit(kind, graphs.edges.numbers[of_node[graphs.target.long()]])
        return cls(Scales(nodes, edges), WholeEncoding.fit(whole, train, architecture.bins))

    @property
    def sizes(self) -> dict[str, int]:
        """What a network must know of it to be made."""
        return self.whole.sizes

    def tensors(self) -> dict[str, Tensor]:
        """What a model folder keeps of it."""
        found = self.whole.tensors()
        for name, scale in self.scales._asdict().items():
            if scale is not None:
                found |= {f"{name}.{key}": value for key, value in scale.tensors().items()}
        return found

    @classmethod
    def from_tensors(cls, tensors: Mapping[str, Tensor]) -> Preprocessing:
        """What :meth:`tensors` gave; folders of earlier versions have no scales."""
        scales: list[Scale | None] = []
        for name in Scales._fields:
            own = {k.partition(".")[2]: v for k, v in tensors.items() if k.startswith(f"{name}.")}
            scales.append(Scale.from_tensors(own) if own else None)
        return cls(Scales(*scales), WholeEncoding.from_tensors(tensors))
