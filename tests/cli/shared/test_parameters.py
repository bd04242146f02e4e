"""Options of dataclasses: written once, taken by several commands."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import typer
from typer.testing import CliRunner

from lookhops.cli.shared.parameters import with_options
from lookhops.core.schema import option


@dataclass(frozen=True)
class Tea:
    """How tea is made.

    Args:
        sugar: Lumps of sugar.
        milk: With milk.
        hot: Hot or not; by default as the weather is.
        cup: The other cup.
        leaf: Which leaves, or none.
        name: Not asked for.
    """

    sugar: int = option(1, least=0)
    milk: bool = option(False, flag="--white")
    hot: bool | None = None
    cup: Annotated[Path | None, typer.Option("--other", help="Another cup.")] = None
    leaf: str | None = "green"
    name: str = "tea"


SWEET = Tea(4)


def test_a_dataclass_is_its_options_to_the_user_and_one_object_to_the_command():
    app, seen = typer.Typer(), []

    @app.command()
    @with_options
    def serve(
        name: str,
        loud: bool = False,
        device: str = "kettle",
        *,
        tea: Annotated[Tea, "The tea"] = SWEET,
    ) -> None:
        """Serve it."""
        seen.append((name, loud, tea))

    def run(*words):
        return CliRunner().invoke(app, [*words], env={"COLUMNS": "80"})

    assert run("me").exit_code == 0
    assert run("me", "--loud", "--sugar", "3", "--white", "--no-hot", "--other", "x").exit_code == 0
    assert seen == [("me", False, SWEET), ("me", True, Tea(3, True, False, Path("x")))]
    assert run("me", "--leaf", "none").exit_code == 0
    assert seen[-1][2] == replace(SWEET, leaf=None)
    assert run("me", "--sugar", "-1").exit_code == 2
    text = run("--help").output
    for said in (
        "Serve it.",
        "The tea",
        "Lumps of sugar.",
        "Another cup.",
        "auto: a GPU",
        "--hot",
        "[default: 4]",
    ):
        assert said in text
    for hidden in ("--tea", "The other cup.", "Not asked for."):
        assert hidden not in text
