"""The example that comes as tables."""

from __future__ import annotations

from pathlib import Path

import networkx as nx
import numpy as np
import pytest

import lookhops
from lookhops.sources.bundled import transfer_tables, write_transfers


@pytest.mark.filterwarnings("ignore:.*repeats an earlier one")
def test_the_files_and_the_named_set_are_the_same(tmp_path: Path):
    write_transfers(tmp_path / "transfers")
    graphs = lookhops.load("transfers")
    assert lookhops.load(tmp_path / "transfers").fingerprint == graphs.fingerprint
    assert graphs.class_names == ("ordinary", "ring")
    assert graphs.nodes.number_names == ("age_days",)
    assert graphs.edges.number_names == ("amount",)
    assert graphs.columns["id"][0] == "case-1"


def test_wires_of_a_ring_are_a_cycle_and_those_of_others_a_path():
    tables = transfer_tables(60)
    for name, kind in tables["graphs"]:
        wires = [row[1:3] for row in tables["edges"] if row[0] == name and row[4] == "wire"]
        assert 4 <= len(wires) <= 6
        cycles = list(nx.simple_cycles(nx.DiGraph(wires)))
        assert (len(cycles) == 1) == (kind == "ring")


def test_counts_and_amounts_know_nothing_of_the_class():
    tables = transfer_tables(400)
    ring = {name: kind == "ring" for name, kind in tables["graphs"]}
    for channel in ("wire", "cash", "card"):
        for what in (len, sum):
            values: dict[bool, list[float]] = {False: [], True: []}
            for name in ring:
                found = [r[3] for r in tables["edges"] if r[0] == name and r[4] == channel]
                values[ring[name]].append(what(found))
            first, second = (np.array(values[kind]) for kind in (False, True))
            error = np.sqrt(first.var() / len(first) + second.var() / len(second))
            assert abs(first.mean() - second.mean()) < 3 * error
