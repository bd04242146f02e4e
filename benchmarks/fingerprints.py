"""Identities of neighbourhoods against GraKeL's Weisfeiler-Lehman, on the same graphs in one run.

LOOKHOPS_DATA names the folder of NCI1 and DD. GraKeL is no dependency of LookHops: install it
beside (``pip install grakel``), or name the Python of an environment that has it in GRAKEL_PYTHON;
there it is timed in a process of its own, on graphs that this one hands over.

GraKeL's ``WeisfeilerLehman.fit`` gives every node its colour after 0 to h rounds and counts the
colours of each graph. Two things of ours stand against it: the identities alone, and identities
with the sparse matrix of counts. The graphs are in GraKeL's own form before its clock starts, and
both run on one thread. The number of different colours at each depth must be equal. Where there is
no GraKeL, as on a machine that was lent with its GPU, ours alone is timed and no ratio is given.

``python benchmarks/fingerprints.py --models`` compares models in place of that: ``fingerprint`` and
``wl-oa`` on ten splits of NCI1 as ``lookhops compare`` runs them, in turns split by split, so that
both meet the machine in the same state. The kernel is computed once, for the first split.

Wall time and CPU time are given: on a machine that does other work the second is the one to read.
"""

import argparse
import itertools
import json
import os
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from rich.table import Table

import lookhops
from lookhops import Graphs, Protocol
from lookhops.core.words import between
from lookhops.neighbourhoods import Vocabulary, identities
from lookhops.runs.compare import compare
from lookhops.runs.store import Store
from shared import best_of

SETS = {"NCI1": 5, "DD": 3}
WANTED = 30
MODELS = ("fingerprint", "wl-oa")
#: Never the seeds that are reported.
SEEDS = tuple(range(1001, 1011))

# Runs where GraKeL is: reads graphs from a file, prints seconds and colours a depth.
PEER = """
import json, sys, time, warnings
warnings.simplefilter("ignore")
from grakel import Graph, VertexHistogram, WeisfeilerLehman
with open(sys.argv[1]) as file:
    given = json.load(file)
hops, rounds = int(sys.argv[2]), int(sys.argv[3])
best = None
for _ in range(rounds):
    graphs = [
        Graph({i: {j: 1.0 for j in near} for i, near in enumerate(adjacency)},
              node_labels=dict(enumerate(labels)), graph_format="dictionary")
        for adjacency, labels in given
    ]
    kernel = WeisfeilerLehman(n_iter=hops, base_graph_kernel=VertexHistogram)
    wall, cpu = time.perf_counter(), time.process_time()
    kernel.fit(graphs)
    spent = time.perf_counter() - wall, time.process_time() - cpu
    best = spent if best is None else min(best, spent, key=lambda one: one[1])
colours = [len(kernel._inv_labels[hop]) for hop in range(hops + 1)]
print(json.dumps({"seconds": best, "colours": colours}))
"""


def in_plain_python(graphs: Graphs) -> list[tuple[list[list[int]], list[int]]]:
    """Of each graph the neighbours and the label of its nodes."""
    node_ptr, row_ptr, source = (
        t.tolist() for t in (graphs.node_ptr, graphs.row_ptr, graphs.source)
    )
    assert graphs.nodes.labels is not None
    labels = graphs.nodes.labels[:, 0].tolist()
    return [
        (
            [[j - first for j in source[row_ptr[i] : row_ptr[i + 1]]] for i in range(first, end)],
            labels[first:end],
        )
        for first, end in itertools.pairwise(node_ptr)
    ]


def peer(graphs: Graphs, hops: int, rounds: int) -> dict[str, Any] | None:
    """Seconds and colours of GraKeL, or none where it is not installed."""
    python = os.environ.get("GRAKEL_PYTHON", sys.executable)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "graphs.json"
        file.write_text(json.dumps(in_plain_python(graphs)))
        command = [python, "-c", PEER, str(file), str(hops), str(rounds)]
        # Our own path must not lead another Python to the packages of this one.
        clean = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
        done = subprocess.run(command, capture_output=True, text=True, env=clean)
    if done.returncode and "No module named 'grakel'" in done.stderr:
        return None
    if done.returncode:
        sys.exit(f"fingerprints.py: GraKeL did not run in {python}: {done.stderr[-500:]}")
    return json.loads(done.stdout)


