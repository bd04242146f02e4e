"""The Ray runner on a cluster of two workers, one of which dies."""

import sys
import tempfile
import time
from dataclasses import replace

import numpy as np
import pytest
import torch

from lookhops.core.errors import LookHopsError
from lookhops.core.options import Architecture, Classical
from lookhops.learners import parse_model
from lookhops.models import Predictor
from lookhops.models.ray import answered, train_on_ray
from lookhops.runs.executor import run_plan
from lookhops.runs.plan import Cell
from lookhops.runs.ray import Ray
from lookhops.runs.store import Store
from lookhops.sources.graph_streams import GraphStream
from lookhops.sources.hop_tasks import hop_task
from lookhops.training import Protocol, train

MODELS = [f"{conv}/hidden=4/layers={n}" for n in (1, 2, 3) for conv in ("gcn", "licheb")]


def test_without_ray_there_is_a_sentence(monkeypatch, tmp_path, cells, graphs):
    monkeypatch.setitem(sys.modules, "ray", None)
    with (
        Store(tmp_path / "runs.sqlite") as store,
        pytest.raises(LookHopsError, match=r"lookhops\[ray\]"),
    ):
        run_plan(cells, store, Ray())


@pytest.mark.parametrize("address", ["127.0.0.1:1", "ray://127.0.0.1:1"])
def test_no_cluster_there_is_a_sentence(tmp_path, cells, graphs, address):
    pytest.importorskip("ray", reason='needs Ray: pip install "lookhops[ray]"')
    with (
        Store(tmp_path / "runs.sqlite") as store,
        pytest.raises(LookHopsError, match=address),
    ):
        run_plan(cells, store, Ray(address))


#: A dead node refuses connections, a slow one keeps them waiting: only the first is noticed sooner.
CONFIG = {"health_check_initial_delay_ms": 0, "health_check_period_ms": 500}
CONFIG |= {"health_check_timeout_ms": 60_000, "task_retry_delay_ms": 100}


@pytest.fixture(scope="module")
def cluster():
    """Two nodes of one CPU; the driver is on the first."""
    pytest.importorskip("ray", reason='needs Ray: pip install "lookhops[ray]"')
    with pytest.MonkeyPatch.context() as patch, tempfile.TemporaryDirectory(prefix="r") as folder:
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        patch.setenv("RAY_TMPDIR", folder)  # a short name, for sockets; other clusters have others
        import ray
        from ray.cluster_utils import Cluster

        cluster, plain = Cluster(), {"include_dashboard": False, "include_log_monitor": False}
        cluster.add_node(wait=False, num_cpus=1, _system_config=CONFIG, **plain)
        cluster.other = cluster.add_node(wait=False, num_cpus=1)
        cluster.wait_for_nodes(timeout=600)
        ray.init(address=cluster.address, log_to_driver=False, logging_level="ERROR")
        yield cluster
        ray.shutdown()
        cluster.shutdown()


def wait_until_busy(node):
    """Until the node has a task in hand: its one CPU is taken."""
    from ray._private.state import available_resources_per_node

    for _ in range(6000):
        if available_resources_per_node().get(node.node_id, {}).get("CPU", 0) < 1:
            return
        time.sleep(0.02)
    raise AssertionError("the node was never busy")


@pytest.fixture(scope="module")
def model(cluster, tmp_path_factory):
    """A model that two workers trained together."""
    graphs, folder = hop_task(1, size=60, seed=1), tmp_path_factory.mktemp("ray") / "model"
    network = Architecture(hidden=8, layers=2, dropout=0.2)
    protocol = Protocol(seeds=(1,), batch_size=16, max_epochs=3, precision="float64")
    config = train_on_ray(folder, graphs, network, protocol, workers=2, device="cpu")
    return graphs, network, protocol, folder, config


def test_workers_train_one_model_as_one_process_does(model):
    graphs, network, protocol, folder, config = model
    [alone] = train(graphs, network, protocol, device="cpu")
    assert config["epochs"] == {"1": 3}
    [fitted] = Predictor(folder, "cpu").fitted[1]
    found = fitted.tensors()
    for name, value in alone.weights.items():
        torch.testing.assert_close(found[name], value, rtol=1e-7, atol=1e-9)
    with pytest.raises(LookHopsError, match="70"):
        train_on_ray(folder, graphs, network, protocol, workers=70, device="cpu")


def test_workers_answer_a_stream_in_its_order(model):
    graphs, *_, folder, _ = model
    parts = GraphStream(graphs).parts(25)
    answers = answered(parts, folder, "cpu", {"coverage": 0.9}, workers=2)
    found = [(len(part.graphs), answer) for part, answer in answers]
    here = Predictor(folder, "cpu").predict(graphs)
    assert [size for size, _ in found] == [25, 25, 10]
    given = np.concatenate([own.probabilities for _, own in found])
    np.testing.assert_allclose(given, here.probabilities, atol=1e-9)


def test_a_worker_dies_and_nothing_is_lost(cluster, tmp_path, graphs):
    protocol = Protocol(seeds=(1, 2), batch_size=8, max_epochs=10, patience=10)
    cells = [Cell(graphs, name, parse_model(name), protocol) for name in MODELS]
    events = []

    def on_event(event):
        events.append(event)
        if len(events) == 1:
            wait_until_busy(cluster.other)
            cluster.remove_node(cluster.other, allow_graceful=False)

    with Store(tmp_path / "runs.sqlite") as store:
        outcome = run_plan(cells, store, Ray(device="cpu"), on_event=on_event)
        assert (outcome.trained, outcome.left, outcome.failures) == (12, 0, [])
        assert sum(len(cell.runs) for cell in store.cells()) == 12
        found = store.collect(cells)
        again = run_plan(cells, store, Ray(device="cpu"))
        assert (again.trained, again.found) == (0, 12)
    here = train(graphs, cells[0].architecture, replace(protocol, seeds=(1,)), device="cpu")
    assert found[0].metrics["val_loss"][0] == pytest.approx(here[0].best_loss, rel=1e-4)


def test_models_without_a_network_run_there_too(cluster, tmp_path, graphs, cells):
    mixed = [cells[0], *(replace(cells[0], architecture=Classical(n)) for n in ("wl", "baseline"))]
    with Store(tmp_path / "runs.sqlite") as store:
        outcome = run_plan(mixed, store, Ray(device="cpu"))
        assert (outcome.trained, outcome.left, outcome.failures) == (9, 0, [])
        found = store.collect(mixed)
    assert found[1].scores() != found[2].scores()


def test_failures_and_resources_are_told(cluster, tmp_path, graphs, cells):
    broken = replace(cells[0], protocol=replace(cells[0].protocol, learning_rate=1e300))
    with Store(tmp_path / "runs.sqlite") as store:
        outcome = run_plan([broken, cells[1]], store, Ray(device="cpu"))
        assert (outcome.trained, outcome.left) == (3, 3)
        assert len(outcome.failures) == 1
        assert "not a finite number" in outcome.failures[0]
        assert "\n" not in outcome.failures[0]
        with pytest.raises(LookHopsError, match="7 GPU"):
            run_plan(cells, store, Ray(gpus_per_task=7))
        outcome = run_plan(cells, store, Ray(device="cpu"), time_limit=0)
        assert (outcome.trained, outcome.found, outcome.left) == (0, 3, 3)
