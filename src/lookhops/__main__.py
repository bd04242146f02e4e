"""``python -m lookhops``: the command ``lookhops``."""

from lookhops.cli import main

main()
