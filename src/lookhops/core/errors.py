"""The one error that a user can cause."""

from __future__ import annotations


class LookHopsError(ValueError):
    """Something a user can mend: what was wrong, where (file and line) and what to do.

    The command line prints it in one line and exits with 2; it never shows a traceback.
    """
