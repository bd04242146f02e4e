"""Every Triton kernel beside the few lines of PyTorch that it stands for, as cases to run.

A case takes the device on which the kernel runs; the plain lines run on the CPU. On a GPU
``gpu/test_kernels.py`` runs them all. Elsewhere :func:`interpret` runs the small ones in a process
of their own, under Triton's interpreter, which must be chosen before Triton is imported.
"""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import replace
from functools import partial
from itertools import product

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from batches import Batch, batches
from lookhops import ops
from lookhops.graphs.features import feature_columns
from lookhops.graphs.indexing import to_offsets
from lookhops.nn import ASAP, GraphBatch
from lookhops.ops import Adjacency, Anchors, Pattern, SparseMatrix, chebyshev, powers
from lookhops.ops.activate import _Activate, activate, readout
from lookhops.ops.anchors import _Scores
from lookhops.ops.batch import Extent
from lookhops.ops.clusters import links_between
from lookhops.ops.contraction import match_by_kernel, matched_nodes
from lookhops.ops.dense import product as dense_products
from lookhops.ops.dense import product_of_columns
from lookhops.ops.dropout import _Dropout, dropout
from lookhops.ops.layout import Tables, lay_out, one_hot
from lookhops.ops.light_layer import _LightLayer
from lookhops.ops.linear_relu import _Dense
from lookhops.ops.log_likelihood import _LogLikelihood
from lookhops.ops.merge import merge_by_kernel, merge_entries, merge_hops
from lookhops.ops.neighbour_max import neighbour_max
from lookhops.ops.neighbourhoods import links_by_kernels, neighbourhoods_by_kernels
from lookhops.ops.pattern import mirror
from lookhops.ops.product import entry_products, multiply
from lookhops.ops.ranking import edges_between, keep_top, nearness
from lookhops.ops.softmax import _Attention, _EdgeScores, _Softmax, attention, edge_scores, softmax
from lookhops.tasks import Classification
from lookhops.training.member_weights import MemberAdam
from lookhops.training.runs import Rates

FLOATS, DOUBLE = (torch.float32, torch.bfloat16), (torch.float32, torch.float64)
CLOSE = {torch.float32: {"rtol": 1e-4, "atol": 1e-5}, torch.bfloat16: {"rtol": 4e-2, "atol": 4e-2}}


