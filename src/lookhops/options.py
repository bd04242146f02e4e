"""What a user can choose about reading, a network and its training, each option named once.

The fields of :class:`Architecture` and :class:`Protocol` are the options of the command line, the
parameters of ``LookHopsClassifier`` and the options in names of models; those of :class:`Reading`
are the options of the command line and of :func:`lookhops.load`. The texts of their ``Args:`` are
the help everywhere. PyTorch is not imported here: ``--help`` does not wait for it.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from math import inf
from typing import Any, NamedTuple, get_origin, get_type_hints

from lookhops.errors import LookHopsError

PAPER_SEEDS = (11, 22, 33, 44, 55, 66, 77, 88, 99, 110)
MOST_SEEDS = 10_000
#: What a model may make of what edges carry.
EDGES = ("use", "ignore")
LOSSES = ("mse", "mae", "huber")
#: Scales of numeric features; the first leaves them as they are.
SCALES = ("none", "standard", "quantiles")
PRECISIONS = ("float32", "tf32", "bfloat16", "float64")
#: Kinds of splits, and whether each names a column.
SPLITS = {
    "random": False,
    "stratified": False,
    "scaffold": False,
    "group": True,
    "column": True,
    "auto": False,
    "file": False,
}


class Option(NamedTuple):
    """A field of a configuration, as users meet it.

    Args:
        name: Of the field.
        type: Of its values.
        default: Its value where the user gives none.
        help: Its text in the ``Args:`` of the dataclass.
        flag: Its name on the command line, such as ``--lr``.
        least: The lowest number that it may be, if there is one.
    """

    name: str
    type: Any
    default: Any
    help: str
    flag: str
    least: float | None


def option(
    default: Any,
    *,
    flag: str | None = None,
    least: float | None = None,
    of: tuple[str, ...] = (),
) -> Any:
    """A field of a dataclass that has more to it than its name, its type and its default.

    Args:
        default: Its value where the user gives none.
        flag: On the command line, where it is not the field's name.
        least: The lowest number that it may be.
        of: The only kinds of sources that it is for (see :class:`Reading`).
    """
    return field(default=default, metadata={"flag": flag, "least": least, "of": of})


def options_of(config: Any) -> list[Option]:
    """The options of a configuration: its fields but the tuples, with its values as defaults."""
    types = get_type_hints(type(config), include_extras=True)
    texts = dict(SHARED_TEXTS)
    for kind in reversed(type(config).__mro__):
        texts |= argument_texts(kind)
    return [
        Option(
            own.name,
            types[own.name],
            getattr(config, own.name),
            texts.get(own.name, ""),
            own.metadata.get("flag") or f"--{own.name.replace('_', '-')}",
            own.metadata.get("least"),
        )
        for own in fields(config)
        if get_origin(types[own.name]) is not tuple
    ]


def argument_texts(of: Any) -> dict[str, str]:
    """The texts of the ``Args:`` in a docstring, by name, each on one line."""
    _, _, section = inspect.cleandoc(of.__doc__ or "").partition("\nArgs:\n")
    section = re.split(r"\n(?=\S)", section)[0]
    found = re.findall(r"^ {4}(\w+): (.*(?:\n {5,}.*)*)", section, re.MULTILINE)
    return {name: " ".join(text.split()) for name, text in found}


MOLECULES, TABLES, HOP_TASKS = "molecules", "tables", "hop tasks"
CHOICES = {
    "invalid": ("raise", "skip"),
    "duplicates": ("keep", "merge"),
    "salts": ("keep", "largest"),
}


@dataclass(frozen=True)
class Reading:
    """How a source of graphs is read; most options are for some kinds of sources alone.

    Args:
        smiles_column: CSV: the column of SMILES; by default found by its name.
        label_column: Molecules and tables: what is to be learnt, if no ``target`` is named; by
            default found by its name.
        id_column: CSV or SDF: what to call each molecule; by default found by its name.
        graph_column: Tables: the graph of an edge or a node; by default found by its name.
        node_column: Tables: the id of a node; by default found by its name.
        source_column: Tables: where an edge begins; by default found by its name.
        target_column: Tables: where an edge ends; by default found by its name.
        weight_column: Tables: the weight of an edge; by default found by its name.
        categories: Tables: features to read as categories, with commas between; by default text
            and whole numbers of at most ten values.
        numbers: Tables: features to read as numbers, with commas between; by default all others.
        ignore: Tables: columns to leave out, with commas between.
        directed: Tables: an edge leads from its source to its target and not back.
        invalid: Molecules that do not parse and graphs without nodes: ``raise`` an error, or
            ``skip`` them with a warning; by default ``raise``, and where a model answers ``skip``.
        target: What is to be learnt: a column, or several with commas between; by default what the
            source has.
        task: Whether targets are learnt as ``classes`` or as ``numbers``; ``auto``: few different
            values are classes. For each by name: ``logS=numbers,active=classes``.
        duplicates: Rows that are the same molecule: ``keep`` all (a split never parts them), or
            ``merge`` them: numbers are averaged, classes that contradict each other are blanked.
        salts: Molecules of several pieces: ``keep`` them whole, or only the ``largest`` piece.
        max_atoms: Molecules with more are not read: RDKit takes long for them, or crashes.
        task_size: hops-K: how many graphs to make; by default 1000.
        task_seed: hops-K: the seed to make them by; by default 0.
    """

    smiles_column: str | None = option(None, of=(MOLECULES,))
    label_column: str | None = option(None, of=(MOLECULES, TABLES))
    id_column: str | None = option(None, of=(MOLECULES,))
    graph_column: str | None = option(None, of=(TABLES,))
    node_column: str | None = option(None, of=(TABLES,))
    source_column: str | None = option(None, of=(TABLES,))
    target_column: str | None = option(None, of=(TABLES,))
    weight_column: str | None = option(None, of=(TABLES,))
    categories: str | None = option(None, of=(TABLES,))
    numbers: str | None = option(None, of=(TABLES,))
    ignore: str | None = option(None, of=(TABLES,))
    directed: bool = option(False, of=(TABLES,))
    invalid: str | None = None
    target: str | None = None
    task: str = "auto"
    duplicates: str = "keep"
    salts: str = option("keep", of=(MOLECULES,))
    max_atoms: int = option(1000, least=1, of=(MOLECULES,))
    task_size: int | None = option(None, least=1, of=(HOP_TASKS,))
    task_seed: int | None = option(None, least=0, of=(HOP_TASKS,))

    def __post_init__(self) -> None:
        for name, words in CHOICES.items():
            value = getattr(self, name)
            if value not in words and value is not None:
                known = " or ".join(repr(word) for word in words)
                raise LookHopsError(f"{name} is {known}, not {value!r}.")

    def check(self, source: object, kind: str) -> None:
        """Refuse an option that was chosen for a source of a kind that knows nothing of it."""
        for own in fields(Reading):
            of = own.metadata.get("of")
            if of and kind not in of and getattr(self, own.name) != own.default:
                raise LookHopsError(
                    f"{own.name} is an option of {' and '.join(of)} alone, and {source} is none."
                )

    def or_remembered(self, earlier: Reading) -> Reading:
        """These options, with those of an earlier reading where nothing else was chosen.

        Names of columns are not taken over (they are looked for before the usual ones, and need not
        be there), nor what only concerns learning: targets, duplicates, what hop tasks are made of.
        """
        taken = {
            own.name: getattr(earlier, own.name)
            for own in fields(Reading)
            if getattr(self, own.name) == own.default
            and not own.name.endswith("_column")
            and own.name not in ("target", "task", "duplicates")
            and own.metadata.get("of") != (HOP_TASKS,)
        }
        return replace(self, **taken)

    def to_dict(self) -> dict[str, Any]:
        """The options that are not the defaults, as JSON can hold them."""
        return {
            own.name: getattr(self, own.name)
            for own in fields(Reading)
            if getattr(self, own.name) != own.default
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Reading:
        """The reading that :meth:`to_dict` wrote; what it does not know is left out."""
        known = {own.name for own in fields(Reading)}
        return cls(**{name: value for name, value in values.items() if name in known})


def names_in(text: str | None) -> list[str]:
    """Names with commas between, as options give them."""
    return [name.strip() for name in (text or "").split(",") if name.strip()]


#: What is done with a source where nothing is chosen.
AS_USUAL = Reading()


#: The largest network that is built: more would only ask for memory and time without end.
MOST = {"k": 1000, "hidden": 65_536, "layers": 1000, "fingerprint": 1000, "bins": 100_000}


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
            everywhere; without either, fingerprint and totals use it, and layers, as the paper's,
            do not.
        scale: Of numeric features, learnt from the training part: ``standard`` (mean 0, standard
            deviation 1; heavy tails by quantiles), ``quantiles`` (as many values below as a normal
            distribution has) or ``none`` (as they are: the paper's).
        bins: Of each numeric feature in the exact neighbourhoods, learnt from the training part; 0
            leaves numbers out of them.
    """

    conv: str = "licheb"
    pool: str = "none"
    k: int = 2
    hidden: int = 128
    layers: int = 5
    ratio: float = 0.9
    edge_ratio: float | None = None
    normalize: bool | None = None
    activation: str = "sigmoid"
    readout: str = "max+mean"
    dropout: float = 0.0
    fingerprint: int | None = None
    totals: bool = False
    edges: str | None = None
    scale: str = "none"
    bins: int = option(0, least=0)

    def __post_init__(self) -> None:
        if self.edges is not None and self.edges not in EDGES:
            raise LookHopsError(f"edges is {' or '.join(EDGES)}, not {self.edges!r}.")
        if self.scale not in SCALES:
            raise LookHopsError(f"scale is one of {', '.join(SCALES)}, not {self.scale!r}.")
        if self.bins < 0:
            raise LookHopsError(f"bins must be at least 0, not {self.bins}.")
        for name, most in MOST.items():
            if (getattr(self, name) or 0) > most:
                raise LookHopsError(f"{name} must be at most {most:,}, not {getattr(self, name)}.")

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

