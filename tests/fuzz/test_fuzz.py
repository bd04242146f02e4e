"""Whatever a file says: no traceback, no hang, no memory without bounds; exit code 0 or 2.

``LOOKHOPS_FUZZ`` says how many cases are tried (``make fuzz``: 20,000).
"""

import os
import resource
import signal
import time
from functools import cache
from pathlib import Path
from random import Random
from tempfile import mkdtemp

import pytest
from formats import FORMATS, copy, run
from hypothesis import Phase, example, given, settings
from hypothesis import strategies as st

from lookhops.sources.rdkit.workers import ParsingPool

CASES = int(os.environ.get("LOOKHOPS_FUZZ", "2000"))
#: Seconds, and bytes beyond what there was.
SECONDS, MEMORY = 10, 1 << 30
#: Share of the cases of a format whose command trains or asks a model.
SLOW = 0.04
#: Of all cases; those that often end in a training are few.
SHARES = {
    **{"results": 0.17, "archive": 0.18, "packed graphs": 0.16, "model": 0.07, "store": 0.1},
    **{"TU folder": 0.06, "tables": 0.06, "parquet": 0.05, "node-link": 0.05, "molecules": 0.05},
    **{"packed table": 0.03, "splits": 0.01, "resume state": 0.01},
}
#: Cases that have failed once.
KEPT = [("model", seed) for seed in (39, 137, 221, 305, 380, 435, 4669)] + [
    ("splits", 6),
    ("parquet", 789),
    ("parquet", 2812995),
    ("node-link", 4614),
    ("store", 1011015),
    ("store", 2259250),
    ("results", 2835),
    ("molecules", 4299),
]


@cache
def good(name: str) -> Path:
    """A folder with a good file of the format; made once."""
    list(ParsingPool(1).map([["C"]]))  # no case waits for RDKit to load
    folder = Path(mkdtemp(prefix="lookhops-fuzz-")) / "good"
    folder.mkdir()
    FORMATS[name].make(folder)
    return folder


def attempt(name: str, seed: int) -> None:
    """Damage a file and run a command that reads it."""
    random, kind, start = Random(seed), FORMATS[name], good(name)
    folder = start.with_name("bad")
    copy(start, folder)
    file, damage = random.choice(list(kind.files.items()))
    path = folder / file
    path.write_bytes(damage(path.read_bytes(), random))
    known = kind.slow if kind.slow and random.random() < SLOW else kind.commands
    commands = [line for line in known if path.name in line] or list(known)
    line = random.choice(commands).replace("FOLDER", str(folder))
    before, start_time = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.monotonic()
    signal.signal(signal.SIGALRM, signal.default_int_handler)
    signal.alarm(SECONDS)
    try:
        code = run(line)
    finally:
        signal.alarm(0)
    assert code in (0, 2), f"exit code {code}: {line}"
    assert time.monotonic() - start_time < SECONDS, line
    grown = 1024 * (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
    assert grown < MEMORY, line


@pytest.mark.parametrize("name", FORMATS)
def test_good_files_are_read(name, capsys):
    for line in (*FORMATS[name].commands, *FORMATS[name].slow):
        folder = good(name).with_name("bad")
        copy(good(name), folder)
        assert run(line.replace("FOLDER", str(folder))) == 0, capsys.readouterr().err


@pytest.mark.parametrize("name", FORMATS)
def test_bad_files_are_refused_or_read(name):
    share = max(1, round(CASES * SHARES[name]))

    @settings(max_examples=share, phases=[Phase.explicit, Phase.generate], derandomize=True)
    @given(st.integers(0, 2**32 - 1))
    def check(seed: int) -> None:
        attempt(name, seed)

    for kept, seed in KEPT:
        if kept == name:
            check = example(seed)(check)
    check()
