"""What a user can choose about reading, a network and its training, each option named once.

The fields of :class:`Architecture` and :class:`Protocol` are the options of the command line, the
parameters of ``LookHopsClassifier`` and the options in names of models; those of
:class:`~lookhops.core.reading.Reading` are the options of the command line and of
:func:`lookhops.load`. The texts of their ``Args:`` are the help everywhere. PyTorch is not imported
here: ``--help`` does not wait for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from math import inf

from lookhops.core.errors import LookHopsError
from lookhops.core.schema import check_fields, option

#: What edges carry is read, or is not.
EDGES = ("use", "ignore")
#: Scales of numeric features; the first leaves them as they are.
SCALES = ("none", "standard", "quantiles")
LOSSES = ("mse", "mae", "huber")
PRECISIONS = ("float32", "tf32", "bfloat16", "float64")
PAPER_SEEDS = (11, 22, 33, 44, 55, 66, 77, 88, 99, 110)
MOST_SEEDS = 1_000
#: The fields of a protocol that draw the splits: all that a model without epochs reads of it.
OF_SPLITS = ("fractions", "split", "folds")
#: Kinds of splits in words; those with braces name a column.
SPLITS = {
    "random": "at random",
    "stratified": "stratified by class",
    "scaffold": "by scaffold",
    "group": "by {}",
    "time": "in time, by {}",
    "column": "as {} says",
    "auto": "chosen by the target",
    "file": "from a file",  # what --splits makes of it
}


@dataclass(frozen=True)
class Architecture:
    """Everything that shapes a :class:`~lookhops.nn.GraphNetwork` but its input and its outputs.

    Args:
        conv: Name of the convolution: ``licheb``, ``cheb``, ``gcn``, ... (all: docs/models.md).
        pool: Name of the pooling: ``lookhops``, ``topk``, ... (all: docs/models.md), or ``none``.
        k: Hops that each layer looks.
        hidden: Channels of each layer.
        layers: Number of layers.
        ratio: Fraction of nodes that pooling keeps.
        edge_ratio: Fraction of edges that LookHops pooling keeps; by default all.
        normalize: Put features onto the unit sphere before the activation (NF); by default as in
            the paper, for the light convolutions alone.
        activation: Of LookHops pooling's score: ``sigmoid``, ``relu`` (the paper's), ``tanh`` or
            ``none``.
        readout: What is read of each graph: ``max+mean`` (the paper's), or ``max+mean+sum``, where
            the sum (divided by ten) tells large graphs from small ones.
        dropout: Share of the features that is dropped between layers while training (the paper's:
            0).
        fingerprint: Hops of the exact neighbourhoods that are read beside the network; by default
            none are read.
        totals: Read beside the network what a graph holds in all: its size, counts of labels and
            degrees, means of attributes.
        edges: What edges carry (labels, numbers, weights): ``use`` it everywhere, or ``ignore`` it
            everywhere; with ``none`` of these, fingerprint and totals use it, and layers, as the
            paper's, do not.
        scale: Of numeric features, learnt from the training part: ``standard`` (mean 0, standard
            deviation 1; heavy tails by quantiles), ``quantiles`` (as many values below as a normal
            distribution has) or ``none`` (as they are: the paper's).
        bins: Of each numeric feature in the exact neighbourhoods, learnt from the training part; 0
            leaves numbers out of them.
    """

    conv: str = "licheb"
    pool: str = "none"
    k: int = option(2, most=1000)
    hidden: int = option(128, most=65_536)
    layers: int = option(5, most=1000)
    ratio: float = 0.9
    edge_ratio: float | None = None
    normalize: bool | None = None
    activation: str = "sigmoid"
    readout: str = "max+mean"
    dropout: float = 0.0
    fingerprint: int | None = option(None, most=1000)
    totals: bool = False
    edges: str | None = option(None, words=EDGES)
    scale: str = option("none", words=SCALES)
    bins: int = option(0, least=0, most=100_000)

    def __post_init__(self) -> None:
        check_fields(self)

    @property
    def reads_edges(self) -> bool:
        """Whether features of edges are looked at."""
        of_wholes = self.fingerprint is not None or self.totals
        return of_wholes if self.edges is None else self.edges == "use"


#: One network for all data sets, chosen on other splits than the ten that are reported
#: (docs/compare.md says how); `lookhops train` and ``LookHopsClassifier`` begin with it.
RECOMMENDED = Architecture(
    pool="lookhops",
    readout="max+mean+sum",
    dropout=0.2,
    fingerprint=5,
    totals=True,
    edges="use",
    scale="standard",
)
#: Exact neighbourhoods without a network: a linear model of which of them a graph holds.
FINGERPRINT = Architecture(conv="none", fingerprint=5)

#: Names of the models that are fitted without the engines (:mod:`lookhops.learners`).
CLASSICAL = (
    "gp",
    "wl",
    "wl-oa",
    "baseline",
    "descriptors-boosting",
    "descriptors-ridge",
    "descriptors-forest",
    "morgan-forest",
    "morgan-ridge",
    "mean",
)


@dataclass(frozen=True)
class Classical:
    """A model that is fitted without the engines; it stands where an :class:`Architecture` does.

    Args:
        classical: Its name, one of :data:`CLASSICAL`, with its options: ``gp/hops=3``. No field of
            an architecture is called so: the stored texts of the two are never equal.
    """

    classical: str


@dataclass(frozen=True)
class Protocol:
    """How a model is trained and tested. The defaults are the paper's, to the letter.

    Each seed draws its own split and its own initial weights; with several members, networks with
    other initial weights are trained on the same split, and their answers are averaged. Adam;
    training stops after ``patience`` epochs without a lower validation loss; the weights of the
    lowest validation loss are tested, once.

    Args:
        seeds: One run for each.
        fractions: Of all graphs, for training, validation and test.
        split: How graphs are split: ``random``; ``stratified`` (each part has the classes in
            proportion); ``scaffold`` (molecules with the same rings stay together);
            ``group:COLUMN`` (graphs with the same value stay together); ``time:COLUMN`` (numbers or
            ISO dates: the latest are tested on); ``column:COLUMN`` (it says train, val or test);
            ``auto``: stratified for classes, else random.
        folds: Test on each of so many folds in turn; by default every seed draws a test part of its
            own. Twice as many seeds as folds repeat them with others.
        members: Networks for each split, with other initial weights each, whose answers are
            averaged.
        batch_size: Graphs in a batch.
        batch_nodes: About so many nodes in a batch, and no more than ``batch_size`` graphs: where
            sizes vary widely, batches then take equally long. By default graphs alone are counted.
        learning_rate: Learning rate of Adam.
        weight_decay: Weight decay of Adam.
        max_epochs: Most epochs of a run.
        patience: Epochs without a lower validation loss before a run stops.
        class_weights: Let classes that are rare in the training part count more in the loss.
        loss: Of numbers, standardised by the training part: ``mse``, ``mae`` or ``huber``.
        precision: ``float32``; ``tf32`` (dense products rounded to 10 bits on GPUs that can);
            ``bfloat16`` (layers in bfloat16, weights in float32); ``float64``.
        stream: Leave the graphs where they are, in main memory or in their mapped file, and copy
            those of the next steps to the device while it trains; by default where the device has
            no room for all of them. The numbers are the same.
    """

    seeds: tuple[int, ...] = PAPER_SEEDS
    fractions: tuple[float, float, float] = (0.8, 0.1, 0.1)
    split: str = "random"
    folds: int | None = option(None, least=2)
    members: int = option(1, least=1)
    batch_size: int = option(256, least=1)
    batch_nodes: int | None = option(None, least=1)
    learning_rate: float = option(1e-3, flag="--lr")
    weight_decay: float = 0.0
    max_epochs: int = option(500, flag="--epochs", least=1)
    patience: int = option(30, least=1)
    class_weights: bool = False
    loss: str = option("mse", words=LOSSES)
    precision: str = option("float32", words=PRECISIONS)
    stream: bool | None = None

    def __post_init__(self) -> None:
        if not self.seeds:
            raise LookHopsError("At least one seed is needed.")
        if len(set(self.seeds)) != len(self.seeds):
            raise LookHopsError(f"Seeds must differ from each other: {self.seeds}.")
        if not 0 <= min(self.seeds) <= max(self.seeds) < 2**32:
            raise LookHopsError("Seeds are whole numbers from 0 to 4,294,967,295.")
        check_fields(self)
        parse_split(self.split)
        if not 0 < self.learning_rate < inf:
            raise LookHopsError(f"The learning rate must be above 0, not {self.learning_rate}.")
        if not 0 <= self.weight_decay < inf:
            raise LookHopsError(f"The weight decay must be at least 0, not {self.weight_decay}.")


def splits_in_words(split: str, folds: int | None) -> str:
    """``stratified by class``, ``5 folds, by scaffold``."""
    kind, name = parse_split(split)
    said = SPLITS[kind].format(name)
    return f"{folds} folds, {said}" if folds else said


def parse_split(text: str) -> tuple[str, str]:
    """The kind of a split, and the column that it names: ``group:site`` is (group, site)."""
    kind, colon, name = text.partition(":")
    names_column = "{}" in SPLITS.get(kind, "")
    if kind not in SPLITS or not names_column == bool(colon) == bool(name):
        forms = [f"{one}:COLUMN" if "{}" in said else one for one, said in SPLITS.items()]
        known = ", ".join(form for form in forms if form != "file")
        raise LookHopsError(f"There is no split {text!r}; known are {known}.")
    return kind, name


def parse_seeds(text: str | int | Sequence[int], folds: int | None = None) -> tuple[int, ...]:
    """Seeds from a count (the paper's first n: 11, 22, ...) or a list such as ``11,22,33``.

    Folds are counted from 0: seed s is fold s mod k.
    """
    if isinstance(text, int) or (isinstance(text, str) and text.strip().isdecimal()):
        count = int(text)
        if not 1 <= count <= MOST_SEEDS:
            raise LookHopsError(
                f"A single number of seeds is their count, from 1 to {MOST_SEEDS:,}, not {count}; "
                f"the one seed {count} is written with a comma after it: {count},"
            )
        return tuple(i if folds else 11 * (i + 1) for i in range(count))
    if isinstance(text, str):
        try:
            return tuple(int(part) for part in text.split(",") if part.strip())
        except ValueError as error:
            raise LookHopsError(
                f"Seeds are a count or numbers with commas between, not {text!r}."
            ) from error
    return tuple(int(seed) for seed in text)


@dataclass(frozen=True)
class SearchOptions:
    """How configurations are searched for.

    Args:
        trials: Configurations to try for each outer split; the first is the recommended model.
        inner: Inner splits by whose validation parts configurations are judged.
        stack: Configurations of one shape that are tried together, with other learning rates,
            weight decays and dropouts each: on a GPU in one stack.
        space: Options to tune and their values, where they are not the usual ones:
            ``hidden=64,128/k=1..3/pool=none``.
        time_limit: Seconds after which no configuration more is tried; by default none.
    """

    trials: int = option(50, least=1)
    inner: int = option(3, least=1)
    stack: int = option(5, least=1)
    space: str | None = None
    time_limit: float | None = option(None, least=0)


@dataclass(frozen=True)
class Limits:
    """What one request may ask for; what is larger is a job, or refused.

    Args:
        max_body: Largest body of a request, in MB.
        max_file: Largest file of a job, in MB.
        max_graphs: Most graphs of a request.
        max_explained: Most graphs that a request may have explained.
        max_nodes: Most nodes of a request, all its graphs together; of a job, of one graph.
        max_seconds: A request that takes longer is given up. A job may take as long as it needs.
        max_jobs: Jobs that are kept, done or not, each for an hour at most.
    """

    max_body: float = 10.0
    max_file: float = 500.0
    max_graphs: int = 1000
    max_explained: int = 24
    max_nodes: int = 100_000
    max_seconds: float = 60.0
    max_jobs: int = 16

    def __post_init__(self) -> None:
        for each in fields(self):
            if not getattr(self, each.name) > 0:
                raise LookHopsError(f"{each.name} must be more than 0.")


#: Where nothing else is chosen.
DEFAULT_LIMITS = Limits()
