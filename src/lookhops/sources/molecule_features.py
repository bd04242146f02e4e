"""The features of atoms and bonds: the vocabulary, and how atoms and bonds of RDKit become labels.

Every atom has six labels and every bond four, from vocabularies that never change, so that any two
sets of molecules have the same feature columns (:data:`ATOM_FEATURES`, :data:`BOND_FEATURES`):

==========  =================================================================== =======
label       values                                                              columns
==========  =================================================================== =======
element     H Li B C N O F Na Mg Si P S Cl K Ca As Se Br I, other               20
degree      bonds to other nodes: 0 to 5, 6 or more                             7
charge      formal: -2 or less, -1, 0, 1, 2 or more                             5
hydrogens   attached, and not nodes themselves: 0 to 3, 4 or more               5
aromatic    no, yes                                                             2
chirality   none given, R, S, other (pseudo-asymmetric, not tetrahedral, ...)   4
==========  =================================================================== =======

==========  =================================================================== =======
of bonds    values                                                              columns
==========  =================================================================== =======
bond        single, double, triple, aromatic, other                             5
stereo      none given, E (trans), Z (cis), other                               4
conjugated  no, yes                                                             2
ring        no, yes                                                             2
==========  =================================================================== =======

Stereochemistry is R or S, E or Z and not the turn in which the SMILES is written, which would give
one molecule other features each time its SMILES begins at another atom.
"""

from __future__ import annotations

from typing import Any

import torch

from lookhops.graphs import Graphs
from lookhops.graphs.indexing import spread, to_offsets
from lookhops.sources.rdkit.features import ATOM_FEATURES, BOND_FEATURES
from lookhops.sources.rdkit.parsing import Parsed

FEATURISER = "molecules-2"


def feature_names() -> list[str]:
    """What each column of ``Graphs.x`` says: ``["element H", "element Li", ...]``."""
    return [f"{name} {value}" for name, values in ATOM_FEATURES.items() for value in values]


def pack(parsed: Parsed, **rest: Any) -> Graphs:
    """Pack all molecules at once.

    Args:
        parsed: What RDKit says of the molecules.
        rest: Other fields of :class:`Graphs`.
    """
    node_ptr = to_offsets(torch.from_numpy(parsed.atom_counts))
    row_ptr = to_offsets(torch.from_numpy(parsed.degrees))
    edge_ptr = row_ptr[node_ptr]
    source = torch.from_numpy(parsed.neighbours)
    graphs = Graphs(
        node_ptr=node_ptr,
        row_ptr=row_ptr,
        source=source + spread(node_ptr[:-1], edge_ptr, len(source)),
        labels=torch.from_numpy(parsed.labels),
        label_names=tuple(ATOM_FEATURES),
        label_values=tuple(ATOM_FEATURES.values()),
        edge_labels=torch.from_numpy(parsed.edge_labels),
        edge_label_names=tuple(BOND_FEATURES),
        edge_label_values=tuple(BOND_FEATURES.values()),
        featuriser=FEATURISER,
        **rest,
    )
    graphs.__dict__["is_undirected"] = graphs.__dict__["is_symmetric"] = True  # as just made
    return graphs
