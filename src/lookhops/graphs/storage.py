"""Packed graphs on disk: one safetensors file, mapped into memory without copying."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from lookhops.errors import LookHopsError
from lookhops.files import replacing
from lookhops.graphs import Graphs
from lookhops.graphs.edges import stay_within

FORMAT = "lookhops-graphs-1"
_TUPLES = ("class_names", "label_sizes", "edge_label_sizes")


def save(graphs: Graphs, path: Path | str) -> None:
    """Write the tensors and columns as safetensors, all else as JSON in its header."""
    tensors = {key: tensor.cpu().contiguous() for key, tensor in graphs._tensors().items()}
    texts = [key for key, column in graphs.columns.items() if column.dtype.kind not in "biuf"]
    for key, column in graphs.columns.items():
        values = _from_texts(column) if key in texts else np.ascontiguousarray(column)
        tensors[f"column.{key}"] = torch.from_numpy(values)
    rest: dict[str, Any] = {
        key: getattr(graphs, key) for key in ("name", "featuriser", *_TUPLES)
    } | {"columns": list(graphs.columns), "text_columns": texts}
    with replacing(path) as part:
        try:
            save_file(tensors, part, metadata={"format": FORMAT, "rest": json.dumps(rest)})
        except SafetensorError as error:
            raise LookHopsError(f"{path}: cannot be written ({error}).") from error


def load(path: Path | str) -> Graphs:
    """Map a file that :func:`save` wrote."""
    path = Path(path)
    if not path.is_file():
        raise LookHopsError(f"{path}: no such file.")
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
    try:
        rest = json.loads(metadata["rest"])
        texts = set(rest.pop("text_columns"))
        stored = {key: tensors.pop(f"column.{key}").numpy() for key in rest.pop("columns")}
        rest |= {key: tuple(rest[key]) for key in _TUPLES}
        columns = {key: _to_texts(v) if key in texts else v for key, v in stored.items()}
        graphs = Graphs(**tensors, **rest, columns=columns)
        sound = _is_sound(graphs)
    except (KeyError, ValueError, TypeError, IndexError, RuntimeError, AttributeError) as error:
        raise LookHopsError(f"{path}: damaged packed graphs ({error!r}).") from error
    if not sound:
        raise LookHopsError(f"{path}: damaged packed graphs (its tensors do not fit together).")
    return graphs


def _is_sound(graphs: Graphs) -> bool:
    """Whether the tensors describe graphs: a file may have been sent by anybody."""
    nodes, edges, count = graphs.num_nodes, graphs.num_edges, len(graphs)
    return (
        _are_offsets(graphs.node_ptr, nodes)
        and _are_offsets(graphs.row_ptr, edges)
        and graphs.source.dtype == torch.int32
        and stay_within(graphs.node_ptr, graphs.row_ptr, graphs.source)
        and _has_rows(graphs.attributes, nodes, None)
        and _has_rows(graphs.edge_attributes, edges, None)
        and _has_rows(graphs.labels, nodes, graphs.label_sizes)
        and _has_rows(graphs.edge_labels, edges, graphs.edge_label_sizes)
        and (graphs.y is None or _are_below(graphs.y, graphs.num_classes))
        and (graphs.y is None or graphs.y.shape == (count,))
        and all(column.shape == (count,) for column in graphs.columns.values())
    )


def _are_offsets(ptr: Tensor, total: int) -> bool:
    offsets = ptr.numpy()
    whole = offsets.dtype == np.int32 and offsets.ndim == 1 and len(offsets) > 0
    return bool(
        whole and offsets[0] == 0 and offsets[-1] == total and (offsets[1:] >= offsets[:-1]).all()
    )


def _are_below(values: Tensor, size: int) -> bool:
    array = values.numpy()
    return array.dtype.kind in "iu" and (
        not array.size or bool(array.min() >= 0 and array.max() < size)
    )


def _has_rows(features: Tensor | None, rows: int, sizes: tuple[int, ...] | None) -> bool:
    """One row each; of labels also one column a size, with values below it."""
    if features is None:
        return not sizes
    if features.dim() != 2 or features.shape[0] != rows:
        return False
    if sizes is None:
        return features.is_floating_point()
    return features.shape[1] == len(sizes) and all(
        _are_below(column, size) for column, size in zip(features.unbind(1), sizes, strict=True)
    )


def _from_texts(column: np.ndarray) -> np.ndarray:
    """Texts as UTF-8 bytes, each closed by a zero byte, which no text may hold."""
    texts = ("" if value is None else str(value).replace("\0", "") for value in column)
    return np.frombuffer(bytearray("".join(f"{text}\0" for text in texts).encode()), np.uint8)


def _to_texts(data: np.ndarray) -> np.ndarray:
    return np.array(data.tobytes().decode().split("\0")[:-1], dtype=object)
