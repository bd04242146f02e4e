"""A trained model as one file that runs without LookHops, ``.onnx`` or ``.pt2``."""

from __future__ import annotations

import io
import json
import logging
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from lookhops import __version__
from lookhops.core.arrays import Array
from lookhops.core.errors import LookHopsError
from lookhops.core.files import write_bytes
from lookhops.core.words import counted
from lookhops.graphs import Graphs
from lookhops.models import Predictor
from lookhops.models.exported import ExportedModel, Inputs
from lookhops.nn.conv import Convolution
from lookhops.nn.pool import NodePooling
from lookhops.ops.batch import GraphBatch, Pooled

FORMAT = "lookhops-export-1"
ONNX, PROGRAM = ".onnx", ".pt2"
#: What such a file is written with, and run.
ONNX_NEEDS = ("onnx", "onnxscript", "onnxruntime")
#: Where the description is: in the metadata of an ONNX file, or beside the program in a .pt2.
ABOUT = "lookhops.json"
#: The axes of the inputs that have any size.
AXES = {
    "graph_sizes": {0: "graphs"},
    "edge_index": {1: "edges"},
    **{
        f"{side}_{kind}": {0: f"{side}s"}
        for side in ("node", "edge", "graph")
        for kind in ("labels", "numbers")
    },
}
#: What the exporter of PyTorch logs on its way.
LOGGERS = ("torch.onnx", "onnxscript", "onnx_ir", "torch.export")


def export_model(predictor: Predictor, path: Path, example: Graphs) -> dict[str, Any]:
    """Write a model as one file, ``.onnx`` or ``.pt2``; what it holds besides, as for JSON.

    It is run on the ``example``, graphs that the model's encoding has read, while it is recorded.
    """
    if path.suffix not in (ONNX, PROGRAM):
        raise LookHopsError(
            f"{path}: an exported model is a file that ends in {ONNX} or {PROGRAM}."
        )
    model = ExportedModel(predictor).eval()
    _check_layers(model)
    for name in ONNX_NEEDS if path.suffix == ONNX else ():
        _import(name)
    about = describe(predictor, model)
    with _quiet():
        program = _program(model, model.inputs.arrays(example))
        if path.suffix == ONNX:
            content = _onnx(program, model, about)
        else:
            buffer = io.BytesIO()
            torch.export.save(program, buffer, extra_files={ABOUT: json.dumps(about)})
            content = buffer.getvalue()
    write_bytes(path, content)
    return about


def describe(predictor: Predictor, model: ExportedModel) -> dict[str, Any]:
    """What an exported file says of itself: inputs, columns, answers."""
    answers = []
    for head in predictor.task.heads:
        start, stop, _ = head.channels.indices(predictor.task.out_channels)
        what: dict[str, Any] = {"target": head.title, "kind": head.task.kind}
        answers.append({**what, "channels": [start, stop], **head.task.choices})
    return {
        "format": FORMAT,
        "lookhops": __version__,
        "trained_on": predictor.config["data"]["name"],
        "featuriser": predictor.encoding.featuriser,
        **({"rdkit": rdkit} if (rdkit := predictor.config["versions"].get("rdkit")) else {}),
        "directed": predictor.reading.directed,
        "inputs": list(model.inputs.names),
        **model.inputs.about(),
        "answers": answers,
    }


def load_exported(path: Path) -> Callable[[Mapping[str, Array]], Array]:
    """What runs an exported model: inputs by name to answers, shape (g, channels)."""
    if path.suffix == ONNX:
        ort = _import("onnxruntime")
        options = ort.SessionOptions()
        options.log_severity_level = 3
        session = ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        return lambda arrays: session.run(None, dict(arrays))[0]
    module = torch.export.load(path).module()

    def run(arrays: Mapping[str, Array]) -> Array:
        tensors = {name: torch.from_numpy(array.copy()) for name, array in arrays.items()}
        with torch.no_grad():
            return module(**tensors).numpy()

    return run


