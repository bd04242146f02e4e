"""Groups of options: written once, taken by several commands."""

from dataclasses import dataclass
from typing import Annotated

import typer
from typer.testing import CliRunner

from lookhops.cli.groups import with_groups


@dataclass(frozen=True)
class Pair:
    first: Annotated[int, typer.Option(help="The first.")] = 1
    second: Annotated[str | None, typer.Option("--other", help="The other.")] = None


def test_a_group_is_its_fields_to_the_user_and_one_to_the_command():
    app = typer.Typer()
    seen = []

    @app.command()
    @with_groups
    def run(name: str, loud: bool = False, *, pair: Pair) -> None:
        """Say it."""
        seen.append((name, loud, pair))

    runner = CliRunner()
    assert runner.invoke(app, ["me"]).exit_code == 0
    assert runner.invoke(app, ["me", "--loud", "--first", "3", "--other", "x"]).exit_code == 0
    assert seen == [("me", False, Pair()), ("me", True, Pair(3, "x"))]
    text = runner.invoke(app, ["--help"]).output
    assert "Say it." in text
    assert "The other." in text
    assert "pair" not in text
