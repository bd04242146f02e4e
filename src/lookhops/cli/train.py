"""``lookhops train``: learn to classify graphs, and keep the model in a folder."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import asdict, dataclass, fields, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

from lookhops.cli.shared.output import (
    ReportFile,
    command_line,
    err,
    out,
    print_json,
    print_saved,
    remark,
    warn,
    write_page,
)
from lookhops.cli.shared.parameters import AUTO, Json, Network, Plugins, Training, with_options
from lookhops.cli.shared.reading import Reading, Source, Splitting, load, warnings_as_lines
from lookhops.cli.shared.running import epoch_display, stoppable, tell_remarks
from lookhops.core.errors import LookHopsError
from lookhops.core.options import OF_SPLITS, RECOMMENDED, Architecture, Protocol
from lookhops.core.schema import option
from lookhops.core.words import counted

if TYPE_CHECKING:
    from lookhops.graphs import Graphs
    from lookhops.learners import Learner
    from lookhops.neighbourhoods import HopInformation
    from lookhops.sources.splits import SplitPlan
    from lookhops.training.runs import Epoch
    from lookhops.training.workers import Workers

#: Hops where the hop information cannot say: the paper's.
FALLBACK_K = 2


@dataclass(frozen=True)
class TrainingRun:
    """How a training is run and kept.

    Args:
        resume: Go on with the training that was begun there.
        overwrite: Train again although the folder is not empty.
        save_every: Seconds between two writes of the state.
        tensorboard: Folder for TensorBoard logs; by default none.
        final: In the end train on all labelled graphs, for the median of the best numbers of
            epochs: the model to use, beside the estimate to trust.
        threshold: Two classes: the probability from which the second is answered, such as 0.3, or
            chosen on the validation part for the highest ``f1``, or for ``youden``, the recall of
            both classes. By default the likelier class is answered.
        processes: How many networks (of seeds, folds, members) are trained at a time on a CPU where
            that pays; by default one on each core. The numbers are the same. Where batches are so
            large that one training takes several cores, it is one.
        workers: Processes of a Ray cluster that train together, each on its share of every batch;
            by default this one alone.
    """

    device: str = "auto"
    resume: bool = False
    overwrite: bool = False
    save_every: float = option(10.0, least=0)
    tensorboard: Path | None = None
    final: bool = False
    threshold: str | None = None
    processes: int | None = option(None, least=1)
    workers: int = option(1, least=1)
    address: str | None = None

    def __post_init__(self) -> None:
        if self.resume and self.overwrite:
            raise LookHopsError(
                "--resume continues a training, --overwrite begins again: choose one."
            )


@with_options
def train(
    source: Source,
    output: Path,
    model: str | None = None,
    k: str = str(RECOMMENDED.k),
    seeds: str | None = None,
    report: ReportFile = None,
    plugin: Plugins = None,
    as_json: Json = False,
    *,
    network: Network = RECOMMENDED,
    protocol: Training = AUTO,
    splitting: Splitting,
    run: Annotated[TrainingRun, "The run"],
    reading: Reading,
) -> None:
    """Train a model for each seed, test it once, and keep all of them in a folder.

    Ctrl-C stops after the epoch and keeps the state (exit code 130); `--resume` goes on from it,
    or from where a kill or a power cut left it, to the same result.

    `torchrun --nproc-per-node N -m lookhops train ...` trains on N GPUs, or in N processes, each on
    its share of every batch: the answer is the same within rounding.

    Args:
        output: Folder for the model.
        model: Its name with its options, as `compare` takes them: ``network``, ``gp``, ``blend``,
            ``licheb+lookhops/k=3``; by default the one that is recommended for these graphs or,
            where an option of networks or of their training is given, the network.
        k: Hops that each layer looks: a number, or ``auto``, which measures.
        seeds: How many, or which (11,22): each is a split and a model. By default 1, or one a fold;
            the paper's protocol is 10.
    """
    is_open = model in (None, "recommended")
    of_network = network != RECOMMENDED or k != str(RECOMMENDED.k)
    if of_network and not (is_open or model == "network"):
        raise LookHopsError("--model names all options of a network: licheb+lookhops/k=3.")
    load(run.device if run.workers == 1 else "cpu", "lookhops.models")
    with _workers(run.device) as workers:
        graphs = reading.load_to_learn(source)
        _tell_molecules(graphs)
        graphs, plan = splitting.plan(source, graphs, protocol, seeds, reading)
        if is_open and (of_network or not workers.alone or _is_of_networks(protocol, run)):
            model = "network"
        learner, plan, information = _learner(model, network, k, graphs, plan, run)
        if reading.features is not None and not learner.reads_whole:
            named = "a network without --totals" if model == "network" else model
            raise LookHopsError(f"{named} reads no features of whole graphs: leave out --features.")
        config = _train(output, graphs, learner, plan, run, reading, information, workers)
    if not workers.is_first:
        return
    if as_json:
        print_json(config)
    else:
        _print(config, output)
    if report is not None:
        from lookhops.report.build import report_on

        write_page(report_on(output, graphs), report, quiet=as_json)


def _print(config: dict[str, Any], output: Path) -> None:
    from lookhops.cli.shared.model_panel import model_panel

    out.print(model_panel(config))
    if "stopped" in config:
        warn(config["stopped"])
    print_saved(output)


def _is_of_networks(protocol: Protocol, run: TrainingRun) -> bool:
    of_training = replace(protocol, **{name: getattr(AUTO, name) for name in OF_SPLITS}) != AUTO
    return of_training or run.final or run.workers > 1 or run.tensorboard is not None


def _tell_molecules(graphs: Graphs) -> None:
    """Of molecules, a line on duplicates, salts, mixtures and skipped rows, where there are any."""
    from lookhops.sources.counts import in_words, molecule_counts

    counts = molecule_counts(graphs)
    if counts and (words := in_words(counts)):
        remark(f"{graphs.name}: {words} (--duplicates and --salts choose what is done)")


def _learner(
    kind: str | None,
    network: Architecture,
    k: str,
    graphs: Graphs,
    plan: SplitPlan,
    run: TrainingRun,
) -> tuple[Learner, SplitPlan, HopInformation | None]:
    """What is trained, how, and what was measured to find its k."""
    from lookhops.learners import Network as NetworkLearner
    from lookhops.learners import recommend
    from lookhops.tasks import task_of

    if kind == "network":
        chosen_k, information = hops(k, graphs)
        return NetworkLearner(replace(network, k=chosen_k)), plan, information
    if kind in (None, "recommended"):
        found = recommend(graphs, task_of(graphs), plan.training_graphs)
        remark(f"{graphs.name}: {found.said} (--model network: a network)")
        return found.learner, plan, None
    return *_named(kind, plan, run), None


def _named(name: str, plan: SplitPlan, run: TrainingRun) -> tuple[Learner, SplitPlan]:
    """The learner of a name, and the protocol with the options of training in the name."""
    from lookhops.learners import learner_of
    from lookhops.runs.plan import parse_entry

    entry = parse_entry(name)
    learner, protocol = learner_of(entry.model), entry.protocol(plan.protocol)
    if not learner.has_epochs:
        read = learner.read_of(protocol)
        for field in fields(protocol):
            usual = getattr(AUTO, field.name), getattr(read, field.name)
            if field.name != "seeds" and getattr(protocol, field.name) not in usual:
                flag = field.metadata.get("flag") or f"--{field.name.replace('_', '-')}"
                raise LookHopsError(f"{learner.name} is not trained in epochs: leave out {flag}.")
        if run.workers > 1 or run.tensorboard:
            raise LookHopsError(
                f"{learner.name} is fitted in one process and without epochs: leave out --workers "
                "and --tensorboard."
            )
    return learner, replace(plan, protocol=protocol)


def hops(k: str, graphs: Graphs) -> tuple[int, HopInformation | None]:
    """The number that ``--k`` stands for, and what was measured to find it."""
    if k != "auto":
        if not (k.isascii() and k.isdecimal()):
            raise LookHopsError(f"--k is a number of hops from 0, or auto, not {k!r}.")
        return int(k), None
    from lookhops.neighbourhoods import look

    try:
        with warnings_as_lines():
            information = look(graphs, bootstrap=0)
    except LookHopsError as error:
        warn(f"k = {FALLBACK_K}, because the hop information cannot be had: {error}")
        return FALLBACK_K, None
    found = information.suggested_k
    if found is None:
        found = FALLBACK_K
        warn(f"k = {found}, because the hop information does not die away and suggests none")
    elif found > information.max_k:
        warn(f"k = {information.max_k}, the most that was measured; suggested was k = {found}")
        found = information.max_k
    else:
        remark(f"k = {found}, which the hop information suggests")
    return found, information


@contextmanager
def _workers(device: str) -> Iterator[Workers]:
    """The processes that train together, of which the first speaks."""
    from lookhops.training.workers import ALONE, SaidByFirst, WorkerLost, joining

    workers = ALONE
    try:
        with joining(device) as workers:
            out.quiet = err.quiet = not workers.is_first
            yield workers
    except SaidByFirst:
        _leave(2)
    except WorkerLost as lost:
        print(f"lookhops: {lost}", file=sys.stderr)
        _leave(2)
    except SystemExit as stop:
        if workers.alone or not isinstance(stop.code, int):
            raise
        _leave(stop.code)


def _leave(code: int) -> NoReturn:
    """End at once: PyTorch's threads, which wait for other workers, would abort on the way out."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def _train(
    output: Path,
    graphs: Graphs,
    learner: Learner,
    plan: SplitPlan,
    run: TrainingRun,
    reading: Reading,
    information: HopInformation | None,
    workers: Workers,
) -> dict[str, Any]:
    """Train, with a progress bar and an orderly end when the user asks for one."""
    from lookhops.models import train_into
    from lookhops.models.folder import Provenance
    from lookhops.runs.processes import ProcessLost

    found = information.to_dict() if information else None
    options = asdict(run) | {"provenance": Provenance(reading, command_line(), found)}
    logs = _tensorboard(options.pop("tensorboard"))
    cluster = {name: options.pop(name) for name in ("workers", "address")}
    if run.workers > 1:
        from lookhops.models.ray import train_on_ray

        remark(f"training on {run.workers} workers of a Ray cluster")
        options |= cluster | {"splits": plan}
        return train_on_ray(output, graphs, learner, plan.protocol, **options)
    remarks = cache(lambda: tell_remarks(graphs, plan))  # what cannot be trained says that first
    again = f"{command_line()} --resume" if workers.alone else "the same command and --resume"
    fitting = "" if learner.has_epochs else f"fitting {learner.spelled}"
    if fitting:
        splits = counted(len(plan.splits), "split")
        remark(f"{fitting}: {splits} of {plan.training_graphs:,} training graphs")
    display = epoch_display(plan.protocol, fitting)
    try:
        with logs as log, stoppable(again) as check, display as show:

            def on_epoch(epoch: Epoch) -> None:
                remarks()
                show(epoch)
                log(epoch)
                check()

            options |= {"splits": plan, "on_epoch": on_epoch, "workers": workers}
            config = train_into(output, graphs, learner, plan.protocol, **options)
            remarks()
            return config
    except ProcessLost as lost:
        raise LookHopsError(f"{lost} What was trained is kept: --resume goes on.") from lost


@contextmanager
def _tensorboard(folder: Path | None) -> Iterator[Callable[[Epoch], None]]:
    """A function that logs the losses and the accuracy of each seed; without a folder, nothing."""
    if folder is None:
        yield lambda epoch: None
        return
    from torch.utils.tensorboard import SummaryWriter

    with ExitStack() as stack:

        @cache
        def writer_of(key: str) -> SummaryWriter:
            return stack.enter_context(closing(SummaryWriter(f"{folder}/seed-{key}")))

        def log(epoch: Epoch) -> None:
            for run in epoch.runs:
                row = run.history[-1]
                for name in (name for name in row if name not in ("epoch", "seconds")):
                    writer_of(run.key).add_scalar(name, row[name], int(row["epoch"]))

        yield log
