"""The TU reader against PyG, and every way a TU set can be broken."""

import os
import re
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from lookhops import LookHopsError, Target
from lookhops.sources.loading import read_tu
from tu_files import TINY, assert_same_as_pyg, pyg_dataset, write_folder, write_zip

Run = Callable[..., tuple[int, str, str]]


@pytest.mark.data
@pytest.mark.parametrize("name", ["PROTEINS", "DD", "NCI1", "NCI109", "Mutagenicity"])
def test_real_sets_are_pygs_tensor_by_tensor(data_dir: Path, tmp_path: Path, name: str):
    archive = data_dir / f"{name}.zip"
    if not archive.is_file():
        pytest.skip(f"needs {name}.zip in LOOKHOPS_DATA")
    assert_same_as_pyg(read_tu(archive), pyg_dataset(tmp_path, name, archive))


REPEATED = "1, 2\n2, 1\n1, 2\n2, 3\n4, 5\n5, 4\n1, 2\n"
VARIANTS: dict[str, dict[str, str]] = {
    "all files": TINY,
    "no features": {part: TINY[part] for part in ("A", "graph_indicator", "graph_labels")},
    "labels alone": {k: v for k, v in TINY.items() if k != "node_attributes"},
    "attributes alone": {k: v for k, v in TINY.items() if k != "node_labels"},
    "several columns of labels": {**TINY, "node_labels": "3, 0\n4, 0\n3, 0\n6, -2\n3, 1\n"},
    "edge attributes": {**TINY, "edge_attributes": "".join(f"{i / 7}, {-i}\n" for i in range(9))},
    "edges repeated": {
        k: v for k, v in {**TINY, "A": REPEATED}.items() if not k.startswith("edge_")
    },
    "edges repeated, with labels": {**TINY, "A": REPEATED, "edge_labels": "1\n2\n2\n1\n1\n3\n2\n"},
    "edges repeated, with attributes": {
        **TINY,
        "A": REPEATED,
        "edge_labels": "1\n2\n2\n1\n1\n3\n2\n",
        "edge_attributes": "".join(f"{i / 7}\n" for i in range(7)),
    },
    "one direction": {**TINY, "A": "2, 1\n3, 1\n5, 4\n", "edge_labels": "1\n2\n1\n"},
    "Windows line ends": {part: text.replace("\n", "\r\n") for part, text in TINY.items()},
}


@pytest.mark.parametrize("texts", VARIANTS.values(), ids=VARIANTS)
def test_small_sets_are_pygs_tensor_by_tensor(tmp_path: Path, texts: dict[str, str]):
    graphs = read_tu(write_zip(tmp_path / "TINY.zip", texts))
    assert_same_as_pyg(graphs, pyg_dataset(tmp_path / "pyg", "TINY", texts))
    assert graphs.class_names == ("-1", "1")
    assert graphs.name == "TINY"
    assert graphs.featuriser == "tu"


def test_zip_folder_and_pygs_folder_are_the_same(tmp_path: Path):
    sets = [
        read_tu(write_zip(tmp_path / "TINY.zip", TINY)),
        read_tu(write_folder(tmp_path / "TINY", TINY)),
        read_tu(write_folder(tmp_path / "pyg" / "TINY" / "raw", TINY).parent),
        read_tu(write_zip(tmp_path / "renamed.zip", TINY)),
    ]
    assert len({graphs.fingerprint for graphs in sets}) == 1
    assert {graphs.name for graphs in sets} == {"TINY"}


def test_labels_stay_small_integers(tmp_path: Path):
    graphs = read_tu(write_folder(tmp_path / "TINY", TINY))
    assert graphs.nodes.labels is not None
    assert graphs.nodes.labels.dtype == torch.uint8
    assert graphs.nodes.labels.flatten().tolist() == [0, 1, 0, 3, 0]
    assert graphs.nodes.label_names == ("label 0",)
    assert graphs.nodes.label_values == (("3", "4", "5", "6"),)
    assert graphs.nodes.number_names == ("number 0", "number 1")
    assert graphs.edges.label_sizes == (3,)


def test_regression_targets_are_columns(tmp_path: Path):
    texts = {k: v for k, v in TINY.items() if k != "graph_labels"}
    one = read_tu(write_folder(tmp_path / "one", {**texts, "graph_attributes": "0.25\n1e3\n"}))
    assert one.targets == (Target("graph_attribute"),)
    assert one.y.tolist() == [0.25, 1e3]
    assert one.num_classes == 0
    assert one.columns["graph_attribute"].tolist() == [0.25, 1000.0]
    two = read_tu(write_folder(tmp_path / "two", {**TINY, "graph_attributes": "0.25,1\n1e3,2\n"}))
    assert two.num_classes == 2
    assert two.columns["graph_attribute_1"].tolist() == [1, 2]


