"""``lookhops demo`` by running it, with one short training."""

import xml.etree.ElementTree as ET

from lookhops.cli.demo import MOLECULES
from lookhops.models import Predictor
from lookhops.sources.loading import load


def test_the_whole_demo(lookhops, tmp_path):
    (tmp_path / "demo").mkdir()
    (tmp_path / "demo" / "mine.txt").write_text("kept")
    code, out, err = lookhops("demo", "--seeds", "1", "--epochs", "1", "-o", tmp_path / "demo")
    assert code == 0, err
    assert (tmp_path / "demo" / "mine.txt").read_text() == "kept"
    for name in MOLECULES:
        assert name in out
    for word in (
        "hops k",
        "k = 2 keeps",
        "Gaussian process",
        "GCN",
        "90% interval",
        "What to type next",
    ):
        assert word in out
    assert "of the mean" in out
    assert Predictor(tmp_path / "demo" / "numbers" / "lookhops", "cpu").task.kind == "regression"
    shown = [line for line in out.splitlines() if str(tmp_path) not in line]
    assert max(map(len, shown)) <= 80
    page = (tmp_path / "demo" / "report.html").read_text(encoding="utf-8")
    for name in ("data", "hops", "comparison", "results", "reproduce"):
        assert f'<section id="{name}"' in page
    assert len(page) < 6_000_000
    pictures = sorted((tmp_path / "demo" / "pictures").glob("*.svg"))
    assert len(pictures) == 5
    for picture in pictures:
        ET.fromstring(picture.read_text())


def test_the_five_molecules_are_not_in_the_set():
    from rdkit import Chem

    known = {Chem.CanonSmiles(smiles) for smiles in load("solubility").columns["smiles"]}
    assert not known & {Chem.CanonSmiles(smiles) for smiles in MOLECULES.values()}
