"""Small models whose names try to be markup, their pages, and a browser to open them in."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from browser import open_browser
from lookhops.graphs import Graphs, Target
from lookhops.models.folder import Provenance
from lookhops.models.training import train_into
from lookhops.nn import Architecture
from lookhops.report.build import report_on
from lookhops.report.page import write_report
from lookhops.sources.loading import load
from lookhops.training import Protocol

SMALL = Architecture(pool="lookhops", hidden=8, layers=3, ratio=0.7, edge_ratio=0.8)
EVIL_NAME = "<script>window.evil = 1</script>"
EVIL_CLASS = "</script><script>window.evil = 2</script><b>high</b>"


@pytest.fixture(scope="session")
def molecules() -> Graphs:
    """Molecules that are all called by one script, in classes of which one is called by another."""
    found = load("solubility")[:150]
    names = (EVIL_CLASS, *found.class_names[1:])
    columns = {**found.columns, "id": np.array([EVIL_NAME] * len(found))}
    return replace(found, targets=(Target("class", names),), columns=columns, name="mole & <cules>")


@pytest.fixture(scope="session")
def model_folder(molecules: Graphs, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two seeds trained on these molecules: look, do not touch."""
    folder = tmp_path_factory.mktemp("reports") / "licheb"
    protocol = Protocol(seeds=(11, 22), max_epochs=3, batch_size=32)
    asked = Provenance(command="lookhops train '<mine>.csv'")
    train_into(folder, molecules, SMALL, protocol, device="cpu", provenance=asked)
    return folder


@pytest.fixture(scope="session")
def two_folders(molecules: Graphs, model_folder: Path) -> Path:
    """The same, and another network on the same splits, in one folder."""
    protocol = Protocol(seeds=(11, 22), max_epochs=2, batch_size=32)
    other = Architecture(conv="gcn", pool="topk", hidden=8, layers=3)
    train_into(model_folder.parent / "gcn", molecules, other, protocol, device="cpu")
    return model_folder.parent


@pytest.fixture(scope="session")
def tasks() -> Graphs:
    return load("hops-1", size=80)


@pytest.fixture(scope="session")
def page(two_folders: Path, molecules: Graphs, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page on both networks, with the gallery."""
    path = tmp_path_factory.mktemp("pages") / "report.html"
    return write_report(report_on(two_folders, molecules), path)


@pytest.fixture(scope="session")
def browser():
    """Headless Chromium without a network."""
    found = open_browser()
    found.execute_cdp_cmd("Network.enable", {})
    offline = {"offline": True, "latency": 0, "downloadThroughput": 0, "uploadThroughput": 0}
    found.execute_cdp_cmd("Network.emulateNetworkConditions", offline)
    yield found
    found.quit()
