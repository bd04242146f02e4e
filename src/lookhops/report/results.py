"""The section on results: metrics with intervals, the confusion matrix, the calibration."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from lookhops.report.content import Block, Chart, Section, TableBlock
from lookhops.report.folders import Answers, ModelFolder
from lookhops.report.result_charts import calibration, confusion
from lookhops.words import counted, mean_std, percent, share_between

METRICS = {
    "accuracy": "accuracy",
    "balanced_accuracy": "balanced accuracy",
    "macro_f1": "macro-F1",
    "auroc": "AUROC",
    "ece_before": "calibration error",
    "ece_after": "calibration error, with temperature",
}
#: More seeds than this have no columns of their own.
SHOWN_SEEDS = 5
RESAMPLES = 1000


def results_section(model: ModelFolder) -> Section | None:
    """Metrics with intervals, the confusion matrix, the calibration; none without a test."""
    metrics = model.config["metrics"]
    if not metrics["seeds"]:
        return None
    names, seeds = model.class_names, list(metrics["seeds"])
    tested = [metrics["seeds"][seed]["test_graphs"] for seed in seeds]
    each = f"{tested[0]:,}" if len(set(tested)) == 1 else f"{min(tested):,} to {max(tested):,}"
    n = f"n = {each} test graphs a seed, {counted(len(seeds), 'seed')}"
    matrix = np.asarray(metrics["confusion"])
    right = matrix.diagonal() / np.maximum(matrix.sum(1), 1)
    there = np.flatnonzero(matrix.sum(1))
    easy, hard = there[right[there].argmax()], there[right[there].argmin()]
    summary = metrics["summary"]["accuracy"]
    lead = (
        f"Of graphs that it had not seen, the model classified "
        f"{mean_std(summary['mean'], summary['std'], len(seeds) > 1)} correctly."
    )
    if len(there) > 1:
        lead += (
            f" It knows {names[easy]} best ({percent(right[easy], 0)} right) and {names[hard]} "
            f"least ({percent(right[hard], 0)})."
        )
    blocks: list[Block] = [
        metrics_table(model, n),
        confusion(metrics["confusion"], names, f"Confusion matrix, all seeds together. {n}."),
    ]
    if model.answers is not None:
        blocks.append(_calibration(model, model.answers, n))
    return Section("results", "Results", lead, blocks)


def metrics_table(model: ModelFolder, n: str) -> TableBlock:
    """Mean, spread and interval of each metric, and the seeds where there are few."""
    metrics = model.config["metrics"]
    seeds, summary = metrics["seeds"], metrics["summary"]
    several = len(seeds) > 1
    own = list(seeds) if several and len(seeds) <= SHOWN_SEEDS else []
    intervals = _intervals(model.answers, len(model.class_names)) if model.answers else {}
    rows = []
    for key, name in METRICS.items():
        if key not in summary:
            continue
        found = summary[key]
        interval = found.get("interval") or intervals.get(key)
        shown = share_between(interval)
        each = [percent(seeds[seed][key]) for seed in own]
        rows.append([name, mean_std(found["mean"], found["std"], several), shown, *each])
    head = ("test", "mean ± std" if several else "value", "95% interval")
    caption = f"{n}. Interval: 95% of {RESAMPLES:,} redrawn sets of test graphs, mean over seeds."
    return TableBlock((*head, *(f"seed {seed}" for seed in own)), rows, caption)


def _intervals(answers: Answers, classes: int) -> dict[str, tuple[float, float]]:
    """Bootstrap intervals of what follows from the confusion matrix alone.

    To redraw n test graphs is to draw their confusion matrix from a multinomial distribution.
    """
    generator = np.random.default_rng(0)
    resampled: dict[str, list[NDArray[Any]]] = {}
    for seed in dict.fromkeys(answers.seed.tolist()):
        one = answers.of_seed(seed)
        pairs = np.bincount(one.true * classes + one.p.argmax(1), minlength=classes**2)
        draws = generator.multinomial(len(one.true), pairs / len(one.true), size=RESAMPLES)
        for key, values in _from_confusion(draws.reshape(-1, classes, classes)).items():
            resampled.setdefault(key, []).append(values)
    found = {}
    for key, of_seeds in resampled.items():
        low, high = np.quantile(np.mean(of_seeds, axis=0), (0.025, 0.975))
        found[key] = (float(low), float(high))
    return found


def _from_confusion(matrix: NDArray[Any]) -> dict[str, NDArray[Any]]:
    """Metrics of many confusion matrices, shape (r, classes, classes); as ``metrics.evaluate``."""
    hits = matrix.diagonal(axis1=1, axis2=2)
    true, predicted = matrix.sum(2), matrix.sum(1)
    there, either = true > 0, true + predicted > 0
    recall = np.where(there, hits / np.maximum(true, 1), 0)
    f1 = np.where(either, 2 * hits / np.maximum(true + predicted, 1), 0)
    return {
        "accuracy": hits.sum(1) / matrix.sum((1, 2)),
        "balanced_accuracy": recall.sum(1) / there.sum(1),
        "macro_f1": f1.sum(1) / either.sum(1),
    }


def _calibration(model: ModelFolder, answers: Answers, n: str) -> Chart:
    metrics = model.config["metrics"]
    temperature = np.array(
        [metrics["seeds"][str(seed)]["temperature"] for seed in answers.seed.tolist()]
    )
    # Calibrated probabilities are softmax(log p / T): raised to T they are the model's own again.
    own = np.maximum(answers.p, 1e-300) ** temperature[:, None]
    own /= own.sum(1, keepdims=True)
    hit = answers.p.argmax(1) == answers.true
    errors = [metrics["summary"][key]["mean"] for key in ("ece_before", "ece_after")]
    caption = (
        f"Calibration. Expected calibration error {percent(errors[0])} before, "
        f"{percent(errors[1])} with temperature (mean of seeds). {n}."
    )
    return calibration(own.max(1), answers.p.max(1), hit, caption)
