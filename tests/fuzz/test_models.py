"""Whatever is damaged in a saved model: it is refused in a sentence, or answers as it did.

Every leaf of ``config.json`` and every tensor of small models of each kind, damaged in each way:
``make fuzz`` tries all, else some are drawn.
"""

import hashlib
import json
import math
import os
import shutil
import warnings
from collections.abc import Callable, Iterator
from copy import deepcopy
from functools import cache
from pathlib import Path
from random import Random
from tempfile import mkdtemp
from typing import Any

import pytest
import torch
from torch import Tensor

from lookhops.core.errors import LookHopsError
from lookhops.core.files import pack_tensors, unpack_tensors
from lookhops.core.options import Protocol
from lookhops.graphs import Graphs
from lookhops.models import train_into
from lookhops.models.predictor import Predictor
from lookhops.sources.loading import load

#: Damages of each model and each of the two kinds; all with ``make fuzz``.
CASES = 12 if int(os.environ.get("LOOKHOPS_FUZZ", "2000")) <= 2000 else 100_000
GOLDEN = Path(__file__).parents[1] / "golden"
#: Saved models and what they are asked about.
SAVED = {
    **dict.fromkeys(("classes", "number", "several"), "new_molecules.csv"),
    "transfers": "new_transfers.jsonl",
    "pool-topk": "new_graphs.jsonl",
}
#: Others, and their target in the table of molecules, or of several targets.
TRAINED = {
    "gp/hops=1/pairs=2": "logS",
    "gp/hops=0": "logS,soluble,size",
    "blend/hops=1/hidden=4/layers=1/fingerprint=1": "logS",
    "wl": "class",
    "wl-oa": "logS,soluble,size",
    "baseline": "class",
    "descriptors-ridge": "class",
    "descriptors-boosting": "logS",
    "mean": "logS,soluble,size",
}
FILES = {"weights_sha256": "model.safetensors", "reference_sha256": "reference.safetensors"}
GONE = object()
#: Tensors in which numbers may be blank.
BLANKS = ("targets", "descriptors")


def answers(folder: Path, graphs: Graphs) -> list[Any]:
    """All that a model says of graphs."""
    predictor = Predictor(folder, "cpu")
    found = predictor.predict(graphs, neighbours=int(predictor.knows_neighbours))
    return [found.record(graph) for graph in range(len(graphs))]


@cache
def good(name: str) -> tuple[Path, Graphs, list[Any]]:
    """A model's folder, graphs to ask it about, and its answers."""
    folder = Path(mkdtemp(prefix="lookhops-model-")) / "model"
    if name in SAVED:
        shutil.copytree(GOLDEN / name / "model", folder)
        graphs = load(str(GOLDEN / "inputs" / SAVED[name]), invalid="skip")
    else:
        target = TRAINED[name]
        table = "several.csv" if "," in target else "molecules.csv"
        graphs = load(str(GOLDEN / "inputs" / table), target=target)
        protocol = Protocol((11,), max_epochs=1, members=2 if "blend" in name else 1)
        train_into(folder, graphs, name, protocol, device="cpu")
    graphs = graphs[:4]
    return folder, graphs, answers(folder, graphs)


# -------------------------------------------------------------------- damages


