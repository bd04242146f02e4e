"""Load graphs from wherever they are: a name, a file, a folder."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

from lookhops.core.errors import LookHopsError
from lookhops.core.reading import AS_USUAL, HOP_TASKS, MOLECULES, TABLES, Reading
from lookhops.graphs import SUFFIX, Graphs
from lookhops.sources.bundled import load_solubility, load_transfers
from lookhops.sources.collection import data_folder, fetch, find, read_tu_cached
from lookhops.sources.counts import merge
from lookhops.sources.graph_streams import GraphStream
from lookhops.sources.hop_tasks import MAX_HOPS, SIZE, hop_task
from lookhops.sources.molecule_rows import SUFFIXES, come_in_parts, kind_of_table
from lookhops.sources.molecule_streams import open_molecules
from lookhops.sources.rdkit.workers import ParsingPool
from lookhops.sources.rows import NODE_LINK, TABLE_SUFFIXES, suffix_of
from lookhops.sources.splits import Split, SplitPlan, read_splits, split, write_splits
from lookhops.sources.streams import Stream
from lookhops.sources.targets import choose_columns
from lookhops.sources.tu import read_tu

__all__ = ["Split", "SplitPlan", "load", "read_splits", "read_tu", "split", "write_splits"]

GENERATED = tuple(f"hops-{k}" for k in range(1, MAX_HOPS + 1))
BUNDLED = ("solubility", "transfers")
OWN_NAMES = (*BUNDLED, *GENERATED)
#: How the names of files with graphs end.
ENDINGS = (SUFFIX, ".zip", *SUFFIXES, NODE_LINK, f"{NODE_LINK}.gz")


def load(
    source: Graphs | Path | str,
    reading: Reading = AS_USUAL,
    *,
    data_dir: Path | str | None = None,
    cache: bool = True,
    size: int | None = None,
    seed: int | None = None,
    processes: int | None = 0,
    need_targets: bool = True,
    **options: Any,
) -> Graphs:
    """Load a set of graphs from wherever it is.

    A text with a slash, or that ends as files of graphs do (``.graphs``, ``.zip``, ``.csv``, ...),
    is a path. Any other text is a name first and a path in the working folder only if no set has
    that name: where a folder ``NCI1`` lies in the working folder, ``"NCI1"`` is still the TU set,
    and ``"./NCI1"`` is the folder.

    Args:
        source: A name (a TU set as ``"NCI1"``, ``"solubility"``, ``"transfers"``, ``"hops-1"`` to
            ``"hops-6"``); a path to packed graphs, to a TU set (``.zip`` or folder), to molecules
            (``.smi``, ``.sdf``, or a table with a column of SMILES) or to tables (an edge list, a
            folder with ``edges.csv``, ``nodes.csv`` and ``graphs.csv``, or ``.jsonl`` in node-link
            form); or ``Graphs``, which come back as they are. Tables are ``.csv``, ``.tsv``, either
            with ``.gz``, and ``.parquet``.
        reading: How to read it; :meth:`Reading.with_defaults_of` takes over how an earlier source
            was read.
        data_dir: Folder of TU archives, ``NAME.zip`` or ``NAME/``; by default the environment's
            ``LOOKHOPS_DATA``, else the user's cache folder. What it lacks is downloaded to it.
        cache: Whether to keep a packed copy of a TU set in the user's cache folder and to use the
            one that is there.
        size: Of hop tasks: the number of graphs, as ``task_size``.
        seed: Of hop tasks: the seed, as ``task_seed``.
        processes: Worker processes that parse molecules, none meaning one for each core; by default
            this process does. A script that asks for some keeps what it runs below
            ``if __name__ == "__main__"``, as for all of Python's processes.
        need_targets: Whether a target that cannot be read is an error. Who only asks a model needs
            none: what cannot be read stays a column.
        options: Fields of ``reading`` to choose by their names: ``label_column="toxic"``.
    """
    if isinstance(source, Graphs):
        return source
    made = {"task_size": size, "task_seed": seed}
    options |= {name: value for name, value in made.items() if value is not None}
    reading = replace(reading, **options)
    with ParsingPool(processes) as pool:
        stream = read_source(
            source, reading, pool, data_dir, cache=cache, need_targets=need_targets
        )
        return stream.graphs


def open_stream(
    source: Path | str, reading: Reading, pool: ParsingPool, data_dir: Path | str | None = None
) -> Stream:
    """A source in parts: molecules as they are read, all others of graphs that are read first.

    Targets that cannot be read stay columns. Arguments are those of :func:`load`.
    """
    kind, place = kind_of_source(source, reading, data_dir)
    if kind == MOLECULES and come_in_parts(place, reading):
        return open_molecules(place, reading, pool)
    return read_source(source, reading, pool, data_dir, need_targets=False)


def read_source(
    source: Path | str,
    reading: Reading,
    pool: ParsingPool,
    data_dir: Path | str | None = None,
    *,
    cache: bool = True,
    need_targets: bool = True,
) -> GraphStream:
    """The graphs of a source, all of them, and what its rows say; arguments as for :func:`load`."""
    kind, place = kind_of_source(source, reading, data_dir)
    if kind == MOLECULES:
        return open_molecules(place, reading, pool).read_all(need_targets)
    if kind == TABLES:
        from lookhops.sources.tables import read_tables  # pandas takes a while to import

        files: dict[str, Any] = {"edges": place}
        if place.is_dir():
            files = {what: table_in(place, what) for what in ("edges", "nodes", "graphs")}
            files["name"] = place.resolve().name
        graphs = read_tables(**files, reading=reading, need_targets=need_targets)
    else:
        graphs = _read(kind, place, reading, cache)
        graphs = choose_columns(graphs, reading, need_targets=need_targets)
    return GraphStream(merge(graphs) if reading.duplicates == "merge" else graphs)


def kind_of_source(
    source: Path | str, reading: Reading = AS_USUAL, data_dir: Path | str | None = None
) -> tuple[str, Path]:
    """What kind of source it is, and where it is; arguments as for :func:`load`."""
    try:
        kind, place = _resolve(source, data_folder(data_dir))
        if kind == "table":
            kind = kind_of_table(place, reading)
    except (OSError, RuntimeError) as error:  # a name too long, a home folder that does not exist
        raise LookHopsError(f"{source}: cannot be read ({error}).") from error
    reading.check(source, kind)
    return kind, place


def _read(kind: str, place: Path, reading: Reading, cache: bool) -> Graphs:
    """The graphs of a source that is no table, with the targets that it has itself."""
    if kind == HOP_TASKS:
        return hop_task(int(place.name[5:]), reading.task_size or SIZE, reading.task_seed or 0)
    if kind == "solubility":
        return load_solubility(reading.descriptors)
    if kind == "transfers":
        return load_transfers()
    if kind == "packed":
        return Graphs.load(place)
    return read_tu_cached(place) if cache else read_tu(place)


def table_in(folder: Path, what: str) -> Path | None:
    """The file of a folder that is the table of edges, nodes or graphs."""
    found = [folder / f"{what}{suffix}" for suffix in TABLE_SUFFIXES]
    found = [path for path in found if path.is_file()]
    if len(found) > 1:
        names = " and ".join(path.name for path in found)
        raise LookHopsError(f"{folder}: which table of {what}? There are {names}; keep one.")
    return found[0] if found else None


def _resolve(source: Path | str, folder: Path) -> tuple[str, Path]:
    """What kind of source it is, and where it is; a TU set that is nowhere is downloaded."""
    path = Path(source).expanduser()
    name = str(source)
    suffix = suffix_of(path)
    is_path = isinstance(source, Path) or "/" in name or "\\" in name
    if not is_path and suffix not in ENDINGS:
        if name in BUNDLED:
            return name, path
        if re.fullmatch(r"hops-\d+", name):
            return HOP_TASKS, path
        if find(name, folder) or not path.exists():
            return "tu", fetch(name, folder, OWN_NAMES)
    if not path.exists():
        raise LookHopsError(f"{path}: no such file or folder.")
    if path.is_dir() and table_in(path, "edges"):
        return TABLES, path
    if path.is_dir() or suffix == ".zip":
        return "tu", path
    if suffix == SUFFIX:
        return "packed", path
    if suffix in TABLE_SUFFIXES:
        return "table", path
    if suffix in ENDINGS:
        return TABLES if suffix.startswith(NODE_LINK) else MOLECULES, path
    raise LookHopsError(
        f"{path}: not a kind of file that holds graphs; those end in {', '.join(ENDINGS)}."
    )