#: Names of the models that are fitted without the engines (:mod:`lookhops.classical`).
CLASSICAL = ("wl", "wl-oa", "baseline", "morgan-forest", "morgan-ridge", "mean")


@dataclass(frozen=True)
class Classical:
    """A model that is fitted without the engines; it stands where an :class:`Architecture` does.

    Args:
        classical: Its name, one of :data:`CLASSICAL`. No field of an architecture is called so:
            the stored texts of the two are never equal.
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
            ``group:COLUMN`` (graphs with the same value stay together); ``column:COLUMN`` (it says
            train, val or test); ``auto``: stratified for classes, else random.
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
    loss: str = "mse"
    precision: str = "float32"
    stream: bool | None = None

    def __post_init__(self) -> None:
        if not self.seeds:
            raise LookHopsError("At least one seed is needed.")
        if len(set(self.seeds)) != len(self.seeds):
            raise LookHopsError(f"Seeds must differ from each other: {self.seeds}.")
        if not 0 <= min(self.seeds) <= max(self.seeds) < 2**32:
            raise LookHopsError("Seeds are whole numbers from 0 to 4,294,967,295.")
        for own in fields(self):
            least, value = own.metadata.get("least"), getattr(self, own.name)
            if None not in (least, value) and value < least:
                raise LookHopsError(f"{own.name} must be at least {least}, not {value}.")
        parse_split(self.split)
        if not 0 < self.learning_rate < inf:
            raise LookHopsError(f"The learning rate must be above 0, not {self.learning_rate}.")
        if not 0 <= self.weight_decay < inf:
            raise LookHopsError(f"The weight decay must be at least 0, not {self.weight_decay}.")
        for name, words in (("precision", PRECISIONS), ("loss", LOSSES)):
            if getattr(self, name) not in words:
                raise LookHopsError(
                    f"{name} is one of {', '.join(words)}, not {getattr(self, name)!r}."
                )

    @staticmethod
    def upgrade(values: dict[str, Any]) -> dict[str, Any]:
        """Entries as earlier versions wrote them, in today's names."""
        if "stratify" not in values:
            return values
        rest = {name: value for name, value in values.items() if name != "stratify"}
        return {"split": "stratified" if values["stratify"] else "random", **rest}


