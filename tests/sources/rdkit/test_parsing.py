"""What RDKit says of molecules: the quick questions give what the plain ones would."""

from dataclasses import replace
from itertools import islice

import numpy as np
import pytest
from rdkit import Chem, rdBase

from lookhops.sources.loading import load
from lookhops.sources.rdkit.features import (
    ATOM_FEATURES,
    BOND_FEATURES,
    BOND_TYPES,
    ELEMENTS,
    AtomsAndBonds,
)
from lookhops.sources.rdkit.parsing import PLAIN, REFUSED, Parsed, Parsing, _molecule, parse

#: Dative bonds, metals, aromatic and charged atoms, double bonds with a side, ring bonds.
ODD = (
    "N->[Cu+2]<-N", "[NH3]->[BH3]", "C[Mg]Br", "c1cc[nH]c1", "[O-][N+](=O)c1ccccc1", "F/C=C/F",
    "F/C=C\\F", "C[C@H](N)O", "N#N", "[Na+].[Cl-]", "C$C", "[H][H]", "O=S(=O)(O)O", "*CC",
    "[Fe]1234567(C5=C1C4C3=C25)C6=C7", "C[Si](C)(C)C",
)  # fmt: skip


YES = ("no", "yes")


def plain_labels(molecule):
    """The words for every atom, and for the bonds of each; of stereo only whether there is any."""
    elements = {number: name for name, number in ELEMENTS.items()}

    def at_most(number, most):
        return str(number) if number < most else f"{most} or more"

    def charge(number):
        return "-2 or less" if number < -1 else at_most(number, 2)

    atoms = [
        [elements.get(a.GetAtomicNum(), "other"), at_most(a.GetDegree(), 6),
         charge(a.GetFormalCharge()), at_most(a.GetTotalNumHs(), 4), YES[a.GetIsAromatic()],
         int(a.GetChiralTag()) != 0]
        for a in molecule.GetAtoms()
    ]  # fmt: skip
    bonds = [
        sorted(
            [b.GetOtherAtomIdx(a.GetIdx()),
             kind if (kind := str(b.GetBondType()).lower()) in BOND_TYPES else "other",
             int(b.GetStereo()) != 0, YES[b.GetIsConjugated()], YES[b.IsInRing()]]
            for b in a.GetBonds()
        )
        for a in molecule.GetAtoms()
    ]  # fmt: skip
    return atoms, bonds


def labels_in_words(parts):
    """The same of what was found."""
    counts, labels, degrees, neighbours, edge_labels = parts.arrays().values()
    assert counts.tolist() == [len(labels)]
    *plain, chirality = (
        np.array(known)[column]
        for known, column in zip(ATOM_FEATURES.values(), labels.T, strict=True)
    )
    kind, stereo, *more = (
        np.array(known)[column]
        for known, column in zip(BOND_FEATURES.values(), edge_labels.T, strict=True)
    )
    atoms = zip(*(own.tolist() for own in (*plain, chirality != "none")), strict=True)
    bonds = zip(*(own.tolist() for own in (neighbours, kind, stereo != "none", *more)), strict=True)
    rows = [list(map(list, islice(bonds, degree))) for degree in degrees]
    return [list(atom) for atom in atoms], rows


def test_labels_are_those_of_the_plain_questions():
    for smiles in (*ODD, *load("solubility").columns["smiles"]):
        molecule = Chem.MolFromSmiles(smiles)
        if molecule is None:
            continue
        found = AtomsAndBonds()
        found.add(molecule, smiles)
        assert labels_in_words(found) == plain_labels(molecule), smiles


def told(molecule, smiles):
    """What is known of a molecule, and its canonical SMILES."""
    if molecule is None:
        return None
    found = AtomsAndBonds()
    found.add(molecule, smiles)
    return [rows.tolist() for rows in found.arrays().values()], Chem.MolToSmiles(molecule)


