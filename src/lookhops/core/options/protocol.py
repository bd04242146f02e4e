"""How a model is trained and tested, and how seeds and splits are written."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from math import inf

from lookhops.core.errors import LookHopsError
from lookhops.core.options.fields import option

PAPER_SEEDS = (11, 22, 33, 44, 55, 66, 77, 88, 99, 110)
MOST_SEEDS = 1_000
#: The fields of a protocol that draw the splits: all that a model without epochs reads of it.
OF_SPLITS = ("fractions", "split", "folds")
LOSSES = ("mse", "mae", "huber")
PRECISIONS = ("float32", "tf32", "bfloat16", "float64")
#: Kinds of splits, and whether each names a column.
SPLITS = {
    "random": False,
    "stratified": False,
    "scaffold": False,
    "group": True,
    "time": True,
    "column": True,
    "auto": False,
    "file": False,
}


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


def splits_in_words(split: str, folds: int | None) -> str:
    """``stratified by class``, ``5 folds, by scaffold``."""
    kind, name = parse_split(split)
    said = {
        "random": "at random",
        "stratified": "stratified by class",
        "scaffold": "by scaffold",
        "group": f"by {name}",
        "time": f"in time, by {name}",
        "column": f"as {name} says",
        "auto": "chosen by the target",
        "file": "from a file",
    }[kind]
    return f"{folds} folds, {said}" if folds else said


def parse_split(text: str) -> tuple[str, str]:
    """The kind of a split, and the column that it names: ``group:site`` is (group, site)."""
    kind, colon, name = text.partition(":")
    if kind not in SPLITS or bool(colon) != SPLITS[kind] or bool(name) != SPLITS[kind]:
        known = ", ".join(
            f"{kind}:COLUMN" if named else kind
            for kind, named in SPLITS.items()
            if kind != "file"  # which is what --splits makes of it
        )
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
