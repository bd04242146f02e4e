"""The neighbourhoods with most weight are those that the table of weights says."""

import xml.etree.ElementTree as ET

import numpy as np
import pytest
import torch

from lookhops import LookHopsError
from lookhops.core.options import FINGERPRINT, Architecture
from lookhops.explain.neighbourhoods import FEWEST, top_neighbourhoods
from lookhops.neighbourhoods import identities
from lookhops.sources.hop_tasks import hop_task


def test_weights_and_counts_are_those_of_a_naive_count(trained):
    graphs = hop_task(1, 40)
    predictor = trained(graphs, FINGERPRINT)
    found = top_neighbourhoods(predictor, graphs, shown=5)
    assert set(found) == {"different", "same"}
    preprocessing = predictor.preprocessing(11)
    table = predictor.models[11].readings["fingerprint"].weight.detach()
    codes = predictor.prepare(graphs).codes_with(None)
    identity = identities(graphs, 5)
    place = {code: i for i, code in enumerate(preprocessing.vocabulary.codes.tolist())}
    graph = graphs.batch.tolist()
    known = torch.tensor([[c in place for c in row] for row in codes.tolist()])
    size = [int(known[graphs.batch == g].sum()) for g in range(len(graphs))]
    sums: dict[int, list[float]] = {}
    holders: dict[int, set[int]] = {}
    for node, (row, own) in enumerate(zip(codes.tolist(), identity.tolist(), strict=True)):
        for code, kind in zip(row, own, strict=True):
            weight = table[place[code]] if code in place else torch.zeros(2)
            added = 3.0 / max(size[graph[node]], 1) ** 0.5 * float(weight[1] - weight[0])
            sums.setdefault(kind, []).append(added)
            holders.setdefault(kind, set()).add(graph[node])
    mean = {kind: np.mean(own) for kind, own in sums.items() if len(holders[kind]) >= FEWEST}
    for one, sign in ((found["same"][0], 1), (found["different"][0], -1)):
        best = max(mean, key=lambda kind: sign * mean[kind])
        assert one.weight == pytest.approx(sign * mean[best], abs=1e-6)
        assert one.graphs in {len(holders[k]) for k in mean if mean[k] == pytest.approx(mean[best])}
    assert [one.weight for one in found["same"]] == sorted(
        (one.weight for one in found["same"]), reverse=True
    )


def test_molecules_are_drawn_as_fragments(of_classes, molecules):
    found = top_neighbourhoods(of_classes, molecules, shown=3)
    assert set(found) == {"low", "medium", "high"}
    for one in (one for side in found.values() for one in side):
        ET.fromstring(one.picture())
        assert one.words
        assert set(one.examples) <= set(molecules.columns["id"])
        assert one.record()["graphs"] >= FEWEST


def test_a_network_that_reads_none_is_a_sentence(trained):
    graphs = hop_task(1, 20)
    predictor = trained(graphs, Architecture(hidden=8, layers=2), max_epochs=1)
    with pytest.raises(LookHopsError, match="--fingerprint"):
        top_neighbourhoods(predictor, graphs)
