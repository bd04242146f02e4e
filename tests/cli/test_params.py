"""``lookhops params``."""

import json

import pytest

from tu_files import TINY, write_zip

#: The network without what is read beside it.
ALONE = ("--fingerprint", "none", "--no-totals", "--edges", "ignore")


@pytest.mark.data
@pytest.mark.parametrize(
    ("conv", "pool", "expected"),
    [
        ("gcn", "none", 112_194),
        ("gat", "none", 113_474),
        ("cheb", "none", 252_738),
        ("licheb", "none", 114_754),
        ("limixhop", "none", 114_754),
        ("licheb", "lookhops", 116_679),
    ],
)
def test_counts_on_nci1(lookhops, data_dir, conv, pool, expected):
    network = ("--conv", conv, "--pool", pool, "--readout", "max+mean", *ALONE)
    code, out, err = lookhops("params", "NCI1", "--data-dir", data_dir, *network, "--json")
    assert (code, err) == (0, "")
    found = json.loads(out)
    assert found["parameters"] == expected
    assert sum(part["parameters"] for part in found["parts"]) == expected
    assert (found["features"], found["classes"]) == (37, 2)
    assert found["architecture"]["conv"] == conv


def test_table_and_options(lookhops, tmp_path):
    path = write_zip(tmp_path / "TINY.zip", TINY)
    options = ("--hidden", 16, "--layers", 2, "--k", 3, "--ratio", 0.5, "--edge-ratio", 0.5, *ALONE)
    code, out, err = lookhops("params", path, *options)
    assert (code, err) == (0, "")
    for said in ("convolution 2", "pooling 2", "dense 3", "in all"):
        assert said in out
    _, text, _ = lookhops("params", path, *options, "--json")
    found = json.loads(text)
    d, c = found["features"], found["classes"]
    convs = (d + 1) * 16 + 5 * 16 + 17 * 16 + 5 * 16
    assert found["parameters"] == convs + 2 * (4 * 16 + 1) + 49 * 16 + 17 * 8 + 9 * c
    assert f"{found['parameters']:,}" in out
    assert found["architecture"]["edge_ratio"] == 0.5


def test_a_shared_pooling_is_counted_once(lookhops, tmp_path):
    path = write_zip(tmp_path / "TINY.zip", TINY)
    _, text, _ = lookhops("params", path, "--pool", "topk", "--json")
    parts = [part["part"] for part in json.loads(text)["parts"]]
    assert parts.count("pooling") == 1


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--conv", "lichep"), "Did you mean 'licheb'?"),
        (("--pool", "lokhops"), "Did you mean 'lookhops'?"),
        (("--k", -1), "k must be a whole number from 0 up"),
        (("--ratio", 1.5), "ratio is the fraction that is kept"),
        (("--layers", 0), "at least one layer"),
    ],
)
def test_refusals_are_one_line(lookhops, tmp_path, options, said):
    code, out, err = lookhops("params", write_zip(tmp_path / "TINY.zip", TINY), *options)
    assert (code, out) == (2, "")
    assert said in err
    assert err.count("\n") == 1
    assert "Traceback" not in err
