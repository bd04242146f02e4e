"""Makes the golden models and their answers: python tests/golden/make_golden.py [NAME ...]

The answers were made once, before the package was rearranged, and say what it must go on to give.
Run this again only where a file format or an answer is meant to change, for the models that are
named or for all, and say in the commit which, and why. ``--inputs`` draws the inputs anew;
``--answers`` asks the models that are there, and trains none.

Models are tiny: what counts is that their answers follow from every part of the package, not that
they are good. The training runs on one thread of a CPU.
"""

import csv
import io
import json
import os
import random
import shutil
import sys
import tempfile
from contextlib import redirect_stderr, redirect_stdout
from itertools import pairwise
from pathlib import Path
from typing import Any

os.environ["OMP_NUM_THREADS"] = "1"
os.environ["COLUMNS"] = "80"

import torch
from asking import HERE, ask

SHORT = "--batch-size 16 --device cpu --processes 1"
RECOMMENDED = f"--hidden 8 --layers 3 --epochs 4 --lr 0.01 {SHORT}"
PLAIN = (
    "--hidden 12 --layers 3 --readout max+mean --fingerprint none --no-totals --dropout 0 "
    f"--ratio 0.6 --epochs 12 --lr 0.006 --seeds {{seed}}, {SHORT}"
)
FEW, GRAPHS = "inputs/new_molecules.csv", "inputs/new_graphs.jsonl"
CONVOLUTIONS = ["licheb", "limixhop", "cheb", "mixhop", "gcn", "gat", "gin", "sage", "sgc", "dcnn"]
POOLINGS = ["lookhops", "topk", "sag", "asap", "edge", "diffpool", "hgpsl", "ipool"]

#: Name of a model: how it is trained, and what it is asked.
MODELS: dict[str, tuple[str, list[str]]] = {
    "classes": (
        f"inputs/molecules.csv --target class --descriptors none --seeds 2 {RECOMMENDED}",
        [
            f"predict {FEW}",
            f"predict {FEW} --coverage 0.5",
            f"explain {FEW}",
            f"explain {FEW} --seed 22",
            f"explain {FEW} --view kept",
            "explain inputs/molecules.csv --view neighbourhoods",
            f"embed {FEW} --bits 64",
        ],
    ),
    "number": (
        "inputs/molecules.csv --target logS --descriptors none --seeds 2 --members 2 "
        f"{RECOMMENDED}",
        [
            f"predict {FEW}",
            f"predict {FEW} --coverage 0.5",
            f"predict {FEW} --coverage 0.6",
            f"explain {FEW}",
        ],
    ),
    "several": (
        f"inputs/several.csv --target logS,soluble,size --descriptors none --seeds 2 {RECOMMENDED}",
        [
            f"predict {FEW}",
            f"predict {FEW} --coverage 0.5",
            f"explain {FEW} --of logS",
            f"explain {FEW} --of soluble",
        ],
    ),
    "transfers": (
        f"inputs/transfers --threshold 0.4 --bins 4 {RECOMMENDED}",
        [
            "predict inputs/new_transfers.jsonl",
            "explain inputs/new_transfers.jsonl",
            "embed inputs/new_transfers.jsonl --bits 64",
        ],
    ),
    "fingerprint": (
        "inputs/molecules.csv --target class --descriptors none --conv none --fingerprint 5 "
        "--no-totals --pool none --readout max+mean --dropout 0 --epochs 4 --lr 0.01 --final "
        f"{SHORT}",
        [f"predict {FEW}", f"explain {FEW}"],
    ),
    "edge-ratio": (
        f"inputs/graphs.jsonl --pool lookhops --edge-ratio 0.6 --activation tanh {PLAIN}",
        [f"predict {GRAPHS}", f"explain {GRAPHS} --view kept"],
    ),
    **{
        f"conv-{conv}": (
            f"inputs/graphs.jsonl --conv {conv} --pool none {PLAIN}",
            [f"predict {GRAPHS}"] + [f"explain {GRAPHS}"] * (conv in ("licheb", "gcn")),
        )
        for conv in CONVOLUTIONS
    },
    **{
        f"pool-{pool}": (
            f"inputs/graphs.jsonl --pool {pool} {PLAIN}",
            [f"predict {GRAPHS}"] + [f"explain {GRAPHS}"] * (pool in ("lookhops", "topk")),
        )
        for pool in POOLINGS
    },
}
#: Models whose shares are held to more digits than the command writes.
ATTRIBUTED = {
    "classes": [f"attribute {FEW}"],
    "number": [f"attribute {FEW}"],
    "several": [f"attribute {FEW} size"],
    "transfers": ["attribute inputs/new_transfers.jsonl"],
    "fingerprint": [f"attribute {FEW}"],
    "conv-licheb": [f"attribute {GRAPHS}"],
    "pool-topk": [f"attribute {GRAPHS}"],
}


