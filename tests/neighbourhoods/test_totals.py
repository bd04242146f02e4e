"""Totals of graphs against a count in plain Python."""

import math
from dataclasses import replace

import torch
from hypothesis import given

from lookhops.neighbourhoods import graph_totals
from lookhops.neighbourhoods.totals import DEGREES
from strategies import graph_sets


@given(graph_sets())
def test_totals_are_those_of_a_plain_count(graphs):
    found = graph_totals(graphs)
    degree = [
        min(graphs.target.tolist().count(node), DEGREES - 1) for node in range(graphs.num_nodes)
    ]
    labels = torch.tensor(degree).view(-1, 1)
    if graphs.nodes.labels is not None:
        labels = torch.cat((labels, graphs.nodes.labels.long()), 1)
    parts = (
        (graphs.batch, labels, (DEGREES, *graphs.nodes.label_sizes), graphs.nodes.numbers),
        (
            graphs.batch[graphs.target],
            graphs.edges.labels,
            graphs.edges.label_sizes,
            graphs.edges.numbers,
        ),
    )
    for number in range(len(graphs)):
        expected, rest = [], []
        for graph_of, labels, sizes, attributes in parts:
            own = (graph_of == number).nonzero().flatten().tolist()
            expected.append(math.log(1 + len(own)))
            for column, size in enumerate(sizes):
                values = [int(labels[i, column]) for i in own]
                counts = [values.count(value) for value in range(size)]
                rest += [math.log(1 + count) for count in counts]
                rest += [count / max(len(own), 1) for count in counts]
            if attributes is not None:
                rest += [
                    sum(float(attributes[i, column]) for i in own) / max(len(own), 1)
                    for column in range(attributes.shape[1])
                ]
        assert torch.allclose(found[number], torch.tensor(expected + rest, dtype=torch.float64))


def test_totals_know_no_structure(tasks):
    generator = torch.Generator().manual_seed(0)
    first, size = tasks.node_ptr[:-1].long(), tasks.nodes_per_graph.long()
    graph = tasks.batch[tasks.target].long()
    drawn = torch.rand(tasks.num_edges, generator=generator)
    rewired = replace(tasks, source=(first[graph] + (drawn * size[graph]).long()).int())
    assert torch.equal(graph_totals(rewired), graph_totals(tasks))
