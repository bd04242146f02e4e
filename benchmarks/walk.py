"""How many functions of how many files a small `train` and a small `predict` run, by room.

    python benchmarks/walk.py            # counts
    python benchmarks/walk.py --list     # and every function

It trains the first hundred bundled solubilities from a CSV file for two epochs in this process,
then asks the model about one row, and counts the functions of this package that were called.
"""

import argparse
import inspect
import sys
import tempfile
import threading
from collections import defaultdict
from collections.abc import Callable
from contextlib import chdir, redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import lookhops
from lookhops.__main__ import main as command

PACKAGE = Path(lookhops.__file__).parent
TRAIN = (
    "train",
    "mine.csv",
    "--target",
    "value",
    "--epochs",
    "2",
    "--device",
    "cpu",
    "-o",
    "model",
)
PREDICT = ("predict", "model", "new.csv", "--device", "cpu")


def functions_of(action: Callable[[], Any]) -> dict[str, set[str]]:
    """The functions of this package that an action calls, by file."""
    codes: set[CodeType] = set()

    def profile(frame: FrameType, event: str, _: Any) -> None:
        if event == "call":
            codes.add(frame.f_code)

    threading.setprofile(profile)
    sys.setprofile(profile)
    try:
        action()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)  # type: ignore[arg-type]
    found = defaultdict(set)
    for code in codes:
        # Neither modules, classes nor comprehensions: only what somebody named and called.
        named = not code.co_name.startswith("<") and code.co_flags & inspect.CO_OPTIMIZED
        if named and Path(code.co_filename).is_relative_to(PACKAGE):
            file = Path(code.co_filename).relative_to(PACKAGE).as_posix()
            found[file].add(code.co_qualname)
    return dict(found)


def run(*arguments: str) -> None:
    """Run the command in this process; what it prints is shown only where it fails."""
    said, sys.argv = StringIO(), ["lookhops", *arguments]
    with redirect_stdout(said), redirect_stderr(said):
        try:
            command()
        except SystemExit as end:
            if end.code:
                sys.exit(f"lookhops {' '.join(arguments)}: {said.getvalue()}")


def show(title: str, found: dict[str, set[str]], every: bool) -> None:
    """Print how many functions and files there were, by room."""
    rooms: dict[str, list[str]] = defaultdict(list)
    for file in sorted(found):
        rooms[file.split("/")[0] if "/" in file else "(package)"].append(file)
    print(f"{title}: {sum(map(len, found.values()))} functions in {len(found)} files")
    for room, files in rooms.items():
        print(f"  {room:<16} {sum(len(found[file]) for file in files):>4} in {len(files):>3} files")
        for file in files if every else ():
            print(f"    {file}: {', '.join(sorted(found[file]))}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--list", action="store_true", help="print every function")
    every = parser.parse_args().list
    rows = (PACKAGE / "sources" / "solubility.csv").read_text(encoding="utf-8").splitlines()
    with tempfile.TemporaryDirectory() as folder, chdir(folder):
        Path("mine.csv").write_text("\n".join(rows[:101]) + "\n", encoding="utf-8")
        Path("new.csv").write_text("smiles\nCCO\n", encoding="utf-8")
        show("lookhops train mine.csv", functions_of(lambda: run(*TRAIN)), every)
        show("lookhops predict model new.csv", functions_of(lambda: run(*PREDICT)), every)


if __name__ == "__main__":
    main()
