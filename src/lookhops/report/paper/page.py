"""The page: the paper reproduced, as Markdown with its tables, figures and answers."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from lookhops.core.files import changing, write_text
from lookhops.core.paired import Estimate
from lookhops.core.pictures import save_both
from lookhops.core.tables import Table
from lookhops.core.words import NONE, QUICK_MARK, counted, signed
from lookhops.report.paper.claims import CLAIMS, Answer, Verdict, judge
from lookhops.report.paper.figures import FIGURE_MAKERS
from lookhops.report.paper.side_by_side import datasets_in_order, make_tables
from lookhops.runs.paper import (
    COST_DATASET,
    DATASETS,
    QUICK_SEEDS,
    ROWS,
    best_published,
    rows_of,
)
from lookhops.runs.results import CellResult, Results
from lookhops.training import Protocol

PAGE, FOLDER = "paper.md", "paper"
QUICK = (
    "> **Quick version.** Few graphs, seeds and epochs: it shows that everything runs. Its "
    "accuracies say nothing about the models.\n"
)
BURSI = (
    "BURSI stands where the paper has FRANKENSTEIN. It has FRANKENSTEIN's 4,337 graphs and "
    "classes, with atom symbols for features: the 780 pixel attributes that the paper used could "
    "not be had. So it is another problem, it goes by its own name, and the paper's numbers for "
    "FRANKENSTEIN are in a column of their own. No collection has it to download: where BURSI.zip "
    "is not in the data folder, `lookhops paper` leaves it out and says so.\n"
)
CAPTIONS = {
    "gain": "Information gain of each further hop, with its fit and the paper's. The fit is to the "
    "gains themselves, as the paper's is: the small gains of many hops, which this scale shows, "
    "hardly bear on it.",
    "accuracy-by-k": "Test accuracy of LiCheb without pooling against k: mean and standard error "
    "over the seeds. (The paper prints this figure without numbers.)",
}
RULES = (
    "Each claim is answered from accuracies on the same splits. Differences are paired by seed; "
    "intervals (95%) and tests are the corrected resampled t-test of Nadeau and Bengio, which "
    "allows for overlapping training parts; the last column is the mean over the data sets, "
    "Holm-adjusted where a claim has several comparisons. “Beats” is reproduced where every such "
    "mean is significantly above 0, and not reproduced where any is significantly below. “Matches” "
    "is reproduced where the interval excludes a loss of a point or more, and not reproduced where "
    "it excludes all else; “does not beat” is reproduced where the interval excludes a gain of a "
    "point or more, and not reproduced where the gain is significant. What is neither is not "
    "decidable with these seeds. Intervals are of one comparison each; only p is adjusted.\n"
)


def write_page(
    results: Results,
    folder: Path,
    tables: Sequence[str],
    figures: Sequence[str],
) -> list[Path]:
    """Write the page, its tables (Markdown, CSV, LaTeX) and figures (SVG, PNG); the files."""
    with changing(folder) as new:
        paths = _write_page(results, new, tables, figures)
    return [folder / path.relative_to(new) for path in paths]


def _write_page(
    results: Results, folder: Path, tables: Sequence[str], figures: Sequence[str]
) -> list[Path]:
    inner = folder / FOLDER
    made = make_tables(results, tables)
    paths = [path for table in made for path in table.write(inner, results.quick)]
    whole = {"conv", "pool"} <= {*tables}
    verdicts = [judge(claim, results) for claim in CLAIMS] if whole else []
    mark = QUICK_MARK if results.quick else ""
    parts = [_head(results, mark)]
    if whole:
        rows = "\n".join(f"| {v.claim.title} | **{v.said}** |" for v in verdicts)
        short = f"| the paper's claim | with our runs |\n| --- | --- |\n{rows}\n"
        parts.append(f"## In short{mark}\n\n{short}\n{_reached(results)}")
    for table in made:
        note = f"{table.note}\n\n" if table.note else ""
        text = f"## {table.title}{mark}\n\n{table.markdown()}\n{note}"
        parts.append(text + commands(results, table.name))
        if table.name == "gain" and "gain" in figures:
            parts.append(_figure("gain", results, inner, paths))
    if "gain" in figures and "gain" not in tables:
        parts.append(_figure("gain", results, inner, paths))
    if "accuracy-by-k" in figures:
        heading = f"## Accuracy against k{mark}\n\n"
        parts.append(_figure("accuracy-by-k", results, inner, paths, heading))
        parts.append(commands(results, "accuracy-by-k"))
    if whole:
        answers = "\n".join(_verdict(verdict, results) for verdict in verdicts)
        parts.append(f"## The paper's claims{mark}\n\n{RULES}\n{answers}")
    parts.append(_environment(results))
    write_text(folder / PAGE, "\n".join(part for part in parts if part))
    return [folder / PAGE, *paths]


def _head(results: Results, mark: str) -> str:
    command = "lookhops paper --quick" if results.quick else "lookhops paper"
    lines = [
        f"# The paper, reproduced{mark}\n",
        *([QUICK] if results.quick else []),
        f"Every number below is made by `{command}`. With "
        "`--export FILE.json` it keeps all runs in a small file, from which `lookhops paper --from "
        "FILE.json -o DIR` builds this page again.\n",
        *([BURSI] if "BURSI" in results.datasets else []),
    ]
    return "\n".join(lines)


def _reached(results: Results) -> str:
    """Which of the paper's best numbers the recommended network is above."""
    row = ROWS["recommended"]
    chosen = {name: value for name, value in asdict(row.model).items() if value is not None}
    said = ", ".join(f"{name} = {value}" for name, value in chosen.items())
    found = {name: row.cell(results, name) for name in datasets_in_order(results)}
    above: dict[str, bool] = {
        name: cell.mean_std()[0] > best[0]
        for name, cell in found.items()
        if cell and (best := best_published(name))
    }
    if not above:
        return f"The recommended model, one for all data sets ({said}), was not run.\n"
    yes, no = ([name for name, is_so in above.items() if is_so == want] for want in (True, False))
    where = f"{' (' + ', '.join(yes) + ')' if yes else ''}{'; not on ' * bool(no)}{', '.join(no)}"
    return (
        f"The recommended model is one for all data sets: {said}. It was chosen by "
        "validation on the splits of seeds 1001 to 1020, which are not among these. In the mean it "
        "is above the best "
        f"number that the paper prints in either table on {len(yes)} of {len(above)} data sets"
        f"{where}.\n"
    )


