"""One good file of every format, how each is damaged, and the commands that read it."""

import gzip
import json
import shutil
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import pandas as pd
from damage import (
    damaged_bytes,
    damaged_json_text,
    damaged_safetensors,
    damaged_table,
)

from lookhops.core.errors import LookHopsError
from lookhops.core.options import Architecture, Protocol
from lookhops.models import train_into
from lookhops.sources.loading import load
from lookhops.sources.splits import split, write_splits
from tu_files import TINY, write_folder, write_zip

Damage = Callable[[bytes, Random], bytes]
SMILES = (
    *("CCO", "CCN", "c1ccccc1", "CC(=O)O", "CCCl", "C1CCCCC1"),
    *("CC#N", "CCBr", "CO", "CCCC", "CNC", "OCCO"),
)
SMALL = Architecture(hidden=4, layers=2, pool="lookhops")
COMPARE = "compare hops-1 --task-size 40 --models gcn --seeds 2 --epochs 1 --device cpu"
RESUME = (
    "train FOLDER/g.graphs -o FOLDER/model --resume --seeds 1, --epochs 2 --device cpu "
    "--hidden 4 --layers 2"
)


@dataclass(frozen=True)
class Format:
    """A format.

    Args:
        make: Writes a good one of it, and all that its commands need, to a folder.
        files: What is damaged, each with how.
        commands: Those that read it; FOLDER stands for the folder.
        slow: More of them, that train or ask a model: tried now and then.
    """

    make: Callable[[Path], object]
    files: dict[str, Damage]
    commands: Sequence[str]
    slow: Sequence[str] = ()


def make_model(folder: Path) -> None:
    graphs = load("hops-1", task_size=40)
    graphs[:4].save(folder / "few.graphs")
    train_into(folder / "model", graphs, SMALL, Protocol(seeds=(1,), max_epochs=2), device="cpu")
    from lookhops.core.files import write_json
    from lookhops.neighbourhoods import look

    write_json(folder / "model" / "information.json", look(graphs, bootstrap=0).to_dict())


def make_molecules(folder: Path) -> None:
    rows = [f"{s},m{i},{i % 2},{i * 0.5}" for i, s in enumerate(SMILES)]
    (folder / "m.csv").write_text("smiles,id,class,value\n" + "\n".join(rows) + "\n")
    (folder / "m.smi").write_text("".join(f"{s} m{i}\n" for i, s in enumerate(SMILES)))
    from rdkit import Chem

    with Chem.SDWriter(str(folder / "m.sdf")) as writer:
        for i, smiles in enumerate(SMILES):
            molecule = Chem.MolFromSmiles(smiles)
            molecule.SetProp("class", str(i % 2))
            writer.write(molecule)


