"""``lookhops demo`` by running it, with one short training."""

import pickle
import xml.etree.ElementTree as ET
from concurrent.futures import Future

from lookhops.cli import demo
from lookhops.cli.demo import MOLECULES
from lookhops.core import machine as cores
from lookhops.models.checkpoint import load_model
from lookhops.runs import processes
from lookhops.sources.loading import load


class Here:
    """In place of processes: what is called is called at once."""

    def __init__(self, count):
        assert count == 2

    def __enter__(self):
        return self

    def __exit__(self, *error):
        pass

    def call(self, work, graphs, *rest):
        done = Future()
        done.set_result(pickle.loads(pickle.dumps(work))(graphs, *rest))
        return done


def test_the_whole_demo(lookhops, tmp_path, monkeypatch):
    monkeypatch.setattr(demo, "LONG", 1)
    monkeypatch.setattr(cores, "usable_cores", lambda: 2)
    monkeypatch.setattr(processes, "Processes", Here)
    (tmp_path / "demo").mkdir()
    (tmp_path / "demo" / "mine.txt").write_text("kept")
    code, out, err = lookhops("demo", "--seeds", "1", "--epochs", "1", "-o", tmp_path / "demo")
    assert code == 0, err
    assert (tmp_path / "demo" / "mine.txt").read_text() == "kept"
    for name in MOLECULES:
        assert name in out
    for word in ("hops k", "k = 2 keeps", "LookHops", "GCN", "90% interval", "What to type next"):
        assert word in out
    assert "of the mean" in out
    assert load_model(tmp_path / "demo" / "numbers" / "lookhops").task.kind == "regression"
    shown = [line for line in out.splitlines() if str(tmp_path) not in line]
    assert max(map(len, shown)) <= 80
    page = (tmp_path / "demo" / "report.html").read_text(encoding="utf-8")
    for name in ("data", "hops", "comparison", "training", "results", "reproduce"):
        assert f'<section id="{name}"' in page
    assert len(page) < 6_000_000
    pictures = sorted((tmp_path / "demo" / "pictures").iterdir())
    assert len(pictures) == 5
    for picture in pictures:
        ET.fromstring(picture.read_text())


def test_the_five_molecules_are_not_in_the_set():
    from rdkit import Chem

    known = {Chem.CanonSmiles(smiles) for smiles in load("solubility").columns["smiles"]}
    assert not known & {Chem.CanonSmiles(smiles) for smiles in MOLECULES.values()}
