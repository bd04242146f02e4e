"""What one of two workers does in the tests: train, and save what came out."""

import sys
from pathlib import Path

import torch
import torch.distributed as dist

from lookhops.core.errors import LookHopsError
from lookhops.training.trainer import train
from lookhops.training.workers import Workers


def refuse() -> None:
    raise LookHopsError("The folder is full.")


def main() -> None:
    folder, rank = Path(sys.argv[1]), int(sys.argv[2])
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{folder}/meet", rank=rank, world_size=2)
    cases = torch.load(folder / "cases.pt", weights_only=False)
    found = []
    for graphs, architecture, protocol, stacked in cases:
        options = {"device": "cpu", "stacked": stacked, "workers": Workers.joined()}
        runs = train(graphs, architecture, protocol, **options)
        found.append([(run.history, run.weights, run.predictions) for run in runs])
    try:
        Workers.joined().from_first(refuse)
    except LookHopsError as error:
        found.append([type(error).__name__, str(error)])
    torch.save(found, folder / f"found-{rank}.pt")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