def make_edge_tables(folder: Path) -> None:
    """Tables of cases of money transfers: apart, packed, as Parquet, and one graph a line."""
    from lookhops.sources.bundled import write_transfers

    write_transfers(folder / "tables", cases=12)
    edges = (folder / "tables" / "edges.csv").read_bytes()
    (folder / "e.csv.gz").write_bytes(gzip.compress(edges))
    pd.read_csv(BytesIO(edges)).to_parquet(folder / "e.parquet")
    lines = []
    for number in range(12):
        nodes = [{"id": i, "age": i % 5, "kind": "ab"[i % 2]} for i in range(5 + number % 2)]
        ends = [{"source": i, "target": i + 1, "amount": 0.5 * i} for i in range(len(nodes) - 1)]
        lines.append({"id": f"g{number}", "class": number % 2, "nodes": nodes, "edges": ends})
    (folder / "g.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))


def make_splits(folder: Path) -> None:
    graphs = load("hops-1", task_size=40)
    graphs.save(folder / "g.graphs")
    write_splits(folder / "splits.json", [split(graphs, seed) for seed in (1, 2)])


def make_store(folder: Path) -> None:
    """Of a row of the paper, for `paper --from`."""
    run(f"{COMPARE} --store {folder}/s.sqlite -o {folder}/out")


def make_resume(folder: Path) -> None:
    """A training that ended after its first epoch."""
    from lookhops.cli import train

    load("hops-1", task_size=40).save(folder / "g.graphs")

    def stop(progress: object) -> None:
        raise LookHopsError("stop here")

    real = train._tensorboard
    train._tensorboard = lambda given: nullcontext(stop)
    run(RESUME.replace("FOLDER", str(folder)))
    train._tensorboard = real


def damaged_store(content: bytes, random: Random) -> bytes:
    """Values of rows other than they were, with SQLite's own tools; or other bytes."""
    if random.random() < 0.4:
        return damaged_bytes(content, random)
    with TemporaryDirectory() as folder:
        path = Path(folder) / f"{random.random()}.sqlite"
        path.write_bytes(content)
        db = sqlite3.connect(path)
        table = random.choice(("runs", "runs", "facts", "claims"))
        if table == "claims":
            owner = random.choice(("", "x", ":::", "a:b:c", None, 5, f"{'9' * 30}:1:1"))
            db.execute("INSERT INTO claims VALUES ('f', 'a', 'p', 1, ?, ?)", (str(owner), "text"))
        columns = [row[1] for row in db.execute(f"PRAGMA table_info({table})")]
        column = random.choice(columns)
        how = random.randrange(4)
        old = db.execute(f"SELECT {column} FROM {table} LIMIT 1").fetchone()
        if how == 0:
            db.execute(f"ALTER TABLE {table} RENAME COLUMN {column} TO other")
        elif old and isinstance(old[0], str) and old[0].startswith(("{", "[")):
            text = damaged_json_text(old[0].encode(), random).decode(errors="replace")
            db.execute(f"UPDATE {table} SET {column} = ?", (text,))
        else:
            value = random.choice((0, -1, 1.5, "text", b"\0\1", 2**62, ""))
            with suppress(sqlite3.IntegrityError):  # a column that takes whole numbers alone
                db.execute(f"UPDATE OR IGNORE {table} SET {column} = ?", (value,))
        db.commit()
        db.close()
        return path.read_bytes()


def damaged_zip(content: bytes, random: Random) -> bytes:
    """Damaged numbers in a whole archive, or a damaged archive."""
    if random.random() < 0.4:
        return damaged_bytes(content, random)
    name, texts = f"{random.random()}.zip", dict(TINY)
    part = random.choice(list(texts))
    texts[part] = damaged_table(texts[part].encode(), random).decode(errors="replace")
    with TemporaryDirectory() as folder:
        return write_zip(Path(folder) / name, texts).read_bytes()


def damaged_gzip(content: bytes, random: Random) -> bytes:
    """A damaged table in a whole file, a damaged file, or one that is too large."""
    how = random.random()
    if how < 0.4:
        return damaged_bytes(content, random)
    if how < 0.42:
        return gzip.compress(b"graph,source,target\n" + b"1,1,2\n" * (6 << 20), 1)
    return gzip.compress(damaged_table(gzip.decompress(content), random), 1)


def damaged_parquet(content: bytes, random: Random) -> bytes:
    """Other columns, values of other types, or other bytes."""
    if random.random() < 0.4:
        return damaged_bytes(content, random)
    frame = pd.read_parquet(BytesIO(content))
    name = random.choice(list(frame.columns))
    how = random.randrange(5)
    if how == 0:
        frame = frame.drop(columns=name)
    elif how == 1:
        frame = frame.rename(columns={name: random.choice(("", "x", "smiles", "graph ", "\u202e"))})
    elif how == 2:
        frame = frame.iloc[: random.choice((0, 1, 2))]
    else:
        cells = frame[name].tolist()
        value = random.choice((None, float("nan"), float("inf"), -1, 2**62, "", "\x1b[31m", "²"))
        chosen = range(len(cells)) if how == 3 else [random.randrange(len(cells))]
        for row in chosen:
            cells[row] = value
        alike = all(isinstance(cell, int | float) for cell in cells)
        frame[name] = cells if alike else [None if c is None else str(c) for c in cells]
    changed = BytesIO()
    frame.to_parquet(changed)
    return changed.getvalue()


def damaged_lines(content: bytes, random: Random) -> bytes:
    """One line of JSON other than it was, gone, or twice."""
    lines = content.splitlines()
    place = random.randrange(len(lines))
    how = random.randrange(8)
    if how == 0:
        del lines[place]
    elif how == 1:
        lines.insert(place, lines[place])
    else:
        lines[place] = damaged_json_text(lines[place], random)
    return b"\n".join(lines)


def run(line: str) -> int:
    """Run the command in this process; its exit code."""
    import sys

    from lookhops.cli import main

    sys.argv = ["lookhops", *line.split()]
    try:
        main()
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else int(stop.code is not None)
    return 0


READ = (
    "data info {}",
    "look {} --bootstrap 0 --max-k 3 --max-hops 1 --seeds 1 --json",
    "data convert {} FOLDER/packed.graphs",
    "params {}",
)
TRAIN = "train {} -o FOLDER/new --seeds 1 --epochs 1 --device cpu --hidden 4 --layers 1 --overwrite"


OF_MODELS = (
    "predict FOLDER/model {}",
    "evaluate FOLDER/model {} --json",
    "explain FOLDER/model {} --json",
    "embed FOLDER/model {} -o FOLDER/x.npy",
)
LEARN = (
    TRAIN,
    "compare {} --models gcn,baseline --seeds 2 --epochs 1 --device cpu --store FOLDER/c.sqlite",
)


def readers(name: str, lines: Sequence[str] = READ) -> list[str]:
    """The commands that read a source."""
    return [line.format(f"FOLDER/{name}") for line in lines]


def with_model(make: Callable[[Path], object], source: str) -> Callable[[Path], None]:
    """The files, and a model of one of them."""

    def write(folder: Path) -> None:
        make(folder)
        graphs = load(folder / source)
        train_into(folder / "model", graphs, SMALL, Protocol((1,), max_epochs=1), device="cpu")

    return write


FORMATS = {
    "model": Format(
        make_model,
        {
            "model/config.json": damaged_json_text,
            "model/information.json": damaged_json_text,
            "model/history.csv": damaged_table,
            "model/predictions.csv": damaged_table,
            "model/model.safetensors": damaged_safetensors,
            "model/reference.safetensors": damaged_safetensors,
        },
        (
            "predict FOLDER/model FOLDER/few.graphs",
            "explain FOLDER/model FOLDER/few.graphs --json",
            "evaluate FOLDER/model FOLDER/few.graphs",
            "embed FOLDER/model FOLDER/few.graphs -o FOLDER/x.npy",
            "report FOLDER/model -o FOLDER/report.html",
        ),
    ),
    "packed graphs": Format(
        with_model(
            lambda folder: load("hops-1", task_size=40).save(folder / "g.graphs"), "g.graphs"
        ),
        {"g.graphs": damaged_safetensors},
        readers("g.graphs"),
        readers("g.graphs", (*LEARN, *OF_MODELS)),
    ),
    "archive": Format(
        lambda folder: write_zip(folder / "TINY.zip", TINY),
        {"TINY.zip": damaged_zip},
        readers("TINY.zip"),
    ),
    "TU folder": Format(
        lambda folder: write_folder(folder / "TINY", TINY),
        {f"TINY/TINY_{part}.txt": damaged_table for part in TINY},
        readers("TINY"),
    ),
    "tables": Format(
        with_model(make_edge_tables, "tables"),
        {f"tables/{name}.csv": damaged_table for name in ("edges", "nodes", "graphs")},
        readers("tables"),
        readers("tables", (*LEARN, *OF_MODELS)),
    ),
    "packed table": Format(make_edge_tables, {"e.csv.gz": damaged_gzip}, readers("e.csv.gz")[:3]),
    "parquet": Format(make_edge_tables, {"e.parquet": damaged_parquet}, readers("e.parquet")[:3]),
    "node-link": Format(
        make_edge_tables, {"g.jsonl": damaged_lines}, readers("g.jsonl"), readers("g.jsonl", LEARN)
    ),
    "molecules": Format(
        with_model(make_molecules, "m.csv"),
        {"m.csv": damaged_table, "m.smi": damaged_table, "m.sdf": damaged_bytes},
        [
            line
            for name in ("m.csv", "m.smi", "m.sdf")
            for line in (*readers(name)[:1], f"data convert FOLDER/{name} FOLDER/packed.graphs")
        ],
        [
            line
            for name in ("m.csv", "m.smi", "m.sdf")
            for line in readers(name, OF_MODELS)
            if (name, line.split()[0]) != ("m.smi", "evaluate")  # it has no classes
        ],
    ),
    "splits": Format(
        make_splits,
        {"splits.json": damaged_json_text},
        [
            f"{TRAIN.format('FOLDER/g.graphs')} --splits FOLDER/splits.json".replace(
                "--seeds 1 ", ""
            )
        ],
    ),
    "store": Format(
        make_store,
        {"s.sqlite": damaged_store},
        (
            "report FOLDER/s.sqlite -o FOLDER/report.html",
            f"{COMPARE} --store FOLDER/s.sqlite --time-limit 0",
        ),
    ),
    "results": Format(
        make_store,
        {"out/runs.json": damaged_json_text},
        (
            "report FOLDER/out/runs.json -o FOLDER/report.html",
            "paper --from FOLDER/out/runs.json -o FOLDER/paper",
        ),
    ),
    "resume state": Format(
        make_resume,
        {
            "model/resume/settings.json": damaged_json_text,
            "model/resume/1.safetensors": damaged_safetensors,
        },
        (RESUME,),
    ),
}


def copy(start: Path, folder: Path) -> None:
    """A fresh copy of the good files."""
    if folder.exists():
        shutil.rmtree(folder)
    shutil.copytree(start, folder)
