"""Neighbourhoods and shells in a few lines, node by node, to compare with."""

from itertools import count, pairwise

from lookhops import Graphs


def naive_colours(graphs: Graphs, hops: int, bins: list | None = None) -> list[list[int]]:
    """Running numbers of the colours after 0 to h rounds, one list of n a round."""
    nodes = range(graphs.num_nodes)
    row_ptr, source = graphs.row_ptr.tolist(), graphs.source.tolist()
    labels = (
        [()] * graphs.num_nodes if graphs.nodes.labels is None else graphs.nodes.labels.tolist()
    )
    edges = [()] * len(source) if graphs.edges.labels is None else graphs.edges.labels.tolist()
    numbers, fresh = {}, count()
    told = [(tuple(labels[i]), tuple(bins[i]) if bins else ()) for i in nodes]
    colours = [[numbers.setdefault(what, next(fresh)) for what in told]]
    for _ in range(hops):
        before = colours[-1]
        seen = [
            (
                before[i],
                tuple(
                    sorted(
                        (before[source[e]], tuple(edges[e]))
                        for e in range(row_ptr[i], row_ptr[i + 1])
                    )
                ),
            )
            for i in nodes
        ]
        numbers = {}
        colours.append([numbers.setdefault(what, next(fresh)) for what in seen])
    return colours


def naive_shells(graphs: Graphs, hops: int) -> list[list[tuple]]:
    """Label and sorted labels where walks of 1 to h steps begin, one list of n a step."""
    row_ptr, source = graphs.row_ptr.tolist(), graphs.source.tolist()
    into = [source[i:j] for i, j in pairwise(row_ptr)]
    labels = [()] * len(into) if graphs.nodes.labels is None else graphs.nodes.labels.tolist()
    walks = [[(first, node) for first in into[node]] for node in range(len(into))]
    found = []
    for _ in range(hops):
        found.append(
            [
                (tuple(labels[node]), *sorted(tuple(labels[first]) for first, _ in own))
                for node, own in enumerate(walks)
            ]
        )
        walks = [
            [(first, next_) for next_, last in own for first in into[next_] if first != last]
            for own in walks
        ]
    return found


def same_partition(ours: list, theirs: list) -> bool:
    """Whether two lists are equal up to the names of their values."""
    return len(set(zip(ours, theirs, strict=True))) == len(set(ours)) == len(set(theirs))
