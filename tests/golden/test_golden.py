"""Saved models answer as they did before: predictions, explanations, and the training itself.

What differs is meant to, or is a mistake; see make_golden.py on how to make new answers.
"""

import csv
import json
import math

import pytest
import torch
from asking import HERE, ask, names
from safetensors.numpy import load_file

#: What the command writes is compared so closely that another CPU's rounding passes.
DIGITS = {"rtol": 1e-6, "atol": 1e-7}
#: Shares and readouts are written with six digits; shares are differences of larger numbers.
SHARES = {"rtol": 1e-5, "atol": 5e-6}
#: Losses after some steps of training, which carry rounding on.
LOSSES = {"rtol": 1e-4, "atol": 1e-6}

ANSWERS = {name: json.loads((HERE / name / "answers.json").read_text()) for name in names()}
QUESTIONS = [(name, place) for name in ANSWERS for place in range(len(ANSWERS[name]["answers"]))]


def differences(found, expected, rtol, atol, where=""):
    """Where two values that JSON can hold differ, in words."""
    if isinstance(expected, dict) and isinstance(found, dict):
        if list(found) != list(expected):
            yield f"{where}: {list(found)} in place of {list(expected)}"
            return
        for key in expected:
            yield from differences(found[key], expected[key], rtol, atol, f"{where}.{key}")
    elif isinstance(expected, list) and isinstance(found, list):
        if len(found) != len(expected):
            yield f"{where}: {len(found)} in place of {len(expected)}"
            return
        for place, pair in enumerate(zip(found, expected, strict=True)):
            yield from differences(*pair, rtol, atol, f"{where}[{place}]")
    elif isinstance(expected, float) and isinstance(found, float):
        if not math.isclose(found, expected, rel_tol=rtol, abs_tol=atol):
            yield f"{where}: {found!r} in place of {expected!r}"
    elif found != expected or type(found) is not type(expected):
        yield f"{where}: {found!r} in place of {expected!r}"


@pytest.fixture(autouse=True)
def _in_this_folder(monkeypatch):
    monkeypatch.chdir(HERE)


def test_there_are_models_of_every_kind():
    assert len(ANSWERS) == 24
    trained = " ".join(answers["trained"] for answers in ANSWERS.values())
    assert "--members 2" in trained
    assert "--final" in trained


@pytest.mark.parametrize(
    ("name", "place"),
    QUESTIONS,
    ids=[f"{n}: {ANSWERS[n]['answers'][place]['question']}" for n, place in QUESTIONS],
)
def test_answers(lookhops, tmp_path, name, place):
    expected = dict(ANSWERS[name]["answers"][place])
    question = expected.pop("question").split()
    found = json.loads(json.dumps(ask(lookhops, name, question, tmp_path)))
    close = DIGITS if question[0] == "predict" else SHARES
    wrong = list(differences(found, expected, **close))
    assert not wrong, "\n".join(wrong[:20])


@pytest.mark.parametrize("name", ["classes", "number", "several", "transfers", "pool-topk"])
def test_training(lookhops, tmp_path, name):
    """The same command trains the same model, as far as rounding lets it."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        command = ANSWERS[name]["trained"].split()
        code, _, said = lookhops("train", *command, "-o", tmp_path / "model")
    finally:
        torch.set_num_threads(threads)
    assert code == 0, said
    found, expected = _training(tmp_path / "model"), _training(HERE / name / "model")
    wrong = list(differences(found, expected, **LOSSES))
    assert not wrong, "\n".join(wrong[:20])


def _training(folder):
    """Losses of each epoch, and what was measured in the end; how long it took is left out."""
    with (folder / "history.csv").open() as file:
        history = [
            {name: float(cell) for name, cell in row.items() if cell and name != "seconds"}
            for row in csv.DictReader(file)
        ]
    config = json.loads((folder / "config.json").read_text())
    seeds = {
        seed: {name: value for name, value in own.items() if not name.startswith("seconds")}
        for seed, own in config["metrics"]["seeds"].items()
    }
    kept = ("format", "learner", "protocol", "data", "encoding", "task", "members")
    limit = float(load_file(folder / "reference.safetensors")["limit"])  # of what is like them
    return {"history": history, "seeds": seeds, "limit": limit} | {
        name: config[name] for name in kept
    }
