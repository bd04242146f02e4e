"""Every Triton kernel beside the few lines of PyTorch that it stands for, as cases to run.

A case takes the device on which the kernel runs; the plain lines run on the CPU. On a GPU
``gpu/test_kernels.py`` runs them all. Elsewhere :func:`interpret` runs the small ones in a process
of their own, under Triton's interpreter, which must be chosen before Triton is imported.
"""

import os
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from itertools import product

import pytest
import torch
from torch import Tensor

from lookhops.encoding import label_kernels
from lookhops.graphs.features import feature_columns
from lookhops.graphs.indexing import to_offsets
from lookhops.hops import (
    Adjacency,
    Anchors,
    Pattern,
    SparseMatrix,
    chebyshev,
    entry_kernels,
    merge_kernels,
    operator_kernels,
    powers,
    score_kernels,
)
from lookhops.hops import kernels as hop_kernels
from lookhops.hops.merge import merge_entries, merge_hops
from lookhops.hops.product import entry_products, multiply
from lookhops.hops.recurrences import alternate_sums
from lookhops.nn import Level, kernels
from lookhops.nn.activate import activate
from lookhops.nn.dropout import dropout
from lookhops.nn.ranking import edges_between, keep_top, nearness
from lookhops.nn.readout import readout
from lookhops.nn.segments import _EdgeScores, edge_scores, neighbour_max, softmax
from lookhops.tasks import Classification, loss_kernels
from lookhops.training import adam_kernels, layout_kernels
from lookhops.training.layout import Tables, lay_out

FLOATS = (torch.float32, torch.bfloat16)
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
    found = hop_kernels.multiply(*(move(t, device) for t in given))
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
        plain = merge_hops(recurrence, *wide)
        fast = merge_kernels.merge(order, *(move(t, device) for t in given))
        assert (fast[1] is None) == (plain.sums is None)
        pairs = zip((fast[0], *(fast[1] or ())), (plain.total, *(plain.sums or ())), strict=True)
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
    found = entry_kernels.entry_products(*(move(t, device) for t in (row_ptr, column, g, x)))
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
    there = [move(t, device) for t in (alternate_sums(recurrence, weight), offset.to(dtype))]
    sides = ([move(t, device) for t in side] for side in (left, right))
    ends = (move(row_ptr, device), move(column, device))
    found = entry_kernels.merge_entries(order, *ends, *sides, *there)
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
        raw = Anchors(recurrence, matrix, z, k, offset).score(theta) + bias
        return ({"sigmoid": torch.sigmoid, "relu": torch.relu}.get(activation, lambda x: x)(raw),)

    def fast(z: Tensor, theta: Tensor, bias: Tensor, offset: Tensor | None = None) -> tuple:
        how = recurrence is chebyshev, activation, value
        return (score_kernels._Scores.apply(z, offset, theta, bias, *how, *where),)

    compare(fast, plain, inputs, device)


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
    given = (pattern.row_ptr, pattern.column, pattern.row, weight)
    found = operator_kernels.chebyshev(*(move(t, device) for t in given))
    torch.testing.assert_close(found.cpu(), plain, rtol=1e-6, atol=1e-6)


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
    given = (index, node_ptr, row_ptr, source, first_node)
    plain = lay_out(index, Tables(*given[1:]), nodes, edges)
    found = layout_kernels.lay_out(*(move(t, device) for t in given), nodes, edges)
    pattern = plain.pattern
    of_edges = (pattern.row_ptr, pattern.column, pattern.row, plain.edge)
    of_slots = (plain.node, plain.place, plain.alive, plain.graph, plain.segments)
    for own, expected in zip(found, (*of_slots, *of_edges), strict=True):
        torch.testing.assert_close(own.cpu(), expected)


def labels_told(device: str, nodes: int, chosen: int, sizes: tuple[int, ...], wide: bool) -> None:
    labels = torch.stack([torch.randint(0, size, (nodes,)) for size in sizes], 1)
    labels, node = (
        labels.to(torch.int16 if wide else torch.uint8),
        torch.randint(0, nodes, (chosen,)),
    )
    found = label_kernels.one_hot(*(move(t, device) for t in (labels, node)), sizes, torch.float32)
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
        lambda output: loss_kernels.LogLikelihood.apply(output, *there),
        lambda output: task.losses(output, target, fitted, real),
        [output],
        device,
    )