def damaged(texts, count, seed=0):
    """Texts with a character that was put in, or is another one."""
    generator = np.random.default_rng(seed)
    for text in generator.choice(texts, count):
        place, put = generator.integers(len(text)), generator.choice([*"CNOcno()[]=#123.+-HP%@/"])
        yield text[:place] + put + text[place + generator.integers(2) :]


def test_molecules_are_those_that_rdkit_reads_by_default():
    known = list(load("solubility").columns["smiles"])
    more = (
        "[2H]OC",
        "[H]OC",
        "[H+]",
        "[CH4:1]",
        "CC |$a;b$|",
        "N(=O)=O",
        "C1CC",
        "c1ccc1",
        "CN(C)(C)C",
    )
    refused = 0
    with rdBase.BlockLogs():
        for smiles in (*ODD, *more, *known, *damaged(known, 1500)):
            want = told(Chem.MolFromSmiles(smiles), smiles)
            assert told(_molecule(smiles), smiles) == want, smiles
            refused += want is None
    assert refused > 100


@pytest.mark.parametrize(
    ("labelled", "ordinary"),
    [
        ("[2H]c1c([2H])c([2H])c([2H])c([2H])c1[2H]", "c1ccccc1"),
        ("[2H]O[2H]", "O"),
        ("[3H:1]C", "C"),
        ("[13CH3][C@]([2H])(O)CC", "C[C@]([H])(O)CC"),
        ("C[C@]([2H])([H])O", "CCO"),  # a stereocentre by its isotope alone
        ("[2H]/C(C)=C/C", "[H]/C(C)=C/C"),
        ("[2H+]", "[H+]"),
    ],
)
def test_isotopes_are_not_told_apart(labelled, ordinary):
    texts = [labelled, ordinary]
    block = Chem.MolToMolBlock(Chem.MolFromSmiles(labelled))
    for found in (
        [parse([text], Parsing()) for text in texts],
        [parse([block], Parsing(mol_blocks=True)), parse(texts[1:], Parsing())],
    ):
        assert found[0].canonical == found[1].canonical
        rows = [sorted(one.arrays["labels"].tolist()) for one in found]
        assert rows[0] == rows[1]


def test_parts_join_as_if_they_were_parsed_together():
    texts = ["CCO", "C(", "c1ccccc1", "", "[Na+].[Cl-]"]
    how = Parsing(replace(PLAIN, salts="largest"))
    whole, joined = parse(texts, how), Parsed.join([parse(texts[:2], how), parse(texts[2:], how)])
    arrays = [parsed.__dict__.pop("arrays") for parsed in (whole, joined)]
    for name, array in arrays[0].items():
        assert np.array_equal(array, arrays[1][name])
        assert array.dtype == arrays[1][name].dtype
    for name, value in vars(whole).items():
        if isinstance(value, np.ndarray):
            assert np.array_equal(value, getattr(joined, name))
            assert value.dtype == getattr(joined, name).dtype
        else:
            assert value == getattr(joined, name)
    assert whole.rows.tolist() == [0, 2, 4]
    assert [row for row, _ in whole.failures] == [1, 3]
    assert whole.smiles[-1] == "[Cl-]"


@pytest.mark.parametrize("texts", [[], ["C("]])
def test_nothing_that_parses(texts):
    found = parse(texts, Parsing())
    shapes = found.arrays["labels"].shape, found.arrays["edge_labels"].shape
    assert (*shapes, found.count) == ((0, 6), (0, 4), len(texts))


@pytest.mark.parametrize("text", ["[#999]", "C" + "(C)" * 900, "\udc80C"])
def test_what_makes_rdkit_throw_is_a_reason(text):
    parsed = parse([text, "CC"], Parsing())
    assert parsed.failures == [(0, REFUSED)]
    assert parsed.smiles == parsed.canonical == ["CC"]


def test_reasons_are_short():
    """Of a ring of 100 atoms that cannot be aromatic, RDKit names every one."""
    ((_, reason),) = parse(["c1" + "c" * 100 + "1"], Parsing()).failures
    assert reason.startswith("Can't kekulize mol.")
    assert len(reason) <= 120
