"""A small client of the service, with nothing but Python's own library."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, suppress
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

from lookhops.core.errors import LookHopsError

JSON, CSV = "application/json", "text/csv"


class Client(AbstractContextManager["Client"]):
    """Asks a service that ``lookhops serve`` runs.

    What the service refuses is raised as a :class:`LookHopsError` with its sentence. Each thread
    needs a client of its own.

    .. code-block:: python

        with Client("http://127.0.0.1:8000") as client:
            for answer in client.predict(smiles=["CCO", "c1ccccc1"]):
                print(answer["class"], answer["probabilities"])

    Args:
        address: Where the service is.
        token: What it asks for, if it does.
        timeout: Seconds to wait for an answer; for that of a file too.
    """

    def __init__(
        self, address: str = "http://127.0.0.1:8000", token: str = "", timeout: float = 3600.0
    ) -> None:
        parts = urlsplit(address)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise LookHopsError(f"{address}: not an address; one is http://127.0.0.1:8000.")
        kind = HTTPSConnection if parts.scheme == "https" else HTTPConnection
        self._address, self._token, self._timeout = address, token, timeout
        self._connection = kind(parts.hostname, parts.port, timeout=timeout)

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def models(self) -> list[dict[str, Any]]:
        """What there is to know of each model."""
        return self._json("GET", "/v1/models")

    def predict(self, **question: Any) -> list[dict[str, Any]]:
        """One answer for each graph, as ``lookhops predict --json`` gives them.

        Args:
            question: ``smiles`` (and ``ids``, and ``features`` of whole molecules: values by name,
                as ``{"temperature": [25, 40]}``), ``graphs`` in node-link form or ``tables`` (the
                texts of ``edges``, ``nodes`` and ``graphs`` as CSV); ``model``, ``coverage`` and
                ``neighbours``, how many of the most similar training graphs come with each answer.
        """
        return self._json("POST", "/v1/predict", question)["answers"]

    def explain(self, **question: Any) -> list[dict[str, Any]]:
        """What each answer rests on.

        Args:
            question: As for :meth:`predict`; also ``rows`` and ``target``.
        """
        return self._json("POST", "/v1/explain", question)["explanations"]

    def embed(self, **question: Any) -> dict[str, Any]:
        """The graphs as vectors (``ids``, ``readout``, ``fingerprint``), of so many ``bits``."""
        return self._json("POST", "/v1/embed", question)

    def predict_file(
        self,
        path: Path | str,
        *,
        model: str | None = None,
        coverage: float | None = None,
        progress: Callable[[int, int | None], None] | None = None,
        every: float = 0.5,
        neighbours: int | None = None,
    ) -> str:
        """The answers to a file of any kind that ``lookhops predict`` takes, as CSV.

        Args:
            path: The file.
            model: The model; by default the first.
            coverage: Of sets and intervals.
            neighbours: How many of the most similar training graphs come with each answer.
            progress: Called with the graphs that are done and all of them, every so often.
            every: Seconds between two such calls.
        """
        path = Path(path)
        query = {"name": path.name, "model": model, "coverage": coverage, "neighbours": neighbours}
        given = urlencode({key: value for key, value in query.items() if value is not None})
        with path.open("rb") as file:
            size = {"Content-Length": str(path.stat().st_size)}
            job = json.loads(self._ask("POST", f"/v1/jobs?{given}", file, size))
        at = f"/v1/jobs/{quote(job['id'])}"
        # The result is asked for at once, on a second connection: a service that is shut down
        # answers the requests that it has, and takes no more.
        again = Client(self._address, self._token, self._timeout)
        with ThreadPoolExecutor(1) as pool, again as other:
            result = pool.submit(other._ask, "GET", f"{at}/result", None, {"Accept": CSV})
            while progress is not None and not result.done():
                progress(job["done"], job["total"])
                wait([result], every)
                with suppress(LookHopsError):
                    job = self._json("GET", at)
            found = result.result().decode()
        if progress is not None:
            progress(job["done"], job["total"])
        with suppress(LookHopsError):
            self._ask("DELETE", at)
        return found

    def _json(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> Any:
        headers = {"Accept": JSON, **({} if body is None else {"Content-Type": JSON})}
        content = None if body is None else json.dumps(body).encode()
        return json.loads(self._ask(method, path, content, headers))

    def _ask(
        self, method: str, path: str, body: Any = None, headers: Mapping[str, str] | None = None
    ) -> bytes:
        """The content of an answer; a refusal is raised."""
        token = {"Authorization": f"Bearer {self._token}"} if self._token else {}
        try:
            self._connection.request(method, path, body, {**token, **(headers or {})})
            answer = self._connection.getresponse()
            content = answer.read()
        except (OSError, HTTPException) as error:
            raise LookHopsError(
                f"{self._address}: no answer ({error or type(error).__name__})."
            ) from error
        finally:
            self._connection.close()  # a service closes one that is idle for some seconds
        if answer.status >= 400:
            raise LookHopsError(_sentence(answer, content))
        return content


def _sentence(answer: HTTPResponse, content: bytes) -> str:
    """Why a request was refused."""
    try:
        return str(json.loads(content)["error"])
    except (ValueError, KeyError, TypeError):
        return f"The service answered {answer.status} {answer.reason}."
