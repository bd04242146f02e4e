"""Tables that grow on disk: readable when they stop, gone on with, put in place at the end."""

import csv
import errno
import io
from contextlib import suppress

import numpy as np
import pandas as pd
import pytest
from hypothesis import given as drawn
from hypothesis import strategies as st
from pyarrow import parquet

from lookhops.core.errors import LookHopsError
from lookhops.core.row_files import ROW_FILES, write_csv
from lookhops.core.tables import without_formula

HEAD = ["id", "text", "value"]
ROWS = [("a", 'x, "y"\nz', 0.5), ("b", "=1+1", float("nan")), ("c", "", 2.25), ("d", "é", -1.0)]


def columns(rows, path):
    """Rows column by column, numbers as each kind of file takes them."""
    ids, texts, values = zip(*rows, strict=True)
    if path.suffix == ".csv":
        return [ids, texts, [f"{value:g}" for value in values]]
    if path.suffix == ".npy":
        return [ids, texts, np.array(values)[:, None]]
    return [ids, texts, np.array(values)]


def read(path):
    """The ids and the numbers in a file."""
    if path.suffix == ".npy":
        return None, np.load(path)[:, 0].tolist()
    frame = pd.read_csv(path) if path.suffix == ".csv" else pd.read_parquet(path)
    return frame["id"].tolist(), frame["value"].astype(float).tolist()


def stopped(file, rows):
    """Write rows, one part each, and be interrupted; the file that was begun."""
    with suppress(KeyboardInterrupt), file:
        file.resume(given())  # there is nothing to go on with
        for row in rows:
            file.write(HEAD, columns([row], file.path))
        raise KeyboardInterrupt
    return file


def given(rows=ROWS):
    return iter([row[:2] for row in rows])


@pytest.mark.parametrize("kind", [".csv", ".parquet", ".npy"])
def test_a_table_that_stops_is_readable_and_gone_on_with(tmp_path, kind):
    path = tmp_path / f"x{kind}"
    path.write_text("old")

    def begin():
        return ROW_FILES[kind](path, ["model", 1], [None, None])

    file = stopped(begin(), ROWS[:2])
    assert path.read_text() == "old"
    assert file.part.suffix == kind
    ids, values = read(file.part)
    assert ids in (None, ["a", "b"])
    assert values[0] == 0.5
    assert np.isnan(values[1])
    with begin() as file:
        rest = given()
        file.resume(rest)
        assert file.rows == 2
        assert next(rest) == ("c", "")
        file.write(HEAD, columns(ROWS[2:], path))
    ids, values = read(path)
    assert ids in (None, ["a", "b", "c", "d"])
    assert values[2:] == [2.25, -1.0]
    assert [one.name for one in tmp_path.iterdir()] == [path.name]


def test_a_csv_file_that_was_torn_goes_on_after_the_last_whole_row(tmp_path):
    path = tmp_path / "x.csv"
    file = stopped(ROW_FILES[".csv"](path, "", [None, None]), ROWS[:2])
    whole = file.part.read_text()
    file.part.write_text(whole + 'c,"half of')
    with ROW_FILES[".csv"](path, "", [None, None]) as file:
        file.resume(given())
        assert file.rows == 2
        assert file.part.read_text() == whole
        file.write(HEAD, columns(ROWS[2:], path))
    with path.open(newline="") as text:
        rows = list(csv.reader(text))
    assert [row[:2] for row in rows[1:]] == [
        ["a", 'x, "y"\nz'],
        ["b", "'=1+1"],
        ["c", ""],
        ["d", "é"],
    ]


@pytest.mark.parametrize("kind", [".csv", ".parquet"])
def test_another_input_is_refused_and_another_model_begins_anew(tmp_path, kind):
    path = tmp_path / f"x{kind}"
    stopped(ROW_FILES[kind](path, "model", [None, None]), ROWS[:2])
    other = [ROWS[0], ("z", "=1+1", 0.0)]
    refused = pytest.raises(LookHopsError, match="row 2")
    with refused, ROW_FILES[kind](path, "model", [None, None]) as file:
        file.resume(given(other))
    with ROW_FILES[kind](path, "another model", [None, None]) as file:
        file.resume(given())
        assert file.rows == 0
        file.write(HEAD, columns(ROWS, path))


def test_what_was_killed_before_it_could_be_closed_begins_anew(tmp_path):
    for kind in (".parquet", ".npy"):
        file = ROW_FILES[kind](tmp_path / f"x{kind}", "", [None, None])
        file.part.write_bytes(b"PAR1 half")
        file.resume(given())
        assert file.rows == 0


@pytest.mark.parametrize("call", ["write_table", "close"])
def test_a_full_disk_leaves_no_parquet_file_that_cannot_be_read(tmp_path, monkeypatch, call):
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(parquet.ParquetWriter, call, full)
    full_disk = pytest.raises(LookHopsError, match=r"x\.parquet")
    with full_disk, ROW_FILES[".parquet"](tmp_path / "x.parquet", "", [None, None]) as file:
        file.write(HEAD, columns(ROWS, file.path))
    assert not [*tmp_path.iterdir()]


def test_a_folder_in_the_way(tmp_path):
    (tmp_path / "x.csv").mkdir()
    with pytest.raises(LookHopsError, match=r"x\.csv"):
        ROW_FILES[".csv"](tmp_path / "x.csv", "", [])


CELLS = st.one_of(
    st.text("ab=+-@'\t\r\n,\"\x00 0.5e", max_size=5),
    st.sampled_from(["-0.5", "-3", "1e-05", "-1.2.3", "", "-", "nan", "-inf", "-5\n", "é"]),
)


@drawn(st.integers(1, 3).flatmap(lambda n: st.lists(st.tuples(*[CELLS] * n), min_size=1)))
def test_csv_is_read_back_as_it_was_written(rows):
    text = io.StringIO(newline="")
    write_csv(text, list(zip(*rows, strict=True)))
    back = list(csv.reader(io.StringIO(text.getvalue(), newline="")))
    assert back == [[without_formula(cell) for cell in row] for row in rows]


def test_what_is_no_text_is_written_as_python_does():
    text = io.StringIO()
    write_csv(text, [(1, 1.0, True, None), ("a", "=b", '"', "c")])
    assert text.getvalue() == '1,a\n1.0,\'=b\nTrue,""""\n,c\n'
