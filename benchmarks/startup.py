"""Start-up: ``lookhops --help``, and from the command to the first epoch.

    python benchmarks/startup.py [--device cuda] [--data NCI1]

Each runs in a process of its own, twice: kernels that the first run compiles lie on disk for the
second. The peer of ``--help`` is Python that imports typer and rich and does nothing.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from shared import best_of

#: Runs the command, and says when its first epoch is over.
FIRST_EPOCH = """
import sys, time
from contextlib import contextmanager
start = float(sys.argv.pop(1))
from lookhops.cli import main, train
stoppable, over = train.stoppable, []

@contextmanager
def timed(again):
    with stoppable(again) as check:
        def after_epoch():
            if not over:
                print(f"first epoch over after {time.time() - start:.2f} s")
            over.append(check())
        yield after_epoch

train.stoppable = timed
main()
"""


def fastest(*words: str) -> float:
    """Seconds of the fastest of three runs of Python."""
    run = partial(subprocess.run, [sys.executable, *words], check=True, stdout=subprocess.DEVNULL)
    return best_of(3, run)[0].wall


def main() -> None:
    """Run all."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--device", default="auto")
    parser.add_argument("--data", default="NCI1")
    given = parser.parse_args()
    peer = fastest("-c", "import typer, rich.console, rich.table, rich.markdown")
    print(f"lookhops --help: {fastest('-m', 'lookhops', '--help'):.2f} s; its imports {peer:.2f} s")
    print(f"import torch: {fastest('-c', 'import torch'):.2f} s")
    with TemporaryDirectory() as name:
        for _ in range(2):
            words = ["train", given.data, "--epochs", "2", "-o", str(Path(name) / "model")]
            words += ["--overwrite", "--device", given.device]
            begin = [sys.executable, "-c", FIRST_EPOCH, str(time.time())]
            done = subprocess.run([*begin, *words], check=True, capture_output=True, text=True)
            print(next(line for line in done.stdout.splitlines() if "first epoch" in line))


if __name__ == "__main__":
    main()
