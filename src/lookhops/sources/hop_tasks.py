"""Hop tasks: a ruler for k, generated.

Each graph of ``hops-K`` is two copies of one random tree. The tree has a marked root, two arms of K
plain steps that leave the root, and twigs that grow anywhere, half of them red or blue at random,
but never at distance K. Then the ends of the arms are painted, two of the four red and two blue::

    same        red  --K-- marked --K-- red        blue --K-- marked --K-- blue
    different   red  --K-- marked --K-- blue       blue --K-- marked --K-- red

The class is "have the two coloured nodes K hops from a marked node the same colour?", and:

* Trees, twigs, numbers of nodes of each colour and degrees are drawn before the class.
* The two ends of a root are 2 K steps apart, so no node has both within K - 1 hops: each class has
  each arm once with a red end and once with a blue one. A model that sees fewer than K hops is at
  chance, whatever it computes and however it sums up a graph.
* Nothing beyond K hops helps either: a root cannot reach the other copy.

The class is about a pair because one colour K hops away could be read from sums over whole graphs.
"""

from __future__ import annotations

import numpy as np
import torch

from lookhops.core.errors import LookHopsError
from lookhops.graphs import Graphs
from lookhops.graphs.features import Features

MAX_HOPS = 6
#: Graphs of a task where no other number is asked for.
SIZE = 1000
PLAIN, MARKED, RED, BLUE = range(4)
NODE_LABELS = ("plain", "marked", "red", "blue")
CLASS_NAMES = ("different", "same")
# Twigs of one tree: enough that a tree is rarely met twice, few enough that the arms stand out.
FEWEST_TWIGS, MOST_TWIGS = 4, 8


def hop_task(k: int, size: int = SIZE, seed: int = 0) -> Graphs:
    """Graphs whose class is decided by what lies exactly ``k`` hops from their marked nodes.

    Args:
        k: Hops, 1 to 6.
        size: Number of graphs; the two classes are equally many (or differ by one).
        seed: The same ``k``, ``size`` and ``seed`` give the same graphs on every machine.

    Returns:
        Undirected graphs with one label column (plain, marked, red, blue) and the classes
        "different" and "same".
    """
    if k not in range(1, MAX_HOPS + 1):
        raise LookHopsError(f"hops-{k}: there are hop tasks from hops-1 to hops-{MAX_HOPS}.")
    if size < 2:
        raise LookHopsError(f"hops-{k}: {size} graphs cannot hold two classes; ask for 2 or more.")
    if seed < 0:
        raise LookHopsError(f"hops-{k}: the seed is {seed}; it must be 0 or more.")
    draws = _Draws(k, size, seed)
    y = draws.order(size) % 2
    parent, colour, present = _trees(k, size, draws)
    labels = np.stack((colour, colour), axis=1)  # (graph, copy, node)
    first = np.where(draws.below(2, size) == 0, RED, BLUE)  # the end of arm 0 in copy 0
    other = RED + BLUE - first
    labels[:, 0, k], labels[:, 1, k] = first, other
    same = y == 1
    labels[:, 0, 2 * k] = np.where(same, first, other)
    labels[:, 1, 2 * k] = np.where(same, other, first)
    return _pack(k, parent, labels, present, y, draws)


class _Draws:
    """Random numbers that are the same with every NumPy.

    The raw stream of its generator is fixed; what its distributions make of it may change.
    """

    def __init__(self, k: int, size: int, seed: int) -> None:
        self._bits = np.random.PCG64(np.random.SeedSequence([seed, size, k]))

    def below(self, limit: int | np.ndarray, *shape: int) -> np.ndarray:
        raw = self._bits.random_raw(int(np.prod(shape))).reshape(shape)
        return (raw >> np.uint64(32)).astype(np.int64) % limit

    def order(self, count: int) -> np.ndarray:
        return np.argsort(self._bits.random_raw(count), kind="stable")


def _trees(k: int, size: int, draws: _Draws) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Parent and label of each node of ``size`` trees, and whether it is there; (size, nodes).

    Node 0 is the root, 1 to k one arm, k + 1 to 2 k the other, the rest are twigs.
    """
    arms = 2 * k + 1
    nodes = arms + MOST_TWIGS
    parent = np.zeros((size, nodes), dtype=np.int64)
    depth = np.zeros((size, nodes), dtype=np.int64)
    parent[:, 1:arms] = np.arange(arms - 1)
    parent[:, k + 1] = 0
    depth[:, 1:arms] = np.tile(np.arange(1, k + 1), 2)
    every = np.arange(size)
    for twig in range(arms, nodes):  # a twig may grow on an earlier twig
        parent[:, twig] = draws.below(twig, size)
        depth[:, twig] = depth[every, parent[:, twig]] + 1
    label = np.full((size, nodes), PLAIN)
    label[:, 0] = MARKED
    paint = draws.below(4, size, MOST_TWIGS)
    painted = np.where(paint == 0, RED, np.where(paint == 1, BLUE, PLAIN))
    label[:, arms:] = np.where(depth[:, arms:] == k, PLAIN, painted)
    twigs = FEWEST_TWIGS + draws.below(MOST_TWIGS - FEWEST_TWIGS + 1, size)
    return parent, label, np.arange(nodes) < arms + twigs[:, None]


def _pack(
    k: int,
    parent: np.ndarray,
    labels: np.ndarray,
    present: np.ndarray,
    y: np.ndarray,
    draws: _Draws,
) -> Graphs:
    """Number the nodes that are there, in an order that says nothing, and pack them."""
    size, copies, nodes = labels.shape
    present = np.repeat(present[:, None], copies, axis=1)
    per_graph = present.sum((1, 2))
    graph = np.repeat(np.arange(size), per_graph)
    where = np.flatnonzero(present)  # graph after graph, as Graphs wants them
    shuffled = where[np.lexsort((draws.order(where.size), graph))]
    number = np.full(present.size, -1)
    number[shuffled] = np.arange(where.size)
    start = np.arange(size * copies).reshape(size, copies, 1) * nodes
    child = present.copy()
    child[:, :, 0] = False
    source = torch.from_numpy(number[np.flatnonzero(child)])
    target = torch.from_numpy(number[(start + parent[:, None])[child]])
    return Graphs.from_edges(
        torch.cat((source, target)),
        torch.cat((target, source)),
        torch.from_numpy(per_graph),
        nodes=Features(
            labels=torch.from_numpy(labels.reshape(-1)[shuffled][:, None]),
            label_names=("kind",),
            label_values=(NODE_LABELS,),
        ),
        y=torch.from_numpy(y),
        class_names=CLASS_NAMES,
        name=f"hops-{k}",
        featuriser="hop-tasks-1",
    )
