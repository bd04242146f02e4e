"""Who is linked to whom in a batch of graphs, and the normalised operators over it."""

from __future__ import annotations

from copy import copy

import torch
from torch import Tensor

from lookhops.core.errors import LookHopsError
from lookhops.graphs import Graphs
from lookhops.graphs.indexing import last_begin, run_begins
from lookhops.ops.gpu import can_run_on, launch_over, tl, triton
from lookhops.ops.pattern import Pattern, cached, group, outside_inference
from lookhops.ops.product import SparseMatrix

BLOCK = 128  # rows, or entries, that a program takes


class Adjacency:
    r"""The links of a batch of graphs; row :math:`i` of the matrix holds the edges into node i.

    Every convolution and pooling takes one in place of PyG's ``edge_index``. Normalisation, degrees
    and order are computed once here, not once in every layer.

    An edge may have a **weight**, which belongs to the graph and which degrees count, and a
    **factor**, which a layer learns from the features of edges (:meth:`times`):

    .. math::
        \hat A_{ij} = f_{ij}\, d_i^{-1/2} w_{ij}\, d_j^{-1/2}, \qquad d_i = \sum_j w_{ij}.

    Degrees that counted factors would cancel them wherever all edges of a node are of one kind, and
    would have to be computed again in every layer.

    Args:
        pattern: The edges by target node.
        weight: A weight for each edge, shape :math:`(e)`; none means one everywhere.
        order: The column of the ``edge_index`` it was made from that each edge stands for.
        symmetric: Whether the caller knows that every edge goes both ways with the same weight.
    """

    def __init__(
        self,
        pattern: Pattern,
        weight: Tensor | None = None,
        order: Tensor | None = None,
        symmetric: bool = False,
    ) -> None:
        self.pattern = pattern
        self.num_nodes = pattern.size
        #: Number of directed edges.
        self.num_edges = pattern.column.numel()
        #: Source node of each edge, shape (e).
        self.source = pattern.column
        self.weight = weight
        self.order = order
        self.symmetric = symmetric
        #: The factor that a layer learned for each edge, shape (e); none means one everywhere.
        self.factor: Tensor | None = None
        #: Whether the weights say more than which edges are there; masking alone does not.
        self.weighted = weight is not None
        self._operators: dict[tuple[str, torch.dtype], SparseMatrix] = {}

    @classmethod
    def from_graphs(cls, graphs: Graphs, weight: Tensor | None = None) -> Adjacency:
        """The links of packed graphs, which stand in the right order already."""
        symmetric = graphs.is_undirected if weight is None else graphs.is_symmetric
        return cls(Pattern(graphs.row_ptr, graphs.source), weight, symmetric=symmetric)

    @classmethod
    def of(
        cls, edge_index: Tensor | Adjacency, num_nodes: int, edge_weight: Tensor | None = None
    ) -> Adjacency:
        """An adjacency from PyG's ``edge_index`` and ``edge_weight``, or the one given."""
        if isinstance(edge_index, Adjacency):
            if edge_weight is not None:
                raise LookHopsError("Edge weights belong inside the Adjacency, not beside it.")
            return edge_index
        check_edge_index(edge_index, num_nodes, edge_weight)
        source, target = edge_index.int()
        row_ptr, order = group(target, num_nodes)
        ends = source.index_select(0, order), target.index_select(0, order)
        pattern = Pattern(row_ptr, ends[0], row=ends[1])
        weight = None if edge_weight is None else edge_weight.flatten().index_select(0, order)
        return cls(pattern, weight, order.long())

    @property
    def target(self) -> Tensor:
        """Target node of each edge, shape (e)."""
        return self.pattern.row

    @property
    def edge_index(self) -> Tensor:
        """PyG's (2, e) tensor of sources and targets, by target."""
        return torch.stack((self.source, self.target)).long()

    @cached
    def is_loop(self) -> Tensor:
        """Whether each edge joins a node with itself, shape (e)."""
        return self.source == self.target

    @property
    def present(self) -> Tensor | None:
        """Which edges are there, shape (e): not those of weight zero; none means all."""
        return None if self.weight is None else self.weight.detach() != 0

    def times(self, factor: Tensor | None, symmetric: bool = True) -> Adjacency:
        """The same edges with these factors, shape (e); none for no factors.

        Args:
            factor: What each edge is multiplied by, outside of the normalisation.
            symmetric: Whether the two directions of every edge have the same factor.
        """
        other = copy(self)  # what is known of the edges already is shared
        other.factor = factor
        other.symmetric = self.symmetric and symmetric
        return other

    def links(self, dtype: torch.dtype) -> SparseMatrix:
        """The links as a sparse matrix, each edge with its weight times its factor."""
        return SparseMatrix(self.pattern, self.edge_values(dtype), self.symmetric)

    def edge_values(self, dtype: torch.dtype) -> Tensor | None:
        """Weight times factor of each edge, shape (e); none means one everywhere."""
        weight = None if self.weight is None else self.weight.to(dtype)
        if self.factor is None:
            return weight
        factor = self.factor.to(dtype)
        return factor if weight is None else weight * factor

    def chebyshev(self, dtype: torch.dtype) -> SparseMatrix:
        r"""The scaled Laplacian :math:`2 L / \lambda_{max} - I` for :math:`\lambda_{max} = 2`.

        That is :math:`-D^{-1/2} A D^{-1/2}`: self-loops do not count, and an isolated node has a
        row of zeros. Where edges are directed, :math:`D` counts the edges that leave a node.
        """
        return self._operator("chebyshev", dtype)

    def mixhop(self, dtype: torch.dtype) -> SparseMatrix:
        r"""The operator :math:`\hat D^{-1/2} (A + I) \hat D^{-1/2}` of GCN and MixHop.

        A self-loop that is there already keeps its weight and gets no second one. Where edges are
        directed, :math:`\hat D` counts the edges that enter a node.
        """
        return self._operator("mixhop", dtype)

    def random_walk(self, dtype: torch.dtype) -> SparseMatrix:
        r"""The transitions :math:`D^{-1} A` of a random walk: means over neighbours.

        :math:`D` counts the edges that enter a node; without any its row is zero. Factors multiply
        what is averaged. Entries are divided one by one: the mean of a single neighbour is
        that neighbour, to the last bit.
        """
        dtype = torch.promote_types(dtype, torch.float32)
        weight = self.weights(dtype)
        degree = _sum_by(weight, self.target, self.num_nodes)
        value = weight / torch.where(degree != 0, degree, 1).index_select(0, self.target)
        value = value if self.factor is None else value * self.factor.to(dtype)
        return SparseMatrix(self.pattern, value)

    def _operator(self, kind: str, dtype: torch.dtype) -> SparseMatrix:
        dtype = torch.promote_types(dtype, torch.float32)  # degrees want more than bfloat16 holds
        operator = self._operators.get((kind, dtype))
        if operator is None:
            build = self._chebyshev if kind == "chebyshev" else self._mixhop
            operator = outside_inference(lambda: build(dtype))
            # What autograd recorded serves one backward pass: learned weights are normalised again.
            if self.weight is None or not self.weight.requires_grad:
                self._operators[kind, dtype] = operator
        if self.factor is None:
            return operator
        factor = self.factor.to(dtype)
        if kind == "mixhop":
            factor = self._join_loops(factor.new_ones(self.num_nodes), factor)
        assert operator.value is not None
        return SparseMatrix(operator.pattern, operator.value * factor, self.symmetric)

    def _chebyshev(self, dtype: torch.dtype) -> SparseMatrix:
        source, target, weight = self.source, self.target, self.weight
        learns = weight is not None and weight.requires_grad and torch.is_grad_enabled()
        if self.symmetric and can_run_on(source) and dtype == torch.float32 and not learns:
            rows, entries = self.num_nodes, self.num_edges
            scale, value = (source.new_empty(n, dtype=dtype) for n in (rows, entries))
            by_row = self.pattern.row_ptr, source, weight, scale, rows
            launch_over(_scale_kernel, rows, BLOCK, *by_row)
            by_entry = source, target, weight, scale, value, entries
            launch_over(_value_kernel, entries, BLOCK, *by_entry)
            return SparseMatrix(self.pattern, value, symmetric=True)
        weight = self.weights(dtype).masked_fill(self.is_loop, 0)
        scale = _inverse_sqrt(_sum_by(weight, source, self.num_nodes))
        value = -scale.index_select(0, source) * weight * scale.index_select(0, target)
        return SparseMatrix(self.pattern, value, self.symmetric)

    def _mixhop(self, dtype: torch.dtype) -> SparseMatrix:
        pattern, value = self.with_loops, self.weight_with_loops(dtype)
        scale = _inverse_sqrt(_sum_by(value, pattern.row, self.num_nodes))
        value = scale.index_select(0, pattern.column) * value * scale.index_select(0, pattern.row)
        return SparseMatrix(pattern, value, self.symmetric)

    def weights(self, dtype: torch.dtype) -> Tensor:
        """Weight of each edge, shape (e): one where they have none."""
        if self.weight is not None:
            return self.weight.to(dtype)
        return torch.ones(self.num_edges, dtype=dtype, device=self.source.device)

    @cached
    def with_loops(self) -> Pattern:
        """The pattern with one more entry at the start of each row: the node itself."""
        number = torch.arange(self.num_nodes + 1, device=self.source.device).to(self.source)
        return Pattern(self.pattern.row_ptr + number, self._join_loops(number[:-1], self.source))

    def weight_with_loops(self, dtype: torch.dtype) -> Tensor:
        """Weight of each entry of :attr:`with_loops`.

        A node's loop has the weight of its own loops where it has any, else one; these have zero.
        """
        weight = self.weights(dtype)
        loop = weight.new_ones(self.num_nodes)
        if self.weighted:
            of_loops = weight * self.is_loop
            count = _sum_by((of_loops.detach() != 0).int(), self.target, self.num_nodes)
            loop = torch.where(count > 0, _sum_by(of_loops, self.target, self.num_nodes), loop)
        return self._join_loops(loop, weight.masked_fill(self.is_loop, 0))

    def values_with_loops(self, dtype: torch.dtype) -> Tensor | None:
        """Weight times factor of each entry of :attr:`with_loops`; a node itself has no factor.

        None where edges are only there or not.
        """
        if self.factor is None:
            return self.weight_with_loops(dtype) if self.weighted else None
        ones = torch.ones(self.num_nodes, dtype=dtype, device=self.source.device)
        return self.weight_with_loops(dtype) * self._join_loops(ones, self.factor.to(dtype))

    @cached
    def counted_with_loops(self) -> Tensor:
        """Which entries of :attr:`with_loops` count: nodes themselves, and edges between two."""
        edge = ~self.is_loop if self.present is None else ~self.is_loop & self.present
        return self._join_loops(edge.new_ones(self.num_nodes), edge)

    def _join_loops(self, loop: Tensor, edge: Tensor) -> Tensor:
        """A value for each loop and one for each edge, in the order of :attr:`with_loops`."""
        loops, edges = self._places_with_loops
        both = edge.new_empty(self.num_edges + self.num_nodes)
        return both.index_copy(0, edges, edge).index_copy(0, loops, loop)

    @cached
    def _places_with_loops(self) -> tuple[Tensor, Tensor]:
        """Where the loops stand, at the start of every row, and where the edges do."""
        row_ptr, device = self.pattern.row_ptr, self.source.device
        loops = torch.arange(self.num_nodes, device=device) + row_ptr[:-1]
        return loops, torch.arange(self.num_edges, device=device) + self.target + 1

    # ---------------------------------------------------------------- smaller graphs

    @cached
    def pair(self) -> Tensor:
        """For each edge, the first of the edges between the same two nodes, shape (e).

        The two directions of an undirected edge share it, and so do parallel edges.
        """
        low, high = torch.minimum(self.source, self.target), torch.maximum(self.source, self.target)
        key, order = (low.long() * self.num_nodes + high).sort(stable=True)
        # Edges of one pair are neighbours now; each takes the number of the run's first edge.
        first = last_begin(run_begins(key))
        return torch.empty_like(order).scatter_(0, order, order[first])

    def masked(self, keep_edge: Tensor) -> Adjacency:
        """The same shapes with the other edges at weight zero; both directions go together."""
        if self.weight is None:
            weight = keep_edge.to(torch.get_default_dtype())
        else:
            weight = self.weight * keep_edge
        masked = Adjacency(self.pattern, weight, self.order, self.symmetric)
        masked.weighted = self.weighted
        masked.factor = self.factor
        # What depends on the pattern alone has not changed.
        for name in ("pair", "is_loop", "with_loops", "_places_with_loops"):
            if name in self.__dict__:
                masked.__dict__[name] = self.__dict__[name]
        return masked

    def compacted(
        self, keep_node: Tensor, keep_edge: Tensor, node: Tensor, edge: Tensor
    ) -> Adjacency:
        """The graph of the kept nodes, renumbered in their order, and the kept edges.

        Beside which are kept stand the numbers of these, ``node`` and ``edge``.
        """
        number = keep_node.cumsum(0, dtype=self.source.dtype) - 1
        ends = self.pattern.ends_of(keep_edge)
        column, row = (
            number.index_select(0, end.index_select(0, edge)) for end in (self.source, self.target)
        )
        pattern = Pattern(torch.cat((ends.index_select(0, node), ends[-1:])), column, row=row)
        weight = self.weight[edge] if self.weight is not None and self.weighted else None
        order = None if self.order is None else self.order.index_select(0, edge)
        compacted = Adjacency(pattern, weight, order, self.symmetric)
        if self.factor is not None:
            compacted.factor = self.factor.index_select(0, edge)
        return compacted


