"""The one way of writing files: written whole under a temporary name, then renamed."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lookhops.errors import LookHopsError

if TYPE_CHECKING:
    from torch import Tensor


@contextmanager
def replacing(path: Path | str) -> Iterator[Path]:
    """Yield a temporary path beside ``path``; rename it to ``path`` when the block succeeds.

    An interrupted or failing block leaves what was there before, and no temporary file.
    """
    path, part = Path(path), None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".part", dir=path.parent)
        os.close(handle)
        part = Path(name)
        yield part
        umask = os.umask(0)
        os.umask(umask)
        part.chmod(0o666 & ~umask)  # mkstemp's files are private; the user's own are not
        part.replace(path)
    except OSError as error:
        raise LookHopsError(f"{path}: cannot be written ({error.strerror or error}).") from error
    finally:
        if part is not None:
            part.unlink(missing_ok=True)


def write_bytes(path: Path, content: bytes) -> None:
    """Write a file; at any moment, power cuts included, the old one or the new one is there."""
    with replacing(path) as part, part.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def write_text(path: Path, text: str) -> None:
    """Write a text file, lines ended by a line feed everywhere."""
    write_bytes(path, text.encode())


def write_json(path: Path, content: Any) -> None:
    """Write readable JSON."""
    write_text(path, json.dumps(content, indent=2, ensure_ascii=False) + "\n")


def read_bytes(path: Path) -> bytes:
    """A whole file, or a sentence that says why not."""
    try:
        return path.read_bytes()
    except FileNotFoundError as error:
        raise LookHopsError(f"{path}: no such file.") from error
    except OSError as error:
        raise LookHopsError(f"{path}: cannot be read ({error.strerror or error}).") from error


def read_json(path: Path) -> dict[str, Any]:
    """A JSON file that holds an object."""
    try:
        content = json.loads(read_bytes(path).decode())
    except (UnicodeDecodeError, json.JSONDecodeError, RecursionError) as error:
        raise LookHopsError(f"{path}: not JSON ({error}).") from error
    if not isinstance(content, dict):
        raise LookHopsError(f"{path}: not a JSON object.")
    return content


def pack_tensors(tensors: Mapping[str, Tensor], note: Mapping[str, Any]) -> bytes:
    """Tensors and a JSON note as the content of one safetensors file."""
    from safetensors.torch import save

    # Copies, because safetensors refuses slices of one tensor, as stacked seeds are.
    plain = {key: value.detach().cpu().contiguous().clone() for key, value in tensors.items()}
    return save(plain, {"note": json.dumps(note)})


def unpack_tensors(content: bytes, path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """What :func:`pack_tensors` packed. Only safetensors is read: nothing is ever unpickled."""
    from safetensors import SafetensorError
    from safetensors.torch import load

    try:
        tensors = load(content)
        length = int.from_bytes(content[:8], "little")
        metadata = json.loads(content[8 : 8 + length]).get("__metadata__") or {}
        note = json.loads(metadata.get("note", "{}"))
    except (SafetensorError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise LookHopsError(f"{path}: not a safetensors file ({error}).") from error
    return tensors, note
