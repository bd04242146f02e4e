"""Readings of whole graphs beside the convolutions: exact neighbourhoods, and totals."""

import torch
from torch import Tensor, nn

from lookhops.core.errors import LookHopsError
from lookhops.nn.linear import Linear
from lookhops.ops.batch import WholeInputs
from lookhops.ops.dropout import dropout
from lookhops.ops.product import row_sums

#: Numbers of these readings where layers are numbered for dropout: no network is as deep.
FINGERPRINT_LAYER, TOTALS_LAYER = 1 << 20, 1 << 21
#: Channels of the reading of totals; more where features of whole graphs are among them. On five
#: scouting splits of the bundled solubilities the validation error was 0.451 with 32 channels,
#: 0.427 with 128 and 0.424 with 256, where descriptors are read.
WITHOUT_FEATURES, WITH_FEATURES = 32, 256


class Fingerprint(nn.Module):
    r"""The linear reading of exact neighbourhoods: learned rows, summed.

    .. math::
        o_g = \frac{\gamma}{\sqrt{|F_g|}} \sum_{f \in F_g} W_f

    where :math:`F_g` are the neighbourhoods of graph :math:`g` that the vocabulary knows, counted
    in unary. The factor :math:`\gamma` makes up for the square root, so that Adam moves these
    weights about as fast as the network's. The weights begin at zero.

    Args:
        num_neighbourhoods: Size of the vocabulary.
        out_channels: Number of outputs.
        p: Share of a graph's neighbourhoods that is dropped while training.
    """

    GAMMA = 3.0

    def __init__(self, num_neighbourhoods: int, out_channels: int, p: float = 0.5) -> None:
        super().__init__()
        self.p = p
        self.weight = nn.Parameter(torch.zeros(num_neighbourhoods, out_channels))

    def extra_repr(self) -> str:
        return f"{self.weight.shape[-2]}, {self.weight.shape[-1]}"

    def forward(self, inputs: WholeInputs, key: Tensor | None) -> Tensor:
        if inputs.indices is None or inputs.offsets is None or inputs.row is None:
            raise LookHopsError("This model reads exact neighbourhoods; these graphs have none.")
        table = self.weight.flatten(0, -2)
        count = inputs.offsets.diff().clamp(min=1).to(table.dtype)
        entry = torch.arange(inputs.indices.numel(), device=table.device)
        scale = (self.GAMMA * count.rsqrt()).index_select(0, inputs.row)
        scale = scale * (entry < inputs.offsets[-1])
        if self.training and self.p and key is not None and inputs.place is not None:
            key = key.reshape(-1).index_select(0, inputs.row // inputs.number.shape[-1])
            entries = scale[:, None, None]  # with a key of its own each
            scale = dropout(entries, self.p, key, FINGERPRINT_LAYER, inputs.place).flatten()
        output = row_sums(table, inputs.indices, inputs.offsets, inputs.row, scale)
        return output.view(*inputs.number.shape, -1)


class Totals(nn.Module):
    r"""The reading of totals: :math:`o_g = V \, \mathrm{ReLU}(U t_g + u) + v`, begun at zero.

    Args:
        num_totals, out_channels: Number of totals, and of outputs.
        hidden: Channels between.
        p: Share of these that is dropped while training.
    """

    def __init__(
        self, num_totals: int, out_channels: int, hidden: int = WITHOUT_FEATURES, p: float = 0.2
    ) -> None:
        super().__init__()
        self.p = p
        self.inner = Linear(num_totals, hidden)
        self.outer = Linear(hidden, out_channels)
        nn.init.zeros_(self.outer.weight)
        nn.init.zeros_(self.outer.bias)

    def extra_repr(self) -> str:
        return f"{self.inner.in_features}, {self.outer.out_features}"

    def forward(self, inputs: WholeInputs, key: Tensor | None) -> Tensor:
        if inputs.totals is None:
            raise LookHopsError("This model reads totals of graphs; these graphs have none.")
        x = torch.relu(self.inner(inputs.totals.to(self.inner.weight.dtype)))
        if self.training and key is not None:
            x = dropout(x, self.p, key, TOTALS_LAYER, inputs.number)
        return self.outer(x)
