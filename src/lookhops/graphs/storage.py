"""Packed graphs on disk: one safetensors file, mapped into memory without copying."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from lookhops.core.errors import LookHopsError
from lookhops.core.files import (
    CHECKSUM,
    check_content,
    check_regular,
    checksum,
    replacing,
    sort_metadata,
)
from lookhops.core.schema import Count, decode, located, read
from lookhops.graphs.choosing import Skipped
from lookhops.graphs.features import OWNERS, Names
from lookhops.graphs.indexing import Texts
from lookhops.graphs.targets import Target, are_sound

if TYPE_CHECKING:
    from lookhops.graphs import Graphs

FORMAT = "lookhops-graphs-4"
_TENSORS = ("node_ptr", "row_ptr", "source", "y")
#: What results that were published hash tensors of features as.
_HASHED_AS = {
    "nodes.numbers": "attributes",
    "nodes.labels": "labels",
    "edges.numbers": "edge_attributes",
    "edges.labels": "edge_labels",
}
#: The ids of nodes: their bytes, and where each begins.
_IDS = ("node_ids.data", "node_ids.ptr")


def save(graphs: Graphs, path: Path | str) -> None:
    """Write the tensors and columns as safetensors, all else as JSON in its header."""
    tensors = {key: tensor.cpu().contiguous() for key, tensor in graphs.tensors.items()}
    texts = [key for key, column in graphs.columns.items() if column.dtype.kind not in "biuf"]
    arrays = {f"column.{key}": column for key, column in graphs.columns.items()}
    arrays |= {f"column.{key}": _from_texts(graphs.columns[key]) for key in texts}
    if graphs.node_ids is not None:
        arrays |= zip(_IDS, (graphs.node_ids.data, graphs.node_ids.ptr), strict=True)
    for key, array in arrays.items():  # writable, as PyTorch warns of others
        tensors[key] = torch.from_numpy(np.require(array, requirements=["C", "W"]))
    header = {
        "name": graphs.name,
        "featuriser": graphs.featuriser,
        "skipped": graphs.skipped,
        "columns": list(graphs.columns),
        "text_columns": texts,
        "targets": [[target.name, target.classes, target.kind] for target in graphs.targets],
        "features": {owner: asdict(one.names) for owner, one in graphs.features.items()},
    }
    with replacing(path) as part:
        try:
            metadata = {"format": FORMAT, "rest": (text := json.dumps(header))}
            metadata[CHECKSUM] = checksum(tensors, text)
            part.touch()
            mode = part.stat().st_mode
            save_file(tensors, part, metadata=metadata)
            part.chmod(mode)  # others may read what others may read of other files
            with part.open("rb+") as file:
                sort_metadata(file)
        except SafetensorError as error:
            raise LookHopsError(f"{path}: cannot be written ({error}).") from error


def fingerprint(graphs: Graphs) -> str:
    """A hash of all tensors and of the labels' sizes."""
    sizes = f"{graphs.nodes.label_sizes} {graphs.edges.label_sizes}"
    if graphs.whole.label_sizes:
        sizes += f" {graphs.whole.label_sizes}"
    digest = hashlib.sha256(sizes.encode())
    if len(graphs.targets) > 1:  # the same values may be classes or numbers
        digest.update(f"{[len(target.classes) for target in graphs.targets]}".encode())
    if kinds := [one.kind for one in graphs.targets if one.kind not in ("classes", "numbers")]:
        digest.update(f"{kinds}".encode())  # and numbers may be counts
    for key, tensor in graphs.tensors.items():
        shape = tuple(tensor.shape)
        digest.update(f"{_HASHED_AS.get(key, key)} {tensor.dtype} {shape}".encode())
        if tensor.numel():
            digest.update(tensor.cpu().contiguous().reshape(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()[:16]


def load(cls: type[Graphs], path: Path | str) -> Graphs:
    """Map a file that :func:`save` wrote."""
    path = Path(path)
    if not path.exists():
        raise LookHopsError(f"{path}: no such file.")
    check_regular(path)
    try:
        with safe_open(path, framework="pt") as file:
            metadata = file.metadata() or {}
            tensors = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118
    except (SafetensorError, OSError) as error:
        raise LookHopsError(f"{path}: not a file of packed graphs ({error}).") from error
    if metadata.get("format") != FORMAT:
        raise LookHopsError(
            f"{path}: not a file of packed graphs of this version (its format is "
            f"{metadata.get('format', 'not given')!r}, expected {FORMAT!r})."
        )
    with located(f"{path}: damaged packed graphs"):
        text = metadata.get("rest", "")
        check_content(path, tensors, text, metadata)
        header = read(_Header, decode(text, "rest"))
        columns = _take_columns(tensors, header)
        ids = [tensors.pop(key) for key in _IDS if key in tensors]
        if not {"node_ptr", "row_ptr", "source"} <= set(tensors):
            raise LookHopsError("its tensors are not those of graphs")
        try:
            fields: dict[str, Any] = {}
            for owner in OWNERS:
                numbers, labels = (tensors.pop(f"{owner}.{k}", None) for k in ("numbers", "labels"))
                fields[owner] = header.features.get(owner, Names()).holding(numbers, labels)
            if set(tensors) - set(_TENSORS):
                raise LookHopsError("its tensors are not those of graphs")
            graphs = cls(
                **tensors,
                **fields,
                name=header.name,
                featuriser=header.featuriser,
                targets=tuple(
                    Target(name, tuple(names), kind) for name, names, kind in header.targets
                ),
                columns=columns,
                node_ids=Texts(*(array.numpy() for array in ids)) if ids else None,
                skipped=tuple(Skipped(*row) for row in header.skipped),
            )
            sound = _is_sound(graphs)
        except (ValueError, TypeError, IndexError, RuntimeError, AttributeError) as error:
            raise LookHopsError(f"its tensors do not fit together ({error})") from error
        if not sound:
            raise LookHopsError("its tensors do not fit together")
    return graphs


@dataclass(frozen=True)
class _Header:
    """What a file says besides its tensors."""

    name: str
    featuriser: str
    columns: Sequence[str]
    text_columns: Sequence[str]
    skipped: Sequence[tuple[Count, str, str]]
    targets: Sequence[tuple[str, Sequence[str], str]]
    features: Mapping[str, Names]


def _take_columns(tensors: dict[str, Tensor], header: _Header) -> dict[str, np.ndarray]:
    found = {}
    for key in header.columns:
        values = tensors.pop(f"column.{key}", None)
        if values is None:
            raise LookHopsError(f"the column {key!r} is missing")
        try:
            found[key] = values.numpy()
            if key in header.text_columns:
                texts = found[key].tobytes().decode().split("\0")[:-1]
                found[key] = np.array(texts, dtype=object)
        except (TypeError, UnicodeDecodeError) as error:
            raise LookHopsError(f"the column {key!r} cannot be read ({error})") from error
    return found


def _is_sound(graphs: Graphs) -> bool:
    """Whether the tensors describe graphs: a file may have been sent by anybody."""
    nodes, edges, count = graphs.num_nodes, graphs.num_edges, len(graphs)
    return (
        _are_offsets(graphs.node_ptr, nodes)
        and _are_offsets(graphs.row_ptr, edges)
        and _stay_within(graphs)
        and graphs.nodes.are_sound(nodes)
        and graphs.edges.are_sound(edges)
        and graphs.whole.are_sound(count)
        and are_sound(graphs.y, graphs.targets, count)
        and all(column.shape == (count,) for column in graphs.columns.values())
        and (graphs.node_ids is None or graphs.node_ids.is_sound(nodes))
    )


def _are_offsets(ptr: Tensor, total: int) -> bool:
    ends = ptr.dtype == torch.int32 and ptr[[0, -1]].tolist() == [0, total]
    return ends and bool((ptr[1:] >= ptr[:-1]).all())


def _stay_within(graphs: Graphs) -> bool:
    """Whether every edge comes from a node of its own graph."""
    if graphs.source.dtype != torch.int32:
        return False
    first, end = graphs.node_ptr[:-1].numpy(), graphs.node_ptr[1:].numpy()
    begin, source = graphs.edge_ptr[:-1].numpy(), graphs.source.numpy()
    has_edges = graphs.edge_ptr.diff().numpy() > 0
    if not has_edges.any():
        return True
    lowest = np.minimum.reduceat(source, begin[has_edges])
    highest = np.maximum.reduceat(source, begin[has_edges])
    return bool((lowest >= first[has_edges]).all() and (highest < end[has_edges]).all())


def _from_texts(column: np.ndarray) -> np.ndarray:
    """Texts as UTF-8 bytes, each closed by a zero byte, which no text may hold."""
    texts = ("" if value is None else str(value).replace("\0", "") for value in column)
    return np.frombuffer(bytearray("".join(f"{text}\0" for text in texts).encode()), np.uint8)
