"""A molecule on which RDKit ends its process: who sent it is told, and nobody else notices."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from deadly import Deadly
from lookhops.errors import LookHopsError
from lookhops.molecules.workers import ParsingPool
from lookhops.serve.client import Client

MARK = "CCCCI"  # stands for a molecule on which RDKit crashes
SAID = "RDKit crashes on it"


@pytest.fixture
def rdkit_crashes(monkeypatch):
    """RDKit crashes on one molecule."""
    real = ParsingPool.parse
    monkeypatch.setattr(
        ParsingPool,
        "parse",
        lambda pool, texts: real(pool, [Deadly(s) if s == MARK else s for s in texts]),
    )


def test_the_service_lives_and_the_requests_beside_it_are_answered(rdkit_crashes, address):
    def ask(smiles):
        with Client(address) as client:
            try:
                return client.predict(smiles=[smiles])[0]["id"]
            except LookHopsError as error:
                return str(error)

    with ThreadPoolExecutor(8) as threads:
        found = list(threads.map(ask, ["CCO", MARK, "CC", "CN", MARK, "CCN", "CO", MARK] * 2))
    refused = f"none of 1 molecule parses: molecule 1 ({SAID})."
    assert found == ["1", refused, "1", "1", refused, "1", "1", refused] * 2


def test_the_others_of_its_request_and_of_its_file_are_answered(rdkit_crashes, address, tmp_path):
    path = tmp_path / "some.smi"
    path.write_text(f"CCO a\n{MARK} b\nCN c\n")
    with Client(address) as client:
        rows = client.predict(smiles=["CCO", MARK, "CN"], ids=["a", "b", "c"])
        assert rows[1] == {"id": "b", "skipped": SAID}
        assert [row["id"] for row in rows if "class" in row] == ["a", "c"]
        assert SAID in client.predict_file(path).splitlines()[2]
