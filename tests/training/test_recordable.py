"""What a recorded step may not do: ask the device for a value, or take a shape from the data."""

# ruff: noqa: F811  fixtures are arguments

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from engine_cases import StackedCases, exactly, noisy, told  # noqa: F401  the cases' graphs
from lookhops.nn import Architecture
from lookhops.ops import neighbour_max
from lookhops.training import batches as capacity
from lookhops.training.batches import Capacity, keeps_shapes

ASKING = ("_local_scalar_dense", "nonzero", "masked_select", "unique", "bincount", "equal")


class Shapes(TorchDispatchMode):
    """Notes the shapes of all that operators give; refuses those that ask for values."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[tuple] = []

    def __torch_dispatch__(self, op, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        name = op.overloadpacket.__name__
        assert not name.startswith(ASKING) or name == "nonzero_static", op
        if name == "repeat_interleave":
            assert kwargs.get("output_size") is not None, op
        if name in ("index", "index_put", "index_put_"):
            assert all(index is None or index.dtype != torch.bool for index in args[1]), op
        found = op(*args, **kwargs)
        each = found if isinstance(found, tuple | list) else (found,)
        shapes = [tuple(t.shape) for t in each if isinstance(t, torch.Tensor)]
        self.seen.append((name, shapes))
        return found


class Cases(StackedCases):
    device = torch.device("cpu")


CASES = Cases()


@pytest.mark.parametrize("pool", ["none", "topk", "sag", "lookhops", "asap"])
@pytest.mark.parametrize("edges", ["ignore", "use"])
def test_shapes_do_not_depend_on_the_batch(told, pool, edges, monkeypatch):
    monkeypatch.setattr(neighbour_max, "BLOCK", 1 << 30)
    architecture = Architecture(pool=pool, hidden=8, layers=3, edges=edges)
    engine = CASES.stack(told, architecture, exactly(seeds=(11, 22), batch_size=20))
    engine.feed.lays_out_links = True  # as on a GPU
    engine._plan_ahead(1)
    _, plan, needed = engine.ahead
    engine._reserve(plan, needed)
    engine.orders["train"].copy_(plan)
    assert engine._recordable
    seen = []
    for number in (0, 1, 2):
        engine._train_step(torch.tensor([0]))  # before it Adam has no moments
        with Shapes() as shapes:
            engine._train_step(torch.tensor([number]))
        seen.append(shapes.seen)
    assert seen[0] == seen[1] == seen[2]


@pytest.mark.parametrize("edges", ["ignore", "use"])
def test_with_room_for_links_members_train_as_they_do_alone(told, edges):
    architecture = Architecture(pool="asap", hidden=8, layers=2, ratio=0.7, edges=edges)
    protocol = exactly(seeds=(11, 22))
    stack = CASES.stack(told, architecture, protocol)
    stack.feed.lays_out_links = True
    CASES.assert_same(stack, CASES.alone(told, architecture, protocol), epochs=2)


def test_large_graphs_are_not_recorded(noisy, monkeypatch):
    architecture = Architecture(pool="asap", hidden=8, layers=2)
    engine = CASES.stack(noisy, architecture, exactly(seeds=(11, 22)))
    engine._plan_ahead(1)
    engine._reserve(*engine.ahead[1:])
    assert keeps_shapes(engine.model, engine.capacity, 2)
    room = 2 * engine.capacity.nodes * int(engine.nodes.max())
    monkeypatch.setattr(capacity, "MOST_PAIRS", room - 1)
    assert engine.capacity.extent(2, 1) is None
    assert not keeps_shapes(engine.model, engine.capacity, 2)
    plain = CASES.stack(noisy, Architecture(pool="topk", hidden=8), exactly(seeds=(11, 22)))
    assert keeps_shapes(plain.model, Capacity(10**6, 0, largest=10**6), 2)
