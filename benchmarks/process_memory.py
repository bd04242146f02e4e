"""What a process holds in main memory, looked at while it runs."""

from __future__ import annotations

import threading
import time
from pathlib import Path


class Memory(threading.Thread):
    """The most memory of this process, in GiB, looked at ten times a second.

    ``own`` is its anonymous memory, which counts against other programs; ``mapped`` are the pages
    of files that the system cached for it, and may take back.
    """

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.own = self.mapped = 0.0
        self.start()

    def run(self) -> None:
        while True:
            status = dict(
                line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines()
            )
            own, mapped, shared = (
                int(status[name].split()[0]) / 2**20 for name in ("RssAnon", "RssFile", "RssShmem")
            )
            self.own, self.mapped = max(self.own, own + shared), max(self.mapped, mapped)
            time.sleep(0.1)

    def __str__(self) -> str:
        return f"{self.own:.2f} GiB of its own, {self.mapped:.2f} GiB of mapped files"
