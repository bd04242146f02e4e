"""``lookhops serve``: models behind a page and an API."""

from __future__ import annotations

import logging
import secrets
from pathlib import Path
from typing import Annotated

import typer

from lookhops.cli.shared.parameters import Plugins, with_options
from lookhops.cli.shared.printing import err, print_line
from lookhops.core.errors import LookHopsError
from lookhops.core.files import read_bytes
from lookhops.core.options import Limits


@with_options
def serve(
    models: Annotated[
        list[Path], typer.Argument(metavar="DIR...", help="Folders that `train` wrote.")
    ],
    host: str = "127.0.0.1",
    port: int = 8000,
    token_file: Path | None = None,
    device: str = "auto",
    plugin: Plugins = None,
    *,
    limits: Annotated[Limits, "Limits"],
) -> None:
    """Serve models: a page for people, an API for programs.

    The page answers SMILES that are pasted or drawn and files that are dropped, and shows what
    each answer rests on. Programs ask `/v1/predict` and its like; `/openapi.json` describes them,
    `/metrics` is for Prometheus. A model is reloaded when its folder changes. SIGTERM or Ctrl-C
    ends the service when the requests that are under way are answered. Without `--host` only this
    machine can ask; with it a token is needed.

    Args:
        host: Address to listen at; `0.0.0.0` for all of this machine's.
        port: Port to listen at; 0 for any that is free.
        token_file: File with the token that requests must carry; by default none on this machine
            alone, and elsewhere one that is made up and printed.
    """
    try:
        from lookhops.serve.app import address_of, bind, create_app, run
        from lookhops.serve.guard import LOOPBACK
    except ImportError as error:
        raise LookHopsError(
            f"The service needs {error.name}: pip install 'lookhops[serve]'."
        ) from error
    logging.basicConfig(format="%(levelname)s: %(message)s", level=logging.WARNING)
    logging.getLogger("lookhops.serve").setLevel(logging.INFO)
    alone = host in LOOPBACK
    token = _token(token_file) if token_file else "" if alone else secrets.token_urlsafe(24)
    bound = bind(host, port)
    hosts = LOOPBACK if alone else ()
    app = create_app(models, limits, token=token, hosts=hosts, device=device)

    def ready() -> None:
        at = address_of(bound)
        names = ", ".join(folder.resolve().name for folder in models)
        print_line(f"{names}: {at}/{f'#token={token}' if token else ''}", err)

    run(app, bound, ready)
    print_line("stopped", err)


def _token(path: Path) -> str:
    token = read_bytes(path).decode("utf-8", "replace").strip()
    if len(token) < 16 or not token.isascii() or not token.isprintable() or " " in token:
        raise LookHopsError(f"{path}: a token is a word of at least 16 letters and digits.")
    return token
