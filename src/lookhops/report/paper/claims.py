"""The paper's claims, answered one by one from the runs."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files

import numpy as np

from lookhops.core.paired import ALPHA, Estimate, corrected_t
from lookhops.runs.paper import DATASETS, ROWS
from lookhops.runs.results import Results, shared_seeds
from lookhops.runs.statistics import holm, over_datasets

REPRODUCED, NOT_REPRODUCED = "reproduced", "not reproduced"
#: Percentage points within which two models count as equally good.
MARGIN = 1.0


@dataclass(frozen=True)
class Claim:
    """Something that the paper says, and the comparisons that decide it.

    Of ``beats`` each difference must be above 0, of ``matches`` none may be below -1 point, of
    ``does-not-beat`` none may reach 1 point.
    """

    title: str
    paper: str  #: what it says
    kind: str
    contrasts: Mapping[
        str, tuple[Sequence[str], Sequence[str]]
    ]  #: rows against rows, by what they are called
    remark: str = ""  #: what the reader must know besides


CLAIMS = tuple(
    Claim(**claim)
    for claim in json.loads(
        (files("lookhops.report.paper") / "claims.json").read_text(encoding="utf-8")
    )
)


@dataclass(frozen=True)
class Answer:
    """The mean of some rows minus the mean of others, in percentage points."""

    contrast: str
    by_dataset: Mapping[str, Estimate]
    overall: Estimate | None  #: the mean over the data sets; none where none has all rows
    adjusted_p: float  #: of the overall difference, by Holm over the claim's comparisons
    holds: bool | None  #: whether the claim holds here; none where that is not decidable


@dataclass(frozen=True)
class Verdict:
    """What the runs say about a claim."""

    claim: Claim
    answers: Sequence[Answer]
    word: str  #: reproduced, not reproduced, or why neither can be said
    datasets: int  #: on which all its comparisons were run

    @property
    def said(self) -> str:
        """The word, and on how much it rests where that is not all of the paper."""
        if 0 < self.datasets < len(DATASETS):
            return f"{self.word} (on {self.datasets} of {len(DATASETS)} data sets)"
        return self.word


def judge(claim: Claim, results: Results) -> Verdict:
    """Answer a claim from the runs that there are."""
    measured = [measure(*pair, results) for pair in claim.contrasts.values()]
    overall = [over_datasets(list(found.values())) if found else None for found in measured]
    adjusted = iter(holm([estimate.p for estimate in overall if estimate]))
    p = [float(next(adjusted)) if estimate else 1.0 for estimate in overall]
    holds = [_holds(claim.kind, *each) for each in zip(overall, p, strict=True)]
    answers = [Answer(*a) for a in zip(claim.contrasts, measured, overall, p, holds, strict=True)]
    seeds = max((e.n for found in measured for e in found.values()), default=0)
    return Verdict(claim, answers, _word(answers, seeds), min(map(len, measured)))


def _word(answers: Sequence[Answer], seeds: int) -> str:
    holds = [answer.holds for answer in answers]
    missing = sum(answer.overall is None for answer in answers)
    if seeds == 0:
        return "not run with two seeds or more"
    if False in holds:
        return NOT_REPRODUCED
    if all(holds):
        return REPRODUCED
    if missing:
        return f"not decided: {missing} of {len(answers)} comparisons were not run"
    number = {2: "two", 10: "ten"}.get(seeds, seeds)
    return f"not decidable with {number} seeds"


def _holds(kind: str, estimate: Estimate | None, p: float) -> bool | None:
    if estimate is None:
        return None
    above, below = (p < ALPHA and sign * estimate.mean > 0 for sign in (1, -1))
    yes, no = {
        "beats": (above, below),
        "matches": (estimate.low > -MARGIN, estimate.high < -MARGIN),
        "does-not-beat": (not above and estimate.high < MARGIN, above),
    }[kind]
    return True if yes else False if no else None


def measure(first: Sequence[str], second: Sequence[str], results: Results) -> dict[str, Estimate]:
    """The difference on each data set where all rows have the same two seeds or more."""
    found, slugs = {}, (*first, *second)
    for dataset in results.datasets:
        cells = [cell for slug in slugs if (cell := ROWS[slug].cell(results, dataset))]
        seeds = shared_seeds(cells)
        if len(cells) == len(slugs) and len(seeds) >= 2:
            tables = [cell.scores() for cell in cells]
            scores = np.array([[table[seed] for seed in seeds] for table in tables])
            ones, others = np.split(scores, [len(first)])
            difference = ones.mean(axis=0) - others.mean(axis=0)
            found[dataset] = corrected_t(difference, cells[0].test_to_train)
    return found
