"""The answers of a Gaussian process as sums over neighbourhoods and columns."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from lookhops.graphs.targets import targets_of
from lookhops.learners import gp_terms
from lookhops.learners.gp import FittedProcess, GaussianProcess
from lookhops.learners.gp_terms import Terms
from lookhops.sources.loading import load
from lookhops.sources.splits import Split, split
from lookhops.tasks import task_of
from strategies import graph_sets

PLAIN = GaussianProcess(hops=2)


@pytest.fixture(scope="module")
def molecules():
    return load("solubility", target="value")[:90]


@pytest.fixture(scope="module")
def process(molecules) -> FittedProcess:
    return PLAIN.fit(molecules, task_of(molecules), split(molecules, 1), 1)


def added(terms: Terms, graph: torch.Tensor) -> torch.Tensor:
    """The baseline and all terms of each graph."""
    found = terms.baseline + terms.whole + terms.features.sum(1)
    if terms.totals is not None:
        found = found + terms.totals.sum(1)
    return found.index_add(0, graph, terms.neighbourhoods.sum(1) + terms.nodes)


@settings(max_examples=15, deadline=None)
@given(graph_sets(min_graphs=3, min_nodes=1), st.booleans(), st.integers(0, 2))
def test_terms_of_any_graphs_add_up(graphs, classes, pairs):
    y = torch.arange(len(graphs)) % (3 if classes else 7)
    graphs = replace(graphs, y=y if classes else y.double())
    graphs = replace(graphs, targets=targets_of(graphs.y, ("a", "b", "c") if classes else None))
    every = torch.arange(len(graphs))
    learner, parts = replace(PLAIN, pairs=pairs), Split(every, every, every)
    found = learner.fit(graphs, task_of(graphs), parts, 0)
    terms = found.terms(graphs, 0)
    full = torch.ones(len(graphs), dtype=torch.bool)
    if pairs:  # a graph without pairs is like others without, and no node has that
        full = found.rows(graphs).pairs[1].diff() > 0
    torch.testing.assert_close(added(terms, graphs.batch.long())[full], terms.scores[full])
    outputs = terms.scores.log_softmax(1).float() if classes else terms.scores
    torch.testing.assert_close(outputs, found.outputs(graphs))


@pytest.mark.parametrize("pairs", [0, 3])
def test_nodes_have_what_a_naive_count_of_matches_says(molecules, pairs):
    """Each node of a graph that finds a partner adds as much as any other that does."""
    learner, parts = replace(PLAIN, pairs=pairs), split(molecules, 1)
    process = learner.fit(molecules, task_of(molecules), parts, 1)
    rows, references = process.rows(molecules[parts.test]), process.kernels.references
    one = process.targets[0]
    beta, weight = one.coefficients[:, 0].numpy(), one.weights.numpy()
    *hops, last = gp_terms.assignment_terms(process.kernels, rows, one.coefficients, one.weights)
    found = hops if pairs else [*hops, last]
    wanted = np.zeros((len(rows.codes), 3))
    codes, known = (
        by_graph(rows.codes, rows.node_ptr),
        by_graph(references.codes, references.node_ptr),
    )
    first = 0
    for graph in codes:
        for other, own in zip(known, beta, strict=True):
            shared = np.stack([np.isin(a, b) for a, b in zip(graph.T, other.T, strict=True)], 1)
            either = len(graph) + len(other) - shared.sum(0)
            wanted[first : first + len(graph)] += own * shared * weight[:3] / either
            wanted[first : first + len(graph)] += own * shared * weight[3] / either.sum()
        first += len(graph)
    np.testing.assert_allclose(torch.cat(found, 1).numpy(), wanted, atol=1e-12)
    if pairs:
        theirs, first = by_graph(*references.pairs), 0
        for graph in by_graph(*rows.pairs):
            wanted = np.zeros(len(graph))
            for other, own in zip(theirs, beta, strict=True):
                shared = np.isin(graph, other)
                either = len(graph) + len(other) - shared.sum()
                wanted += own * shared * weight[4] / max(either, 1)
            np.testing.assert_allclose(last[first : first + len(graph), 0], wanted, atol=1e-12)
            first += len(graph)


def by_graph(codes: torch.Tensor, ptr: torch.Tensor) -> list[np.ndarray]:
    return [part.numpy() for part in codes.split(ptr.diff().tolist())]


def test_columns_have_what_gradients_along_the_way_say():
    torch.manual_seed(0)
    z, references = torch.randn(3, 4), torch.randn(6, 4)
    beta, weights = torch.randn(6, 2).double(), torch.tensor([0.5, 0.3, 0.2]).double()

    def answer(x):
        apart = (x[:, None] - references.double()).square().sum(-1)
        near, wide, linear = weights
        kernel = near * (-apart / 5).exp() + wide * (-apart / 20).exp()
        return (kernel + linear * x @ references.double().T / 4) @ beta

    found, at_mean = gp_terms.column_terms(z, references, beta, weights, 5.0)
    torch.testing.assert_close(at_mean, answer(torch.zeros(1, 4).double())[0])
    torch.testing.assert_close(at_mean + found.sum(1), answer(z.double()))
    steps, total = 400, torch.zeros(3, 4, 2).double()
    for step in range(steps):
        x = ((step + 0.5) / steps * z.double()).requires_grad_()
        for channel in range(2):
            (slope,) = torch.autograd.grad(answer(x)[:, channel].sum(), x)
            total[..., channel] += slope * z / steps
    torch.testing.assert_close(found, total, atol=1e-4, rtol=1e-3)


def test_terms_do_not_depend_on_the_batch(molecules, process, monkeypatch):
    together = process.terms(molecules[:8], 0)
    monkeypatch.setattr(gp_terms, "BLOCK", 100)
    alone = process.terms(molecules[5:6], 0)
    nodes = slice(int(molecules.node_ptr[5]), int(molecules.node_ptr[6]))
    torch.testing.assert_close(together.neighbourhoods[nodes], alone.neighbourhoods)
    torch.testing.assert_close(together.features[5:6], alone.features)
    assert torch.equal(together.baseline, alone.baseline)


def test_what_nodes_have_is_that_of_an_average_graph_in_the_mean(molecules, process):
    train = molecules[split(molecules, 1).train]
    terms = process.terms(train, 0)
    of_graph = terms.whole.clone()
    of_graph.index_add_(0, train.batch.long(), terms.neighbourhoods.sum(1))
    assert abs(of_graph.mean()) < 1e-9
    assert float(terms.baseline) == pytest.approx(float(train.y.mean()), abs=float(train.y.std()))