def check_edge_index(edge_index: Tensor, num_nodes: int, edge_weight: Tensor | None) -> None:
    """Refuse what is no ``edge_index`` of so many nodes, or weights of other edges."""
    if not isinstance(edge_index, Tensor) or edge_index.layout != torch.strided:
        kind = edge_index.layout if isinstance(edge_index, Tensor) else type(edge_index).__name__
        raise LookHopsError(f"edge_index must be a dense tensor of shape (2, e), not {kind}.")
    if edge_index.dim() != 2 or edge_index.shape[0] != 2:
        raise LookHopsError(f"edge_index must have shape (2, e), not {tuple(edge_index.shape)}.")
    if edge_index.dtype not in (torch.int64, torch.int32):
        raise LookHopsError(f"edge_index must hold 64- or 32-bit integers, not {edge_index.dtype}.")
    if edge_weight is not None and edge_weight.numel() != edge_index.shape[1]:
        raise LookHopsError(
            f"There are {edge_index.shape[1]} edges but {edge_weight.numel()} edge weights."
        )
    # Reading the values would wait for a GPU, and cannot be compiled.
    if edge_index.numel() and edge_index.device.type == "cpu" and not torch.compiler.is_compiling():
        low, high = (int(end) for end in edge_index.aminmax())
        if low < 0 or high >= num_nodes:
            raise LookHopsError(
                f"edge_index names node {low if low < 0 else high}, "
                f"but x has {num_nodes} rows, numbered 0 to {num_nodes - 1}."
            )


