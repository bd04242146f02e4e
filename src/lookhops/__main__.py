"""The command ``lookhops``: Ctrl-C is one line at any moment, while Python imports too.

Nothing that takes time may be imported here before the handler stands.
"""

from __future__ import annotations

import atexit
import os
import signal
import sys
from contextlib import suppress
from types import FrameType


def _stop(number: int, frame: FrameType | None) -> None:
    os.write(2, b"lookhops: interrupted.\n")
    os._exit(128 + number)


def main() -> None:
    """Run the command, and end the process."""
    before = signal.signal(signal.SIGINT, _stop)
    ended: list[int] = []
    atexit.register(_leave, ended)  # before all others, so that it is called after them
    from lookhops.cli import main as command

    signal.signal(signal.SIGINT, before)
    try:
        command()
    except SystemExit as end:
        if isinstance(end.code, int | None):
            ended.append(end.code or 0)
        raise
    finally:
        signal.signal(signal.SIGINT, _stop)  # while Python takes everything down


def _leave(ended: list[int]) -> None:
    """End at once where all is said: to take every module down again takes half a second."""
    if ended:
        with suppress(OSError):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(ended[0])


if __name__ == "__main__":
    main()