def commands(results: Results, table: str) -> str:
    """The command that reruns each cell of a table."""
    if table in ("data", "gain"):
        names = datasets_in_order(results)
        quick = " --quick" if results.quick else ""
        some = f" --datasets {','.join(names)}" if set(names) != {*DATASETS} else ""
        return f"Again: `lookhops paper --tables {table} --figures none{quick}{some} -o again`\n"
    where = f"--tables {table} --figures none"
    if table == "accuracy-by-k":
        where = "--tables none --figures accuracy-by-k"
    listing = "\n".join(
        f"lookhops paper {where} --rows {row.slug} --datasets {dataset}"
        f"{_protocol_options(cell.protocol, cell.seeds, results.quick)} -o again"
        for row in rows_of(table)
        for dataset in datasets_in_order(results)
        if (cell := row.cell(results, dataset))
    )
    return listing and (
        "<details><summary>The command that runs each cell again</summary>\n\n"
        f"```console\n{listing}\n```\n\n</details>\n"
    )


def _protocol_options(protocol: Protocol, seeds: Sequence[int], quick: bool) -> str:
    text = " --quick" if quick else ""
    if tuple(seeds) != (QUICK_SEEDS if quick else Protocol().seeds):
        text += f" --seeds {','.join(map(str, seeds))}"
    if protocol.precision != Protocol().precision:
        text += f" --precision {shlex.quote(protocol.precision)}"
    return text


def _figure(name: str, results: Results, folder: Path, paths: list[Path], heading: str = "") -> str:
    figure = FIGURE_MAKERS[name](results)
    if figure is None:
        return ""
    paths += save_both(figure, folder, name)
    return f"{heading}![{CAPTIONS[name]}]({FOLDER}/{name}.svg)\n\n{CAPTIONS[name]}\n"


# -------------------------------------------------------------------- claims


def _verdict(verdict: Verdict, results: Results) -> str:
    claim = verdict.claim
    datasets = datasets_in_order(results)
    rows = [_answer(answer, datasets) for answer in verdict.answers if answer.overall]
    text = f"### {claim.title}: {verdict.said}\n\nThe paper: “{claim.paper}”"
    text += f" {claim.remark}\n\n" if claim.remark else "\n\n"
    if claim.kind == "matches":
        text += _parameters(results)
    if rows:
        table = Table(["difference", *datasets, "all"], rows)
        text += f"{table.markdown()}\nPercentage points, with 95% intervals.\n"
    return text


def _answer(answer: Answer, datasets: Sequence[str]) -> list[list[str]]:
    assert answer.overall is not None
    cells = [
        _interval(answer.by_dataset[name]) if name in answer.by_dataset else [NONE]
        for name in datasets
    ]
    p = f"p = {answer.adjusted_p:.2g}"
    return [[answer.contrast.label], *cells, [*_interval(answer.overall, "**"), p]]


def _interval(estimate: Estimate, bold: str = "") -> list[str]:
    low, high = signed(estimate.low), signed(estimate.high)
    return [f"{bold}{signed(estimate.mean)}{bold}", f"{low} to {high}"]


def _parameters(results: Results) -> str:
    light, full = (ROWS[slug].cell(results, COST_DATASET) for slug in ("licheb", "cheb"))
    if light is None or full is None:
        return ""
    a, b = light.parameters, full.parameters
    return f"Parameters on {COST_DATASET}: {a:,} against {b:,}, {a / b:.0%}.\n\n"


# -------------------------------------------------------------------- where it ran


def _environment(results: Results) -> str:
    if not results.cells:
        return ""
    runs = Counter(
        (str(run.machine), run.versions["torch"], run.versions["lookhops"])
        for cell in results.cells
        for run in cell.runs
    )
    lines = []
    for (device, torch, version), count in runs.most_common():
        line = f"- {counted(count, 'run')} on {device}, with PyTorch {torch} and LookHops {version}"
        where = [c for c in results.cells if device in (str(run.machine) for run in c.runs)]
        if device != results.device:
            line += f": {_named(where)}"
        lines.append(line)
    seconds = sum(sum(cell.metrics["seconds"]) for cell in results.cells)
    precision = Counter(cell.protocol.precision for cell in results.cells)
    said = ", ".join(f"{name} in {counted(n, 'cell')}" for name, n in precision.most_common())
    lines.append(
        f"- {seconds / 60:.1f} minutes of training, added up over all runs, of which several may "
        f"have shared a machine at a time; precision {said}"
    )
    return "## Where it ran\n\n" + "\n".join(lines) + "\n"


def _named(cells: Sequence[CellResult]) -> str:
    """Cells in words, model by model."""
    models = dict.fromkeys(cell.model for cell in cells)
    by_model = {m: [cell.dataset for cell in cells if cell.model == m] for m in models}
    return "; ".join(f"{model} on {', '.join(names)}" for model, names in by_model.items())