def _check_layers(model: ExportedModel) -> None:
    """Refuse layers whose shapes depend on the graphs, or that other people wrote."""
    for network in model.modules():
        for kind, layers in (("conv", Convolution), ("pool", NodePooling)):
            for layer in getattr(network, f"{kind}s", ()):
                if not isinstance(layer, layers):
                    name = getattr(model.predictor.architecture, kind)
                    raise LookHopsError(
                        f"{model.predictor.folder}: its layer {name!r} cannot be exported: the "
                        "convolutions of LookHops can, and poolings that drop nodes (lookhops, "
                        "topk, sag, ipool)."
                    )


def _program(model: ExportedModel, arrays: Mapping[str, Array]) -> torch.export.ExportedProgram:
    """The model as a graph of operations, for any numbers of nodes, edges and graphs."""
    sizes = {name: torch.export.Dim(name) for name in ("graphs", "nodes", "edges")}
    shapes = {name: {axis: sizes[size] for axis, size in AXES[name].items()} for name in arrays}
    tensors = {name: torch.from_numpy(array.copy()) for name, array in arrays.items()}
    with torch.no_grad():
        return torch.export.export(model, (), tensors, dynamic_shapes=shapes, strict=False)


def _onnx(
    program: torch.export.ExportedProgram, model: ExportedModel, about: Mapping[str, Any]
) -> bytes:
    made = torch.onnx.export(
        program,
        input_names=list(model.inputs.names),
        output_names=["answers"],
        dynamo=True,
        optimize=False,
        verbose=False,
        custom_translation_table={torch.ops.aten.sort.stable: _sort()},
    )
    assert made is not None
    _simplify(made.model)
    made.model.metadata_props[ABOUT] = json.dumps(about)
    proto = made.model_proto
    _name_axes(proto.graph)
    content: bytes = proto.SerializeToString()
    return content


def _simplify(model: Any) -> None:
    """Constants folded, what is computed twice or for nothing left out.

    PyTorch's ``optimize`` also tries some hundred patterns on every node, which takes several times
    as long as all the rest and saves a tenth of the runtime's time.
    """
    from onnx_ir.passes import common
    from onnxscript import optimizer

    common.InlinePass()(model)
    optimizer.fold_constants(model)
    common.RemoveUnusedNodesPass()(model)
    common.LiftConstantsToInitializersPass(lift_all_constants=True, size_limit=0)(model)
    common.DeduplicateInitializersPass()(model)
    common.CommonSubexpressionEliminationPass()(model)


def _name_axes(graph: Any) -> None:
    """Call the sizes of inputs and answers what they are, and not s78."""
    names = {}
    for value in graph.input:
        for axis, size in AXES[value.name].items():
            names[value.type.tensor_type.shape.dim[axis].dim_param] = size
    for value in (*graph.input, *graph.output):
        for dim in value.type.tensor_type.shape.dim:
            if dim.dim_param:
                dim.dim_param = names.get(dim.dim_param, dim.dim_param)


def _sort() -> Callable[..., Any]:
    """PyTorch's stable sort in ONNX, whose TopK puts the earlier of two equal values first."""
    from onnxscript import opset18 as op

    def sort(x: Any, stable: bool = True, dim: int = -1, descending: bool = False) -> Any:
        size = op.Gather(op.Shape(x), op.Constant(value_ints=[dim]))
        return op.TopK(x, size, axis=dim, largest=int(descending), sorted=1)

    return sort


def _import(name: str) -> Any:
    try:
        return import_module(name)
    except ImportError as error:
        raise LookHopsError(
            f'ONNX files need {name}, which is not installed: pip install "lookhops[export]".'
        ) from error


@contextmanager
def _quiet() -> Iterator[None]:
    """Without what the exporters print, log and warn of on their way."""
    loggers = [logging.getLogger(name) for name in LOGGERS]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings(), redirect_stdout(io.StringIO()):
            warnings.simplefilter("ignore")
            yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)


