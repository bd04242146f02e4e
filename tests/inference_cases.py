"""What holds of several networks that are asked together, on any device: each answers as alone."""

from dataclasses import replace

import pytest
import torch

from engine_cases import WHOLE
from lookhops.encoding import Encoding
from lookhops.encoding.preprocessing import PreparedGraphs, Preprocessing
from lookhops.nn import Architecture
from lookhops.training.device import seeded_model
from lookhops.training.inference import Ensemble
from lookhops.training.inputs import MemberInputs

CASES = {
    "all that the recommended model reads": replace(WHOLE, edges="use"),
    "numbers as they are": replace(WHOLE, scale="none", bins=0),
    "no pooling": Architecture(hidden=16, layers=2),
    "a pooling whose shapes depend on the data": Architecture(pool="edge", hidden=16, layers=2),
    "attention": Architecture(conv="gat", pool="topk", hidden=16, layers=3, ratio=0.6),
    "no network": Architecture(conv="none", fingerprint=3, totals=True),
}


def trained(graphs, architecture, device, count=3):
    """Networks that differ, as after training, with what each learnt from other graphs."""
    encoding = Encoding.fit(graphs, architecture.reads_edges, architecture.totals)
    whole = PreparedGraphs.of(graphs, architecture, encoding)
    half = len(graphs) // 2
    preprocessing = [
        Preprocessing.fit(whole, architecture, torch.arange(8 * i, half + 8 * i))
        for i in range(count)
    ]
    networks = []
    for seed, own in enumerate(preprocessing):
        sizes = {**own.sizes, **encoding.sizes}
        network = seeded_model(seed, encoding.width, 3, architecture, **sizes).double()
        generator = torch.Generator().manual_seed(seed)
        for value in network.parameters():  # some begin at zero
            value.data += 0.1 * torch.randn(value.shape, generator=generator, dtype=value.dtype)
        networks.append(network.to(device).eval())
    return networks, preprocessing, encoding


class InferenceCases:
    """Tests to inherit: subclasses say on which device the networks are."""

    device: torch.device

    @pytest.mark.parametrize("name", CASES)
    @pytest.mark.parametrize("stacked", [True, False])
    def test_each_network_answers_as_it_does_alone(self, told, name, stacked, monkeypatch):
        monkeypatch.setattr("lookhops.training.inference.MOST_NODES", 900)
        monkeypatch.setattr("lookhops.training.inference.MOST_NUMBERS", 16 * 900)
        monkeypatch.setattr("lookhops.training.inference.GPU_GRAPHS", 800)
        graphs, architecture = told, CASES[name]
        networks, preprocessing, encoding = trained(graphs, architecture, self.device)
        whole = PreparedGraphs.of(graphs.to(self.device), architecture, encoding)
        ensemble = Ensemble(networks, preprocessing, encoding)
        with torch.no_grad():
            together = (ensemble.stacked_outputs if stacked else ensemble.outputs)(whole)
            for found, network, own in zip(together, networks, preprocessing, strict=True):
                alone = MemberInputs(whole, encoding, own).batches(network)
                want = torch.cat([network(batch).cpu() for batch in alone])
                torch.testing.assert_close(found.cpu(), want, rtol=0, atol=1e-9)
