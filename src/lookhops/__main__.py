"""The command ``lookhops``: Ctrl-C is one line at any moment, while Python imports too.

Nothing else may be imported here before the handler stands.
"""

from __future__ import annotations

import os
import signal
from types import FrameType


def _stop(number: int, frame: FrameType | None) -> None:
    os.write(2, b"lookhops: interrupted; what was already written is kept.\n")
    os._exit(128 + number)


def main() -> None:
    """Run the command."""
    before = signal.signal(signal.SIGINT, _stop)
    from lookhops.cli import main as command

    signal.signal(signal.SIGINT, before)
    try:
        command()
    finally:
        signal.signal(signal.SIGINT, _stop)  # while Python takes everything down


if __name__ == "__main__":
    main()