def adam(device: str, members: int, count: int, dtype: torch.dtype, learning: float) -> None:
    """Some steps of all members against PyTorch's Adam for each, that of double precision."""
    shapes = [(members, *((3,), (40, 30), (1,))[i % 3]) for i in range(count)]
    values = [torch.randn(shape).to(dtype) for shape in shapes]
    rates = learning * (1 + torch.arange(members)), 0.1 * torch.arange(members)
    own = [value.to(device, copy=True) for value in values]
    moments = [[torch.zeros_like(value) for value in own] for _ in range(2)]
    steps = [torch.zeros((), device=device) for _ in own]
    done = torch.zeros(count, dtype=torch.int32, device=device)
    alone = [[value[m].double().requires_grad_() for value in values] for m in range(members)]
    theirs = [
        torch.optim.Adam(alone[m], lr=float(rates[0][m]), weight_decay=float(rates[1][m]))
        for m in range(members)
    ]
    told = [rate.float().to(device) for rate in rates]
    for _ in range(3):
        gradients = [torch.randn(shape).to(dtype) for shape in shapes]
        given = [gradient.to(device) for gradient in gradients]
        adam_kernels.step(own, given, *moments, steps, *told, done, (0.9, 0.999), 1e-8)
        for m, optimiser in enumerate(theirs):
            for value, gradient in zip(alone[m], gradients, strict=True):
                value.grad = gradient[m].double()
            optimiser.step()
    for i, value in enumerate(own):
        for m, optimiser in enumerate(theirs):
            state = optimiser.state[alone[m][i]]
            kept = [alone[m][i].detach(), state["exp_avg"], state["exp_avg_sq"]]
            found = [one[m].cpu().double() for one in (value, moments[0][i], moments[1][i])]
            torch.testing.assert_close(found, kept, **CLOSE[dtype])
    assert all(float(number) == 3 for number in steps)
    assert not done.any()


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
        into = [torch.randn(out.shape, generator=generator).to(where) for out in outputs]
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
    level = Level(z, random_adjacency(len(graph), 0), graph, len(sizes), alive)

    def plain(z: Tensor, score: Tensor | None = None) -> tuple[Tensor, Tensor]:
        after, read = activate(level.with_x(z), score, normalize)
        return (after.x, read)[wanted]

    def fast(z: Tensor, score: Tensor | None = None) -> tuple[Tensor, Tensor]:
        where = [move(t, device) for t in (graph, *level.bounds, alive)]
        return kernels.Activate.apply(z, score, *where, normalize)[wanted]

    compare(fast, plain, inputs, device)


