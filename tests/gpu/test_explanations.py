"""Shares of an answer are the same on CPU and GPU."""

from dataclasses import replace

import numpy as np

from lookhops.datasets.hop_tasks import hop_task
from lookhops.explanations import attribute
from lookhops.models.predictor import Predictor
from lookhops.models.resumable_training import train_into
from lookhops.options import RECOMMENDED, Protocol


def test_shares_on_cpu_and_gpu_agree(tmp_path):
    graphs = hop_task(1, 40)
    architecture = replace(RECOMMENDED, hidden=8, layers=3, fingerprint=2)
    protocol = Protocol(seeds=(11, 22), max_epochs=3, batch_size=16, learning_rate=0.01)
    train_into(tmp_path / "model", graphs, architecture, protocol, device="cpu")
    plain, other = (
        attribute(Predictor(tmp_path / "model", device), graphs[:20]) for device in ("cpu", "cuda")
    )
    for part in ("value", "baseline", "whole", "node", "edge"):
        np.testing.assert_allclose(getattr(other, part), getattr(plain, part), atol=1e-3)
