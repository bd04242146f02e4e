"""Writing an exported model, and running one."""

from __future__ import annotations

import io
import json
import logging
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, redirect_stdout
from importlib import import_module
from pathlib import Path
from typing import Any

import torch

from lookhops import __version__
from lookhops.core.arrays import Array
from lookhops.core.errors import LookHopsError
from lookhops.core.files import write_bytes
from lookhops.graphs import Graphs
from lookhops.models.export.module import ExportedModel
from lookhops.models.folder import Checkpoint
from lookhops.nn.conv import Convolution
from lookhops.nn.pool import NodePooling

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


def export_model(checkpoint: Checkpoint, path: Path, example: Graphs) -> dict[str, Any]:
    """Write a model as one file, ``.onnx`` or ``.pt2``; what it holds besides, as for JSON.

    It is run on the ``example``, graphs that the model's encoding has read, while it is recorded.
    """
    if path.suffix not in (ONNX, PROGRAM):
        raise LookHopsError(
            f"{path}: an exported model is a file that ends in {ONNX} or {PROGRAM}."
        )
    model = ExportedModel(checkpoint).eval()
    _check_layers(model)
    for name in ONNX_NEEDS if path.suffix == ONNX else ():
        _import(name)
    about = describe(checkpoint, model)
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


def describe(checkpoint: Checkpoint, model: ExportedModel) -> dict[str, Any]:
    """What an exported file says of itself: inputs, columns, answers."""
    answers = []
    for head in checkpoint.task.heads:
        start, stop, _ = head.channels.indices(checkpoint.task.out_channels)
        what: dict[str, Any] = {"target": head.title, "kind": head.task.kind}
        answers.append({**what, "channels": [start, stop], **head.task.choices})
    return {
        "format": FORMAT,
        "lookhops": __version__,
        "trained_on": checkpoint.config["data"]["name"],
        "featuriser": checkpoint.encoding.featuriser,
        **({"rdkit": rdkit} if (rdkit := checkpoint.config["versions"].get("rdkit")) else {}),
        "directed": checkpoint.reading.directed,
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
                    name = getattr(model.checkpoint.architecture, kind)
                    raise LookHopsError(
                        f"{model.checkpoint.folder}: its layer {name!r} cannot be exported: the "
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
