"""Downloads from a server on this machine that does not behave."""

import http.server
import threading
import time
import urllib.request

import pytest

from lookhops.core.errors import LookHopsError
from lookhops.sources import collection
from lookhops.sources.collection import download
from tu_files import TINY, write_zip


class Unruly(http.server.BaseHTTPRequestHandler):
    """Answers as the address says."""

    def log_message(self, *arguments):
        pass

    def do_GET(self):
        self.send_response(200)
        sizes = {"/word": "many", "/short": "5", "/long": "50", "/huge": str(1 << 50)}
        if self.path in sizes:
            self.send_header("Content-Length", sizes[self.path])
        self.end_headers()
        if self.path == "/drip":
            for _ in range(100):
                time.sleep(0.02)
                self.wfile.write(b"x")
        self.wfile.write(b"ten bytes.")


@pytest.fixture(scope="module")
def address():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Unruly)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("word", "'many'"),
        ("long", "10 .*50"),
        ("huge", "4 GiB"),
        ("drip", "0.1"),
    ],
)
def test_what_a_server_may_do(address, path, value, monkeypatch):
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    monkeypatch.setattr(collection, "PERIOD", 0.1)
    with pytest.raises((OSError, collection.http.client.HTTPException), match=value):
        download(f"{address}/{path}", "name")


def test_what_comes_is_what_was_sent(address, monkeypatch):
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    assert download(f"{address}/fine", "name") == b"ten bytes."
    assert download(f"{address}/short", "name") == b"ten b"


def test_no_redirect_leaves_encryption():
    handler, request = collection._StaysEncrypted(), urllib.request.Request("https://a/b.zip")
    with pytest.raises(collection.http.client.HTTPException, match="http://c"):
        handler.redirect_request(request, None, 302, "", {}, "http://c")
    assert handler.redirect_request(request, None, 302, "", {}, "https://c").full_url == "https://c"


def test_another_archive_under_the_right_name_is_refused(tmp_path, monkeypatch):
    content = write_zip(tmp_path / "TINY.zip", TINY).read_bytes()
    monkeypatch.setattr(collection, "download", lambda url, name: content)
    with pytest.raises(LookHopsError, match="188"):
        collection.fetch("MUTAG", tmp_path / "new")
    known = {"graphs": "2", "nodes_per_graph": "99.0", "edges_per_graph": "1.0"}
    monkeypatch.setitem(collection.tu_sets(), "MUTAG", known)
    with pytest.raises(LookHopsError, match=r"99\.00"):
        collection.fetch("MUTAG", tmp_path / "new")
    assert not (tmp_path / "new").exists()


@pytest.mark.data
@pytest.mark.parametrize("name", ["NCI1", "NCI109", "PROTEINS", "DD", "Mutagenicity"])
def test_the_counts_are_those_of_real_sets(data_dir, name):
    if not (data_dir / f"{name}.zip").is_file():
        pytest.skip(f"needs {name}.zip in LOOKHOPS_DATA")
    collection._check_download(name, (data_dir / f"{name}.zip").read_bytes())


def test_every_set_has_a_field_and_most_have_counts():
    sets = collection.tu_sets().values()
    assert len(sets) == 124
    assert all(one["field"] for one in sets)
    assert sum(bool(one["graphs"]) for one in sets) == 116