def run(*arguments: object) -> tuple[int, str, str]:
    """The command in this process."""
    from lookhops.cli import main

    sys.argv = ["lookhops", *map(str, arguments)]
    out, said, code = io.StringIO(), io.StringIO(), 0
    with redirect_stdout(out), redirect_stderr(said):
        try:
            main()
        except SystemExit as stop:
            code = stop.code if isinstance(stop.code, int) else int(stop.code is not None)
    return code, out.getvalue(), said.getvalue()


def make(name: str, train: bool) -> None:
    """Train a model, and write down what it answers.

    Of networks as small as these some answer the same to everything: another seed is tried then.
    """
    folder = HERE / name
    for seed in (11, 22, 33, 44, 55):
        command, questions = MODELS[name][0].format(seed=seed), MODELS[name][1]
        if train:
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
            code, _, said = run("train", *command.split(), "-o", f"{name}/model")
            assert code == 0, said
        else:
            command = json.loads((folder / "answers.json").read_text())["trained"]
        answers: list[dict[str, Any]] = []
        for question in (*questions, *ATTRIBUTED.get(name, ())):
            with tempfile.TemporaryDirectory() as scratch:
                answer = ask(run, name, question.split(), Path(scratch))
            answers.append({"question": question, **answer})
        if _vary(answers[0]["json"]):
            break
    else:
        raise AssertionError(f"{name}: its answers hang on nothing")
    written = {"trained": command, "answers": answers}
    text = json.dumps(written, ensure_ascii=False, separators=(",", ":"))
    text = text.replace('{"question"', '\n{"question"')
    (folder / "answers.json").write_text(text + "\n")


def _vary(records: list[dict[str, Any]]) -> bool:
    """Whether no two inputs are answered alike, as they are where a ReLU lets nothing through."""
    known = [one for one in records if "similarity" in one]  # the others were no molecules
    own = [next(iter(one["targets"].values())) if "targets" in one else one for one in known]
    first = sorted(
        one["value"] if "value" in one else next(iter(one["probabilities"].values())) for one in own
    )
    return first[-1] - first[0] > 0.003 and all(b - a > 1e-5 for a, b in pairwise(first))


# -------------------------------------------------------------------- inputs


def make_inputs() -> None:
    """Small files of every kind: molecules, tables of edges, nodes and graphs, JSON lines."""
    folder = HERE / "inputs"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    _molecules(folder)
    code, _, said = run("data", "example", folder / "transfers", "--cases", "48", "--seed", "3")
    assert code == 0, said
    with tempfile.TemporaryDirectory() as other:
        code, _, said = run("data", "example", f"{other}/new", "--cases", "3", "--seed", "4")
        assert code == 0, said
        cases = _transfers(Path(other) / "new")
        cases[-1]["nodes"][0]["age_days"] = 90000.0  # beyond all that was seen
        _write_lines(folder / "new_transfers.jsonl", cases)
    draw = random.Random(7)
    _write_lines(folder / "graphs.jsonl", [_graph(draw, number) for number in range(60)])
    new = [{**_graph(draw, number), "label": None} for number in range(60, 64)]
    new = [{key: value for key, value in one.items() if key != "label"} for one in new]
    new[1]["nodes"][0]["kind"] = "d"  # which no model has seen
    _write_lines(folder / "new_graphs.jsonl", new)


