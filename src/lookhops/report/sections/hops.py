"""How many hops matter, from what ``lookhops look`` measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import exp
from typing import Any

from lookhops.core.errors import LookHopsError
from lookhops.core.schema import AtLeast, Count, read
from lookhops.core.words import MINUS, counted, percent
from lookhops.neighbourhoods.charts import MOST_CLASSES, class_gains, gains, label_accuracy, lost
from lookhops.report.content import Block, Section, Tile

#: What is read of the gains of all graphs, and of those of a class.
GAINS = {
    "k": Sequence[Count],
    "gain": Sequence[float],
    "gain_interval?": Sequence[tuple[float, float]] | None,
    "fit": AtLeast(dict.fromkeys(("a", "b"), float)),
}
#: What is read of a target.
LABELS = {
    **dict.fromkeys(("sentence", "number?"), str),
    "hops": Sequence[Count],
    "enough": Count | None,
    **dict.fromkeys(("accuracy?", "r2?", "std", "lost"), Sequence[float]),
    "lost_interval": Sequence[tuple[float, float]],
    **dict.fromkeys(("majority?", "of_the_mean?"), float),
    "splits": Count,
}
INFORMATION = AtLeast(
    {
        **GAINS,
        "sentence": str,
        **dict.fromkeys(("name?", "neighbourhood?"), str),
        **dict.fromkeys(("graphs?", "nodes?", "resamples?"), Count),
        "suggested_k?": Count | None,
        "epsilon?": float | None,
        "per_class?": Mapping[str, AtLeast(GAINS)],  # type: ignore[misc]
    }
)


def check_information(found: Any) -> dict[str, Any]:
    """Check what ``HopInformation.to_dict`` wrote as JSON, with or without targets."""
    read(INFORMATION, found)
    for one in (found, *(found.get("per_class") or {}).values()):
        if not 0 < len(one["k"]) == len(one["gain"]) == len(one.get("gain_interval") or one["k"]):
            raise LookHopsError("gain has not one number for each k")
    for one in read(Sequence[Any], _targets(found), "labels"):
        read(AtLeast(LABELS), one, "labels")
        scores, naive = ("r2", "of_the_mean") if "number" in one else ("accuracy", "majority")
        columns = [one.get(name, ()) for name in (scores, "std", "lost", "lost_interval")]
        fits = list(one["hops"]) == list(range(len(one["hops"]))) and one["sentence"]
        if not fits or naive not in one or {*map(len, columns)} != {len(one["hops"])}:
            raise LookHopsError("labels has not one number for each count of hops")
    return dict(found)


def _targets(found: Mapping[str, Any]) -> Any:
    """What was measured of each target: none, one, or a list of them in the file."""
    labels = found.get("labels") or []
    return [labels] if isinstance(labels, Mapping) else labels


def information_section(found: Mapping[str, Any]) -> Section:
    """Which k: the gains, what is lost beyond each k, and the suggestion in words.

    Args:
        found: What :meth:`~lookhops.neighbourhoods.HopInformation.to_dict` gives.
    """
    seen = {
        "walk": "those that a walk of exactly k steps leads to",
        "ball": "those within k steps",
    }.get(found.get("neighbourhood", ""), "its neighbours")
    lead = (
        f"{found['sentence']} Measured before any training: the gain of a hop is how much the view "
        f"of the nodes changes when each looks at k hops ({seen}) instead of k {MINUS} 1."
    )
    blocks: list[Block] = [gains(found), lost(found)]
    for target in _targets(found):
        if "number" in target:
            lead += f" {target['sentence']}"
        else:
            lead += f" From the classes: {target['sentence'][0].lower()}{target['sentence'][1:]}"
        blocks.append(label_accuracy(target))
    if 1 < len(found.get("per_class") or {}) <= MOST_CLASSES:
        blocks.append(class_gains(found))
    return Section("hops", "How many hops matter", lead, blocks)


def information_tile(found: Mapping[str, Any]) -> Tile:
    """The suggested k as a key figure."""
    k = found.get("suggested_k")
    if k is None:
        return Tile("suggested hops", "none", "the information does not die away")
    return Tile("suggested hops", f"k = {k}", f"keeps {_kept(found, k)} of the information")


def information_summary(found: Mapping[str, Any]) -> str:
    """The answer in one plain sentence."""
    what = f"{counted(found['graphs'], 'graph')} of {found['name']}"
    k = found.get("suggested_k")
    if k is None:
        return f"In {what}, information does not die away with distance: no k can be suggested."
    return f"In {what}, k = {k} keeps {_kept(found, k)} of the information."


def _kept(found: Mapping[str, Any], k: int) -> str:
    return percent(1 - min(1.0, exp(-found["fit"]["b"] * k)))
