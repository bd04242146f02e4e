"""The command's own last words."""

import pytest
import torch

import lookhops.cli


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        torch.OutOfMemoryError("CUDA out of memory."),
        RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 1 bytes"),
    ],
)
def test_out_of_memory_is_a_sentence(monkeypatch, capsys, error):
    def app():
        raise error

    monkeypatch.setattr(lookhops.cli, "app", app)
    with pytest.raises(SystemExit) as stop:
        lookhops.cli.main()
    assert stop.value.code == 2
    assert capsys.readouterr().err == (
        "lookhops: out of memory; fewer seeds at a time or a smaller --batch-size need less.\n"
    )


def test_a_bug_is_not_hidden(monkeypatch):
    def app():
        raise RuntimeError("a bug")

    monkeypatch.setattr(lookhops.cli, "app", app)
    with pytest.raises(RuntimeError, match="a bug"):
        lookhops.cli.main()