def padded_activation(device: str, slices: int, rows: int, sizes: tuple[int, ...]) -> None:
    end = torch.tensor(sizes).cumsum(0)
    bounds = torch.stack((end - torch.tensor(sizes), end))[:, None]
    segments = (bounds + rows * torch.arange(slices)[:, None]).flatten(1)
    slot = torch.arange(slices * rows)
    graph = torch.searchsorted(segments[1], slot, right=True)
    last = (slot // rows + 1) * len(sizes) - 1
    alive, graph = graph <= last, torch.minimum(graph, last)
    z, score = torch.randn(slices, rows, 9), torch.rand(slices, rows)
    places = slices * len(sizes)
    none = random_adjacency(slices * rows, 0)
    level = Level(z, none, graph, places, alive, segments=segments)

    def plain(z: Tensor, score: Tensor) -> tuple[Tensor, Tensor]:
        after, read = activate(level.with_x(z), score, True)
        return after.x, read.view(places, -1)

    def fast(z: Tensor, score: Tensor) -> tuple[Tensor, Tensor]:
        where = [move(t, device) for t in (graph, *segments, alive)]
        return kernels.Activate.apply(z, score.flatten(), *where, True)

    compare(fast, plain, [z, score], device)


def reading(device: str, sizes: tuple[int, ...], masked: bool) -> None:
    graph, alive = random_graphs(sizes, masked)
    x = (torch.randn(len(graph), 130) * 4).round() + 0.5  # with ties
    level = Level(x, random_adjacency(len(graph), 0), graph, len(sizes), alive)
    where = [move(t, device) for t in (graph, *level.bounds, alive)]
    compare(
        lambda x: (kernels.Readout.apply(x, *where),),
        lambda x: (readout(level.with_x(x)),),
        [x],
        device,
    )


def ranking(device: str, sizes: tuple[int, ...], masked: bool, ties: bool, ratio: float) -> None:
    graph, alive = random_graphs(sizes, masked)
    score = torch.rand(len(graph))
    score = (score * 4).round() + score * 1e-6 if ties else score  # equal but for rounding
    level = Level(score[:, None], random_adjacency(len(graph), 0), graph, len(sizes), alive)
    for size in (None, 5 * torch.rand(len(graph))):
        where = [move(t, device) for t in (score, size, graph, *level.bounds, alive)]
        found = kernels.keep_top(*where, ratio, nearness(score.dtype)).cpu()
        assert torch.equal(found, keep_top(level, score, ratio, size))


def edges_that_stay(device: str, nodes: int, edges: int, masked: bool) -> None:
    adjacency = random_adjacency(nodes, edges)
    alive = torch.rand(edges) < 0.7 if masked else None
    keep, graph = torch.rand(nodes) < 0.6, torch.zeros(nodes, dtype=torch.long)
    level = Level(torch.randn(nodes, 1), adjacency, graph, 1, edge_alive=alive)
    where = [move(t, device) for t in (adjacency.source, adjacency.target, keep, alive)]
    assert torch.equal(kernels.edges_between(*where).cpu(), edges_between(level, keep))


def maximum(device: str, nodes: int, edges: int) -> None:
    x = (torch.randn(nodes, 130) * 4).round() + 0.5  # with ties
    pattern = random_adjacency(nodes, edges).with_loops
    turned = pattern.transpose
    entries = (pattern.row_ptr, pattern.column, turned.row_ptr, turned.column)
    where = [move(t, device) for t in entries]
    compare(
        lambda x: (kernels.NeighbourMax.apply(x, *where),),
        lambda x: (neighbour_max(pattern, x),),
        [x],
        device,
    )


def shares(device: str, nodes: int, edges: int, counted: bool, valued: bool) -> None:
    pattern = random_adjacency(nodes, edges).pattern
    counts = torch.rand(edges) < 0.7 if counted else None
    value = torch.rand(edges) if valued else None
    where = [move(t, device) for t in (pattern.row_ptr, counts, value)]
    compare(
        lambda score: (kernels.Softmax.apply(score, *where),),
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
            lambda *given: (kernels.Dense.apply(*given, relu),),
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
    found = kernels.Dropout.apply(own, move(key, device), 3, move(place, device), threshold, scale)
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
        **cases(scores, ((), (3,)), (20,), (5,), (1, 2), (1.0, 2.0), SIGMAS, BOTH, (True,)),
        **cases(scores, ((2,),), (150,), (129,), (4,), (2.0,), SIGMAS[:1], BOTH, BOTH),
        **cases(operator, (1,), (0, 3), (4,), BOTH),
        **cases(operator, (150,), (200,), (0, 30), BOTH),
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
        **cases(reading, (*SIZES, (150,)), BOTH),
        **cases(ranking, ((5, 0, 1, 10, 60),), BOTH, BOTH, (0.1, 0.6, 0.7, 1.0)),
        **cases(edges_that_stay, (33,), (90,), BOTH),
        **cases(maximum, (1,), (0,)),
        **cases(maximum, (33,), (90,)),
        **cases(shares, (1, 70), (3, 90), BOTH, BOTH),
        **cases(scores_of_edges, (33,), (90,), (0, 20)),
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
    **cases(reading, ((700,),), BOTH),
    **cases(ranking, ((5, 0, 1, 10, 700, 5748, 20),), BOTH, BOTH, (0.1, 0.5, 0.6, 0.7, 0.9, 1.0)),
    **cases(edges_that_stay, (5748,), (28534,), BOTH),
    **cases(maximum, (700,), (4000,)),
    **cases(shares, (5748,), (28534,), BOTH, BOTH),
    **cases(scores_of_edges, (5748,), (28534,), (0, 1000)),
    **cases(scores, ((2,),), (5752,), (128,), (1, 2, 4), (1.0, 2.0), SIGMAS, BOTH, BOTH),
    **cases(operator, (5748,), (28534,), (1000,), BOTH),
    **cases(dense, (1, 10), (256,), (256,), (128,), BOTH, ("highest", "high")),
    **cases(layout, (10,), (256, 4096), (500,), BOTH),
    **cases(labels_told, (5000,), (57480,), ((37,), (300, 7)), (True,)),
    **cases(log_likelihood, ((10,),), (256, 5000), (2, 40), BOTH, BOTH),
    **cases(adam, (10,), (100,), FLOATS, (0.001,)),
}


def patch_once() -> None:
    """Let the interpreter exchange Triton's functions for its own once, not at every call.

    It does so whenever a kernel calls another function, which takes longer than the call.
    """
    from triton import language
    from triton.runtime import interpreter

    if hasattr(interpreter, "_patch_lang") and hasattr(interpreter, "_LangPatchScope"):
        for function in (language.zeros, kernels.ranking._load):  # a module of Triton, one of ours
            interpreter._patch_lang(function.fn)
        interpreter._patch_lang = lambda function: interpreter._LangPatchScope()


if __name__ == "__main__":
    patch_once()
    # The interpreter takes as long for an empty block as for a full one: programs of few rows, so
    # that small graphs too need several, the last of them in part.
    merge_kernels.PROGRAMS, kernels.ranking.BLOCK, kernels.layer.PADDING_ROWS = 4, 32, 20
    score_kernels.PROGRAMS = 4
    for name, case in SMALL[sys.argv[1]].items():
        case("cpu")
        print(name, flush=True)
