"""Tensors in files: what is read is what was written, or refused."""

import pytest
import torch

from lookhops.core.errors import LookHopsError
from lookhops.core.files import pack_tensors, unpack_tensors


def test_tensors_are_known_by_their_checksum(tmp_path):
    tensors = {"a": torch.arange(5.0), "b": torch.tensor(True), "c": torch.zeros(0, 3)}
    content = pack_tensors(tensors, {"k": 1})
    assert all(pack_tensors(tensors, {"k": 1}) == content for _ in range(9))
    found, note = unpack_tensors(content, tmp_path)
    assert found.keys() == tensors.keys()
    assert note["k"] == 1
    for place in (content.index(b'\\"k\\": 1') + 7, len(content) - 3):
        damaged = bytearray(content)
        damaged[place] ^= 1
        with pytest.raises(LookHopsError, match=str(tmp_path)):
            unpack_tensors(bytes(damaged), tmp_path)