def test_last_line_without_its_end_counts(tmp_path: Path):
    texts = {part: text.rstrip("\n") for part, text in TINY.items()}
    again = read_tu(write_folder(tmp_path / "again", texts))
    assert again.fingerprint == read_tu(write_folder(tmp_path / "TINY", TINY)).fingerprint


# Each: the part to change, its new text (none: no file), and the place that the sentence names.
BROKEN: dict[str, tuple[str, str | None, str]] = {
    "no indicator": ("graph_indicator", None, r"_graph_indicator.txt"),
    "no classes": ("graph_labels", None, r"_graph_labels.txt"),
    "empty file": ("A", "", r"_A.txt"),
    "blank file": ("node_labels", "\n\n", r"_node_labels.txt"),
    "edge to node 0": ("A", "1, 2\n2, 0\n", r"_A.txt, line 2"),
    "edge beyond": ("A", "1, 2\n2, 1\n6, 5\n", r"_A.txt, line 3"),
    "edge to a huge node": ("A", "1, 9999999999999999999999\n", r"_A.txt, line 1"),
    "edge across": ("A", "1, 2\n3, 4\n" + "1, 2\n" * 7, r"_A.txt, line 2"),
    "three nodes": ("A", "1, 2, 3\n", r"_A.txt, line 1"),
    "one node": ("A", "1, 2\n3\n", r"_A.txt, line 2"),
    "uneven rows": ("A", "1, 2\n3\n2, 1, 2\n", r"_A.txt, line 2"),
    "two in one": ("A", "1, 2\n2 1, 3\n", r"_A.txt, line 2.*'2 1, 3'"),
    "word": ("A", "1, 2\n2, one\n", r"_A.txt, line 2.*'2, one'"),
    "half": ("A", "1, 2\n2, 1.5\n", r"_A.txt, line 2.*'2, 1.5'"),
    "line without numbers": ("A", "1, 2\n\n2, 1\n", r"_A.txt, line 2"),
    "not text": ("A", "1, 2\n\x00\x01, 2\n", r"_A.txt, line 2"),
    "indicator from 0": ("graph_indicator", "0\n0\n0\n1\n1\n", r"indicator.txt, line 1"),
    "indicator from 2": ("graph_indicator", "2\n2\n2\n3\n3\n", r"line 1"),
    "indicator with a gap": ("graph_indicator", "1\n1\n1\n3\n3\n", r"line 4"),
    "indicator out of order": ("graph_indicator", "1\n2\n1\n2\n2\n", r"line 3"),
    "too few classes": ("graph_labels", "1\n", r"_graph_labels.txt, line 2"),
    "too many classes": ("graph_labels", "1\n0\n1\n", r"line 3"),
    "class by word": ("graph_labels", "1\nyes\n", r"_graph_labels.txt, line 2.*'yes'"),
    "too few labels": ("node_labels", "3\n4\n", r"_node_labels.txt, line 3"),
    "labels too far apart": ("node_labels", "3\n4\n5\n6\n9999999999\n", r"node_labels.txt"),
    "too few attributes": ("node_attributes", "1\n", r"_attributes.txt, line 2"),
    "too few edge labels": ("edge_labels", "1\n", r"_edge_labels.txt, line 2"),
    "NaN": ("node_attributes", "1\n2\nnan\n4\n5\n", r"line 3.*'nan'"),
    "infinite": ("node_attributes", "1\n2\n3\n-inf\n5\n", r"line 4.*'-inf'"),
    "overflow": ("node_attributes", "1\n2\n3\n4\n1e999\n", r"line 5.*'1e999'"),
}


def check(lookhops, path: Path, sentence: str) -> None:
    """One line with the place on stderr, exit code 2, nothing on stdout; in Python the error."""
    code, out, err = lookhops("data", "info", path)
    assert code == 2
    assert out == ""
    assert err.startswith("lookhops: ")
    assert err.count("\n") == 1
    assert re.search(sentence, err), err
    with pytest.raises(LookHopsError, match=sentence):
        read_tu(path)


