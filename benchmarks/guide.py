"""Follow the guide as a new user would: run every command and every block of Python of its pages.

    python benchmarks/guide.py docs/graphs.md docs/sure.md --quick

Each page is followed in an empty folder of its own, from top to bottom. What needs other machines,
sets something up or takes hours is left out, and said so; so is what runs past the limit. With
``--quick`` trainings have two epochs and at most two seeds: whether commands run is seen, not what
they find. Names that stand for the reader's own files (``mine.csv``) cannot but fail.
"""

from __future__ import annotations

import argparse
import os
import re
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
    r"--address|HEAD|lookhops (demo|paper|serve)|data fetch|benchmarks/|^source "
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
        elif kind in ("text", "json", "py") and named:
            yield f"file {named[1]}", content
        elif kind in ("sh", "bash", "console"):
            shown = content.replace("\\\n", "")
            lines = [line for line in shown.splitlines() if kind != "console" or line[:2] == "$ "]
            for line in lines:
                command = line.removeprefix("$ ").partition("  #")[0].strip()
                if command and not command.startswith("#"):
                    yield "sh", command


def shortened(command: str) -> str:
    """A command whose trainings are short."""
    if not re.match(r"lookhops (train|compare)", command):
        return command
    command = re.sub(r" --(epochs|seeds) \d+(?=\s|$)", "", command)
    return f"{command} --epochs 2" + (" --seeds 2" if "compare" in command else "")


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
    failed = 0
    for page in [page.resolve() for page in options.pages]:
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            failed += follow(page, options.limit, options.quick)
            os.chdir("/")
    sys.exit(f"{failed} failed" if failed else 0)


if __name__ == "__main__":
    main()
