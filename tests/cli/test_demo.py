"""``lookhops demo`` by running it, with one short training."""

import xml.etree.ElementTree as ET

from lookhops.cli.demo import MOLECULES
from lookhops.datasets import load


def test_the_whole_demo(lookhops, tmp_path):
    for _ in range(2):  # a second time over the first
        options = ["--seeds", "1", "--epochs", "1"]
        code, out, err = lookhops("demo", *options, "-o", tmp_path / "demo")
        assert code == 0, err
    for name in MOLECULES:
        assert name in out
    for word in ("hops k", "k = 2 keeps", "LookHops", "GCN", "seeds agree", "What to type next"):
        assert word in out
    shown = [line for line in out.splitlines() if str(tmp_path) not in line]
    assert max(map(len, shown)) <= 80
    pictures = sorted((tmp_path / "demo" / "pictures").iterdir())
    assert len(pictures) == 5
    for picture in pictures:
        ET.fromstring(picture.read_text())
    answer = lookhops("predict", tmp_path / "demo" / "gcn", "solubility")
    assert answer[0] == 0


def test_the_five_molecules_are_not_in_the_set():
    from rdkit import Chem

    known = {Chem.CanonSmiles(smiles) for smiles in load("solubility").columns["smiles"]}
    assert not known & {Chem.CanonSmiles(smiles) for smiles in MOLECULES.values()}
