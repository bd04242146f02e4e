"""How long a report takes to write and to open: 10,000 graphs, 10 seeds.

    python benchmarks/report.py [--graphs 10000] [--seeds 10] [--epochs 200]

The networks are trained for one epoch only; the history and the answers of the folder are drawn at
random in the sizes that a whole training leaves.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import json
import shutil
import tempfile
import time
from pathlib import Path

import numpy as np

from lookhops.core.options import parse_seeds
from lookhops.graphs import Graphs
from lookhops.models import train_into
from lookhops.nn import Architecture
from lookhops.report.build import report_on
from lookhops.report.page import write_report
from lookhops.sources.loading import load
from lookhops.training import Protocol


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    for name, default in (("graphs", 10_000), ("seeds", 10), ("epochs", 200)):
        parser.add_argument(f"--{name}", type=int, default=default)
    given = parser.parse_args()
    graphs = load("hops-2", size=given.graphs)
    with tempfile.TemporaryDirectory() as temporary:
        folder, page = Path(temporary) / "model", Path(temporary) / "report.html"
        make_folder(folder, graphs, given.seeds, given.epochs)
        start = time.perf_counter()
        write_report(report_on(folder, graphs), page)
        seconds = time.perf_counter() - start
        size = page.stat().st_size / 1e6
        print(f"{given.graphs:,} graphs, {given.seeds} seeds of {given.epochs} epochs each")
        print(f"written in {seconds:.1f} s, {size:.2f} MB")
        for name, milliseconds in opened(page).items():
            print(f"{name}: {milliseconds:.0f} ms")


def make_folder(folder: Path, graphs: Graphs, seeds: int, epochs: int) -> None:
    network = Architecture(pool="lookhops", hidden=16, layers=5)
    protocol = Protocol(seeds=parse_seeds(seeds), max_epochs=1, batch_size=512)
    config = train_into(folder, graphs, network, protocol, device="cpu")
    generator = np.random.default_rng(0)
    with (folder / "history.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(("seed", "epoch", "train_loss", "val_loss", "val_accuracy", "seconds"))
        for seed in config["epochs"]:
            loss = 0.7 * np.exp(-np.arange(epochs) / 60) + generator.normal(0, 0.02, epochs)
            for i, value in enumerate(loss.tolist()):
                row = (seed, i + 1, value, 1.1 * value, 1 - value, 0.5)
                writer.writerow(row)
    history = (folder / "history.csv").read_bytes()
    config["history_sha256"] = hashlib.sha256(history).hexdigest()
    answers = (folder / "predictions.csv").read_text().splitlines()
    p = generator.beta(2, 2, size=len(answers) - 1)
    lines = [line.split(",")[:-2] for line in answers[1:]]
    text = [answers[0]]
    text += [
        ",".join((*cells, f"{q:.6g}", f"{1 - q:.6g}")) for cells, q in zip(lines, p, strict=True)
    ]
    content = ("\n".join(text) + "\n").encode()
    (folder / "predictions.csv").write_bytes(content)
    config["predictions_sha256"] = hashlib.sha256(content).hexdigest()
    config["best_epoch"] = dict.fromkeys(config["epochs"], epochs - 20)
    config["epochs"] = dict.fromkeys(config["epochs"], epochs)
    del config["config_sha256"]
    (folder / "config.json").write_text(json.dumps(config))


def opened(page: Path) -> dict[str, float]:
    """What a headless Chromium measures; nothing where there is none."""
    chromium, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if not chromium or not driver:
        return {}
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"):
        options.add_argument(argument)
    browser = webdriver.Chrome(options, webdriver.ChromeService(executable_path=driver))
    try:
        browser.get("about:blank")
        browser.get(page.as_uri())
        time.sleep(2)
        timing = "const t = performance.getEntriesByType('navigation')[0];"
        paint = "performance.getEntriesByName('first-contentful-paint')[0]"
        longest = (
            "const done = arguments[0]; new PerformanceObserver(l => done(Math.max(0, "
            "...l.getEntries().map(e => e.duration)))).observe({type: 'longtask', buffered: true});"
            "setTimeout(() => done(0), 1000);"
        )
        return {
            "first paint": browser.execute_script(f"return {paint}.startTime"),
            "loaded": browser.execute_script(f"{timing} return t.loadEventEnd"),
            "longest task": browser.execute_async_script(longest),
        }
    finally:
        browser.quit()


if __name__ == "__main__":
    main()