def leaves(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """Every entry of JSON, the objects and lists too."""
    pairs = value.items() if isinstance(value, dict) else enumerate(value)
    for key, inner in pairs:
        yield (*path, key), inner
        if isinstance(inner, dict | list):
            yield from leaves(inner, (*path, key))


def wrong_values(value: Any) -> list[Any]:
    """What may stand in the place of a value of JSON."""
    found = [GONE, None, 5 if isinstance(value, str | dict | list) else "text", {}, [], [None]]
    if isinstance(value, int | float) and not isinstance(value, bool):
        found += [10**30, 1e300, -1]
    return [*found, value[:-1]] if isinstance(value, list) and value else found


def with_value(config: Any, path: tuple[Any, ...], value: Any) -> Any:
    """JSON with another value at a place, or without it."""
    changed = inner = deepcopy(config)
    for key in path[:-1]:
        inner = inner[key]
    if value is GONE:
        del inner[path[-1]]
    else:
        inner[path[-1]] = value
    return changed


def other_type(value: Tensor) -> Tensor:
    return value.int() if value.is_floating_point() else value.double()


#: Ways to damage a tensor, and whether what it says then may be true.
DAMAGES: dict[str, tuple[Callable[[Tensor], Tensor | None], bool]] = {
    "missing": (lambda value: None, False),
    "of another type": (other_type, False),
    "of another shape": (lambda value: value[None], False),
    "one row fewer": (lambda value: value[:-1] if value.dim() else value[None], True),
    "NaN": (lambda value: torch.full_like(value, torch.nan), False),
    "huge": (lambda value: torch.full_like(value, largest(value)), True),
    "negative": (lambda value: -value.abs() - 1 if value.dtype != torch.bool else ~value, True),
}


def largest(value: Tensor) -> float:
    kind = torch.finfo if value.is_floating_point() else torch.iinfo
    return 1 if value.dtype == torch.bool else kind(value.dtype).max / 2


def is_sound(value: Any) -> bool:
    """Whether no number in an answer is NaN."""
    if isinstance(value, dict | list):
        return all(map(is_sound, value.values() if isinstance(value, dict) else value))
    return not isinstance(value, float) or not math.isnan(value)


def check(name: str, folder: Path, what: Any, may_differ: bool = False) -> None:
    """The damaged model is refused, or answers as the good one."""
    _, graphs, expected = good(name)
    refused, found = "", expected
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = answers(folder, graphs)
    except LookHopsError as error:
        refused = str(error)
    assert refused.count(str(folder)) <= 1, what
    assert is_sound(found), what
    assert may_differ or found == expected, what


# -------------------------------------------------------------------- tests


@pytest.mark.parametrize("name", [*SAVED, *TRAINED])
def test_every_entry_of_the_config(name, tmp_path):
    start, _, _ = good(name)
    config = json.loads((start / "config.json").read_text())
    config.pop("config_sha256", None)  # which would refuse all of it
    cases = [(path, wrong) for path, value in leaves(config) for wrong in wrong_values(value)]
    folder = shutil.copytree(start, tmp_path / "model")
    for path, wrong in Random(name).sample(cases, min(CASES, len(cases))):
        (folder / "config.json").write_text(json.dumps(with_value(config, path, wrong)))
        what = path, "missing" if wrong is GONE else wrong
        check(name, folder, what, may_differ="values" in path)  # as of another set of graphs


def test_a_config_that_says_something_else_does_not_fit_its_checksum(tmp_path):
    start, graphs, _ = good("mean")
    folder = shutil.copytree(start, tmp_path / "model")
    config = json.loads((folder / "config.json").read_text())
    config["data"]["name"] = "others"
    (folder / "config.json").write_text(json.dumps(config))
    with pytest.raises(LookHopsError, match="checksum"):
        answers(folder, graphs)


@pytest.mark.parametrize("name", [*SAVED, *TRAINED])
def test_every_tensor(name, tmp_path):
    start, _, _ = good(name)
    config = json.loads((start / "config.json").read_text())
    content = {
        file: unpack_tensors((start / file).read_bytes(), start)[0] for file in FILES.values()
    }
    cases = [
        (key, tensor, how)
        for key, file in FILES.items()
        for tensor in content[file]
        for how in DAMAGES
    ]
    for key, tensor, how in Random(name).sample(cases, min(CASES, len(cases))):
        folder = shutil.copytree(start, tmp_path / "model", dirs_exist_ok=True)
        damage, may_differ = DAMAGES[how]
        tensors = dict(content[FILES[key]])
        value = tensors.pop(tensor)
        if how == "NaN" and not value.is_floating_point():
            continue
        if (wrong := damage(value)) is not None:
            tensors[tensor] = wrong
        packed = pack_tensors(tensors, {})
        (folder / FILES[key]).write_bytes(packed)
        changed = config | {key: hashlib.sha256(packed).hexdigest()}
        (folder / "config.json").write_text(json.dumps(changed))
        check(name, folder, (tensor, how), may_differ or tensor in BLANKS)
