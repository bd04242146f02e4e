"""Answers as the columns of a table."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from lookhops.models.answers import ClassAnswers, NumberAnswers, Predictions

#: What a table says of a graph like none that the model was trained on.
UNLIKE = "unlike the training graphs"


def answer_columns(
    answers: Predictions, coverage: float, taken: Collection[str] = ()
) -> dict[str, Sequence[str]]:
    """The columns of a table of answers, as text, the last with warnings.

    Args:
        answers: The answers.
        coverage: Of their sets and intervals.
        taken: Names of other columns of the same table: ours are then numbered.
    """
    several = len(answers.targets) > 1
    found: dict[str, Sequence[str]] = {}
    for target in answers.targets:
        if isinstance(target, ClassAnswers):
            own = _of_classes(target, coverage)
        else:
            own = _of_numbers(target, coverage)
        found |= {f"{target.name}_{key}" if several else key: own[key] for key in own}
    if answers.similarity is not None:
        found["similarity"] = [f"{value:.3f}" for value in answers.similarity]
    found["warning"] = [UNLIKE if unlike else "" for unlike in answers.unlike]
    return {_free(name, taken): cells for name, cells in found.items()}


def _of_classes(target: ClassAnswers, coverage: float) -> dict[str, Sequence[str]]:
    found: dict[str, Sequence[str]] = {"predicted": target.classes}
    for name, column in zip(target.class_names, target.probabilities.T, strict=True):
        found[f"p_{name}"] = [f"{p:.4f}" for p in column]
    if target.sets is not None:
        sets = (target.named_set(graph) for graph in range(len(target.sets)))
        found[f"set_{100 * coverage:g}"] = [" | ".join(names) for names in sets]
    if target.models > 1:
        found["agreement"] = [f"{share:.2f}" for share in target.agreement]
        found["spread"] = [f"{spread:.4f}" for spread in target.spread]
    return found


def _of_numbers(target: NumberAnswers, coverage: float) -> dict[str, Sequence[str]]:
    found: dict[str, Sequence[str]] = {"predicted": [f"{value:.6g}" for value in target.values]}
    if target.intervals is not None:
        for name, ends in zip(("low", "high"), target.intervals.T, strict=True):
            found[f"{name}_{100 * coverage:g}"] = [f"{end:.6g}" for end in ends]
    if target.models > 1:
        found["spread"] = [f"{spread:.4g}" for spread in target.spread]
    return found


def _free(name: str, taken: Collection[str]) -> str:
    """A name that no other column has: ``predicted``, ``predicted_2``."""
    number = 1
    found = name
    while found in taken:
        number += 1
        found = f"{name}_{number}"
    return found
