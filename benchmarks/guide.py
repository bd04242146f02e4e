"""Follow the guide as a new user would: run every command and every block of Python of its pages.

    python benchmarks/guide.py docs/graphs.md docs/sure.md --quick

Each page is followed in an empty folder of its own, from top to bottom. What needs other machines,
sets something up or takes hours is left out, and said so; so is what runs past the limit. With
``--quick`` trainings have two epochs and at most two seeds: whether commands run is seen, not what
they find. Under the names that stand for the reader's own files (``mine.csv``, ``new/``) lie the
bundled examples, and under ``model`` a small model of them where the page trains none.
"""

from __future__ import annotations

import argparse
import gzip
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator
from pathlib import Path

#: What is not followed: set-up, other machines, a GPU, hours.
LEFT_OUT = (
    r"^(make|pip|git|ray|sbatch|srun|torchrun|docker|curl)\b|^python -m (pip|venv)|cuda|_gpu|"
    r"--address|HEAD|lookhops (demo|serve)|lookhops paper(?!.*--time-limit 0)|data fetch|"
    r"benchmarks/|^source |^\. "
)
BLOCK = re.compile(r"^```(\S+)[^\n]*\n(.*?)^```", re.DOTALL | re.MULTILINE)
FILE = re.compile(r'[`"]([\w-]+\.(?:csv|smi|json|jsonl|py))[`"]')


def steps(text: str) -> Iterator[tuple[str, str]]:
    """What a page asks for: (``python``, code), (``sh``, command) and (``file NAME``, content)."""
    for block in BLOCK.finditer(text):
        kind, content = block[1], block[2]
        before = text[: block.start()].rstrip().rpartition("\n\n")[2]
        named = FILE.search(block[0].partition("\n")[0]) or FILE.search(before)
        if kind == "python":
            yield kind, content
        elif kind in ("text", "json", "py") and named and _is_such(named[1], content):
            yield f"file {named[1]}", content
        elif kind in ("sh", "bash", "console"):
            shown = content.replace("\\\n", "")
            lines = [line for line in shown.splitlines() if kind != "console" or line[:2] == "$ "]
            for line in lines:
                command = line.removeprefix("$ ").partition("  #")[0].strip()
                if command and not command.startswith("#"):
                    yield "sh", command


def _is_such(name: str, content: str) -> bool:
    """Whether a block can be the file, not what a command printed about it."""
    return not name.endswith(".csv") or "," in content.partition("\n")[0]


def shortened(command: str) -> str:
    """A command whose trainings are short."""
    if not (found := re.match(r"lookhops (train|compare|tune)\b", command)):
        return command
    command = re.sub(r" --(epochs|seeds|trials) [\d,]+(?=\s|$)", "", command)
    fewer = {"train": "", "compare": " --seeds 2", "tune": " --seeds 2 --trials 2"}
    return f"{command} --epochs 2{fewer[found[1]]}"


def readers_files(folder: Path) -> None:
    """Write what the pages take to be the reader's own, made of the bundled examples."""
    import pandas as pd

    import lookhops

    graphs = lookhops.load("solubility")
    smiles, values = graphs.columns["smiles"], graphs.columns["value"]
    classes = [graphs.class_names[number] for number in graphs.y]
    rows = list(zip(smiles, values, classes, strict=True))
    lines = ["smiles,logS,class\n", *(f"{a},{b},{c}\n" for a, b, c in rows)]
    table = "".join(lines)
    for name in ("mine.csv", "molecules.csv", "library.csv", "many.csv"):
        (folder / name).write_text(table)
    (folder / "new.csv").write_text("".join(lines[:20]))
    (folder / "later.csv").write_text("".join((lines[0], *lines[-200:])))
    assays = [f"{a},{i % 2},{i % 3 % 2 if i % 5 else ''},{b}\n" for i, (a, b, _) in enumerate(rows)]
    (folder / "assays.csv").write_text("smiles,ahr,p53,logS\n" + "".join(assays))
    (folder / "new.smi").write_text("\n".join(smiles[:20]) + "\n")
    for name, text in (("library.csv.gz", table), ("huge.smi.gz", "\n".join(smiles) + "\n")):
        (folder / name).write_bytes(gzip.compress(text.encode()))
    for command in (
        "lookhops data example new --cases 20",
        "lookhops train solubility --epochs 2 --hidden 16 --layers 2 -o model",
    ):
        subprocess.run(["bash", "-c", command], check=True, capture_output=True, cwd=folder)
    for name in ("edges", "nodes", "graphs"):
        pd.read_csv(folder / f"new/{name}.csv").to_parquet(folder / f"{name[0]}.parquet")


def follow(page: Path, limit: float, quick: bool) -> int:
    """Follow a page in the present folder; how many steps failed."""
    names: dict[str, object] = {}
    failed = 0
    for kind, what in steps(page.read_text("utf-8")):
        begun, said, first = time.perf_counter(), "ok", what.strip().splitlines()[0]
        if kind.startswith("file "):
            Path(kind[5:]).write_text(what)
            continue
        try:
            if kind == "python":
                exec(compile(what, str(page), "exec"), names)
            elif re.search(LEFT_OUT, what):
                said = "left out"
            else:
                what = shortened(what) if quick else what
                if found := re.match(r"lookhops data example (\S+)", what):
                    shutil.rmtree(found[1], ignore_errors=True)  # that of other pages
                command = ["bash", "-c", what]
                subprocess.run(command, check=True, capture_output=True, text=True, timeout=limit)
        except subprocess.TimeoutExpired:
            said = "past the limit"
        except subprocess.CalledProcessError as error:
            said = f"FAILED ({error.returncode}): {error.stderr.strip()[-300:]}"
        except Exception:
            said = f"FAILED: {traceback.format_exc(limit=-1)}"
        failed += said.startswith("FAILED")
        print(
            f"{page.name}: {time.perf_counter() - begun:6.1f} s  {first[:90]}  {said}", flush=True
        )
    return failed


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("pages", nargs="+", type=Path)
    parser.add_argument("--limit", type=float, default=600, help="Seconds for one command.")
    parser.add_argument("--quick", action="store_true", help="Trainings of two epochs.")
    options = parser.parse_args()
    os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    pages, failed = [page.resolve() for page in options.pages], 0
    with tempfile.TemporaryDirectory() as parent:
        own = Path(parent) / "own"
        own.mkdir()
        readers_files(own)
        for page in pages:
            text = page.read_text("utf-8").replace("\\\n", "")
            trains = re.search(r"lookhops train .*-o model\b", text)
            left = shutil.ignore_patterns("model") if trains else None
            folder = shutil.copytree(own, Path(parent) / page.stem, ignore=left)
            os.chdir(folder)
            failed += follow(page, options.limit, options.quick)
            os.chdir("/")
    sys.exit(f"{failed} failed" if failed else 0)


if __name__ == "__main__":
    main()
