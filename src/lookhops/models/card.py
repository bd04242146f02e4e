"""The model card: what a folder's model was made from, how good it is, and where that ends."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from lookhops.core.options import splits_in_words
from lookhops.core.paired import CONFIDENCE
from lookhops.core.tables import Table, in_markdown
from lookhops.core.words import NONE, counted, joined, percent, span, visible
from lookhops.models.config import learner_in
from lookhops.sources.rdkit.descriptors import in_words
from lookhops.tasks import Metric, Task
from lookhops.tasks.metrics import COUNTED, RESAMPLES

#: More names than this are counted, not listed.
SHOWN_NAMES = 20

USE = """\
```sh
lookhops predict DIR INPUT      # answers, with how sure they are
lookhops evaluate DIR LABELLED  # how good they are on graphs of yours
lookhops explain DIR INPUT -o pictures
```

```python
import lookhops

answers = lookhops.Predictor("DIR").predict(lookhops.load("INPUT"))
```

`DIR` is this folder. Its files hold numbers and text and no code."""


def model_card(config: Mapping[str, Any], task: Task, limit: float) -> str:
    """The card of a model, in Markdown: the same text for the same model.

    Args:
        config: What ``config.json`` holds.
        task: What was asked.
        limit: Graphs that are less similar than this to all training graphs are warned about.
    """
    learner, machine = learner_in(config), config["machine"]
    use = USE
    if learner.registered:
        layers = joined(learner.registered)
        use += f" The layer {layers} is its maker's own: add `--plugin FILE.py` with their file."
    trained_on = f"{machine['system']}, {machine['cores']} cores, {machine['device']}"
    versions = config["versions"] | {"trained on": trained_on, "format": config["format"]}
    sections = {
        "How to use it": use,
        "Data": _table(_data(config, task)),
        "Training": _training(config),
        "Results": _results(config, task),
        "Limits": "\n".join(f"- {sentence}" for sentence in _limits(config, task, limit)),
        "Versions": _table(versions.items()),
    }
    kinds = [head.task.in_card(head.name, in_markdown, SHOWN_NAMES) for head in task.heads]
    title = f"# Model card: {in_markdown(config['data']['name'])}\n\n"
    model = in_markdown(learner.title)
    lead = f"{title}Answers for a graph {'; '.join(kinds)}. The model: {model}."
    return "\n\n".join((lead, *(f"## {name}\n\n{text}" for name, text in sections.items()))) + "\n"


def _table(rows: Iterable[tuple[str, str]]) -> str:
    return Table(("what", "value"), list(rows)).markdown().rstrip()


def _data(config: Mapping[str, Any], task: Task) -> Iterator[tuple[str, str]]:
    data, counts = config["data"], config["facts"]
    low, high = counts["nodes_range"]
    yield "set", data["name"]
    yield "graphs", f"{counts['graphs']:,}, of {low:,} to {high:,} nodes"
    yield "nodes, edges", f"{counts['nodes']:,}, {counts['edges']:,}"
    yield "features of a node", f"{counts['features']:,}"
    if (columns := config["encoding"].get("whole")) is not None:
        yield "features of a graph", in_words([*columns["numbers"], *columns["labels"]])
    if counts["class_counts"] and len(counts["class_names"]) <= SHOWN_NAMES:
        pairs = zip(counts["class_names"], counts["class_counts"], strict=True)
        yield "graphs of each class", ", ".join(f"{name}: {count:,}" for name, count in pairs)
    if isinstance(molecules := counts.get("molecules"), Mapping):
        said = [f"{count:,} {name}" for name, count in molecules.items() if count]
        yield "molecules", ", ".join(said) or "no duplicates, salts or mixtures; none skipped"
    if config["reading"]:
        yield "read with", ", ".join(f"{k} = {v}" for k, v in config["reading"].items())
    yield "fingerprint", data["fingerprint"]


def _training(config: Mapping[str, Any]) -> str:
    protocol, runs = config["protocol"], list(config["metrics"]["seeds"].values())
    rows = [("splits", splits_in_words(protocol["split"], protocol["folds"]))]
    if runs:
        parts = (f"{runs[0][f'{part}_graphs']:,}" for part in ("train", "val", "test"))
        rows.append(("graphs to learn from, validate, test", " + ".join(parts)))
    rows.append(("seeds", ", ".join(map(str, protocol["seeds"]))))
    if config["parameters"] is not None:
        epochs = joined([f"{n:,}" for n in dict.fromkeys(config["epochs"].values())])
        adam = (
            f"learning rate {protocol['learning_rate']:g}, batches of {protocol['batch_size']:,}, "
            f"weight decay {protocol['weight_decay']:g}"
        )
        rows += [
            ("networks a seed", f"{protocol['members']:,}"),
            ("parameters of a network", f"{config['parameters']:,}"),
            ("epochs", epochs),
            ("Adam", adam),
        ]
    if last := config.get("final_model"):
        graphs, epochs = counted(last["graphs"], "graph"), counted(last["epochs"], "epoch")
        rows.append(("final model", f"on all {graphs} for {epochs}; it answers"))
    text = _table(rows)
    if "command" in config:
        text += f"\n\n    {' '.join(visible(config['command']).split())}"
    return text


def _results(config: Mapping[str, Any], task: Task) -> str:
    metrics = config["metrics"]
    seeds, rows = metrics["seeds"], []
    if not seeds:
        return "None: the training was stopped before a test."
    tested = [one["test_graphs"] for one in seeds.values()]
    for metric in (metric for metric in task.metrics if metric.shown):
        if (found := metrics["summary"].get(metric.name)) is None:
            continue
        spread = [found["std"]] if len(seeds) > 1 else []
        ends = found.get("interval") or _proportion(metric, found["mean"], tested, task) or ()
        written = metric.written(found["mean"], *spread)
        rows.append((metric.title, written, metric.written(*ends, joint=" to ")))
    for head in task.heads:
        overview = metrics["targets"][head.name] if head.name else metrics
        if said := head.task.held_by_class(overview):
            rows.append((head.key("90% sets, by class"), said, NONE))
    column = "mean ± std" if len(seeds) > 1 else "value"
    table = Table(("test", column, f"{CONFIDENCE:.0%} interval"), rows)
    many = span(min(tested), max(tested))
    said = (
        f"{counted(len(seeds), 'split')} of {many} test graphs, each tested once. Intervals: of "
        "shares of graphs Wilson's for one test part, of others the middle "
        f"{CONFIDENCE:.0%} of {RESAMPLES:,} redrawn test parts."
    )
    return f"{table.markdown()}\n{said}"


def _proportion(
    metric: Metric, mean: float, tested: Sequence[int], task: Task
) -> tuple[float, float] | None:
    """Wilson's interval of a share of the test graphs; none of other metrics."""
    from scipy.stats import binomtest  # takes its time to import

    if metric.name not in COUNTED or len(task.heads) > 1:
        return None
    n = round(sum(tested) / len(tested))
    found = binomtest(round(mean * n), n).proportion_ci(CONFIDENCE, "wilson")
    return float(found.low), float(found.high)


