"""``lookhops embed`` by running it."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from lookhops.core.options import RECOMMENDED, Protocol
from lookhops.models import Predictor, train_into
from lookhops.sources.loading import load


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models") / "model"
    network = replace(RECOMMENDED, hidden=8, layers=2, fingerprint=2)
    protocol = Protocol(seeds=(11, 22), max_epochs=1)
    train_into(folder, load("solubility")[:300], network, protocol, device="cpu")
    return folder


@pytest.mark.filterwarnings("ignore:.*does not parse")
def test_every_kind_of_file_holds_the_same_vectors(lookhops, model, tmp_path):
    (tmp_path / "mine.csv").write_text("name,smiles\nethanol,CCO\nbad,C(\nbenzene,c1ccccc1\n")
    for kind in ("parquet", "csv", "npy"):
        to = ("-o", tmp_path / f"x.{kind}", "--bits", 32, "--seed", 22)
        code, out, err = lookhops("embed", model, tmp_path / "mine.csv", *to)
        assert (code, out) == (0, ""), err
        assert f"x.{kind}: 3 rows" in err
    matrix = np.load(tmp_path / "x.npy")
    assert matrix.shape == (3, 24 + 32)
    assert np.isnan(matrix[1, :24]).all()
    frame = pd.read_parquet(tmp_path / "x.parquet")
    assert list(frame) == ["name", "smiles", "readout", "fingerprint", "warning"]
    assert frame["warning"].isna().tolist() == [True, False, True]
    assert frame["warning"][1] == "skipped: not SMILES"
    assert np.array_equal(np.stack(frame["readout"]), matrix[:, :24], equal_nan=True)
    assert np.array_equal(np.stack(frame["fingerprint"]), matrix[:, 24:])
    table = pd.read_csv(tmp_path / "x.csv")
    assert list(table)[:3] == ["name", "smiles", "readout_0"]
    assert np.allclose(table.iloc[:, 2:-1], matrix, atol=1e-4, equal_nan=True)
    assert table["warning"].fillna("").tolist() == frame["warning"].fillna("").tolist()
    whole = load(tmp_path / "mine.csv", invalid="skip")
    found = Predictor(model, "cpu").embed(whole, 22, 32)
    assert np.allclose(found.readout, matrix[[0, 2], :24], atol=1e-6)
    assert np.array_equal(found.fingerprint, matrix[[0, 2], 24:])


def test_what_is_refused(lookhops, model, tmp_path):
    for words, said in (
        ((), "Say where to write with -o"),
        (("-o", tmp_path / "x.txt"), "is written as .parquet or .csv or .npy"),
        (("-o", tmp_path / "x.npy", "--seed", 5), "has no seed 5, but 11, 22"),
        (("-o", tmp_path / "x.npy", "--bits", -1), "--bits is a number from 0"),
    ):
        code, _, err = lookhops("embed", model, "solubility", *words)
        assert code == 2
        assert said in err


def test_columns_of_the_input_keep_their_names(lookhops, model, tmp_path):
    (tmp_path / "mine.csv").write_text("smiles,fingerprint,readout_0\nCCO,mine,too\n")
    for kind in ("parquet", "csv"):
        to = ("-o", tmp_path / f"x.{kind}", "--bits", 4)
        code, _, err = lookhops("embed", model, tmp_path / "mine.csv", *to)
        assert code == 0, err
    frame, table = pd.read_parquet(tmp_path / "x.parquet"), pd.read_csv(tmp_path / "x.csv")
    for found in (frame, table):
        assert found.columns.is_unique
        assert found["fingerprint"].tolist() == ["mine"]
        assert found["readout_0"].tolist() == ["too"]
