"""The TU collection: its names, the folder of its archives, downloads, the packed cache."""

from __future__ import annotations

import csv
import hashlib
import http.client
import io
import os
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from difflib import get_close_matches
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from lookhops.core.errors import LookHopsError
from lookhops.core.files import write_bytes
from lookhops.graphs import SUFFIX, Graphs
from lookhops.graphs.storage import FORMAT
from lookhops.sources.tu import VERSION, read_tu
from lookhops.sources.tu_files import open_tu

SITE = "https://www.chrsmrrs.com/graphkerneldatasets"


@cache
def tu_sets() -> dict[str, dict[str, str]]:
    """What is known of each set of the collection; only these are looked for on its site.

    Its ``field``, and how many ``graphs`` it has with how many ``nodes_per_graph`` and undirected
    ``edges_per_graph``, empty where the site does not say it.
    """
    text = (files("lookhops.sources") / "tu_sets.csv").read_text(encoding="utf-8")
    return {row["name"]: row for row in csv.DictReader(text.splitlines())}


def cache_folder() -> Path:
    """The user's cache folder for LookHops, as the platform has it; not made here."""
    if sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Caches"
    else:
        base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return base / "lookhops"


def data_folder(given: Path | str | None = None) -> Path:
    """The folder of TU archives: as given, else ``LOOKHOPS_DATA``, else the cache folder."""
    return Path(given or os.environ.get("LOOKHOPS_DATA") or cache_folder()).expanduser()


def local_names(folder: Path) -> list[str]:
    """Names of the sets that a folder holds as ``NAME.zip`` or ``NAME/``."""
    try:
        names = {entry.name.removesuffix(".zip") for entry in folder.iterdir()}
    except OSError:
        return []
    return sorted((name for name in names if find(name, folder)), key=str.lower)


def find(name: str, folder: Path) -> Path | None:
    """Where a folder holds a set: ``NAME.zip``, else ``NAME/`` with its files (PyG's too)."""
    if (folder / f"{name}.zip").is_file():
        return folder / f"{name}.zip"
    edges = (folder / name / f"{name}_A.txt", folder / name / "raw" / f"{name}_A.txt")
    return folder / name if any(file.is_file() for file in edges) else None


def fetch(name: str, folder: Path, others: tuple[str, ...] = ()) -> Path:
    """Where a folder holds a set, after downloading it from the collection's site if it must be.

    Where the name is not known, the most similar one of the collection or of ``others`` is named.
    """
    here = find(name, folder)
    if here is not None:
        return here
    if name not in tu_sets():
        names = {known.lower(): known for known in (*tu_sets(), *others, *local_names(folder))}
        near = get_close_matches(name.lower(), names, n=1, cutoff=0.5)
        hint = f"did you mean {names[near[0]]}?" if near else "`lookhops data list` names all."
        raise LookHopsError(
            f"{name!r} is neither a set of graphs that is known nor a file or folder: {hint}"
        )
    target = folder / f"{name}.zip"
    try:
        content = download(f"{SITE}/{name}.zip", name)
        _check_download(name, content)
        write_bytes(target, content)
    except (OSError, http.client.HTTPException) as error:
        reason = getattr(error, "reason", None) or error
        raise LookHopsError(
            f"{name} is not in {folder} and cannot be downloaded ({reason}): put the archive "
            f"{SITE}/{name}.zip at {target}, or name its folder with --data-dir."
        ) from error
    return target


def _check_download(name: str, content: bytes) -> None:
    """Refuse another set: the collection gives its graphs, and averages, rounded or outdated."""
    try:
        with open_tu(Path(f"{name}.zip"), io.BytesIO(content)) as files:
            graphs, nodes, edges = files.counts()
    except LookHopsError as error:
        raise http.client.HTTPException(f"what came is no set of graphs: {error}") from error
    facts = tu_sets()[name]
    if not facts["graphs"]:
        return
    if graphs != (expected := int(facts["graphs"])):
        raise http.client.HTTPException(f"what came has {graphs:,} graphs, not {expected:,}")
    for what, count in (("nodes", nodes), ("edges", edges / 2)):
        mean = float(facts[f"{what}_per_graph"])
        if not 0.9 <= count / graphs / mean <= 1.1:
            per_graph = f"{count / graphs:.2f} {what} per graph"
            raise http.client.HTTPException(f"what came has {per_graph}, not {mean:.2f}")


