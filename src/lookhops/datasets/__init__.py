"""Where graphs come from: the TU collection, molecules, the bundled set, hop tasks; splits."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

from lookhops.datasets.collection import data_folder, fetch, find, read_tu_cached
from lookhops.datasets.hop_tasks import MAX_HOPS, hop_task
from lookhops.datasets.molecules import SUFFIXES as MOLECULE_SUFFIXES
from lookhops.datasets.molecules import read_molecules
from lookhops.datasets.solubility import load_solubility
from lookhops.datasets.splits import Split, SplitPlan, read_splits, split, write_splits
from lookhops.datasets.tu import read_tu
from lookhops.errors import LookHopsError
from lookhops.graphs import SUFFIX, Graphs
from lookhops.options import AS_USUAL, HOP_TASKS, MOLECULES, Reading

__all__ = ["Split", "SplitPlan", "load", "read_splits", "read_tu", "split", "write_splits"]

GENERATED = tuple(f"hops-{k}" for k in range(1, MAX_HOPS + 1))
OWN_NAMES = ("solubility", *GENERATED)


def load(
    source: Graphs | Path | str,
    reading: Reading = AS_USUAL,
    *,
    remembered: Reading = AS_USUAL,
    data_dir: Path | str | None = None,
    cache: bool = True,
    **options: Any,
) -> Graphs:
    """Load a set of graphs from wherever it is.

    A text with a slash, or that ends in ``.graphs``, ``.zip``, ``.smi``, ``.csv`` or ``.sdf``, is a
    path. Any other text is a name first and a path in the working folder only if no set has that
    name: where a folder ``NCI1`` lies in the working folder, ``"NCI1"`` is still the TU set, and
    ``"./NCI1"`` is the folder.

    Args:
        source: A name (a TU set as ``"NCI1"``, ``"solubility"``, ``"hops-1"`` to ``"hops-6"``); a
            path to packed graphs, to a TU set (``.zip`` or folder) or to molecules (``.smi``,
            ``.csv``, ``.sdf``); or ``Graphs``, which come back as they are.
        reading: How to read it.
        remembered: How an earlier source was read: taken over where ``reading`` chooses nothing.
        data_dir: Folder of TU archives, ``NAME.zip`` or ``NAME/``; by default the environment's
            ``LOOKHOPS_DATA``, else the user's cache folder. What it lacks is downloaded to it.
        cache: Whether to keep a packed copy of a TU set in the user's cache folder and to use the
            one that is there.
        options: Fields of ``reading`` to choose by their names: ``label_column="toxic"``.
    """
    if isinstance(source, Graphs):
        return source
    reading = replace(reading, **options)
    try:
        kind, place = _resolve(source, data_folder(data_dir))
    except (OSError, RuntimeError) as error:  # a name too long, a home that is nobody's
        raise LookHopsError(f"{source}: cannot be read ({error}).") from error
    reading.check(source, kind)
    if kind == MOLECULES:
        return read_molecules(place, reading.or_remembered(remembered), remembered=remembered)
    if kind == HOP_TASKS:
        chosen = {"size": reading.size, "seed": reading.seed}
        return hop_task(int(place.name[5:]), **{k: v for k, v in chosen.items() if v is not None})
    if kind == "solubility":
        return load_solubility()
    if kind == "packed":
        return Graphs.load(place)
    return read_tu_cached(place) if cache else read_tu(place)


def _resolve(source: Path | str, folder: Path) -> tuple[str, Path]:
    """What kind of source it is, and where it is; a TU set that is nowhere is downloaded."""
    path = Path(source).expanduser()
    name = str(source)
    suffix = path.suffix.lower()
    is_path = isinstance(source, Path) or "/" in name or "\\" in name
    if not is_path and suffix not in (SUFFIX, ".zip", *MOLECULE_SUFFIXES):
        if name == "solubility":
            return "solubility", path
        if re.fullmatch(r"hops-\d+", name):
            return HOP_TASKS, path
        if find(name, folder) or not path.exists():
            return "tu", fetch(name, folder, OWN_NAMES)
    if not path.exists():
        raise LookHopsError(f"{path}: no such file or folder.")
    if path.is_dir() or suffix == ".zip":
        return "tu", path
    if suffix == SUFFIX:
        return "packed", path
    if suffix in MOLECULE_SUFFIXES:
        return MOLECULES, path
    raise LookHopsError(
        f"{path}: not a kind of file that holds graphs; those end in "
        f"{', '.join((SUFFIX, '.zip', *MOLECULE_SUFFIXES))}."
    )
