"""The section on hops, from what ``lookhops look`` measured."""

from __future__ import annotations

from collections.abc import Mapping
from math import exp
from typing import Any

from lookhops.report.content import Block, Section, Tile
from lookhops.report.hop_charts import class_gains, gains, lost
from lookhops.words import MINUS, counted, percent

#: More classes than this would lie on top of one another.
MOST_CLASSES = 7


def information_section(found: Mapping[str, Any]) -> Section:
    """Which k: the gains, what is lost beyond each k, and the suggestion in words.

    Args:
        found: What :meth:`~lookhops.information.HopInformation.to_dict` gives.
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
    classes = found.get("per_class") or {}
    if 1 < len(classes) <= MOST_CLASSES:
        blocks.append(class_gains(found))
    return Section("hops", "How many hops matter", lead, blocks)


def information_tile(found: Mapping[str, Any]) -> Tile:
    """The suggested k as a key figure."""
    k = found.get("suggested_k")
    if k is None:
        return Tile("suggested hops", "none", "the information does not die away")
    kept = 1 - min(1.0, _lost(found, k))
    return Tile("suggested hops", f"k = {k}", f"keeps {percent(kept)} of the information")


def information_summary(found: Mapping[str, Any]) -> str:
    """The answer in one plain sentence."""
    what = f"{counted(found['graphs'], 'graph')} of {found['name']}"
    k = found.get("suggested_k")
    if k is None:
        return f"In {what}, information does not die away with distance: no k can be suggested."
    return f"In {what}, k = {k} keeps {percent(1 - _lost(found, k))} of what hops can tell."


def _lost(found: Mapping[str, Any], k: int) -> float:
    return exp(-found["fit"]["b"] * k)