def interpret(room: str) -> None:
    """Run the small cases of ``hops`` or ``nn`` under Triton's interpreter."""
    pytest.importorskip("triton", reason="needs triton, which has no build for this machine")
    done = subprocess.run(
        [sys.executable, __file__, room],
        env={**os.environ, "TRITON_INTERPRET": "1", "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=1800,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert len(done.stdout.splitlines()) == len(SMALL[room])


def move(tensor: Tensor | None, device: str) -> Tensor | None:
    """A copy on the device that asks for a gradient where the tensor does."""
    if tensor is None:
        return None
    return tensor.detach().to(device, copy=True).requires_grad_(tensor.requires_grad)


@contextmanager
def by_kernels() -> Iterator[None]:
    """Choose kernels wherever there are any, in main memory too, where the interpreter is."""
    with pytest.MonkeyPatch.context() as patch:
        for name, module in list(sys.modules.items()):
            if name.startswith("lookhops.ops.") and hasattr(module, "can_run_on"):
                patch.setattr(module, "can_run_on", lambda tensor: tensor.numel() > 0)
        patch.setattr(ops.neighbour_max, "fits", lambda tensor: True)
        patch.setattr(ops.adam, "_fits", lambda values: True)
        yield


def random_adjacency(nodes: int, edges: int, slices: int = 1) -> Adjacency:
    """Random edges, none of them between slices."""
    generator = torch.Generator().manual_seed(0)
    each = torch.randint(0, max(nodes, 1), (slices, 2, edges if nodes else 0), generator=generator)
    shifted = each + nodes * torch.arange(slices)[:, None, None]
    return Adjacency.of(shifted.transpose(0, 1).reshape(2, -1), nodes * slices)


def csr(adjacency: Adjacency, dtype: torch.dtype) -> tuple[Tensor, Tensor, Tensor]:
    """Offsets, columns and values of the Chebyshev operator."""
    matrix = adjacency.chebyshev(dtype)
    assert matrix.value is not None
    return matrix.pattern.row_ptr, matrix.pattern.column, matrix.value.to(dtype)


# -------------------------------------------------------------------- hops


def sparse_product(
    device: str, nodes: int, edges: int, channels: int, dtype: torch.dtype, valued: bool
) -> None:
    row_ptr, column, value = csr(random_adjacency(nodes, edges), dtype)
    x = torch.randn(nodes, channels).to(dtype)
    expected = multiply(row_ptr, column, value.float() if valued else None, x.float())
    given = (row_ptr, column, value if valued else None, x)
    with by_kernels():
        found = multiply(*(move(t, device) for t in given))
    torch.testing.assert_close(found.float().cpu(), expected, **CLOSE[dtype])


def merge(
    device: str, stack: tuple, nodes: int, channels: int, k: int, order: float, dtype: torch.dtype
) -> None:
    recurrence = chebyshev if order == 2 else powers
    row_ptr, column, value = csr(random_adjacency(nodes, 2 * nodes, *stack), dtype)
    x, other = (torch.randn(*stack, nodes, channels).to(dtype) for _ in range(2))
    weight = torch.randn(*stack, k + 1, channels).to(dtype)
    bias, offset = (torch.randn(*stack, channels).to(dtype) for _ in range(2))
    for second in (None, other):
        given = (row_ptr, column, value, x, weight, bias, second, offset)
        wide = [t if t is None or not t.is_floating_point() else t.float() for t in given]
        plain = merge_hops(recurrence, tuple(wide[:3]), *wide[3:])
        there = [move(t, device) for t in given]
        fast = merge_by_kernel(recurrence, tuple(there[:3]), *there[3:])
        assert (fast.sums is None) == (plain.sums is None)
        both = ((one.total, *(one.sums or ())) for one in (fast, plain))
        pairs = zip(*both, strict=True)
        for found, expected in pairs:
            scale = expected.abs().max().clamp(min=1)
            limit = (1e-5 if dtype == torch.float32 else 0.04 * k) * scale
            torch.testing.assert_close(found.float().cpu(), expected, rtol=0, atol=float(limit))


def products_of_entries(
    device: str, nodes: int, edges: int, channels: int, dtype: torch.dtype
) -> None:
    row_ptr, column, _ = csr(random_adjacency(nodes, edges), dtype)
    g, x = (torch.randn(nodes, channels).to(dtype) for _ in range(2))
    expected = entry_products(row_ptr, column, g.float(), x.float())
    with by_kernels():
        found = entry_products(*(move(t, device) for t in (row_ptr, column, g, x)))
    limit = CLOSE[dtype]["rtol"] * channels**0.5
    torch.testing.assert_close(found.float().cpu(), expected, rtol=limit, atol=limit)


def entries_of_a_merge(
    device: str, stack: tuple, nodes: int, channels: int, k: int, order: float, dtype: torch.dtype
) -> None:
    recurrence = chebyshev if order == 2 else powers
    row_ptr, column, _ = csr(random_adjacency(nodes, 2 * nodes, *stack), dtype)
    left, right = ([torch.randn(*stack, nodes, channels).to(dtype) for _ in range(k)] for _ in "lr")
    weight, offset = torch.randn(*stack, k + 1, channels), torch.randn(*stack, channels)
    wide = ([t.float() for t in side] for side in (left, right))
    expected = merge_entries(recurrence, row_ptr, column, *wide, weight, offset)
    there = [move(t, device) for t in (weight, offset.to(dtype))]
    sides = ([move(t, device) for t in side] for side in (left, right))
    ends = (move(row_ptr, device), move(column, device))
    with by_kernels():
        found = merge_entries(recurrence, *ends, *sides, *there)
    limit = (1e-5 if dtype == torch.float32 else 2e-2) * expected.abs().max().clamp(min=1)
    assert (found.float().cpu() - expected).abs().max() <= limit


def scores(
    device: str,
    stack: tuple,
    nodes: int,
    channels: int,
    k: int,
    order: float,
    activation: str,
    with_offset: bool,
    symmetric: bool,
) -> None:
    recurrence = chebyshev if order == 2 else powers
    adjacency = random_adjacency(nodes, 3 * nodes, torch.Size(stack).numel())
    matrix = adjacency.chebyshev(torch.float32)
    if symmetric:
        both = torch.cat((adjacency.edge_index, adjacency.edge_index.flip(0)), 1)
        matrix = Adjacency.of(both, adjacency.num_nodes).chebyshev(torch.float32)
    matrix = SparseMatrix(matrix.pattern, matrix.value, symmetric)
    where = [move(t, device) for t in matrix.entries()]
    value = move(matrix.value, device)
    inputs = [
        torch.randn(*stack, nodes, channels),
        torch.randn(*stack, k + 1, channels) / channels**0.5,
        torch.randn(*stack, 1),
        *([torch.randn(*stack, channels)] if with_offset else []),
    ]

    def plain(z: Tensor, theta: Tensor, bias: Tensor, offset: Tensor | None = None) -> tuple:
        raw = Anchors(recurrence, matrix, z, k, offset).score(theta)[0] + bias
        found = {"sigmoid": torch.sigmoid, "relu": torch.relu}.get(activation, lambda x: x)(raw)
        return (z * 2, found)[beside]

    def fast(z: Tensor, theta: Tensor, bias: Tensor, offset: Tensor | None = None) -> tuple:
        how = recurrence is chebyshev, activation, value
        again, found = _Scores.apply(z, offset, theta, bias, *how, *where)
        return (again * 2, found)[beside]

    beside = slice(0 if symmetric else 1, 2)  # whether something else is computed from z
    compare(fast, plain, inputs, device, atol=1e-4 * max(nodes / 1000, 1))  # sums over nodes


def operator(device: str, nodes: int, edges: int, padding: int, weighted: bool) -> None:
    ends = torch.randint(0, max(nodes, 1), (2, edges))  # loops and parallel edges among them
    both = Adjacency.of(torch.cat((ends, ends.flip(0)), 1), nodes)
    last = torch.full((padding,), nodes - 1, dtype=torch.int32)
    pattern = Pattern(both.pattern.row_ptr, torch.cat((both.source, last)))
    low, high = (
        torch.minimum(pattern.column, pattern.row),
        torch.maximum(pattern.column, pattern.row),
    )
    weight = ((low * 7 + high * 3) % 5).float() if weighted else None  # the same both ways
    plain = Adjacency(pattern, weight, symmetric=True).chebyshev(torch.float32).value
    there = Pattern(*(move(t, device) for t in (pattern.row_ptr, pattern.column)))
    with by_kernels():
        fast = Adjacency(there, move(weight, device), symmetric=True)
        found = fast.chebyshev(torch.float32).value
    torch.testing.assert_close(found.cpu(), plain, rtol=1e-6, atol=1e-6)


def mirrored(device: str, nodes: int, edges: int, padding: int, loops: bool) -> None:
    pattern = mirrored_pattern(nodes, edges, padding, loops)
    there = Pattern(*(move(t, device) for t in (pattern.row_ptr, pattern.column)), mirrored=True)
    with by_kernels():
        found = mirror(there).cpu().long()
    assert torch.equal(found, mirror(pattern).long())
    assert torch.equal(pattern.row[found], pattern.column)
    assert torch.equal(found[found], torch.arange(len(found)))


def mirrored_pattern(nodes: int, edges: int, padding: int, loops: bool) -> Pattern:
    """Random entries both ways, some of them twice, in order; loops first; then padding."""
    ends = torch.randint(0, nodes, (2, edges))
    row, column = torch.cat((ends, ends.flip(0)), 1)[:, (ends[0] != ends[1]).repeat(2)]
    if loops:
        some = torch.arange(0, nodes, 2)
        row, column = torch.cat((row, some)), torch.cat((column, some))
    key = row * (nodes + 1) + torch.where(row == column, 0, column + 1)
    row, column = row[key.argsort()], column[key.argsort()]
    last = torch.full((padding,), nodes - 1)
    row_ptr = to_offsets(torch.bincount(row, minlength=nodes)).int()
    return Pattern(row_ptr, torch.cat((column, last)).int(), mirrored=True)


def dense_product(
    device: str, slices: int, rows: int, inputs: int, outputs: int, signs: bool
) -> None:
    """A layer's product and the two of its gradient, as close to float64 as those of torch."""
    shapes = (rows, inputs), (outputs, inputs), (rows, outputs)
    x, weight, grad = (torch.randn(slices, *shape) for shape in shapes)
    if not signs:  # then errors that all go one way add up
        x, weight, grad = x.abs(), weight.abs(), grad.abs()
    there = move(x, device), move(weight, device), move(grad, device)
    fast = (
        dense_products(there[0], there[1]),
        dense_products(there[2], there[1].mT),
        product_of_columns(there[2], there[0]),
    )
    # The interpreter cannot multiply bfloat16, of which the last is made.
    count = 3 if device == "cuda" else 2
    for (a, b), found in zip(((x, weight.mT), (grad, weight), (grad.mT, x))[:count], fast):  # noqa: B905
        exact, scale = a.double() @ b.double(), a.abs().double() @ b.abs().double()
        plain = torch.bmm(move(a, device), move(b, device))
        own, other = (((each.cpu() - exact).abs() / scale).max() for each in (plain, found))
        assert other <= 4 * own + 1e-7


# -------------------------------------------------------------------- training


def layout(device: str, members: int, size: int, graphs: int, some_of_more: bool) -> None:
    sizes = torch.randint(0, 9, (graphs,))
    node_ptr = to_offsets(sizes)
    row_ptr = to_offsets(torch.randint(0, 4, (int(node_ptr[-1]),)))
    count = int(row_ptr[-1])
    graph = torch.repeat_interleave(torch.arange(graphs), row_ptr[node_ptr].diff())
    source = (node_ptr[graph] + (torch.rand(count) * sizes[graph]).long()).int()
    first_node = node_ptr[:-1] * 3 + 5 if some_of_more else None
    index = torch.randint(-1, graphs, (members, size))
    chosen = index.clamp(min=0)
    nodes = int(torch.where(index >= 0, sizes[chosen], 0).sum(1).max()) + 3
    edges = int(torch.where(index >= 0, row_ptr[node_ptr].diff()[chosen], 0).sum()) + 7
    given = (node_ptr, row_ptr, source, first_node)
    plain = lay_out(index, Tables(*given), nodes, edges)
    there = Tables(*(move(t, device) for t in given))
    with by_kernels():
        found = lay_out(move(index, device), there, nodes, edges)
    for name in ("node", "place", "alive", "graph", "segments", "edge"):
        torch.testing.assert_close(getattr(found, name).cpu(), getattr(plain, name))
    for name in ("row_ptr", "column", "row"):
        mine, expected = (getattr(each.pattern, name) for each in (found, plain))
        torch.testing.assert_close(mine.cpu(), expected)


def labels_told(device: str, nodes: int, chosen: int, sizes: tuple[int, ...], wide: bool) -> None:
    labels = torch.stack([torch.randint(0, size, (nodes,)) for size in sizes], 1)
    labels, node = (
        labels.to(torch.int16 if wide else torch.uint8),
        torch.randint(0, nodes, (chosen,)),
    )
    with by_kernels():
        found = one_hot(*(move(t, device) for t in (labels, node)), sizes, torch.float32)
    assert torch.equal(found.cpu(), feature_columns(None, labels[node], sizes, torch.float32))


def log_likelihood(
    device: str, stack: tuple[int, ...], graphs: int, classes: int, padded: bool, weighs: bool
) -> None:
    output = 3 * torch.randn(*stack, graphs, classes)
    target = torch.randint(-1, classes, (*stack, graphs))
    real = torch.rand(*stack, graphs) < 0.8 if padded else None
    fitted = torch.rand(*stack, classes) if weighs else None
    task = Classification(tuple(map(str, range(classes))))
    there = [move(t, device) for t in (target, fitted, real)]
    compare(
        lambda output: _LogLikelihood.apply(output, *there),
        lambda output: task.losses(output, target, fitted, real),
        [output],
        device,
    )


def adam(device: str, members: int, count: int, dtype: torch.dtype, learning: float) -> None:
    """Some steps of all members against PyTorch's Adam for each, that of double precision."""
    shapes = [(members, *((3,), (40, 30), (1,))[i % 3]) for i in range(count)]
    values = [torch.randn(shape).to(dtype) for shape in shapes]
    rates = learning * (1 + torch.arange(members)), 0.1 * torch.arange(members)
    own = [value.to(device, copy=True).requires_grad_() for value in values]
    every = [Rates(*map(float, each), dropout=0.0) for each in zip(*rates, strict=True)]
    together = MemberAdam(own, every, fused=True, capturable=device == "cuda")
    alone = [[value[m].double().requires_grad_() for value in values] for m in range(members)]
    theirs = [
        torch.optim.Adam(alone[m], lr=float(rates[0][m]), weight_decay=float(rates[1][m]))
        for m in range(members)
    ]
    for _ in range(3):
        gradients = [torch.randn(shape).to(dtype) for shape in shapes]
        for value, gradient in zip(own, gradients, strict=True):
            value.grad = gradient.to(device)
        with by_kernels():
            together.step()
        for m, optimiser in enumerate(theirs):
            for value, gradient in zip(alone[m], gradients, strict=True):
                value.grad = gradient[m].double()
            optimiser.step()
    for i, value in enumerate(own):
        for m, optimiser in enumerate(theirs):
            state = optimiser.state[alone[m][i]]
            kept = [alone[m][i].detach(), state["exp_avg"], state["exp_avg_sq"]]
            moments = (together.state[value][name] for name in ("exp_avg", "exp_avg_sq"))
            found = [one[m].detach().cpu().double() for one in (value, *moments)]
            torch.testing.assert_close(found, kept, **CLOSE[dtype])
    assert all(float(together.state[value]["step"]) == 3 for value in own)
    assert not together.done.any()


# -------------------------------------------------------------------- nn


def random_graphs(sizes: tuple[int, ...], masked: bool) -> tuple[Tensor, Tensor | None]:
    """The graph of each node, and which nodes are alive."""
    graph = torch.repeat_interleave(torch.arange(len(sizes)), torch.tensor(sizes))
    return graph, torch.rand(len(graph)) < 0.7 if masked else None


def compare(
    fast: Callable,
    plain: Callable,
    inputs: list[Tensor],
    device: str,
    rtol: float = 1e-4,
    atol: float = 1e-4,
) -> None:
    """Outputs, and the gradients of the inputs for random gradients of the outputs."""
    results = []
    for run, where in ((fast, device), (plain, "cpu")):
        own = [move(t.requires_grad_(), where) for t in inputs]
        outputs = run(*own)
        generator = torch.Generator().manual_seed(0)
        into = [torch.randn(out.shape, generator=generator).to(where, out.dtype) for out in outputs]
        pairs = [(out, grad) for out, grad in zip(outputs, into, strict=True) if out.requires_grad]
        torch.autograd.backward(*map(list, zip(*pairs, strict=True)))
        results.append([t.detach().cpu() for t in (*outputs, *(t.grad for t in own))])
    torch.testing.assert_close(*results, rtol=rtol, atol=atol)


def activation(
    device: str,
    sizes: tuple[int, ...],
    masked: bool,
    scored: bool,
    normalize: bool,
    wanted: slice = slice(2),
) -> None:
    graph, alive = random_graphs(sizes, masked)
    z = torch.randn(len(graph), 130)
    z[0] = 0
    z[-1, :] = z[0]
    inputs = [z, torch.rand(len(graph))] if scored else [z]
    level = GraphBatch(z, random_adjacency(len(graph), 0), graph, len(sizes), alive)

    def plain(z: Tensor, score: Tensor | None = None) -> tuple[Tensor, Tensor]:
        after, read = activate(level.with_x(z), score, normalize)
        return (after.x, read)[wanted]

    def fast(z: Tensor, score: Tensor | None = None) -> tuple[Tensor, Tensor]:
        where = [move(t, device) for t in (graph, *level.bounds, alive)]
        return _Activate.apply(z, score, *where, normalize)[wanted]

    compare(fast, plain, inputs, device)


def padded(slices: int, rows: int, sizes: tuple[int, ...]) -> tuple[Tensor, Tensor, Tensor]:
    """Segments, graph of each slot and whether it holds a node; slices end with padding."""
    end = torch.tensor(sizes).cumsum(0)
    bounds = torch.stack((end - torch.tensor(sizes), end))[:, None]
    segments = (bounds + rows * torch.arange(slices)[:, None]).flatten(1)
    slot = torch.arange(slices * rows)
    graph = torch.searchsorted(segments[1], slot, right=True)
    last = (slot // rows + 1) * len(sizes) - 1
    return segments, torch.minimum(graph, last), graph <= last


def padded_activation(device: str, slices: int, rows: int, sizes: tuple[int, ...]) -> None:
    segments, graph, alive = padded(slices, rows, sizes)
    z, score = torch.randn(slices, rows, 9), torch.rand(slices, rows)
    places = slices * len(sizes)
    none = random_adjacency(slices * rows, 0)
    level = GraphBatch(z, none, graph, places, alive, segments=segments)

    def plain(z: Tensor, score: Tensor) -> tuple[Tensor, Tensor]:
        after, read = activate(level.with_x(z), score, True)
        return after.x, read.view(places, -1)

    def fast(z: Tensor, score: Tensor) -> tuple[Tensor, Tensor]:
        where = [move(t, device) for t in (graph, *segments, alive)]
        return _Activate.apply(z, score.flatten(), *where, True)

    compare(fast, plain, [z, score], device)


def light_layer(
    device: str,
    slices: int,
    sizes: tuple[int, ...],
    k: int,
    order: float,
    scored: bool,
    normalize: bool,
    dead: bool,
    symmetric: bool = True,
    wanted: slice = slice(2),
) -> None:
    """Merge and then activate: graphs that end with padding, some of whose nodes may be dead."""
    rows, width = sum(sizes) + 5, 9
    segments, graph, alive = padded(slices, rows, sizes)
    alive &= (torch.rand(len(alive)) < 0.7) | (not dead)
    kept = alive & ((torch.rand(len(alive)) < 0.7) | (not scored))
    there = alive.nonzero().flatten()
    ends = there[torch.randint(0, len(there), (2, 4 * len(there)))]
    ends = ends[:, graph[ends[0]] == graph[ends[1]]]
    ends = torch.cat((ends, ends.flip(0)), 1) if symmetric else ends
    adjacency = Adjacency.of(ends, slices * rows)
    adjacency.symmetric = symmetric
    operator = (adjacency.chebyshev if order == 2 else adjacency.mixhop)(torch.float32)
    level = GraphBatch(torch.empty(0), adjacency, graph, len(segments[0]), kept, segments=segments)
    recurrence = chebyshev if order == 2 else powers
    inputs = [torch.randn(slices, *own, width) for own in ((rows,), (k + 1,), (), ())]
    inputs += [torch.rand(slices, rows)] if scored else []

    def plain(z: Tensor, weight: Tensor, bias: Tensor, c: Tensor, *score: Tensor) -> tuple:
        merged = Anchors(recurrence, operator, z, k, c).merge(weight, bias)
        after, read = activate(level.with_x(merged), *(score or (None,)), normalize)
        return (after.x, read.view(-1, 2 * width))[wanted]

    def fast(z: Tensor, weight: Tensor, bias: Tensor, c: Tensor, *score: Tensor) -> tuple:
        row_ptr, column, row_ptr_t, column_t, turned = operator.entries()
        value_t = operator.value if turned is None else operator.value[turned]
        entries = (row_ptr, column, operator.value, row_ptr_t, column_t, value_t)
        graphs = tuple(move(t, device) for t in (alive, kept, *segments))
        flat = score[0].flatten() if score else None
        given = (z, weight, bias, c, flat, order, normalize, graphs)
        return _LightLayer.apply(*given, *(move(t, device) for t in entries))[wanted]

    compare(fast, plain, inputs, device)


def reading(device: str, sizes: tuple[int, ...], masked: bool) -> None:
    graph, alive = random_graphs(sizes, masked)
    x = (torch.randn(len(graph), 130) * 4).round() + 0.5  # with ties
    level = GraphBatch(x, random_adjacency(len(graph), 0), graph, len(sizes), alive)
    where = [move(t, device) for t in (graph, *level.bounds, alive)]
    compare(
        lambda x: _Activate.apply(x, None, *where, None)[1:],
        lambda x: (readout(level.with_x(x)),),
        [x],
        device,
    )


def ranking(device: str, sizes: tuple[int, ...], masked: bool, ties: bool, ratio: float) -> None:
    graph, alive = random_graphs(sizes, masked)
    score = torch.rand(len(graph))
    score = (score * 4).round() + score * 1e-6 if ties else score  # equal but for rounding
    level = GraphBatch(score[:, None], random_adjacency(len(graph), 0), graph, len(sizes), alive)
    there = replace(level, graph=move(graph, device), alive=move(alive, device))
    for size, exact in product((None, 5 * torch.rand(len(graph))), (False, True)):
        with by_kernels():
            found = keep_top(there, *(move(score, device), ratio, move(size, device), exact))
        assert torch.equal(found.cpu(), keep_top(level, score, ratio, size, exact))


def matching(
    device: str, sizes: tuple[int, ...], dtype: torch.dtype, step: float, every: bool
) -> None:
    """Scores lie some steps from each other, a step being a part of what counts as equal."""
    size = torch.tensor(sizes)
    end = size.cumsum(0)
    graph = random_graphs(sizes, masked=False)[0].repeat(4)
    source = torch.arange(sum(sizes)).repeat(4)  # loops and parallel edges among them
    target = (end - size)[graph] + (torch.rand(len(source)) * size[graph]).long()
    adjacency = Adjacency.of(torch.stack((source, target)), sum(sizes) + 3)
    score = (1 + step * nearness(dtype) * torch.randint(0, 6, source.shape).double()).to(dtype)
    score[torch.rand(len(score)) < 0.05] = torch.inf
    score[torch.rand(len(score)) < 0.05] = torch.nan
    if every:
        adjacency.order = None
    else:
        adjacency = adjacency.masked(torch.rand(len(score)) < 0.8)
    compare_matching(device, score, adjacency, torch.stack((end - size, end)))


def matching_in_many(device: str, graphs: int, size: int, last: int, step: float) -> None:
    """Graphs of one size, and a last one of another."""
    matching(device, (*(size,) * graphs, last), torch.float32, step, True)


def matching_of_any(device: str) -> None:
    @settings(max_examples=40, deadline=None, derandomize=True, report_multiple_bugs=False)
    @given(batches(weighted=False), st.integers(1, 4), st.integers(0, 2**16))
    def agree(batch: Batch, values: int, seed: int) -> None:
        level, generator = batch.level(), torch.Generator().manual_seed(seed)
        shape = level.adjacency.source.shape
        score = torch.randint(0, values, shape, generator=generator) / 2  # many are equal
        there = torch.rand(shape, generator=generator) < 0.8
        compare_matching(device, score, level.adjacency.masked(there), level.bounds)

    agree()


def compare_matching(device: str, score: Tensor, adjacency: Adjacency, bounds: Tensor) -> None:
    partner, taken = matched_nodes(score, adjacency)
    own = adjacency.pattern
    pattern = Pattern(*(move(t, device) for t in (own.row_ptr, own.column)))
    optional = (move(t, device) for t in (adjacency.weight, adjacency.order))
    there = move(score, device), Adjacency(pattern, *optional), move(bounds, device)
    found, edge = (t.cpu().long() for t in match_by_kernel(*there))
    assert torch.equal(torch.where(found < 0, torch.arange(len(partner)), found), partner)
    assert torch.equal(edge, taken)


def edges_that_stay(device: str, nodes: int, edges: int, masked: bool) -> None:
    adjacency = random_adjacency(nodes, edges)
    alive = torch.rand(edges) < 0.7 if masked else None
    keep, graph = torch.rand(nodes) < 0.6, torch.zeros(nodes, dtype=torch.long)
    level = GraphBatch(torch.randn(nodes, 1), adjacency, graph, 1, edge_alive=alive)
    own = adjacency.pattern
    pattern = Pattern(*(move(t, device) for t in (own.row_ptr, own.column)))
    there = replace(level, adjacency=Adjacency(pattern), edge_alive=move(alive, device))
    with by_kernels():
        found = edges_between(there, move(keep, device))
    assert torch.equal(found.cpu(), edges_between(level, keep))


def maximum(device: str, nodes: int, edges: int, dtype: torch.dtype, wanted: slice) -> None:
    x = ((torch.randn(nodes, 130) * 4).round() / 2).to(dtype)  # with ties, zeros among them
    pattern = random_adjacency(nodes, edges).pattern  # some nodes have no neighbour
    there = Pattern(*(move(t, device) for t in (pattern.row_ptr, pattern.column)))

    def fast(x: Tensor) -> tuple[Tensor, ...]:
        with by_kernels():
            return neighbour_max(there, x)[wanted]

    compare(
        fast,
        lambda x: neighbour_max(pattern, x)[wanted],
        [x],
        device,
    )


def random_batch(sizes: tuple[int, ...], directed: bool, masked: bool) -> GraphBatch:
    """Graphs whose edges repeat and begin where they end; dead nodes and the last have none."""
    graph, alive = random_graphs((*sizes, 3), masked)
    alive = torch.ones(len(graph), dtype=torch.bool) if alive is None else alive
    alive[-3:] = False  # padding, as every batch of fixed shape has it
    end = torch.tensor(sizes).cumsum(0)
    first = torch.repeat_interleave(end - torch.tensor(sizes), torch.tensor(sizes))
    target = torch.randint(0, len(first), (2 * len(first),))
    size = torch.tensor(sizes)[graph[target]]
    source = first[target] + (torch.rand(len(target)) * size).long()
    ends = torch.stack((source, target))
    ends = ends if directed else torch.cat((ends, ends.flip(0)), 1)
    ends = ends[:, alive[ends].all(0)]
    own = Adjacency.of(ends, len(graph)).pattern
    last = torch.full((5,), len(graph) - 1, dtype=torch.int32)
    pattern = Pattern(own.row_ptr, torch.cat((own.column, last)))
    segments = torch.stack((end - torch.tensor(sizes), end))
    adjacency = Adjacency(pattern, symmetric=not directed)
    graph = graph.clamp(max=len(sizes) - 1)
    return GraphBatch(
        alive[:, None].float(), adjacency, graph, len(sizes), alive, segments=segments
    )


def neighbourhoods(
    device: str, sizes: tuple[int, ...], directed: bool, masked: bool, weighted: bool
) -> None:
    level = random_batch(sizes, directed, masked)
    edges, alive = weigh(level.adjacency, weighted), level.alive
    given = (edges.pattern.row_ptr, edges.pattern.column, edges.weight, alive)
    found = neighbourhoods_by_kernels(*(move(t, device) for t in given), ascending=False)
    # Taken for edges, neighbourhoods are their own: the loops are left out and put back.
    again = (found[0], found[1], None, move(alive, device))
    again = neighbourhoods_by_kernels(*again, ascending=True)
    expected = of_neighbourhoods(edges, alive)
    assert torch.equal(found[0].cpu(), expected.row_ptr)
    row, column = (t.cpu()[: expected.row_ptr[-1]].long() for t in (found[2], found[1]))
    keys = [
        i * len(alive) + torch.where(i == j, -1, j)  # loops are the first of their row
        for i, j in ((row, column), (expected.row.long(), expected.column.long()))
    ]
    assert torch.equal(keys[0], keys[1].sort().values)
    for mine, other in zip(again, found, strict=True):
        assert torch.equal(mine[: len(other)], other)
        assert (mine[len(other) :] == len(alive) - 1).all()


def links(
    device: str, sizes: tuple[int, ...], directed: bool, masked: bool, weighted: bool
) -> None:
    level = random_batch(sizes, directed, masked)
    near = of_neighbourhoods(weigh(level.adjacency, weighted), level.alive)
    keep = level.alive & (torch.rand(len(level.alive)) < 0.6)
    expected = links_between(SparseMatrix(near), None, keep, level).pattern
    entries = (near.row_ptr, near.column, near.transpose.row_ptr, near.transpose.column)
    there = [move(t, device) for t in (*entries, keep, level.bounds[0][level.graph])]
    count = expected.column.numel()
    found = links_by_kernels(*there, count + 9, max(sizes))
    assert torch.equal(found[0].cpu(), expected.row_ptr)
    for own, other in zip(found[1:], (expected.column, expected.row), strict=True):
        assert torch.equal(own[:count].cpu(), other)
        assert (own[count:] == len(keep) - 1).all()


def weigh(edges: Adjacency, weighted: bool) -> Adjacency:
    """The same edges, some of them of weight zero."""
    weight = ((edges.target + edges.source) % 4 > 0).float() if weighted else None
    return Adjacency(edges.pattern, weight)


def of_neighbourhoods(edges: Adjacency, alive: Tensor) -> Pattern:
    """Living nodes with their sources."""
    whole = edges.with_loops
    return whole.select(edges.counted_with_loops & alive[whole.row.long()])


def pooling(device: str, sizes: tuple[int, ...], directed: bool) -> None:
    """ASAP twice over: in fixed shapes by all its kernels, and with as many links as needed."""
    level = random_batch(sizes, directed, masked=True)
    alive, edges, pool = level.alive, level.adjacency, ASAP(6, 0.6)
    squares = int((torch.tensor(sizes) ** 2).sum())
    found: list[list[Tensor]] = []

    def run(x: Tensor, fixed: bool) -> tuple[Tensor, Tensor]:
        device = x.device.type
        ends = (edges.pattern.row_ptr, edges.pattern.column)
        own = GraphBatch(
            x * move(alive, device)[:, None],
            Adjacency(Pattern(*(move(t, device) for t in ends)), symmetric=not directed),
            *(move(level.graph, device), level.num_graphs, move(alive, device)),
            segments=move(level.segments, device),
            extent=Extent(len(sizes), len(alive), squares, max(sizes)) if fixed else None,
        )
        with pytest.MonkeyPatch.context() as patch:
            if fixed and device == "cpu":  # the interpreter
                for module in (ops.neighbourhoods, ops.pattern, ops.softmax):
                    patch.setattr(module, "can_run_on", lambda tensor: True)
                patch.setattr(ops.neighbour_max, "fits", lambda tensor: True)
            there = deepcopy(pool).to(device)
            for _ in range(2):
                own, pooled = there.pool(own, masked=True)
        links = own.adjacency.pattern
        found.append([pooled.node, links.row_ptr, links.column[: int(links.row_ptr[-1])]])
        return own.x, pooled.score * pooled.node

    fast, plain = (partial(run, fixed=fixed) for fixed in (True, False))
    compare(fast, plain, [torch.randn(len(alive), 6)], device)
    assert all(torch.equal(one.cpu(), other.cpu()) for one, other in zip(*found, strict=True))


def shares(device: str, nodes: int, edges: int, counted: bool, valued: bool) -> None:
    pattern = random_adjacency(nodes, edges).pattern
    counts = torch.rand(edges) < 0.7 if counted else None
    value = torch.rand(edges) if valued else None
    where = [move(t, device) for t in (pattern.row_ptr, counts, value)]
    compare(
        lambda score: (_Softmax.apply(score, *where),),
        lambda score: (softmax(score, pattern, counts, value),),
        [torch.randn(edges) * 3],
        device,
    )


def scores_of_edges(device: str, nodes: int, edges: int, padding: int) -> None:
    own = random_adjacency(nodes, edges).pattern
    last = torch.full((padding,), nodes - 1, dtype=torch.int32)
    pattern = Pattern(own.row_ptr, torch.cat((own.column, last)))
    there = Pattern(*(move(t, device) for t in (pattern.row_ptr, pattern.column)))
    real = (torch.arange(edges + padding) < edges).float()  # padding has no gradient
    compare(
        lambda *ends: (_EdgeScores.apply(*ends, there) * move(real, device),),
        lambda *ends: (edge_scores(*ends, pattern) * real,),
        [torch.randn(nodes), torch.randn(nodes)],
        device,
    )


def attending(device: str, nodes: int, edges: int, padding: int) -> None:
    own = random_adjacency(nodes, edges).pattern  # some nodes have no neighbour
    last = torch.full((padding,), nodes - 1, dtype=torch.int32)
    there = Pattern(*(move(t, device) for t in (own.row_ptr, torch.cat((own.column, last)))))
    compare(
        lambda *ends: (_Attention.apply(*ends, there)[:edges],),
        lambda *ends: (attention(*ends, own),),
        [torch.randn(nodes), torch.randn(nodes)],
        device,
    )


def dense(
    device: str, slices: int, rows: int, width: int, outputs: int, relu: bool, precision: str
) -> None:
    x, weight = torch.randn(slices, rows, width), torch.randn(slices, outputs, width) / width**0.5

    def plain(x: Tensor, weight: Tensor, bias: Tensor) -> tuple[Tensor, ...]:
        out = x @ weight.mT + bias[:, None]
        return (torch.relu(out) if relu else out,)

    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision(precision)
    try:
        compare(
            lambda *given: (_Dense.apply(*given, relu),),
            plain,
            [x, weight, torch.randn(slices, outputs)],
            device,
            **({} if precision == "highest" else {"rtol": 2e-2, "atol": 5e-2}),
        )
    finally:
        torch.set_float32_matmul_precision(before)


def dropping(
    device: str, stack: tuple[int, ...], channels: int, dtype: torch.dtype, each: bool
) -> None:
    x = torch.randn(*stack, 20, channels).to(dtype).requires_grad_()
    key = torch.randint(-(2**62), 2**62, stack)
    place = torch.randint(0, 2**40, (*stack, 20))
    shares = 0.3 + 0.1 * torch.arange(key.numel(), dtype=torch.float64).view(stack)
    expected = dropout(x, shares if each else 0.3, key, 3, place)
    expected.sum().backward()
    own = move(x, device)
    threshold = (shares * 65_536).round().long() if each else 19_661
    scale = 65_536 / (65_536 - threshold)
    if each:
        threshold, scale = move(threshold, device), move(scale.float(), device)
    found = _Dropout.apply(own, move(key, device), 3, move(place, device), threshold, scale)
    found.sum().backward()
    close = {"rtol": 0, "atol": 0} if dtype == torch.float32 else CLOSE[dtype]
    pairs = ((found.detach().cpu(), expected.detach()), (own.grad.cpu(), x.grad))
    for mine, plain in pairs:  # the interpreter cuts bfloat16 off where others round
        assert torch.equal(mine == 0, plain == 0)
        torch.testing.assert_close(mine, plain, **close)


# -------------------------------------------------------------------- all of them


def cases(run: Callable, *choices: tuple) -> dict[str, Callable[[str], None]]:
    """A case for every combination of the choices, under a name that says which."""
    return {
        f"{run.__name__}{chosen}".replace("torch.", ""): partial(_seeded, run, chosen)
        for chosen in product(*choices)
    }


def _seeded(run: Callable, chosen: tuple, device: str) -> None:
    torch.manual_seed(0)
    run(device, *chosen)


BOTH, SIZES = (True, False), ((3, 0, 1, 40), (1,))
SIGMAS = ("sigmoid", "relu", "none")
SMALL = {
    "hops": {
        **cases(sparse_product, (1,), (0, 3), (1, 8), FLOATS, BOTH),
        **cases(sparse_product, (33,), (90,), (3, 129), FLOATS, BOTH),
        **cases(merge, ((),), (16,), (129,), (1, 2, 4), (1.0, 2.0), FLOATS[:1]),
        **cases(merge, ((3,),), (8,), (5,), (1, 2, 4), (1.0, 2.0), FLOATS),
        **cases(merge, ((),), (1,), (5,), (2,), (2.0,), FLOATS),
        **cases(merge, ((2,),), (136,), (5,), (2,), (2.0,), FLOATS[:1]),
        **cases(products_of_entries, (1, 33), (3, 90), (1, 129), FLOATS[:1]),
        **cases(products_of_entries, (5,), (9,), (1030,), FLOATS),
        **cases(entries_of_a_merge, ((),), (17,), (129,), (1, 2, 4), (1.0, 2.0), FLOATS[:1]),
        **cases(entries_of_a_merge, ((3,),), (8,), (5,), (2, 3), (2.0,), FLOATS),
        **cases(scores, ((3,),), (20,), (5,), (1, 2), (1.0, 2.0), SIGMAS[:1], BOTH, (True,)),
        **cases(scores, ((),), (20,), (5,), (2,), (2.0,), SIGMAS, (True,), (True,)),
        **cases(scores, ((2,),), (150,), (129,), (4,), (2.0,), SIGMAS[:1], BOTH, BOTH),
        **cases(operator, (1,), (0, 3), (4,), BOTH),
        **cases(operator, (150,), (200,), (0, 30), BOTH),
        **cases(mirrored, (1, 70), (90,), (0, 20), BOTH),
        **cases(dense_product, (1, 3), (17, 200), (37,), (16, 144), (True,)),
    },
    "training": {
        **cases(layout, (1, 3), (1, 5), (7,), BOTH),
        **cases(layout, (2,), (130,), (40,), BOTH),
        **cases(labels_told, (1, 30), (1, 200), ((5,), (1, 3, 20)), BOTH),
        **cases(log_likelihood, ((), (3,)), (1, 20), (2, 5), BOTH, BOTH),
        **cases(log_likelihood, ((2,),), (700,), (3,), BOTH, BOTH),
        **cases(adam, (1, 3), (1, 5), FLOATS, (0.01,)),
        **cases(adam, (2,), (70,), FLOATS[:1], (0.1,)),
    },
    "nn": {
        **cases(activation, SIZES, BOTH, BOTH, BOTH),
        **cases(activation, ((150,),), BOTH, (True,), (True,)),
        **cases(activation, SIZES[:1], (True,), (True,), (True,), (slice(1), slice(1, 2))),
        **cases(padded_activation, (1, 3), (60, 9), ((4, 0, 3),)),
        **cases(light_layer, (2,), ((4, 0, 9),), (2,), (2.0,), BOTH, BOTH, BOTH),
        **cases(light_layer, (2,), ((3, 0, 13),), (1, 4), (2.0,), (True,), (True,), (True,)),
        **cases(light_layer, (1,), ((4, 0, 3),), (1, 3), (1.0,), (False,), BOTH, (False,), BOTH),
        **cases(light_layer, (1,), ((9,),), (2,), (2.0,), *[(True,)] * 4, (slice(1), slice(1, 2))),
        **cases(reading, (*SIZES, (150,)), BOTH),
        **cases(ranking, ((5, 0, 1, 10, 60),), BOTH, BOTH, (0.1, 0.6, 0.7, 1.0)),
        **cases(matching, ((5, 0, 1, 10, 60),), DOUBLE, (0.0, 0.4, 0.7, 1.0, 1e4), BOTH),
        **cases(matching_of_any),
        **cases(maximum, (1,), (0,), (torch.float32,), (slice(2),)),
        **cases(maximum, (33,), (60,), (torch.float64, torch.float32), (slice(2), slice(1))),
        **cases(neighbourhoods, ((4, 0, 1, 70), (1,)), BOTH, BOTH, BOTH),
        **cases(links, ((4, 0, 1, 70), (1,), (5, 140)), BOTH, BOTH, BOTH),
        **cases(pooling, ((4, 0, 1, 70), (30, 1)), BOTH),
        **cases(edges_that_stay, (33,), (90,), BOTH),
        **cases(shares, (1, 70), (3, 90), BOTH, BOTH),
        **cases(scores_of_edges, (33,), (90,), (0, 20)),
        **cases(attending, (1, 70), (90,), (0, 20)),
        **cases(dropping, ((), (3,)), (6, 128), FLOATS, BOTH),
        **cases(dense, (1, 3), (1, 40), (5, 70), (2, 33), BOTH, ("highest",)),
        **cases(dense, (2,), (40,), (40,), (2,), (True,), ("high",)),
    },
}
#: Too large for the interpreter.
LARGE = {
    **cases(sparse_product, (0,), (0,), (8,), FLOATS, BOTH),
    **cases(sparse_product, (5748,), (28534,), (128,), FLOATS, BOTH),
    **cases(merge, ((2,),), (5752,), (128,), (1, 2, 4), (1.0, 2.0), FLOATS),
    **cases(products_of_entries, (5748,), (28534,), (1, 128), FLOATS),
    **cases(entries_of_a_merge, ((2,),), (5752,), (128,), (1, 2, 4), (1.0, 2.0), FLOATS),
    **cases(activation, ((700,),), BOTH, BOTH, BOTH),
    **cases(padded_activation, (2,), (5000,), ((700, 0, 20),)),
    **cases(light_layer, (3,), ((400, 0, 20, 111, 30),), (1, 2, 3, 4), (1.0, 2.0), *[BOTH] * 4),
    **cases(reading, ((700,),), BOTH),
    **cases(ranking, ((5, 0, 1, 10, 700, 5748, 20),), BOTH, BOTH, (0.1, 0.5, 0.6, 0.7, 0.9, 1.0)),
    **cases(matching, ((5, 0, 1, 700, 5748, 20),), DOUBLE, (0.0, 0.4, 0.7, 1.0, 1e4), BOTH),
    **cases(matching_in_many, (2560,), (3, 20), (0, 2000), (0.7, 1e4)),
    **cases(maximum, (700,), (1000, 4000), (torch.float64, torch.float32), (slice(2), slice(1))),
    **cases(pooling, ((300, 30, 0, 1), (20,) * 200), BOTH),
    **cases(edges_that_stay, (5748,), (28534,), BOTH),
    **cases(shares, (5748,), (28534,), BOTH, BOTH),
    **cases(scores_of_edges, (5748,), (28534,), (0, 1000)),
    **cases(attending, (5748,), (28534,), (0, 1000)),
    **cases(scores, ((2,),), (5752,), (128,), (1, 2, 4), (1.0, 2.0), SIGMAS, BOTH, BOTH),
    **cases(operator, (5748,), (28534,), (1000,), BOTH),
    **cases(mirrored, (5748,), (28534,), (1000,), BOTH),
    **cases(neighbourhoods, ((700, 30, 0, 1, 5748), (40,) * 200), BOTH, BOTH, BOTH),
    **cases(links, ((700, 30, 0, 1, 2048), (40,) * 200), BOTH, BOTH, BOTH),
    **cases(dense, (1, 10), (256,), (256,), (128,), BOTH, ("highest",)),
    **cases(dense, (1, 10), (256,), (256,), (128,), (False,), ("high",)),
    **cases(layout, (10,), (256, 4096), (500,), BOTH),
    **cases(labels_told, (5000,), (57480,), ((37,), (300, 7)), (True,)),
    **cases(log_likelihood, ((10,),), (256, 5000), (2, 40), BOTH, BOTH),
    **cases(adam, (10,), (100,), FLOATS, (0.001,)),
    **cases(dense_product, (1, 10), (5748, 8704), (37, 128, 256), (128,), BOTH),
}


def patch_once() -> None:
    """Let the interpreter exchange Triton's functions for its own once, not at every call.

    It does so whenever a kernel calls another function, which takes longer than the call.
    """
    from triton import language
    from triton.runtime import interpreter

    if hasattr(interpreter, "_patch_lang") and hasattr(interpreter, "_LangPatchScope"):
        for function in (language.zeros, ops.ranking._load):  # a module of Triton, one of ours
            interpreter._patch_lang(function.fn)
        interpreter._patch_lang = lambda function: interpreter._LangPatchScope()


if __name__ == "__main__":
    patch_once()
    # The interpreter takes as long for an empty block as for a full one: programs of few rows, so
    # that small graphs too need several, the last of them in part.
    ops.merge.PROGRAMS, ops.ranking.BLOCK, ops.activate.PADDING_ROWS = 4, 32, 20
    ops.contraction.LEAST, ops.contraction.MOST = 32, 32
    ops.anchors.PROGRAMS = 4
    for name, case in SMALL[sys.argv[1]].items():
        case("cpu")
        print(name, flush=True)