def _sum_by(value: Tensor, index: Tensor, size: int) -> Tensor:
    """Sum the values that share an index."""
    return value.new_zeros(size).index_add(0, index, value)


def _inverse_sqrt(degree: Tensor) -> Tensor:
    """degree^(-1/2), and zero for a degree of zero."""
    safe = torch.where(degree > 0, degree, torch.ones_like(degree))
    return torch.where(degree > 0, safe.rsqrt(), torch.zeros_like(degree))


if triton is not None:

    @triton.jit
    def _scale_kernel(row_ptr, column, weight, scale, rows, BLOCK: tl.constexpr):
        """1 / sqrt(d_i), where d_i counts the edges into each row that are no loops."""
        row = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        live = row < rows
        start = tl.load(row_ptr + row, mask=live, other=0)
        end = tl.load(row_ptr + row + 1, mask=live, other=0)
        degree = tl.zeros((BLOCK,), tl.float32)
        for j in range(0, tl.max((end - start).to(tl.int32), axis=0)):
            entry = start + j
            here = entry < end
            here = here & (tl.load(column + entry, mask=here, other=0) != row)
            if weight is None:
                degree += here.to(tl.float32)
            else:
                degree += tl.load(weight + entry, mask=here, other=0.0).to(tl.float32)
        found = 1.0 / tl.sqrt_rn(tl.where(degree > 0, degree, 1.0))
        tl.store(scale + row, tl.where(degree > 0, found, 0.0), mask=live)

    @triton.jit
    def _value_kernel(column, row, weight, scale, value, entries, BLOCK: tl.constexpr):
        """-s_i w_ij s_j, and zero for loops, which padding is too."""
        entry = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        inside = entry < entries
        source = tl.load(column + entry, mask=inside, other=0)
        target = tl.load(row + entry, mask=inside, other=0)
        here = inside & (source != target)
        found = -tl.load(scale + source, mask=here, other=0.0)
        if weight is not None:
            found *= tl.load(weight + entry, mask=here, other=0.0).to(tl.float32)
        found *= tl.load(scale + target, mask=here, other=0.0)
        tl.store(value + entry, tl.where(here, found, 0.0), mask=inside)
