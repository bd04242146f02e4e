"""The one way of writing files: whole under another name, synced, then put in place in one step.

One file: :func:`replacing`. Several files of a folder that belong together: :func:`changing`. What
a process that died has left behind is taken away by the next one that writes to the folder. Tensors
are safetensors files with a checksum of all that is in them: nothing is ever unpickled.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import platform
import re
import secrets
import shutil
import stat
import time
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from lookhops.core.errors import LookHopsError

if TYPE_CHECKING:
    from torch import Tensor

#: The files of a decided change that are not in their places yet (:func:`changing`).
PENDING = ".pending"
#: This machine in temporary names.
MACHINE = f"{zlib.crc32(platform.node().encode()):08x}"
#: Seconds after which a left-over of another machine's process is taken for dead: no write takes a
#: day.
ABANDONED = 86_400.0


# -------------------------------------------------------------------- one file


@contextmanager
def replacing(path: Path | str) -> Iterator[Path]:
    """Yield a temporary path beside ``path``; rename it to ``path`` when the block succeeds.

    At any moment, power cuts included, the old file or the new one is there. An interrupted or
    failing block leaves what was there before, and no temporary file. In the folder that
    :func:`changing` yields, which nobody reads yet, the path is ``path`` itself.
    """
    path = Path(path)
    part = _beside(path)
    if any(_owner(folder) for folder in path.parents):
        with explained(path):
            make_folder(path.parent)
            yield path
        return
    with explained(path):
        make_folder(path.parent)
        remove_leftovers(path.parent)
        try:
            part.touch(exist_ok=False)
            yield part
            put_in_place(part, path)
        finally:
            part.unlink(missing_ok=True)


def put_in_place(part: Path, path: Path) -> None:
    """Rename a file that was written beside its place, as :func:`replacing` does."""
    _sync(part)
    part.replace(path)
    _sync(path.parent)


def write_bytes(path: Path, content: bytes) -> None:
    """Write a file; at any moment the old one or the new one is there."""
    with replacing(path) as part:
        part.write_bytes(content)


def write_text(path: Path, text: str) -> None:
    """Write a text file, lines ended by a line feed everywhere."""
    write_bytes(path, text.encode(errors="replace"))  # half of a surrogate pair is no character


def write_json(path: Path, content: Any) -> None:
    """Write readable JSON."""
    write_text(path, json.dumps(content, indent=2, ensure_ascii=False) + "\n")


# -------------------------------------------------------------------- several files


@contextmanager
def changing(folder: Path | str, without: Iterable[str] = ()) -> Iterator[Path]:
    """Yield an empty folder; when the block succeeds, its files appear in ``folder`` in one step.

    The step is the rename of the yielded folder to ``folder/.pending``. Before it all is as it was;
    after it the files there count for those in ``folder`` (:func:`current`) until they have been
    moved, here or, where the process dies, by the next one that writes (:func:`finish_change`).

    Args:
        folder: Where the files go; others in it are not touched.
        without: Names of files in it that go, unless the block writes them.
    """
    folder = Path(folder)
    part = _beside(folder / PENDING)
    with explained(folder):
        make_folder(folder)
        remove_leftovers(folder)
        finish_change(folder)
        try:
            part.mkdir()
            yield part
            for name in without:
                # An empty folder stands for a file that goes: readers find no file there.
                if (folder / name).is_file() and not (part / name).exists():
                    (part / name).mkdir()
            for inner in [part, *part.rglob("*")]:
                _sync(inner)
            for attempt in range(10):  # the step itself
                try:
                    part.rename(folder / PENDING)
                    break
                except OSError:  # another process took one at the same moment
                    if attempt == 9:
                        raise
                    finish_change(folder)
            _sync(folder)
            finish_change(folder)
        finally:
            shutil.rmtree(part, ignore_errors=True)


def finish_change(folder: Path) -> None:
    """Move the files of a decided change to their places; do nothing where there is none."""
    pending = folder / PENDING
    if not pending.is_dir() or pending.is_symlink():
        return
    inner = sorted(pending.rglob("*"), key=lambda path: len(path.parts))
    folders = [path for path in inner if path.is_dir() and not path.is_symlink()]
    for path in inner:
        target = folder / path.relative_to(pending)
        with suppress(FileNotFoundError):  # another process finishes it too
            if path not in folders:
                make_folder(target.parent)
                path.replace(target)
            elif target.is_file() and not any(path.iterdir()):
                target.unlink()
    _sync(folder)
    for path in reversed([pending, *folders]):
        with suppress(OSError):  # it is gone, or already holds the next change
            path.rmdir()


def current(path: Path) -> Path:
    """Where a file of a folder lies now: among those of a decided change, else in its place."""
    pending = path.parent / PENDING / path.name
    return pending if pending.exists() else path


# -------------------------------------------------------------------- what both need


@contextmanager
def explained(path: Path, action: str = "written") -> Iterator[None]:
    """Errors of the operating system in the block, as a sentence about ``path``."""
    try:
        yield
    except OSError as error:
        if action == "read" and isinstance(error, FileNotFoundError):
            raise LookHopsError(f"{path}: no such file.") from error
        reason = error.strerror or error
        raise LookHopsError(f"{path}: cannot be {action} ({reason}).") from error


def make_folder(path: Path) -> None:
    """Make a folder where there is none, or say what stands in its way."""
    with explained(path):
        for place in (path, *path.parents):
            if place.is_symlink() and not place.exists():
                raise LookHopsError(f"{place}: a link to {place.readlink()}, which is not there.")
        if path.exists() and not path.is_dir():
            raise LookHopsError(f"{path}: cannot be written (it is a file).")
        path.mkdir(parents=True, exist_ok=True)


def remove_leftovers(folder: Path) -> None:
    """Take away the temporary files of processes that died while they wrote to a folder."""
    for path in list(folder.iterdir()):
        if _is_abandoned(path):
            with suppress(OSError):
                shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()


def process_alive(pid: int) -> bool:
    """Whether a process of this machine lives, as far as can be told."""
    if os.name != "posix":  # elsewhere signal 0 is not a question
        return True
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        pass
    return True


def _beside(path: Path) -> Path:
    """A new temporary name that says whose it is: machine, process, and a random end."""
    owner = f"{MACHINE}-{os.getpid()}-{secrets.token_hex(4)}"
    return path.with_name(f".{path.name[:40]}.{owner}.part")


def _owner(path: Path) -> re.Match[str] | None:
    """The machine and the process of a temporary name."""
    return re.fullmatch(r"\..*\.([0-9a-f]{8})-(\d+)-[0-9a-f]{8}\.part", path.name)


def _is_abandoned(path: Path) -> bool:
    owner = _owner(path)
    if owner is None:
        return False
    if owner[1] == MACHINE:
        return not process_alive(int(owner[2]))
    try:
        return time.time() - path.lstat().st_mtime > ABANDONED
    except OSError:
        return False


def _sync(path: Path) -> None:
    """Have the disk hold a file, or the names in a folder, before the next step is taken."""
    if path.is_dir() and os.name != "posix":
        return
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


# -------------------------------------------------------------------- reading


def read_bytes(path: Path) -> bytes:
    """A whole file, or a sentence that says why not."""
    with explained(path, "read"):
        for place in (current(path), path):  # a pending file may be moved to its place meanwhile
            with suppress(FileNotFoundError):
                check_regular(place)
                return place.read_bytes()
        raise LookHopsError(f"{path}: no such file.")


def check_regular(path: Path) -> None:
    """Refuse what is no file of bytes: a pipe or a device may never end."""
    mode = path.stat().st_mode
    if stat.S_ISDIR(mode):
        raise LookHopsError(f"{path}: cannot be read (it is a folder).")
    if not stat.S_ISREG(mode):
        raise LookHopsError(f"{path}: a pipe or a device, not a file.")


def read_json(path: Path) -> dict[str, Any]:
    """A JSON file that holds an object."""
    text = read_bytes(path)
    try:
        content = json.loads(text.decode())
    except (ValueError, RecursionError) as error:
        raise LookHopsError(f"{path}: not JSON ({error}).") from error
    if not isinstance(content, dict):
        raise LookHopsError(f"{path}: not a JSON object.")
    return content


# -------------------------------------------------------------------- tensors

#: The entry of a file's metadata that holds the checksum of all else.
CHECKSUM = "sha256"


def pack_tensors(tensors: Mapping[str, Tensor], note: Mapping[str, Any]) -> bytes:
    """Tensors and a JSON note as the content of one safetensors file."""
    from safetensors.torch import save

    # Copies, because safetensors refuses slices of one tensor, as stacked seeds are.
    plain = {key: value.detach().cpu().contiguous().clone() for key, value in tensors.items()}
    text = json.dumps(note)
    content = save(plain, {"note": text, CHECKSUM: checksum(plain, text)})
    with io.BytesIO(content) as file:
        sort_metadata(file)
        return file.getvalue()


def sort_metadata(file: BinaryIO) -> None:
    """Put the metadata of a safetensors file into the order of their names.

    They are written in a random one, and the same content is to be the same bytes.
    """
    file.seek(0)
    length = int.from_bytes(file.read(8), "little")
    header = json.loads(file.read(length))
    header["__metadata__"] = dict(sorted(header["__metadata__"].items()))
    text = json.dumps(header, ensure_ascii=False, separators=(",", ":")).encode()
    if len(text) <= length:
        file.seek(8)
        file.write(text.ljust(length))


def unpack_tensors(content: bytes, path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """What :func:`pack_tensors` packed. Only safetensors is read: nothing is ever unpickled.

    A file whose content does not fit its checksum is refused.
    """
    from safetensors import SafetensorError
    from safetensors.torch import load

    try:
        tensors = load(content)
        length = int.from_bytes(content[:8], "little")
        metadata = json.loads(content[8 : 8 + length]).get("__metadata__") or {}
        note = dict(json.loads(text := metadata.get("note", "{}")))
    except (SafetensorError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise LookHopsError(f"{path}: not a safetensors file ({error}).") from error
    check_content(path, tensors, text, metadata)
    return tensors, {**note, CHECKSUM: metadata.get(CHECKSUM)}


def checksum(tensors: Mapping[str, Tensor], text: str) -> str:
    """SHA-256 of tensors in main memory and of a text that belongs to them.

    Of what hashlib has, it is the fastest on processors with instructions for it.
    """
    import torch

    digest = hashlib.sha256(text.encode())
    for key in sorted(tensors):
        values = tensors[key]
        digest.update(f"\n{key} {values.dtype} {tuple(values.shape)}\n".encode())
        if values.numel():
            digest.update(values.contiguous().reshape(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()


def check_content(
    path: Path, tensors: Mapping[str, Tensor], text: str, metadata: Mapping[str, str]
) -> None:
    """Refuse a file whose tensors and text are not those of which it holds the checksum."""
    if metadata.get(CHECKSUM) != checksum(tensors, text):
        raise LookHopsError(f"{path}: damaged: its content does not fit its checksum.")
