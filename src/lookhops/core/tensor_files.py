"""Tensors as safetensors files with a checksum of all that is in them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lookhops.core.errors import LookHopsError

if TYPE_CHECKING:
    from torch import Tensor

#: The entry of a file's metadata that holds the checksum of all else.
CHECKSUM = "sha256"


def pack_tensors(tensors: Mapping[str, Tensor], note: Mapping[str, Any]) -> bytes:
    """Tensors and a JSON note as the content of one safetensors file."""
    from safetensors.torch import save

    # Copies, because safetensors refuses slices of one tensor, as stacked seeds are.
    plain = {key: value.detach().cpu().contiguous().clone() for key, value in tensors.items()}
    text = json.dumps(note)
    return save(plain, {"note": text, CHECKSUM: checksum(plain, text)})


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
