"""The most memory that a block of code held."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import torch

#: What Linux knows of this process; writing 5 to the second makes the peak begin anew.
STATUS, RESET = Path("/proc/self/status"), Path("/proc/self/clear_refs")


@dataclass
class Peak:
    """Bytes at the peak, known when the block has ended; none where the system does not say."""

    size: int | None = None


@contextmanager
def peak_memory(device: torch.device) -> Iterator[Peak]:
    """Measure the peak of the block: on a GPU what PyTorch held there, else the whole process.

    The process counts with all that was in it before, Python and PyTorch among it. Where the system
    cannot begin anew, the peak is that of the process so far.
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
