"""The Gaussian process as a learner: what it answers, how sure it is, what is kept of it."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from lookhops import Graphs, LookHopsError
from lookhops.core.files import pack_tensors, unpack_tensors
from lookhops.encoding import Encoding
from lookhops.graphs.features import Features
from lookhops.graphs.targets import pack_targets, read_target
from lookhops.learners import gp, kernels
from lookhops.learners.gp import Approximate, FittedProcess, GaussianProcess
from lookhops.sources.loading import load
from lookhops.sources.molecules import from_smiles
from lookhops.sources.splits import Split, split
from lookhops.tasks import task_of

PLAIN, PAIRED = GaussianProcess(hops=2), GaussianProcess(pairs=4)


@pytest.fixture(scope="module")
def molecules() -> Graphs:
    return load("solubility", target="value")[:150]


def fitted(graphs: Graphs, learner: GaussianProcess = PLAIN, seed: int = 1) -> FittedProcess:
    task = task_of(graphs)
    learner.check(graphs, task)
    return learner.fit(graphs, task, split(graphs, 1), seed)


@pytest.fixture(scope="module")
def process(molecules) -> FittedProcess:
    return fitted(molecules, PAIRED)


def as_classes(graphs: Graphs, cuts: tuple[float, ...]) -> Graphs:
    """The same graphs, to be sorted by their number."""
    names = [f"class {int(number)}" for number in np.digitize(graphs.y, cuts)]
    return replace(graphs, **pack_targets([read_target("solubility", names)]))


def test_numbers_are_better_than_their_mean_and_as_sure_as_they_say(molecules, process):
    parts = split(molecules, 1)
    rest = molecules[torch.cat((parts.val, parts.test))]
    answers, variance = process.outputs(rest), process.variance(rest)
    assert answers.shape == variance.shape == (len(rest), 1)
    assert answers.dtype == torch.float64
    error = (answers[:, 0] - rest.y).abs()
    assert error.mean() < 0.5 * (rest.y - molecules.y[parts.train].mean()).abs().mean()
    assert 0.7 < (error < 1.645 * variance[:, 0].sqrt()).double().mean() <= 1
    assert process.left_out.shape == (len(parts.train), 1)
    assert sum(process.chosen.values()) == pytest.approx(1, abs=0.01)
    assert any(name.startswith("share of descriptors") for name in process.chosen)


def test_answers_and_variance_by_their_formulas(molecules, process):
    parts = split(molecules, 1)
    train, test = molecules[parts.train], molecules[parts.test]
    one, kernel = process.targets[0], process.kernels
    weigh = one.weights
    inner = torch.tensordot(weigh, kernel.full(process.rows(train)), 1)
    across = torch.tensordot(weigh, kernel.full(process.rows(test)), 1)
    inner += one.noise * torch.eye(len(train))
    z = (train.y - one.mean) / one.spread
    expected = one.mean + one.spread * across @ torch.linalg.solve(inner, z)
    torch.testing.assert_close(process.outputs(test)[:, 0], expected, atol=1e-8, rtol=0)
    prior = weigh @ kernel.diagonal(process.rows(test)) + one.noise
    seen = (across * torch.linalg.solve(inner, across.T).T).sum(1)
    variance = one.spread**2 * (prior - seen)
    torch.testing.assert_close(process.variance(test)[:, 0], variance, atol=1e-8, rtol=0)
    near, far = process.variance(train).mean(), process.variance(test).mean()
    assert near < far


def test_leave_one_out_answers_are_those_of_a_process_without_the_graph(molecules, process):
    parts = split(molecules, 1)
    one = process.targets[0]
    inner = torch.tensordot(one.weights, process.kernels.full(process.kernels.references), 1)
    inner += one.noise * torch.eye(len(parts.train))
    z = (molecules.y[parts.train] - one.mean) / one.spread
    for i in (0, 7, len(z) - 1):
        kept = torch.arange(len(z)) != i
        found = inner[i, kept] @ torch.linalg.solve(inner[kept][:, kept], z[kept])
        assert float(process.left_out[i]) == pytest.approx(
            float(one.mean + one.spread * found), abs=1e-8
        )


def test_targets_of_the_other_parts_are_never_read(molecules, process):
    parts = split(molecules, 1)
    y = molecules.y.clone()
    y[torch.cat((parts.val, parts.test))] += 100
    other = fitted(replace(molecules, y=y), PAIRED)
    test = molecules[parts.test]
    assert torch.equal(other.outputs(test), process.outputs(test))
    assert torch.equal(fitted(molecules, PAIRED).outputs(test), process.outputs(test))


@settings(max_examples=15, deadline=None)
@given(st.lists(st.integers(0, 149), min_size=1, max_size=12), st.integers(1, 500))
def test_an_answer_does_not_depend_on_the_batch(molecules, process, numbers, block):
    index = torch.tensor(numbers)
    with pytest.MonkeyPatch.context() as patch:
        alone = torch.cat([process.outputs(molecules[i : i + 1]) for i in numbers])
        sure = torch.cat([process.variance(molecules[i : i + 1]) for i in numbers])
        patch.setattr(kernels, "BLOCK", block)
        batch = molecules.select(index)
        torch.testing.assert_close(process.outputs(batch), alone, atol=1e-10, rtol=0)
        torch.testing.assert_close(process.variance(batch), sure, atol=1e-10, rtol=0)


def test_the_order_of_the_training_graphs_does_not_matter(molecules, process):
    parts = split(molecules, 1)
    turned = Split(parts.train.flip(0), parts.val, parts.test)
    other = PAIRED.fit(molecules, task_of(molecules), turned, 1)
    test = molecules[parts.test]
    torch.testing.assert_close(other.outputs(test), process.outputs(test), atol=1e-3, rtol=0)


@pytest.mark.parametrize("cuts", [(-3,), (-4, -2)])
def test_classes_are_log_probabilities(molecules, cuts):
    graphs = as_classes(molecules, cuts)
    found = fitted(graphs)
    log_p = found.outputs(graphs)
    assert log_p.shape == (len(graphs), len(cuts) + 1)
    assert log_p.dtype == torch.float32
    assert torch.allclose(log_p.exp().sum(1), torch.ones(len(graphs)), atol=1e-5)
    test = split(graphs, 1).test
    right = (log_p.argmax(1) == graphs.y)[test].double().mean()
    assert right > graphs.y[test].bincount().max() / len(test)
    assert torch.allclose(found.left_out.exp().sum(1), torch.ones(len(found.left_out)), atol=1e-5)


def test_several_targets_with_blanks_are_answered_as_each_alone(molecules):
    value = molecules.y.numpy().copy()
    value[::4] = np.nan
    low = [None if i % 5 == 0 else "yes" if y < -3 else "no" for i, y in enumerate(molecules.y)]
    columns = [read_target("value", value, "numbers"), read_target("low", low)]
    both = fitted(replace(molecules, **pack_targets(columns)))
    parts = split(molecules, 1)
    for column, place in zip(columns, (slice(2, 3), slice(0, 2)), strict=True):
        graphs = replace(molecules, **pack_targets([column]))
        alone = PLAIN.fit(graphs, task_of(graphs), parts, 1)
        for name in ("outputs", "variance"):
            many, one = (getattr(model, name)(molecules) for model in (both, alone))
            torch.testing.assert_close(many[:, place], one.double(), atol=1e-6, rtol=0)
        task = task_of(graphs)
        blank = ~task.known(task.targets(graphs))[parts.train]
        assert blank.any()
        assert torch.equal(both.left_out[:, place].isnan().all(1), blank)


def test_counts_are_logarithms_of_what_numbers_would_be(molecules):
    counts = [int(nodes) for nodes in molecules.nodes_per_graph]
    parts, found = split(molecules, 1), {}
    for kind in ("counts", "numbers"):
        graphs = replace(molecules, **pack_targets([read_target("nodes", counts, kind)]))
        found[kind] = PLAIN.fit(graphs, task_of(graphs), parts, 1).outputs(graphs)
    torch.testing.assert_close(
        found["counts"].exp(), found["numbers"].clamp(min=1e-3), rtol=0.01, atol=0.1
    )


def test_classes_that_the_training_part_does_not_have():
    smiles = ["CCO", "CCCO", "CCN", "CCCN", "CCF", "CCCF", "CC", "CCC"]
    graphs = from_smiles(smiles, ["a", "a", "b", "b", "c", "c", "d", "d"])
    parts = Split(*(torch.tensor(part) for part in ([0, 1, 2, 3, 4, 5], [1, 3, 6], [0, 2, 5, 7])))
    log_p = PLAIN.fit(graphs, task_of(graphs), parts, 0).outputs(graphs)
    assert log_p.isfinite().all()
    assert (log_p.argmax(1) != 3).all()
    alone = Split(torch.tensor([0, 1]), parts.val, parts.test)
    log_p = PLAIN.fit(graphs, task_of(graphs), alone, 0).outputs(graphs)
    assert (log_p.argmax(1) == 0).all()


def test_what_one_hop_decides_is_found():
    graphs = load("hops-1", size=600)
    found = fitted(graphs)
    test = split(graphs, 1).test
    assert (found.outputs(graphs).argmax(1) == graphs.y)[test].double().mean() > 0.9


def test_more_graphs_than_are_solved_exactly(molecules, process):
    test = molecules[split(molecules, 1).test]
    small = replace(PAIRED, exact_graphs=60, inducing_graphs=60)
    with pytest.warns(Approximate, match=r"120.* 60"):
        found = fitted(molecules, small)
    assert len(found.kernels.references) == 60
    apart = (found.outputs(test) - process.outputs(test)).abs().mean()
    assert apart < 0.5 * test.y.std()
    assert found.left_out.isfinite().all()
    assert found.variance(test).mean() > process.variance(test).mean()


def test_a_variance_that_looks_at_fewer_graphs_is_larger(molecules, process, monkeypatch):
    monkeypatch.setattr(gp, "VARIANCE_GRAPHS", 30)
    again = replace(process)
    assert (again.variance(molecules) >= process.variance(molecules) - 1e-9).all()


def saved(process: FittedProcess, graphs: Graphs, learner: GaussianProcess) -> FittedProcess:
    content = pack_tensors(process.tensors(), {})
    tensors, _ = unpack_tensors(content, Path("weights.safetensors"))
    return FittedProcess.from_tensors(learner, process.task, Encoding.fit(graphs), tensors)


def test_what_is_saved_answers_as_before(molecules, process):
    again = saved(process, molecules, PAIRED)
    assert torch.equal(again.outputs(molecules), process.outputs(molecules))
    assert torch.equal(again.variance(molecules), process.variance(molecules))
    graphs = as_classes(molecules, (-4, -2))
    first = fitted(graphs)
    assert torch.equal(saved(first, graphs, PLAIN).outputs(graphs), first.outputs(graphs))


def test_tensors_that_do_not_fit_are_refused_by_name(molecules, process):
    tensors, learner, encoding = process.tensors(), PAIRED, Encoding.fit(molecules)

    def read(changed: dict[str, torch.Tensor], options: GaussianProcess = learner) -> None:
        FittedProcess.from_tensors(options, process.task, encoding, changed)

    read(tensors)
    for name, value in tensors.items():
        wrong = [{key: own for key, own in tensors.items() if key != name}]
        if value.is_floating_point():
            wrong.append(tensors | {name: torch.full_like(value, torch.nan)})
        if value.dim():
            wrong.append(tensors | {name: value[:-1]})
        for changed in wrong:
            with pytest.raises(LookHopsError):
                read(changed)
    with pytest.raises(LookHopsError, match="codes"):
        read(tensors, replace(PAIRED, hops=3))


def test_columns_have_kernels_of_their_own(molecules, process):
    assert set(process.columns.groups) == {"descriptors"}
    bare = replace(molecules, whole=Features())
    assert set(fitted(bare).columns.groups) == {"totals"}
    temperature = torch.linspace(0, 99, len(molecules))[:, None]
    temperature[7] = torch.nan
    whole = molecules.whole
    numbers = torch.cat((whole.numbers, temperature), 1)
    more = replace(whole, numbers=numbers, number_names=(*whole.number_names, "temperature"))
    both = replace(molecules, whole=more, y=molecules.y + temperature[:, 0].nan_to_num(50) / 10)
    found = fitted(both)
    assert set(found.columns.groups) == {"descriptors", "columns"}
    parts = split(both, 1)
    test = both[parts.test]
    error = (found.outputs(test)[:, 0] - test.y).abs().mean()
    bare = replace(both, whole=whole)
    blind = fitted(bare).outputs(bare[parts.test])[:, 0]
    assert error < 0.5 * (blind - test.y).abs().mean()
    assert torch.equal(saved(found, both, PLAIN).outputs(test), found.outputs(test))


def test_missing_columns_and_options_that_cannot_be(molecules):
    with pytest.raises(LookHopsError, match="MolWt"):
        Encoding.fit(molecules).read(replace(molecules, whole=Features()))
    for options in ({"hops": -1}, {"pairs": -1}, {"evidence_graphs": 1}):
        with pytest.raises(LookHopsError, match=next(iter(options))):
            GaussianProcess(**options)
    with pytest.raises(LookHopsError, match="mae"):
        PLAIN.check(molecules, task_of(molecules, loss="mae"))
