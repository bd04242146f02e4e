"""What every convolution here has in common."""

from torch import Tensor, nn

from lookhops.core.errors import LookHopsError
from lookhops.ops import Adjacency


class Convolution(nn.Module):
    r"""A convolution from ``in_channels`` to ``out_channels``, looking ``k`` hops at once.

    Called as PyG's operators are, ``conv(x, edge_index, edge_weight)``, or with an
    :class:`~lookhops.ops.Adjacency` in place of ``edge_index``, which saves sorting and
    normalising the edges again in every layer. Subclasses write :meth:`convolve`.

    Args:
        in_channels: Channels of the input, :math:`d`.
        out_channels: Channels of the output, :math:`d'`.
        k: How many hops to look.

    Shapes:
        - x :math:`(\ldots, n, d)`, edge_index :math:`(2, e)`, edge_weight :math:`(e)` *(optional)*
        - output :math:`(\ldots, n, d')`
    """

    #: What the command line calls it; none for what others are derived from.
    name = ""
    #: Whether the layer looks k hops, and not one.
    reads_k = True

    def __init__(self, in_channels: int, out_channels: int, k: int = 1) -> None:
        super().__init__()
        self.in_channels = self._count("in_channels", in_channels)
        self.out_channels = self._count("out_channels", out_channels)
        self.k = self._count("k", k, least=0)

    def _count(self, name: str, value: int, least: int = 1) -> int:
        if not isinstance(value, int) or isinstance(value, bool) or value < least:
            raise LookHopsError(
                f"{type(self).__name__}: {name} must be a whole number from {least} up, "
                f"not {value!r}."
            )
        return value

    def reset_parameters(self) -> None:
        """Draw new parameters; the layer's own bias begins at zero."""
        for module in self.children():
            if hasattr(module, "reset_parameters"):
                module.reset_parameters()  # type: ignore[operator]
        if isinstance(bias := getattr(self, "bias", None), Tensor):
            nn.init.zeros_(bias)

    def forward(
        self, x: Tensor, edge_index: Tensor | Adjacency, edge_weight: Tensor | None = None
    ) -> Tensor:
        return self.convolve(x, self._adjacency(x, edge_index, edge_weight))

    def convolve(self, x: Tensor, adjacency: Adjacency) -> Tensor:
        """Convolve ``x`` over an adjacency that is already in order."""
        raise NotImplementedError

    def _adjacency(
        self, x: Tensor, edge_index: Tensor | Adjacency, edge_weight: Tensor | None
    ) -> Adjacency:
        if x.dim() < 2 or x.shape[-1] != self.in_channels:
            raise LookHopsError(
                f"{type(self).__name__} takes {self.in_channels} channels a node, "
                f"but x has shape {tuple(x.shape)}."
            )
        return Adjacency.of(edge_index, x.shape[-2], edge_weight)

    def extra_repr(self) -> str:
        hops = f", k={self.k}" if self.reads_k else ""
        return f"{self.in_channels}, {self.out_channels}{hops}"
