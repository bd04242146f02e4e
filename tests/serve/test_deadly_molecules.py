"""Molecules on which RDKit crashes or hangs: who sent one is told, and nobody else notices."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from deadly import Deadly, Endless
from lookhops.core.errors import LookHopsError
from lookhops.serve.client import Client
from lookhops.sources.rdkit import workers
from lookhops.sources.rdkit.workers import CRASHED, HUNG, ParsingPool

CRASHES, HANGS = "CCCCI", "CCCCBr"  # stand for molecules on which RDKit does


@pytest.fixture(autouse=True)
def rdkit_fails(monkeypatch):
    """RDKit crashes on one molecule, and hangs on another."""
    real, worse = ParsingPool.map, {CRASHES: Deadly(CRASHES), HANGS: Endless(HANGS)}
    monkeypatch.setattr(workers, "SECONDS", 0.5)
    monkeypatch.setattr(
        ParsingPool,
        "map",
        lambda pool, chunks, *how: real(
            pool, ([worse.get(text, text) for text in chunk] for chunk in chunks), *how
        ),
    )


def test_the_service_lives_and_the_requests_beside_it_are_answered(address):
    def ask(smiles):
        with Client(address) as client:
            try:
                return client.predict(smiles=[smiles])[0]["id"]
            except LookHopsError as error:
                return str(error)

    with ThreadPoolExecutor(8) as threads:
        found = list(threads.map(ask, ["CCO", CRASHES, "CC", HANGS, CRASHES, "CCN", "CO"]))
    crashed, hung = (f"none of 1 molecule parses: molecule 1 ({why})." for why in (CRASHED, HUNG))
    assert found == ["1", crashed, "1", hung, crashed, "1", "1"]


def test_the_others_of_its_request_and_of_its_file_are_answered(address, tmp_path):
    path = tmp_path / "some.smi"
    path.write_text(f"CCO a\n{HANGS} b\nCN c\n")
    with Client(address) as client:
        rows = client.predict(smiles=["CCO", CRASHES, "CN"], ids=["a", "b", "c"])
        assert rows[1] == {"id": "b", "skipped": CRASHED}
        assert [row["id"] for row in rows if "class" in row] == ["a", "c"]
        assert HUNG in client.predict_file(path).splitlines()[2]
