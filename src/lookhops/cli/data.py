"""``lookhops data``: list, describe, convert and fetch sets of graphs."""

import typer

app = typer.Typer(help="List, describe, convert and fetch sets of graphs.", no_args_is_help=True)
