"""`lookhops serve` as a process: it says where it is, and ends when all is answered."""

import json
import re
import signal
import subprocess
import sys
from threading import Thread

import pytest

from lookhops.core.errors import LookHopsError
from lookhops.models.training import train_into
from lookhops.nn import Architecture
from lookhops.serve.client import Client
from lookhops.sources.loading import load
from lookhops.training import Protocol


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("served") / "molecules"
    small = Architecture(pool="lookhops", hidden=8, layers=2)
    train_into(
        folder, load("solubility")[:60], small, Protocol(seeds=(11,), max_epochs=1), device="cpu"
    )
    return folder


@pytest.fixture
def process(folder):
    """The service for other machines too, as a process of its own."""
    command = [
        sys.executable,
        "-m",
        "lookhops",
        "serve",
        folder,
        "--port",
        "0",
        "--host",
        "0.0.0.0",
    ]
    found = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    yield found
    found.kill()
    found.wait()


def test_a_token_for_other_machines_and_an_end_that_waits(process):
    said = process.stderr.readline().strip()
    port, token = re.fullmatch(r"molecules: http://0\.0\.0\.0:(\d+)/#token=(\S+)", said).groups()
    at = f"http://127.0.0.1:{port}"
    with pytest.raises(LookHopsError, match="token"):
        Client(at).models()
    client, waiting, found = Client(at, token), Client(at, token), []
    lines = "".join(f"{'C' * (1 + i % 30)} m{i}\n" for i in range(1500))
    job = json.loads(client._ask("POST", "/v1/jobs?name=some.smi", lines.encode()))
    result = f"/v1/jobs/{job['id']}/result"
    waiter = Thread(target=lambda: found.append(waiting._ask("GET", result)))
    waiter.start()
    while b"lookhops_requests_under_way 2.0" not in client._ask("GET", "/metrics"):
        assert not found
    process.send_signal(signal.SIGTERM)
    waiter.join(600)
    assert len(found[0].splitlines()) == 1501
    assert process.wait(600) == 0
    assert process.stderr.read().strip() == "stopped"


def test_by_default_this_machine_alone_without_a_token(lookhops, folder, monkeypatch):
    from lookhops.serve import app

    made = []
    monkeypatch.setattr(app, "create_app", lambda *given, **chosen: made.append(chosen))
    monkeypatch.setattr(app, "run", lambda _, bound, ready: (made.append(bound), ready()))
    code, _, said = lookhops("serve", folder, "--port", 0)
    host, port = made[1].getsockname()
    assert (code, host, made[0]["token"]) == (0, "127.0.0.1", "")
    assert "127.0.0.1" in made[0]["hosts"]
    assert said == f"molecules: http://127.0.0.1:{port}/\nstopped\n"
    made[1].close()


def test_what_cannot_be_served(lookhops, folder, tmp_path):
    short = tmp_path / "token"
    short.write_text("secret\n")
    code, _, said = lookhops("serve", folder, "--token-file", short)
    assert (code, said) == (
        2,
        f"lookhops: {short}: a token is a word of at least 16 letters and digits.\n",
    )
    code, _, said = lookhops("serve", folder, "--host", "192.0.2.1")
    assert (code, said[:28]) == (2, "lookhops: 192.0.2.1, port 80")
    code, _, said = lookhops("serve", tmp_path, "--port", 0)
    assert code == 2
    assert "no config.json" in said
    code, _, said = lookhops("serve", folder, "--max-graphs", 0)
    assert (code, said) == (2, "lookhops: max_graphs must be more than 0.\n")


def test_without_fastapi_it_says_what_to_install(lookhops, folder, monkeypatch):
    for name in [name for name in sys.modules if name.startswith("lookhops.serve")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "fastapi", None)
    code, _, said = lookhops("serve", folder)
    assert code == 2
    assert 'fastapi, which is not installed: pip install "lookhops[serve]"' in said
