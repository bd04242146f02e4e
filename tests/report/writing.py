"""Adds pairs of runs and a fact to a store, all or none of them, until it is stopped.

Run as a script: ``writing.py STORE``.
"""

import json
import sys

from lookhops.runs.store import Store, checksum

MODELS = ("gcn", "licheb+lookhops")
COPY = (
    "INSERT INTO runs (dataset, fingerprint, model, architecture, seed, protocol, metrics,"
    " history, versions, machine, finished, sha256) SELECT dataset, fingerprint, model,"
    " architecture, :seed, protocol, metrics, history, versions, machine, finished,"
    " checksum(:seed, metrics, versions, machine) FROM runs WHERE model = :model AND seed = 11"
)


def main(path: str) -> None:
    with Store(path) as store:
        store.db.create_function("checksum", 4, checksum)
        for seed in range(1000, 1_000_000):
            store.db.execute("BEGIN IMMEDIATE")
            for model in MODELS:
                store.db.execute(COPY, {"seed": seed, "model": model})
            fact = ("hops-1", "f", f"command {seed}", json.dumps(f"run {seed}"))
            store.db.execute("INSERT INTO facts VALUES (?, ?, ?, ?)", fact)
            store.db.commit()
            if seed == 1000:
                print("ready", flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
