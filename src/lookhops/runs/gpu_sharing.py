"""One GPU for several processes, whose kernels run side by side: NVIDIA's MPS."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

CONTROL = "nvidia-cuda-mps-control"


@contextmanager
def shared_gpu(wanted: bool = True) -> Iterator[Mapping[str, str]]:
    """What processes must find in their environment to share a GPU, while the block runs.

    MPS is started for the block where the machine has it and nobody has started it; without it
    processes take turns, which is slower and gives the same numbers.

    Args:
        wanted: Whether there will be several processes.
    """
    control = shutil.which(CONTROL) if wanted else None
    if control is None or "CUDA_MPS_PIPE_DIRECTORY" in os.environ:
        yield {}
        return
    with TemporaryDirectory(prefix="lookhops-mps-") as folder:
        own = {f"CUDA_MPS_{what}_DIRECTORY": str(Path(folder) / what) for what in ("PIPE", "LOG")}
        for path in own.values():
            Path(path).mkdir()
        every = {**os.environ, **own}
        started = subprocess.run([control, "-d"], env=every, capture_output=True, check=False)
        try:
            yield own if started.returncode == 0 else {}
        finally:
            if started.returncode == 0:
                quit_it = {"input": b"quit -t 5\n", "timeout": 30, "capture_output": True}
                subprocess.run([control], env=every, check=False, **quit_it)  # type: ignore[call-overload]
