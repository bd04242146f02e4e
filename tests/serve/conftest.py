"""Small models, and a service of them: in this process, or at a port of this machine."""

import asyncio
import json
import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from threading import Thread

import numpy as np
import pytest
import uvicorn

from lookhops.graphs import Target
from lookhops.graphs.targets import pack_targets
from lookhops.models.training import train_into
from lookhops.nn import Architecture
from lookhops.serve.app import address_of, bind, configured, create_app
from lookhops.sources.loading import load
from lookhops.training import Protocol

SMALL = Architecture(pool="lookhops", hidden=8, layers=2, ratio=0.7, fingerprint=2)


@pytest.fixture(scope="session")
def molecule_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two seeds trained on some molecules: look, do not touch."""
    folder = tmp_path_factory.mktemp("served") / "molecules"
    protocol = Protocol(seeds=(11, 22), max_epochs=1, batch_size=32)
    train_into(folder, load("solubility")[:100], SMALL, protocol, device="cpu")
    return folder


@pytest.fixture(scope="session")
def task_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One seed trained on hop tasks: look, do not touch."""
    folder = tmp_path_factory.mktemp("served") / "tasks"
    protocol = Protocol(seeds=(11,), max_epochs=1, batch_size=16)
    train_into(folder, load("hops-1", size=60), SMALL, protocol, device="cpu")
    return folder


@pytest.fixture(scope="session")
def number_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One seed trained on a number and a class: look, do not touch."""
    folder = tmp_path_factory.mktemp("served") / "numbers"
    protocol = Protocol(seeds=(11,), max_epochs=1, batch_size=32)
    graphs = load("solubility", target="value,class")[:100]
    train_into(folder, graphs, SMALL, protocol, device="cpu")
    return folder


@dataclass
class Answer:
    status: int
    headers: dict[str, str]
    content: bytes

    def json(self):
        return json.loads(self.content)


@dataclass
class InProcess:
    """A service asked without a network, one request after the other."""

    app: object
    loop: asyncio.AbstractEventLoop = field(default_factory=asyncio.new_event_loop)

    def ask(self, method, path, body=b"", headers=None, **named):
        if not isinstance(body, bytes | str):
            body, named = json.dumps(body), {"content_type": "application/json", **named}
        content = body.encode() if isinstance(body, str) else body
        given = {"host": "127.0.0.1", **(headers or {})}
        given |= {key.replace("_", "-"): value for key, value in named.items()}
        return self.loop.run_until_complete(self._ask(method, path, content, given))

    def post(self, path, body=b"", **named):
        return self.ask("POST", path, body, **named)

    def get(self, path, **named):
        return self.ask("GET", path, **named)

    async def _ask(self, method, path, content, headers):
        path, _, query = path.partition("?")
        scope = {
            "type": "http", "http_version": "1.1", "method": method, "scheme": "http",
            "path": path, "raw_path": path.encode(), "query_string": query.encode(),
            "root_path": "",
            "headers": [(key.encode(), value.encode("latin-1")) for key, value in headers.items()],
            "client": ("127.0.0.1", 1), "server": ("127.0.0.1", 80),
        }  # fmt: skip
        sent, answer = [], Answer(0, {}, b"")

        async def receive():
            if sent:
                await asyncio.sleep(3600)  # nobody hangs up
            sent.append(True)
            return {"type": "http.request", "body": content, "more_body": False}

        async def send(message):
            if message["type"] == "http.response.start":
                answer.status = message["status"]
                answer.headers = {k.decode(): v.decode() for k, v in message["headers"]}
            else:
                answer.content += message.get("body", b"")

        await self.app(scope, receive, send)
        return answer


@pytest.fixture(scope="session")
def make_service(molecule_model: Path, task_model: Path):
    """Services of both models, with whatever else is chosen."""
    return lambda *given, **chosen: InProcess(
        create_app([molecule_model, task_model], *given, device="cpu", **chosen)
    )


@pytest.fixture(scope="session")
def service(make_service) -> InProcess:
    """The service as it is by default."""
    return make_service()


@pytest.fixture(scope="session")
def classical_service(tmp_path_factory: pytest.TempPathFactory) -> InProcess:
    """A service of a model that is no network."""
    folder = tmp_path_factory.mktemp("served") / "means"
    protocol = Protocol(seeds=(11, 22), max_epochs=1)
    train_into(folder, load("solubility")[:100], "mean", protocol, device="cpu")
    return InProcess(create_app([folder], device="cpu"))


@pytest.fixture(scope="session")
def counts_service(tmp_path_factory: pytest.TempPathFactory) -> InProcess:
    """A service of a model of how many carbons there are."""
    folder = tmp_path_factory.mktemp("served") / "counts"
    graphs = load("solubility", target="value")[:120]
    carbons = [float(str(smiles).upper().count("C")) for smiles in graphs.columns["smiles"]]
    targets = [(Target("carbons", kind="counts"), np.array(carbons))]
    protocol = Protocol(seeds=(11,), max_epochs=1, batch_size=32)
    train_into(folder, replace(graphs, **pack_targets(targets)), SMALL, protocol, device="cpu")
    return InProcess(create_app([folder], device="cpu"))


@pytest.fixture(scope="session")
def address(molecule_model: Path, task_model: Path, number_model: Path):
    """Where a service of three models listens."""
    bound = bind("127.0.0.1", 0)
    app = create_app([molecule_model, task_model, number_model], device="cpu")
    server = uvicorn.Server(configured(app))
    thread = Thread(target=server.run, kwargs={"sockets": [bound]}, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    yield address_of(bound)
    server.should_exit = True
    thread.join(10)
