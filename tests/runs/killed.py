"""A process that runs a tiny plan, in children that are killed or that share a store.

    python killed.py kill STORE LOG COUNT    end a child at COUNT random moments, then finish
    python killed.py share STORE LOG 2       two children at once, left alone

Everything is imported and warm before children are forked, so that any moment is one of work.
"""

import os
import random
import signal
import sys
from pathlib import Path

import torch

torch.set_num_threads(1)  # before anything runs: a forked child must not miss its threads

from lookhops.runs import executor  # noqa: E402
from lookhops.runs.plan import Cell, parse_model  # noqa: E402
from lookhops.runs.store import Store  # noqa: E402
from lookhops.sources.loading import load  # noqa: E402
from lookhops.tasks import Classification  # noqa: E402, F401
from lookhops.training import Protocol  # noqa: E402

MODELS = ("gcn/hidden=4/layers=1", "licheb/hidden=4/layers=1", "licheb+lookhops/hidden=4/layers=2")
SEEDS = {"kill": 60, "share": 15, "rehearse": 1}


def work(how: str, store: str, log: str) -> None:
    """Run the plan in a child; each start and each stored run is a line of the log."""
    graphs = load("hops-1", size=40)
    protocol = Protocol(seeds=tuple(range(1, SEEDS[how] + 1)), batch_size=64, max_epochs=1)
    cells = [Cell(graphs, name, parse_model(name), protocol) for name in MODELS]
    train, keep = executor.train_records, executor.PlanRun.keep
    file = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT)

    def say(word: str, model: object, seeds: list[int]) -> None:
        for seed in seeds:
            os.write(file, f"{word} {os.getpid()} {model} {seed}\n".encode())

    def logged_train(cell, seeds, *rest):
        say("begin", cell.model, seeds)
        return train(cell, seeds, *rest)

    def logged_keep(plan, task, records):
        keep(plan, task, records)
        say("stored", task.cell.model, task.seeds)

    executor.train_records, executor.PlanRun.keep = logged_train, logged_keep
    with Store(store) as opened:
        executor.run_plan(cells, opened, executor.Local("cpu"))


def child(*arguments: str, seconds: float = 0) -> int:
    """Work in a new process, which the system ends after so many seconds on the processor."""
    pid = os.fork()
    if pid == 0:
        code = 1
        signal.setitimer(signal.ITIMER_PROF, seconds)
        try:
            work(*arguments)
            code = 0
        finally:
            os._exit(code)
    return pid


def warm_up() -> None:
    graphs = load("hops-1", size=40)
    cell = Cell(graphs, MODELS[2], parse_model(MODELS[2]), Protocol(max_epochs=1))
    executor.train_records(cell, [1], "cpu")


def main(how: str, store: str, log: str, count: int) -> None:
    warm_up()
    if how == "share":
        pids = [child(how, store, log) for _ in range(count)]
        assert [os.waitpid(pid, 0)[1] for pid in pids] == [0] * count
        return
    # On a busy machine as much work is done in a second on the processor as on an idle one.
    _, status, used = os.wait4(child("rehearse", f"{store}.rehearsal", os.devnull), 0)
    assert status == 0
    longest = 1.5 * (used.ru_utime + used.ru_stime)
    moments = random.Random(1)
    for _ in range(count):
        pid = child(how, store, log, seconds=moments.uniform(0.01, 1) * longest)
        _, status = os.waitpid(pid, 0)
        with Path(log).open("a") as file:
            file.write(f"killed {pid} {os.waitstatus_to_exitcode(status) == -signal.SIGPROF} 0\n")
    assert os.waitpid(child(how, store, log), 0)[1] == 0


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]))
