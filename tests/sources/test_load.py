"""`lookhops.load`: which source is meant, downloads, the packed cache."""

import functools
import gzip
import http.server
import json
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from rdkit import Chem

import lookhops
from lookhops import Graphs, LookHopsError
from lookhops.core.reading import Reading
from lookhops.sources import collection
from tu_files import TINY, write_folder, write_zip


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A data folder with the set TINY, and a working folder elsewhere."""
    (tmp_path / "work").mkdir()
    (tmp_path / "data").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    monkeypatch.delenv("LOOKHOPS_DATA", raising=False)
    write_zip(tmp_path / "data" / "TINY.zip", TINY)
    return tmp_path / "data"


def test_graphs_come_back_as_they_are(folder: Path):
    graphs = lookhops.load("TINY", data_dir=folder)
    assert lookhops.load(graphs) is graphs


def test_names_and_paths(folder: Path, monkeypatch: pytest.MonkeyPatch):
    graphs = lookhops.load("TINY", data_dir=folder)
    assert graphs.name == "TINY"
    graphs.save(folder / "tiny.graphs")
    write_folder(folder / "unpacked" / "TINY", TINY)
    for source in (
        folder / "TINY.zip",
        str(folder / "TINY.zip"),
        folder / "tiny.graphs",
        folder / "unpacked" / "TINY",
    ):
        assert lookhops.load(source).fingerprint == graphs.fingerprint
    assert lookhops.load("TINY", data_dir=folder / "unpacked").fingerprint == graphs.fingerprint
    monkeypatch.setenv("LOOKHOPS_DATA", str(folder))
    assert lookhops.load("TINY").fingerprint == graphs.fingerprint


def test_a_bare_name_is_a_name_first_and_a_path_second(folder: Path):
    other = {**TINY, "graph_labels": "5\n6\n"}
    write_folder(Path("TINY"), other)
    assert lookhops.load("TINY", data_dir=folder).class_names == ("-1", "1")
    assert lookhops.load("./TINY", data_dir=folder).class_names == ("5", "6")
    assert lookhops.load(Path("TINY"), data_dir=folder).class_names == ("5", "6")
    assert lookhops.load("TINY", data_dir=folder / "elsewhere").class_names == ("5", "6")


def test_hop_tasks_with_their_options(folder: Path):
    graphs = lookhops.load("hops-2", size=20, seed=3)
    assert len(graphs) == 20
    assert graphs.fingerprint == lookhops.load("hops-2", size=20, seed=3).fingerprint
    assert graphs.fingerprint != lookhops.load("hops-2", size=20, seed=4).fingerprint
    with pytest.raises(LookHopsError, match="hops-99"):
        lookhops.load("hops-99")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("few.smi", "CCO a\nC b\n"),
        ("few.sdf", "".join(f"{Chem.MolToMolBlock(Chem.MolFromSmiles(s))}$$$$\n" for s in "CN")),
        ("few.jsonl", '{"nodes": [{"id": 1}, {"id": 2}], "edges": [{"source": 1, "target": 2}]}\n'),
    ],
)
def test_packed_files(tmp_path: Path, name: str, text: str):
    (tmp_path / name).write_text(text)
    (tmp_path / f"{name}.gz").write_bytes(gzip.compress(text.encode()))
    plain, unpacked = (lookhops.load(tmp_path / n) for n in (name, f"{name}.gz"))
    assert (unpacked.name, unpacked.fingerprint) == (plain.name, plain.fingerprint)
    (tmp_path / f"{name}.gz").write_bytes(gzip.compress(text.encode())[:-9])
    with pytest.raises(LookHopsError, match="gzip"):
        lookhops.load(tmp_path / f"{name}.gz")


def test_the_bundled_set(folder: Path):
    graphs = lookhops.load("solubility")
    assert graphs.class_names == ("low", "medium", "high")


def test_molecules(folder: Path):
    path = folder / "some.csv"
    path.write_text("smiles,toxic\nCCO,no\nc1ccccc1,yes\nC1CC,yes\n")
    with pytest.raises(LookHopsError, match="line 4"):
        lookhops.load(path, label_column="toxic")
    with pytest.warns(UserWarning, match="line 4"):
        graphs = lookhops.load(path, label_column="toxic", invalid="skip")
    assert len(graphs) == 2
    assert graphs.class_names == ("no", "yes")
    assert graphs.skipped == ((2, "4", "not SMILES"),)
    assert graphs[:1].skipped == ()
    graphs.save(folder / "some.graphs")
    assert lookhops.load(folder / "some.graphs").skipped == graphs.skipped


def test_what_an_earlier_reading_chose_is_taken_over_where_it_fits(folder: Path):
    before = Reading(label_column="toxic", smiles_column="drug", invalid="skip", task_size=5)
    later = Reading().with_defaults_of(before)
    path = folder / "new.csv"
    path.write_text("drug,smiles,toxic\nC,CCO,no\nCC,CCO,yes\nC1C,CCO,yes\n")
    with pytest.warns(UserWarning, match="line 4"):
        graphs = lookhops.load(path, later)
    assert graphs.columns["smiles"].tolist() == ["C", "CC"]
    assert graphs.class_names == ("no", "yes")
    chosen = lookhops.load(path, later, smiles_column="smiles")
    assert chosen.columns["smiles"].tolist() == ["CCO"] * 3
    path.write_text("smiles\nCCO\n")
    assert lookhops.load(path, later).y is None
    assert lookhops.load("hops-1", later, size=7).class_names
    assert len(lookhops.load("hops-1", later)) == 1000
    assert Reading.from_dict(before.to_dict() | {"unknown": 1}) == before


@pytest.mark.parametrize(
    ("source", "named"),
    [
        ("nci1", "NCI1"),
        ("PROTIENS", "PROTEINS"),
        ("solubilty", "solubility"),
        ("TINI", "TINY"),
        ("qqqqqqqq", "`lookhops data list`"),
        ("hops-x", r"hops-\d"),
        ("none.csv", "none.csv: "),
        ("none.graphs", "none.graphs: "),
        ("./none", "none: "),
        ("../data/notes.txt", "notes.txt: .*.graphs"),
        ("~nobody-of-this-name/set.zip", "~nobody-of-this-name"),
        ("C" * 5000, "CCC"),
        ("", "NAME_A.txt"),
    ],
)
def test_sources_that_are_none(folder: Path, source: str, named: str):
    (folder / "notes.txt").write_text("1, 2\n")
    with pytest.raises(LookHopsError, match=named):
        lookhops.load(source, data_dir=folder)


def test_options_that_do_not_apply_are_refused(folder: Path):
    with pytest.raises(LookHopsError, match=r"task_size.*TINY"):
        lookhops.load("TINY", data_dir=folder, size=5)
    with pytest.raises(LookHopsError, match="label_column"):
        lookhops.load("hops-1", label_column="y")
    with pytest.raises(LookHopsError, match="ignore"):
        lookhops.load("hops-1", invalid="ignore")


# -------------------------------------------------------------------- the packed cache


def packed(cache_home: Path) -> list[Path]:
    return sorted(cache_home.glob("**/packed/*"))


def test_a_second_load_comes_from_the_packed_copy(
    folder: Path, cache_home: Path, monkeypatch: pytest.MonkeyPatch
):
    first = lookhops.load("TINY", data_dir=folder)
    assert len(packed(cache_home)) == 1
    monkeypatch.setattr(collection, "read_tu", lambda path: pytest.fail("read again"))
    assert lookhops.load("TINY", data_dir=folder).fingerprint == first.fingerprint


def test_without_the_cache_nothing_is_kept(folder: Path, cache_home: Path):
    lookhops.load("TINY", data_dir=folder, cache=False)
    assert packed(cache_home) == []


@pytest.mark.parametrize("kind", ["zip", "folder"])
def test_a_changed_source_is_read_again(folder: Path, cache_home: Path, kind: str):
    write = write_zip if kind == "zip" else write_folder
    path = folder / ("CHANGED.zip" if kind == "zip" else "CHANGED")
    write(path, TINY)
    assert lookhops.load(path).class_names == ("-1", "1")
    (before,) = packed(cache_home)
    write(path, {**TINY, "graph_labels": "20\n10\n"})
    assert lookhops.load(path).class_names == ("10", "20")
    (after,) = packed(cache_home)
    assert after != before


def flipped_class(content: bytes) -> bytes:
    """A packed file with another class of the first graph: all else says that it is fine."""
    length = 8 + int.from_bytes(content[:8], "little")
    start, _ = json.loads(content[8:length])["y"]["data_offsets"]
    changed = bytearray(content)
    changed[length + start] ^= 1
    return bytes(changed)


@pytest.mark.parametrize(
    "damage", [lambda _: b"", lambda _: b"rubbish", lambda content: content[:-9], flipped_class]
)
def test_a_broken_copy_is_made_anew(folder: Path, cache_home: Path, damage: Callable):
    first = lookhops.load("TINY", data_dir=folder)
    (copy,) = packed(cache_home)
    copy.write_bytes(damage(copy.read_bytes()))
    with pytest.raises(LookHopsError):
        Graphs.load(copy)
    assert lookhops.load("TINY", data_dir=folder).fingerprint == first.fingerprint
    assert Graphs.load(copy).fingerprint == first.fingerprint  # mended


def test_a_cache_that_cannot_be_written_is_no_error(folder: Path, monkeypatch: pytest.MonkeyPatch):
    blocked = folder / "a file"
    blocked.write_text("")
    for name in ("XDG_CACHE_HOME", "LOCALAPPDATA", "HOME"):
        monkeypatch.setenv(name, str(blocked))
    assert len(lookhops.load("TINY", data_dir=folder)) == 2


# -------------------------------------------------------------------- downloads


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A site of the collection on this machine; what is in the folder can be downloaded."""
    files = tmp_path / "site"
    files.mkdir()

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *arguments: object) -> None:
            pass

        def end_headers(self) -> None:
            if self.path.endswith("ENZYMES.zip"):  # one that breaks off
                self._headers_buffer = [  # type: ignore[attr-defined]
                    b"Content-Length: 999999\r\n" if line.startswith(b"Content-Length") else line
                    for line in self._headers_buffer  # type: ignore[attr-defined]
                ]
            super().end_headers()

    server = http.server.ThreadingHTTPServer(
        ("127.0.0.1", 0), functools.partial(Quiet, directory=str(files))
    )
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    monkeypatch.setattr(collection, "SITE", f"http://127.0.0.1:{server.server_port}")
    known = {"graphs": "2", "nodes_per_graph": "2.5", "edges_per_graph": "2.0"}
    monkeypatch.setitem(collection.tu_sets(), "NCI1", known)
    monkeypatch.setitem(collection.tu_sets(), "MUTAG", {"graphs": ""})  # nothing is known of it
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    yield files
    server.shutdown()
    server.server_close()