def _molecules(folder: Path) -> None:
    source = HERE.parent.parent / "src" / "lookhops" / "datasets" / "solubility.csv"
    with source.open() as file:
        rows = [row for row in csv.DictReader(file) if len(row["smiles"]) <= 22]
    chosen = rows[:: len(rows) // 60][:60]
    draw = random.Random(5)
    with (folder / "molecules.csv").open("w") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(["smiles", "name", "logS", "class"])
        table.writerows([row["smiles"], row["name"], row["value"], row["class"]] for row in chosen)
    with (folder / "several.csv").open("w") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(["smiles", "name", "logS", "soluble", "size"])
        for row in chosen:
            soluble = "yes" if float(row["value"]) > -2 else "no"
            size = "small" if len(row["smiles"]) < 9 else "large"
            cells = [row["value"], soluble, size]
            blank = [draw.random() < share for share in (0.2, 0.3, 0.1)]
            told = ["" if gone else cell for gone, cell in zip(blank, cells, strict=True)]
            table.writerow([row["smiles"], row["name"], *told])
    (folder / "new_molecules.csv").write_text(
        "smiles,name\n"
        "CCCCO,1-butanol\n"
        "Cc1ccccc1N,o-toluidine\n"
        "C(,broken\n"
        "O=C([O-])/C=C/C(Cl)Br,acid\n"
        "[SiH3][SiH2][SiH2][SiH3],tetrasilane\n"
    )


def _transfers(folder: Path) -> list[dict[str, Any]]:
    """Cases in node-link form."""
    tables = {}
    for name in ("edges", "nodes"):
        with (folder / f"{name}.csv").open() as file:
            tables[name] = list(csv.DictReader(file))
    cases = list(dict.fromkeys(row["graph"] for row in tables["nodes"]))
    found = []
    for case in cases:
        nodes = [row for row in tables["nodes"] if row["graph"] == case]
        edges = [row for row in tables["edges"] if row["graph"] == case]
        found.append(
            {
                "id": case,
                "nodes": [
                    {"id": r["node"], "type": r["type"], "age_days": float(r["age_days"])}
                    for r in nodes
                ],
                "edges": [
                    {
                        **{key: r[key] for key in ("source", "target", "channel")},
                        "amount": float(r["amount"]),
                    }
                    for r in edges
                ],
            }
        )
    return found


def _graph(draw: random.Random, number: int) -> dict[str, Any]:
    """A ring or a tree with chords, and whether it has many edges between nodes of one kind."""
    size = draw.randint(4, 9)
    nodes = [
        {"id": f"n{i}", "kind": draw.choice("abc"), "load": round(draw.gauss(2, 1), 3)}
        for i in range(size)
    ]
    if draw.random() < 0.3:
        nodes[-1]["load"] = None
    pairs = {(draw.randrange(i), i) for i in range(1, size)}
    pairs |= {tuple(sorted(draw.sample(range(size), 2))) for _ in range(draw.randint(0, 4))}
    edges = [
        {
            "source": f"n{i}",
            "target": f"n{j}",
            "type": draw.choice(("near", "far")),
            "length": round(draw.lognormvariate(0, 1.5), 3),  # with a heavy tail
        }
        for i, j in sorted(pairs)
    ]
    alike = sum(nodes[i]["kind"] == nodes[j]["kind"] for i, j in pairs) / len(pairs)
    label = "alike" if alike > 0.34 else "mixed"
    return {"id": f"graph-{number}", "label": label, "nodes": nodes, "edges": edges}


def _write_lines(path: Path, rows: list[dict[str, Any]]) -> None:
    path.write_text("".join(json.dumps(row, separators=(",", ":")) + "\n" for row in rows))


def main() -> None:
    """Make what the command line names."""
    torch.set_num_threads(1)
    os.chdir(HERE)
    named = [word for word in sys.argv[1:] if not word.startswith("--")]
    flags = {word for word in sys.argv[1:] if word.startswith("--")}
    if "--inputs" in flags:
        make_inputs()
    for name in named or MODELS:
        print(name, flush=True)
        make(name, train="--answers" not in flags)


if __name__ == "__main__":
    main()
