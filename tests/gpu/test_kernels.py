"""Every Triton kernel against the few lines of PyTorch that it stands for."""

import pytest
import torch

from lookhops.hops import Adjacency, chebyshev, powers
from lookhops.hops.merge import merge_hops
from lookhops.hops.product import multiply
from lookhops.nn.activate import activate
from lookhops.nn.level import Level
from lookhops.nn.readout import readout
from lookhops.nn.segments import neighbour_max

CLOSE = {torch.float32: {"rtol": 1e-4, "atol": 1e-5}, torch.bfloat16: {"rtol": 4e-2, "atol": 4e-2}}


def random_adjacency(nodes, edges, slices=1):
    """Random edges, none of them between slices."""
    generator = torch.Generator().manual_seed(0)
    each = torch.randint(0, max(nodes, 1), (slices, 2, edges if nodes else 0), generator=generator)
    shifted = each + nodes * torch.arange(slices)[:, None, None]
    return Adjacency.of(shifted.transpose(0, 1).reshape(2, -1), nodes * slices)


def csr(adjacency, dtype, device):
    matrix = adjacency.chebyshev(dtype)
    pattern = matrix.pattern
    return tuple(t.to(device) for t in (pattern.row_ptr, pattern.column, matrix.value.to(dtype)))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize(
    ("nodes", "edges", "channels"),
    [
        (0, 0, 8),
        (1, 0, 8),
        (1, 3, 1),
        (7, 20, 129),
        (100, 400, 128),
        (5748, 28534, 128),
        (33, 90, 3),
    ],
)
def test_product(nodes, edges, channels, dtype):
    adjacency = random_adjacency(nodes, edges)
    x = torch.randn(nodes, channels).to(dtype)
    row_ptr, column, value = csr(adjacency, dtype, "cpu")
    expected = multiply(row_ptr, column, value.float(), x.float())
    found = multiply(*csr(adjacency, dtype, "cuda"), x.cuda())
    torch.testing.assert_close(found.float().cpu(), expected, **CLOSE[dtype])
    without = multiply(row_ptr.cuda(), column.cuda(), None, x.cuda())
    expected = multiply(row_ptr, column, None, x.float())
    torch.testing.assert_close(without.float().cpu(), expected, **CLOSE[dtype])


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("recurrence", [chebyshev, powers])
@pytest.mark.parametrize("k", [1, 2, 4])
@pytest.mark.parametrize(
    ("stack", "nodes", "channels"), [((), 1, 129), ((3,), 64, 128), ((2,), 5752, 128)]
)
def test_merge(stack, nodes, channels, k, recurrence, dtype):
    adjacency = random_adjacency(nodes, 2 * nodes, *stack)
    x = torch.randn(*stack, nodes, channels).to(dtype)
    other = torch.randn(*stack, nodes, channels).to(dtype)
    weight = torch.randn(*stack, k + 1, channels).to(dtype)
    bias = torch.randn(*stack, channels).to(dtype)
    offset = torch.randn(*stack, channels).to(dtype)
    row_ptr, column, value = csr(adjacency, dtype, "cpu")
    for second in (None, other):
        wide = [None if t is None else t.float() for t in (x, weight, bias, second, offset)]
        there = [None if t is None else t.cuda() for t in (x, weight, bias, second, offset)]
        plain = merge_hops(recurrence, row_ptr, column, value.float(), *wide)
        fast = merge_hops(recurrence, *csr(adjacency, dtype, "cuda"), *there)
        for found, expected in zip(fast, plain, strict=True):
            if expected is None:
                assert found is None
                continue
            scale = expected.abs().max().clamp(min=1)
            limit = (1e-5 if dtype == torch.float32 else 0.04 * k) * scale
            assert (found.float().cpu() - expected).abs().max() <= limit


@pytest.mark.parametrize("normalize", [True, False])
@pytest.mark.parametrize("scored", [True, False])
@pytest.mark.parametrize("masked", [True, False])
@pytest.mark.parametrize("sizes", [[3, 0, 1, 40], [700], [1]])
def test_activate(sizes, masked, scored, normalize):
    torch.manual_seed(0)
    nodes, channels = sum(sizes), 130
    graph = torch.repeat_interleave(torch.arange(len(sizes)), torch.tensor(sizes))
    alive = torch.rand(nodes) < 0.7 if masked else None
    z = torch.randn(nodes, channels)
    z[0] = 0
    z[-1, :] = z[0]
    score = torch.rand(nodes) if scored else None
    to_x, to_read = torch.randn(nodes, channels), torch.randn(len(sizes), 2 * channels)

    def run(device):
        def move(t):
            return None if t is None else t.to(device)

        inputs = [t.to(device).requires_grad_() for t in (z, score) if t is not None]
        level = Level(
            inputs[0], random_adjacency(nodes, 0), move(graph), len(sizes), alive=move(alive)
        )
        level, read = activate(level, inputs[1] if scored else None, normalize)
        ((level.x * to_x.to(device)).sum() + (read * to_read.to(device)).sum()).backward()
        return [level.x, read, *(t.grad for t in inputs)]

    for found, expected in zip(run("cuda"), run("cpu"), strict=True):
        torch.testing.assert_close(found.detach().cpu(), expected.detach(), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("masked", [True, False])
@pytest.mark.parametrize("sizes", [[3, 0, 1, 40], [700], [1]])
def test_readout(sizes, masked):
    torch.manual_seed(0)
    nodes, channels = sum(sizes), 130
    graph = torch.repeat_interleave(torch.arange(len(sizes)), torch.tensor(sizes))
    alive = torch.rand(nodes) < 0.7 if masked else None
    x = (torch.randn(nodes, channels) * 4).round() + 0.5  # with ties
    to_read = torch.randn(len(sizes), 2 * channels)

    def run(device):
        inputs = x.to(device, copy=True).requires_grad_()
        where = None if alive is None else alive.to(device)
        read = readout(Level(inputs, None, graph.to(device), len(sizes), alive=where))
        (read * to_read.to(device)).sum().backward()
        return read.detach().cpu(), inputs.grad.cpu()

    for found, expected in zip(run("cuda"), run("cpu"), strict=True):
        torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(("nodes", "edges"), [(1, 0), (33, 90), (700, 4000)])
def test_neighbour_max(nodes, edges):
    torch.manual_seed(0)
    x = (torch.randn(nodes, 130) * 4).round() + 0.5  # with ties
    weight = torch.randn(nodes, 130)

    def run(device):
        adjacency = random_adjacency(nodes, edges)
        edge_index = adjacency.edge_index.to(device)
        pattern = Adjacency.of(edge_index, nodes).with_loops
        inputs = x.to(device, copy=True).requires_grad_()
        highest = neighbour_max(pattern, inputs)
        (highest * weight.to(device)).sum().backward()
        return highest.detach().cpu(), inputs.grad.cpu()

    for found, expected in zip(run("cuda"), run("cpu"), strict=True):
        torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)