# -------------------------------------------------------------------- checking

#: A larger difference, as a share of the largest answer, or of 1, is more than rounding makes.
NOTABLE = 1e-4
#: How far two runtimes may be apart, in roundings of the numbers that scores are computed from.
ROUNDINGS = 8
#: How often scores are moved by so much.
DRAWS = 32


@dataclass(frozen=True)
class Difference:
    """How far an exported model is from our own answers.

    Some graphs may have a notable difference because rounding decides which nodes or edges a
    pooling keeps, in LookHops as elsewhere: they do not count for ``largest``.
    """

    graphs: int  # that were compared
    largest: float  # difference of any answer, in the targets' units
    decided_by_rounding: int
    largest_of_those: float
    is_small: bool  # whether nothing but rounding makes a difference

    def __str__(self) -> str:
        """The largest differences."""
        if not self.decided_by_rounding:
            return f"{self.largest:.1e}"
        others = counted(self.decided_by_rounding, "graph")
        return (
            f"{self.largest:.1e}; {self.largest_of_those:.1e} in {others} where rounding decides "
            "what pooling keeps"
        )


def compare(
    predictor: Predictor, run: Callable[[Mapping[str, Array]], Array], graphs: Graphs
) -> Difference:
    """Answers of an exported model (``run``) to graphs, beside those of ours on the CPU."""
    inputs = Inputs.of(predictor.encoding)
    found = run(inputs.arrays(graphs))
    ours = np.concatenate([one.output for one in predictor.predict(graphs).targets], axis=1)
    error = np.abs(found - ours).max(1)
    notable = error > NOTABLE * np.abs(ours).max(initial=1)
    by_rounding = np.zeros_like(notable)
    if notable.any():
        again = graphs[np.flatnonzero(notable)]
        by_rounding[notable] = rests_on_rounding(
            ExportedModel(predictor).eval(), inputs.arrays(again)
        )
    return Difference(
        graphs=len(graphs),
        largest=float(error[~by_rounding].max(initial=0)),
        decided_by_rounding=int(by_rounding.sum()),
        largest_of_those=float(error[by_rounding].max(initial=0)),
        is_small=not (notable & ~by_rounding).any(),
    )


def rests_on_rounding(model: ExportedModel, given: Mapping[str, Array]) -> Array:
    """Of which graphs a pooling may keep other nodes or edges in another runtime, shape (g).

    Scores within :func:`~lookhops.ops.ranking.nearness` of the last one that is kept count as equal
    to it, and which ones are falls with the last digits. So each pooling of the model, watched from
    here on, decides again with scores that were moved at random by a few roundings.
    """
    found = torch.zeros(len(given["graph_sizes"]), dtype=torch.bool)
    for layer in model.modules():
        if isinstance(layer, NodePooling):
            _watch(layer, found)
    with torch.no_grad():
        model(**{name: torch.from_numpy(array.copy()) for name, array in given.items()})
    return found.numpy()


def _watch(pool: NodePooling, found: Tensor) -> None:
    """Mark the graphs whose nodes or edges hang on a few roundings, whenever the layer decides."""
    decide, generator = pool.decide, torch.Generator().manual_seed(0)

    def watched(batch: GraphBatch, score: Tensor, node: Tensor | None = None) -> Pooled:
        pooled = decide(batch, score, node)
        size = pool.size(batch.x)
        size = score.abs() if size is None else size.view_as(score)
        reach = ROUNDINGS * torch.finfo(score.dtype).eps * size
        for _ in range(DRAWS):
            moved = 2 * torch.rand(score.shape, generator=generator, dtype=score.dtype) - 1
            other = decide(batch, score + reach * moved)
            found[batch.graph[other.node != pooled.node]] = True
            found[batch.graph[batch.adjacency.target[other.edge != pooled.edge]]] = True
        return pooled

    pool.decide = watched  # type: ignore[method-assign]