@pytest.mark.parametrize(("part", "text", "sentence"), BROKEN.values(), ids=BROKEN)
@pytest.mark.parametrize("kind", ["folder", "zip"])
def test_broken_sets(
    lookhops: Run, tmp_path: Path, part: str, text: str | None, sentence: str, kind: str
):
    texts = {k: v for k, v in {**TINY, part: text}.items() if v is not None}
    write = write_folder if kind == "folder" else write_zip
    check(lookhops, write(tmp_path / ("TINY" if kind == "folder" else "TINY.zip"), texts), sentence)


def test_broken_archives(lookhops: Run, tmp_path: Path):
    path = tmp_path / "TINY.zip"
    check(lookhops, path, r"TINY\.zip: no such file")
    path.write_bytes(b"<html>404</html>")
    check(lookhops, path, r"TINY\.zip: not a whole zip archive")
    path.write_bytes(b"")
    check(lookhops, path, r"TINY\.zip: not a whole zip archive")
    whole = write_zip(path, TINY).read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    check(lookhops, path, r"TINY\.zip: not a whole zip archive")
    start = whole.index(b"TINY/TINY_A.txt") + len("TINY/TINY_A.txt")
    path.write_bytes(whole[:start] + bytes(8) + whole[start + 8 :])
    check(lookhops, path, r"TINY\.zip: (not a whole zip archive|cannot be read)")


@pytest.mark.parametrize(
    "entry", ["../evil.txt", "/etc/evil", "TINY/../../evil", "C:\\evil", "..\\e"]
)
def test_an_archive_that_would_land_outside_is_refused(lookhops: Run, tmp_path: Path, entry: str):
    path = write_zip(tmp_path / "TINY.zip", TINY)
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr(zipfile.ZipInfo(entry), "evil")
    check(lookhops, path, r"TINY\.zip: entry .* would land outside")
    assert [file.name for file in tmp_path.iterdir()] == ["TINY.zip"]


def test_archives_and_folders_without_one_set(lookhops: Run, tmp_path: Path):
    check(lookhops, write_zip(tmp_path / "TINY.zip", {}), r"TINY\.zip: no file NAME_A\.txt")
    (tmp_path / "empty").mkdir()
    check(lookhops, tmp_path / "empty", r"empty: no file NAME_A\.txt")
    folder = write_folder(tmp_path / "two", TINY)
    write_folder(folder, TINY, "OTHER")
    check(lookhops, folder, r"two: more than one file NAME_A\.txt")
    assert read_tu(write_folder(tmp_path / "TINY", TINY)).name == "TINY"
    with zipfile.ZipFile(write_zip(tmp_path / "mac.zip", TINY), "a") as archive:
        archive.writestr("__MACOSX/TINY/._TINY_A.txt", "left by macOS")
    assert read_tu(tmp_path / "mac.zip").name == "TINY"


def test_archives_that_are_attacks(lookhops: Run, tmp_path: Path):
    path = tmp_path / "TINY.zip"
    bomb = {**TINY, "node_labels": "0\n" * (20 << 20)}
    write_zip(path, bomb)
    check(lookhops, path, r"TINY\.zip: its files would have .* bytes")
    for part, sentence in (
        ("node_labels", r"node_labels\.txt, line 6: a line more, but 5 nodes"),
        ("A", r"TINY_A\.txt, line 27: 26 lines are all there can be"),
    ):
        write_zip(path, {**TINY, part: "1, 1\n" * 200_000 if part == "A" else "0\n" * 500_000})
        check(lookhops, path, sentence)
    for method in (zipfile.ZIP_LZMA, zipfile.ZIP_BZIP2):
        with zipfile.ZipFile(path, "w", method) as archive:
            for part, text in TINY.items():
                archive.writestr(f"TINY_{part}.txt", text)
        whole = path.read_bytes()
        path.write_bytes(whole[:60] + bytes(reversed(whole[60:70])) + whole[70:])
        check(lookhops, path, r"TINY\.zip: (not a whole zip archive|cannot be read)")
    unknown = bytearray(write_zip(path, TINY).read_bytes())
    for signature, offset in ((b"PK\x01\x02", 10), (b"PK\x03\x04", 8)):
        for found in re.finditer(signature, bytes(unknown)):
            unknown[found.start() + offset] = 99
    path.write_bytes(unknown)
    check(lookhops, path, r"TINY\.zip: cannot be read")
    write_folder(tmp_path / "TINY", TINY)
    (tmp_path / "TINY" / "TINY_A.txt").unlink()
    os.mkfifo(tmp_path / "TINY" / "TINY_A.txt")
    check(lookhops, tmp_path / "TINY", r"TINY_A\.txt: a pipe or a device")