def splits_in_words(split: str, folds: int | None) -> str:
    """``stratified by class``, ``5 folds, by scaffold``."""
    kind, name = parse_split(split)
    said = {
        "random": "at random",
        "stratified": "stratified by class",
        "scaffold": "by scaffold",
        "group": f"by {name}",
        "column": f"as {name} says",
        "auto": "chosen by the target",
        "file": "from a file",
    }[kind]
    return f"{folds} folds, {said}" if folds else said


def parse_split(text: str) -> tuple[str, str]:
    """The kind of a split, and the column that it names: ``group:site`` is (group, site)."""
    kind, colon, name = text.partition(":")
    if kind not in SPLITS or bool(colon) != SPLITS[kind] or bool(name) != SPLITS[kind]:
        known = ", ".join(f"{kind}:COLUMN" if named else kind for kind, named in SPLITS.items())
        raise LookHopsError(f"There is no split {text!r}; known are {known}.")
    return kind, name


#: What options mean that stand in several places; a docstring there need not say it again.
SHARED_TEXTS = {
    "device": "cpu, cuda, or auto: a GPU where there is one.",
    "precision": argument_texts(Protocol)["precision"],
}


def parse_seeds(text: str | int | Sequence[int], folds: int | None = None) -> tuple[int, ...]:
    """Seeds from a count (the paper's first n: 11, 22, ...) or a list such as ``11,22,33``.

    Folds are counted from 0: seed s is fold s mod k.
    """
    if isinstance(text, int) or (isinstance(text, str) and text.strip().isdecimal()):
        count = int(text)
        if not 1 <= count <= MOST_SEEDS:
            raise LookHopsError(f"A count of seeds is from 1 to {MOST_SEEDS:,}, not {count}.")
        return tuple(i if folds else 11 * (i + 1) for i in range(count))
    if isinstance(text, str):
        try:
            return tuple(int(part) for part in text.split(",") if part.strip())
        except ValueError as error:
            raise LookHopsError(
                f"Seeds are a count or numbers with commas between, not {text!r}."
            ) from error
    return tuple(int(seed) for seed in text)
