"""How golden models are asked: through the command, and documented names, alone.

A model's folder here holds ``model``, as `lookhops train` wrote it, and ``answers.json``: the
questions that it was asked, as arguments of the command, and the answers. Everything runs in this
folder, so that no path of a machine is in an answer.
"""

import csv
import json
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
#: Runs the command: exit code, stdout, stderr.
Run = Callable[..., tuple[int, str, str]]

#: What of an attribution is held to seven digits; the command writes six.
SHARES = ("value", "baseline", "whole", "node", "node_spread", "edge", "edge_spread")


def names() -> list[str]:
    """The golden models."""
    return sorted(path.parent.name for path in HERE.glob("*/answers.json"))


def ask(run: Run, model: str, question: list[str], scratch: Path) -> dict[str, Any]:
    """The answer of a golden model; the working folder is :data:`HERE`.

    Args:
        run: The command.
        model: Name of the model.
        question: ``predict``, ``explain``, ``embed`` or ``attribute`` and its arguments, without
            the model: the input first.
        scratch: An empty folder.
    """
    verb, source, *options = question
    folder = f"{model}/model"
    if verb == "attribute":
        return {"shares": _attribute(folder, source, *options)}
    if verb == "embed":
        file = scratch / "embedded.csv"
        code, _, said = run("embed", folder, source, *options, "--device", "cpu", "-o", file)
        assert code == 0, said
        with file.open() as rows:
            return {"rows": [_numbers(row) for row in csv.DictReader(rows)]}
    code, out, said = run(verb, folder, source, *options, "--device", "cpu", "--json")
    assert code == 0, said
    return {"json": json.loads(out), "stderr": said.splitlines()}


def _attribute(folder: str, source: str, target: str | None = None) -> list[dict[str, Any]]:
    import lookhops
    from lookhops.explain import attribute

    predictor = lookhops.Predictor(folder, "cpu")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        graphs = lookhops.load(source, invalid="skip")
        found = attribute(predictor, graphs, target)
    every = [found[number] for number in range(len(found))]
    return [{name: _plain(getattr(one, name)) for name in SHARES} for one in every]


def _plain(value: Any) -> Any:
    listed = value.tolist() if hasattr(value, "tolist") else value
    return [float(one) for one in listed] if isinstance(listed, list) else float(listed)


def _numbers(row: dict[str, str]) -> dict[str, Any]:
    """Cells of numbers as numbers; those of the fingerprint as one text of bits."""
    bits = "".join(cell for name, cell in row.items() if name.startswith("fingerprint"))
    rest = {name: cell for name, cell in row.items() if not name.startswith("fingerprint")}
    return {name: _number(cell) for name, cell in rest.items()} | {"bits": bits}


def _number(cell: str) -> float | str:
    try:
        return float(cell)
    except ValueError:
        return cell