def _limits(config: Mapping[str, Any], task: Task, limit: float) -> Iterator[str]:
    protocol, seeds = config["protocol"], config["metrics"]["seeds"]
    if "stopped" in config:
        yield in_markdown(config["stopped"]).rstrip(".") + "."
    yield (
        "It knows graphs like those above. `predict` warns of a graph whose similarity to the "
        f"nearest training graph is below {limit:.2f}; of such graphs the figures say nothing."
    )
    if protocol["split"] in ("random", "stratified"):
        yield (
            "Test graphs were drawn from the same set: where new graphs are of other kinds, expect "
            "less. Splits by scaffold, group or time (`--split`) estimate that."
        )
    if len(seeds) == 1 and not protocol["folds"]:
        yield "One split was tested; another would give other figures (`--seeds 10`)."
    if "final_model" in config:
        yield "The network that answers was trained on all graphs; the figures are of the others."
    majority = config["metrics"]["summary"].get("majority")
    if majority is not None:
        yield f"Always answering the commonest class is right in {percent(majority['mean'])}."
    regions = joined(list(dict.fromkeys(head.task.regions_are for head in task.heads)))
    yield (
        f"How sure it is, and its {regions}, rest on the validation graphs; of graphs of other "
        "kinds they promise nothing."
    )
    yield "It was not examined for bias, nor for any use in which people can be harmed."
