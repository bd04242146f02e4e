"""How a training computes: device, threads, memory, precision and random numbers."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from lookhops.core.errors import LookHopsError
from lookhops.core.options import Architecture, Protocol
from lookhops.encoding import Encoding
from lookhops.graphs import Graphs
from lookhops.nn import GraphNetwork
from lookhops.tasks import Task


def choose_device(device: str | torch.device) -> torch.device:
    """The device that a name stands for."""
    if device == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        chosen = torch.device(device)
        torch.empty(1, device=chosen).tolist()  # those of the device meta have no numbers
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        raise LookHopsError(f"There is no device {str(device)!r} here.") from error
    return chosen


#: Numbers that a thread is worth: below that, threads wait longer for each other than they compute,
#: and where other programs hold the cores, much longer.
WORK = 1 << 19


def threads_of(graphs: Graphs, architecture: Architecture, protocol: Protocol) -> int:
    """The threads that a batch of these graphs is worth: one for little work.

    The answer does not depend on what else the machine does, so that neither do the numbers.
    """
    nodes = protocol.batch_size * graphs.num_nodes / max(len(graphs), 1)
    return max(min(torch.get_num_threads(), int(nodes * architecture.hidden) // WORK), 1)


@contextmanager
def limited_threads(count: int) -> Iterator[None]:
    """PyTorch's operations take so many threads in the block."""
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@contextmanager
def dense_products(precision: str) -> Iterator[None]:
    """Dense products of the block round as the precision says; afterwards as before."""
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high" if precision == "tf32" else "highest")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)


#: Linux's status of this process; writing 5 to the second resets its peak.
STATUS, RESET = Path("/proc/self/status"), Path("/proc/self/clear_refs")


@dataclass
class Peak:
    """Bytes at the peak, set when the block has ended; none where the system does not say."""

    size: int | None = None


@contextmanager
def peak_memory(device: torch.device) -> Iterator[Peak]:
    """Measure the peak of the block: on a GPU what PyTorch held there, else the whole process.

    Where the system cannot reset it, the peak is that of the process so far.
    """
    peak = Peak()
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
        yield peak
        peak.size = torch.cuda.max_memory_allocated(device)
        return
    with suppress(OSError):
        RESET.write_text("5")
    yield peak
    peak.size = _process_peak()


def _process_peak() -> int | None:
    with suppress(OSError):
        for line in STATUS.read_text().splitlines():
            if line.startswith("VmHWM:"):
                return 1024 * int(line.split()[1])
    try:
        import resource
    except ImportError:  # Windows
        return None
    used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return used if sys.platform == "darwin" else 1024 * used


def seeded_model(
    seed: int, in_channels: int, out_channels: int, architecture: Architecture, **sizes: int
) -> GraphNetwork:
    """A network with this seed's initial weights, whatever was drawn before."""
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)  # weights are drawn on the CPU
        return GraphNetwork.from_architecture(in_channels, out_channels, architecture, **sizes)


def unweighted(graphs: Graphs, task: Task, architecture: Architecture) -> GraphNetwork:
    """The network that these graphs would get, without weights: it shows what it is made of."""
    encoding = Encoding.fit(graphs, architecture.reads_edges, architecture.totals)
    sizes = {"in_channels": encoding.width, "out_channels": task.out_channels, **encoding.sizes}
    with torch.device("meta"):
        return GraphNetwork.from_architecture(architecture=architecture, **sizes)


def shuffled(train: Tensor, seed: int, epoch: int) -> Tensor:
    """The training graphs in an epoch's order: from a fresh generator, so that a run can go on."""
    generator = torch.Generator().manual_seed(_epoch_seed(seed, epoch))
    return train[torch.randperm(len(train), generator=generator)]


def dropout_key(seed: int, epoch: int) -> int:
    """What an epoch's dropout follows from: seed and epoch, 32 bits each, as a signed integer."""
    bits = seed << 32 | epoch
    return bits - (1 << 64) if bits >> 63 else bits


@contextmanager
def layers_of_others(seed: int, epoch: int, device: torch.device) -> Iterator[None]:
    """Fix PyTorch's generators for layers that draw from them, and put them back afterwards.

    Ours draw from a :func:`dropout_key`; a layer that a user registered may not.
    """
    # For a GPU that is not used, `torch.manual_seed` would note down every call with its stack.
    on_gpu = device.type == "cuda"
    fix = torch.manual_seed if on_gpu else torch.default_generator.manual_seed
    with torch.random.fork_rng(devices=[device] if on_gpu else []):
        fix(_epoch_seed(seed, epoch))
        yield


def _epoch_seed(seed: int, epoch: int) -> int:
    return seed * 1_000_003 + epoch