def test_what_the_folder_lacks_is_downloaded_once(folder: Path, site: Path, cache_home: Path):
    write_zip(site / "MUTAG.zip", TINY, "MUTAG")
    target = folder / "new" / "folder"
    assert lookhops.load("MUTAG", data_dir=target).name == "MUTAG"
    assert [file.name for file in target.iterdir()] == ["MUTAG.zip"]
    (site / "MUTAG.zip").unlink()
    assert lookhops.load("MUTAG", data_dir=target).name == "MUTAG"


def test_by_default_it_goes_to_the_users_cache_folder(folder: Path, site: Path, cache_home: Path):
    write_zip(site / "MUTAG.zip", TINY, "MUTAG")
    lookhops.load("MUTAG")
    assert collection.data_folder() == collection.cache_folder()
    assert [file.name for file in cache_home.glob("**/*.zip")] == ["MUTAG.zip"]


@pytest.mark.parametrize(
    ("name", "content"), [("MUTAG", None), ("AIDS", b"<html>moved</html>"), ("ENZYMES", b"PK")]
)
def test_downloads_that_fail_leave_nothing(
    folder: Path, site: Path, name: str, content: bytes | None
):
    if content is not None:
        (site / f"{name}.zip").write_bytes(content)
    target = folder / "new"
    with pytest.raises(LookHopsError, match=rf"{name}.*{name}\.zip.*new"):
        lookhops.load(name, data_dir=target)
    assert not target.exists() or list(target.iterdir()) == []


def test_offline_a_sentence_says_where_to_put_the_archive(
    folder: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(collection, "SITE", "http://127.0.0.1:9")
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with pytest.raises(LookHopsError, match=r"MUTAG\.zip.*data.MUTAG\.zip"):
        lookhops.load("MUTAG", data_dir=folder)
