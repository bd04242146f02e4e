"""The client against a service at a port: many at once, and files with progress."""

import socket
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from http.client import HTTPConnection

import pytest

from lookhops.core.errors import LookHopsError
from lookhops.serve.app import configured
from lookhops.serve.client import Client


def test_many_clients_at_once_get_the_answers_of_each_alone(address):
    smiles = ["C" * (1 + number % 8) + "O" * (number % 3) for number in range(48)]
    with Client(address) as client:
        alone = [client.predict(smiles=[one])[0] for one in smiles]

    def ask(numbers):
        with Client(address) as client:
            return [client.predict(smiles=[smiles[number]])[0] for number in numbers]

    with ThreadPoolExecutor(16) as pool:
        shares = list(pool.map(ask, [range(start, 48, 16) for start in range(16)]))
    for start, found in enumerate(shares):
        for one, number in zip(found, range(start, 48, 16), strict=True):
            assert one["class"] == alone[number]["class"]
            assert one["probabilities"] == pytest.approx(alone[number]["probabilities"], abs=1e-5)


def test_models_vectors_and_refusals(address):
    with Client(address) as client:
        assert [one["name"] for one in client.models()] == ["molecules", "tasks", "numbers"]
        assert len(client.embed(smiles=["C", "CC"])["readout"]) == 2
        with pytest.raises(LookHopsError, match="1 molecule"):
            client.predict(smiles=["C1"])
        assert client.predict(smiles=["C"])  # the connection is still good
    with pytest.raises(LookHopsError, match=r"127\.0\.0\.1"):
        Client("127.0.0.1")
    with pytest.raises(LookHopsError, match=":9"):
        Client("http://127.0.0.1:9").models()


def test_who_sends_too_much_reads_why(address):
    """Also by a program that sends all it has before it reads."""
    connection = HTTPConnection(address.removeprefix("http://"))
    connection.request("POST", "/v1/predict", b" " * 11_000_000, {"Content-Type": "text/csv"})
    answer = connection.getresponse()
    assert answer.status == 413
    assert b"more than 10 MB" in answer.read()
    connection.close()


@pytest.mark.parametrize(
    "begun",
    [
        "POST /v1/predict HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-",
        "POST /v1/predict HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
        "Content-Length: 9\r\n\r\n{",
    ],
)
def test_a_client_that_falls_silent_is_dropped(address, monkeypatch, begun):
    monkeypatch.setitem(configured.__globals__, "SILENCE", 0.1)
    host, port = address.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=30) as connection:
        connection.sendall(begun.encode())
        with suppress(ConnectionResetError):
            assert connection.recv(1) == b""


def test_a_file_with_progress(address, tmp_path):
    path = tmp_path / "some.smi"
    path.write_text("".join(f"{'C' * (1 + i % 20)} m{i}\n" for i in range(400)))
    told = []
    with Client(address) as client:
        note = lambda *at: told.append(at)  # noqa: E731
        table = client.predict_file(path, neighbours=1, progress=note, every=0.02)
        assert len(table.splitlines()) == 401
        assert "neighbour_1_similarity" in table.splitlines()[0]
        assert told[-1] == (400, 400)
        with pytest.raises(LookHopsError, match=r"bad\.smi"):
            client.predict_file(_written(tmp_path / "bad.smi", "\n"))


def _written(path, text):
    path.write_text(text)
    return path


def test_a_service_may_close_connections_behind_a_client():
    """As all do, some seconds after an answer; this one at once, and it says nothing of it."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer_twice():
            for _ in range(2):
                connection, _ = server.accept()
                with connection:
                    connection.recv(4096)
                    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n[]")

        with ThreadPoolExecutor(1) as pool:
            answering = pool.submit(answer_twice)
            with Client(f"http://127.0.0.1:{server.getsockname()[1]}", timeout=10) as client:
                assert client.models() == client.models() == []
            answering.result()