# -------------------------------------------------------------------- the packed cache


def read_tu_cached(path: Path) -> Graphs:
    """A TU set from its packed copy in the cache folder, made where there is none yet.

    A copy that cannot be read or written is no error: the source is read instead.
    """
    try:
        copy = _packed_path(path)
    except OSError:
        return read_tu(path)
    if copy.is_file():
        with suppress(LookHopsError, OSError):
            return Graphs.load(copy)
    graphs = read_tu(path)
    with suppress(LookHopsError, OSError):
        graphs.save(copy)
        for stale in copy.parent.glob(f"{copy.stem.rpartition('-')[0]}-*{SUFFIX}"):
            if stale != copy:
                stale.unlink()
    return graphs


def _packed_path(path: Path) -> Path:
    """Depends on where the source is, its files' sizes and times and the formats' versions."""
    files = sorted(path.rglob("*.txt")) if path.is_dir() else [path]
    stats = [(file.name, file.stat().st_size, file.stat().st_mtime_ns) for file in files]
    place, stamp = (
        hashlib.sha256(text.encode()).hexdigest()[:12]
        for text in (str(path.resolve()), f"{FORMAT} {VERSION} {stats}")
    )
    return cache_folder() / "packed" / f"{path.stem}-{place}-{stamp}{SUFFIX}"


#: Seconds to connect, and between two pieces.
TIMEOUT = 30.0
#: In every so many seconds at least so many bytes must come.
PERIOD, LEAST = 30.0, 30_000
#: Bytes that a download may have.
MOST = 4 << 30


def download(url: str, name: str) -> bytes:
    """What lies at an address, with a progress bar on a terminal.

    Raises:
        OSError, http.client.HTTPException: It cannot be had, or not within the limits above.
    """
    request = urllib.request.Request(url, headers={"User-Agent": "lookhops"})
    opener = urllib.request.build_opener(_StaysEncrypted)
    content = io.BytesIO()
    with opener.open(request, timeout=TIMEOUT) as answer:
        total = _length(answer.headers.get("Content-Length"))
        with _progress(name, total) as advance:
            for piece in _pieces(answer):
                advance(content.write(piece))
                if content.tell() > min(total or MOST, MOST):
                    raise http.client.HTTPException("more came than was announced, or than may be")
    if total not in (None, content.tell()):
        raise http.client.HTTPException(f"it broke off after {content.tell():,} bytes of {total:,}")
    return content.getvalue()


class _StaysEncrypted(urllib.request.HTTPRedirectHandler):
    """Follows no redirect from https to anything else."""

    def redirect_request(self, req: Any, fp: Any, code: Any, msg: Any, headers: Any, newurl: str):  # type: ignore[no-untyped-def]
        if req.full_url.startswith("https:") and not newurl.startswith("https:"):
            raise http.client.HTTPException(f"it leads to {newurl}, which is not encrypted")
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def _length(given: str | None) -> int | None:
    if given is not None and not (given.isascii() and given.isdecimal()):
        raise http.client.HTTPException(f"its size is given as {given!r}")
    if given is not None and int(given) > MOST:
        raise http.client.HTTPException(f"it is larger than {MOST >> 30} GiB")
    return None if given is None else int(given)


def _pieces(answer: http.client.HTTPResponse) -> Iterator[bytes]:
    """What comes, as it comes; too little in a period is an error."""
    came, since = 0, time.monotonic()
    while piece := answer.read1(1 << 16):
        yield piece
        came += len(piece)
        if time.monotonic() - since > PERIOD:
            if came < LEAST:
                raise http.client.HTTPException(f"only {came} bytes came in {PERIOD:g} seconds")
            came, since = 0, time.monotonic()


@contextmanager
def _progress(name: str, total: int | None) -> Iterator[Any]:
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn

    console = Console(stderr=True)
    parts = (TextColumn("{task.description}"), BarColumn(), DownloadColumn())
    with Progress(*parts, console=console, disable=not console.is_terminal) as progress:
        task = progress.add_task(name, total=total)
        yield lambda size: progress.advance(task, size)
