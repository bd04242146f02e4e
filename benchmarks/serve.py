"""The service under load: 64 clients at once against one after the other, the same answers.

    python benchmarks/serve.py [MODEL] [--requests 10000] [--clients 64] [--alone 300]

Without a model the recommended one is trained on the bundled molecules for a few epochs: how well
it answers does not matter here. Each request asks about one molecule.
"""

import argparse
import asyncio
import json
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from lookhops.sources.loading import load


def request(smiles: str, host: str) -> bytes:
    body = json.dumps({"smiles": [smiles]}).encode()
    head = (
        f"POST /v1/predict HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


async def client(host, port, todo, times, answers):
    """One connection that asks one thing after the other, as long as there is something to ask.

    What is not answered, or not with 200, is missing among the answers: it is lost.
    """
    reader, writer = await asyncio.open_connection(host, port)
    while todo:
        number, content = todo.pop()
        began = time.perf_counter()
        writer.write(content)
        head = await reader.readuntil(b"\r\n\r\n")
        length = int(re.search(rb"content-length: (\d+)", head.lower())[1])
        body = await reader.readexactly(length)
        times.append(time.perf_counter() - began)
        if head.startswith(b"HTTP/1.1 200"):
            answers[number] = json.loads(body)["answers"][0]
    writer.close()


def ask(at, smiles, count, clients):
    """Seconds in all, seconds of each request, and the answers."""
    host, port = re.match(r"http://(.*):(\d+)", at).groups()
    todo = [(i, request(smiles[i % len(smiles)], host)) for i in reversed(range(count))]
    times, answers = [], {}

    async def all_of_them():
        await asyncio.gather(*(client(host, port, todo, times, answers) for _ in range(clients)))

    began = time.perf_counter()
    asyncio.run(all_of_them())
    return time.perf_counter() - began, np.array(times), answers


def largest_difference(answers, alone):
    """Of any probability or value, from the answer to the same molecule asked alone."""
    worst = 0.0
    for number, one in answers.items():
        other = alone[number % len(alone)]
        assert one.get("class") == other.get("class")
        for key in ("probabilities", "value"):
            if key in one:
                values = (
                    np.array(list(x[key].values()) if key[0] == "p" else x[key])
                    for x in (one, other)
                )
                worst = max(worst, float(np.abs(np.subtract(*values)).max()))
    return worst


def report(name, seconds, times, answers, count):
    p50, p99 = np.quantile(times, (0.5, 0.99)) * 1000
    print(
        f"{name:<24}{count / seconds:>9.1f} requests/s   p50 {p50:7.1f} ms   p99 {p99:7.1f} ms   "
        f"lost {count - len(answers)}"
    )
    return count / seconds


def train(folder):
    command = ["train", "solubility", "--seeds", "1,2,3", "--epochs", "3", "-o"]
    subprocess.run(
        [sys.executable, "-m", "lookhops", *command, folder], check=True, capture_output=True
    )
    return folder


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", nargs="?")
    parser.add_argument("--requests", type=int, default=10_000)
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--alone", type=int, default=300)
    chosen = parser.parse_args()
    smiles = [str(one) for one in load("solubility").columns["smiles"][: chosen.alone]]
    with tempfile.TemporaryDirectory() as folder:
        model = chosen.model or train(str(Path(folder) / "model"))
        command = [sys.executable, "-m", "lookhops", "serve", model, "--port", "0"]
        server = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        try:
            at = server.stderr.readline().split()[-1]
            ask(at, smiles, 20, 1)  # warm
            seconds, times, alone = ask(at, smiles, chosen.alone, 1)
            one = report("one after the other", seconds, times, alone, chosen.alone)
            seconds, times, answers = ask(at, smiles, chosen.requests, chosen.clients)
            many = report(
                f"{chosen.clients} clients at once", seconds, times, answers, chosen.requests
            )
            print(f"{many / one:.1f} times the throughput; ", end="")
            print(f"largest difference of an answer {largest_difference(answers, alone):.1e}")
        finally:
            server.terminate()
            server.wait()


if __name__ == "__main__":
    main()