def counted(graphs: Graphs, hops: int) -> object:
    """Every colour of every graph, counted: what GraKeL's fit ends with."""
    identity = identities(graphs, hops)
    vocabulary = Vocabulary.choose(graphs, identity, min_graphs=1)
    return vocabulary.rows(graphs, identity).to_scipy()


def on_gpu(graphs: Graphs, hops: int) -> tuple[float, float]:
    moved = graphs.to("cuda")

    def task() -> None:
        identities(moved, hops)
        torch.cuda.synchronize()

    return best_of(20, task)[0]


def compare_models(console: Console) -> None:
    """What ``lookhops compare NCI1 --models fingerprint,wl-oa`` takes, model by model."""
    graphs = lookhops.load("NCI1")
    spent = {model: [0.0, 0.0] for model in MODELS}
    with tempfile.TemporaryDirectory() as folder, Store(Path(folder) / "runs.sqlite") as store:
        run = partial(compare, store=store, device="cpu")
        run(graphs[::20], MODELS, Protocol(seeds=SEEDS[:1], max_epochs=1))  # what is imported late
        for seed, model in itertools.product(SEEDS, MODELS):
            task = partial(run, graphs, [model], Protocol(seeds=(seed,)))
            spent[model] = [a + b for a, b in zip(spent[model], best_of(1, task)[0], strict=True)]
            console.print(f"seed {seed}, {model}: {spent[model][1]:.1f} s of CPU so far")
        found = run(graphs, MODELS, Protocol(seeds=SEEDS))  # all there: nothing is trained
    table = Table(title=f"{len(SEEDS)} splits of NCI1, one thread", title_justify="left")
    for heading in ("", "wall s", "CPU s", "validation accuracy", "test accuracy"):
        table.add_column(heading, justify="right" if heading else "left")
    for cell in found.cells.values():
        val = sum(run.metrics["val_accuracy"] for run in cell.runs) / len(cell.runs)
        test = sum(found.scores[cell.model]) / len(SEEDS)
        times = (f"{seconds:.0f}" for seconds in spent[cell.model])
        table.add_row(cell.model, *times, f"{100 * val:.1f}", f"{test:.1f}")
    console.print(table)
    [pair] = found.pairs
    difference = pair.difference
    ends = "" if difference.interval is None else f", 95% {between(difference.interval)}"
    console.print(f"{pair.first} minus {pair.second}, test: {difference.mean:.1f}{ends}")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--models", action="store_true", help="compare models")
    folder = Path(os.environ.get("LOOKHOPS_DATA", ""))
    if not all((folder / f"{name}.zip").is_file() for name in SETS):
        sys.exit("fingerprints.py: set LOOKHOPS_DATA to a folder with NCI1.zip and DD.zip")
    torch.set_num_threads(1)
    console = Console(highlight=False)
    (compare_models if parser.parse_args().models else compare_identities)(console)


def compare_identities(console: Console) -> None:
    """Identities and counts against GraKeL's, set by set."""
    table = Table(title="Neighbourhoods against GraKeL", title_justify="left")
    for heading in ("", "wall s", "CPU s", "times as fast, wall / CPU"):
        table.add_column(heading, justify="right" if heading else "left")
    for name, hops in SETS.items():
        graphs = lookhops.load(name)
        theirs = peer(graphs, hops, rounds=2)
        found = identities(graphs, hops)
        colours = [column.unique().numel() for column in found.unbind(1)]
        if theirs is not None and colours != theirs["colours"]:
            sys.exit(f"fingerprints.py: {name} has {colours} colours, {theirs['colours']} there")
        rows = {} if theirs is None else {"GraKeL": theirs["seconds"]}
        rows |= {
            "identities": best_of(10, partial(identities, graphs, hops))[0],
            "identities and counts": best_of(3, partial(counted, graphs, hops))[0],
        }
        if torch.cuda.is_available():
            rows["identities, GPU"] = on_gpu(graphs, hops)
        for what, (wall, cpu) in rows.items():
            ratio = ""
            if theirs is not None and what != "GraKeL":
                slow = theirs["seconds"]
                ratio = f"{slow[0] / wall:.0f} / {slow[1] / cpu:.0f}"
            table.add_row(f"{name}, h = {hops}: {what}", f"{wall:.4f}", f"{cpu:.4f}", ratio)
    console.print(table)
    if theirs is None:
        console.print("GraKeL is not installed here: no ratio.")
    else:
        console.print(
            f"Wanted of the identities: {WANTED} times. The numbers of colours are equal."
        )


if __name__ == "__main__":
    main()
