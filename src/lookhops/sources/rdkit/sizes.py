"""How large a molecule is, told from its text before RDKit sees it.

RDKit takes minutes for chains of 100,000 atoms and crashes at 100 atoms that are all joined, which
no chemistry has: an atom has a handful of bonds.
"""

from __future__ import annotations

import re

#: Characters that an atom takes: in SMILES with its bonds and rings, in a mol block with its lines.
SMILES_WIDTH, BLOCK_WIDTH = 40, 400
#: Bonds that an atom has at most, in the mean.
MOST_BONDS = 4

_ATOM = re.compile(r"\[[^\]]*\]|Br|Cl|[BCNOPSFIbcnops*]")
_RING = re.compile(r"%\d\d|%\(\d+\)|\d")


def why_too_large(structure: str, mol_block: bool, most: int) -> str:
    """Why a molecule is not read; empty where it may be.

    Args:
        structure: SMILES, or a mol block.
        mol_block: Whether it is the latter.
        most: Atoms that it may have.
    """
    width = BLOCK_WIDTH if mol_block else SMILES_WIDTH
    if len(structure) > width * most + 10 * BLOCK_WIDTH:
        return f"its {len(structure):,} characters are more than {most:,} atoms need (max_atoms)"
    atoms, bonds = _block_counts(structure) if mol_block else _smiles_counts(structure)
    if atoms > most:
        return f"it has {atoms:,} atoms, more than {most:,} (max_atoms)"
    if bonds > MOST_BONDS * atoms + 10:
        return f"{bonds:,} bonds are too many for {atoms:,} atoms"
    return ""


def _smiles_counts(smiles: str) -> tuple[int, int]:
    """Atoms, and bonds at most: one to the atom before, and one for each ring that is closed."""
    atoms = len(_ATOM.findall(smiles))
    rings = len(_RING.findall(re.sub(r"\[[^\]]*\]", "", smiles))) // 2
    return atoms, atoms + rings


def _block_counts(block: str) -> tuple[int, int]:
    """Atoms and bonds, as the line of counts says; none where there is no such line."""
    lines = block.split("\n", 8)
    found = re.search(r"M  V30 COUNTS +(\d+) +(\d+)", block)
    if found is None and len(lines) > 3:
        found = re.match(r" {0,2}(\d{1,3}) {0,2}(\d{1,3})", lines[3])
    return (int(found[1]), int(found[2])) if found else (0, 0)
