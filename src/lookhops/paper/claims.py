"""The paper's claims, answered one by one from the runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from lookhops.experiments.results import CellResult, Results
from lookhops.experiments.statistics import holm, over_datasets
from lookhops.paired import Estimate, corrected_t
from lookhops.paper.reference import DATASETS, ROWS, rows_of

REPRODUCED, NOT_REPRODUCED = "reproduced", "not reproduced"
#: Percentage points within which two models count as equally good.
MARGIN = 1.0
ALPHA = 0.05


@dataclass(frozen=True)
class Contrast:
    """The mean of some rows minus the mean of others."""

    label: str
    first: tuple[str, ...]
    second: tuple[str, ...]


@dataclass(frozen=True)
class Claim:
    """Something that the paper says, and the comparisons that decide it.

    Args:
        title: In a few words.
        paper: What the paper says.
        kind: ``beats``: each difference must be above 0. ``matches``: none may be below -1 point.
            ``does-not-beat``: none may reach 1 point.
        contrasts: What is compared.
        remark: What the reader must know besides.
    """

    title: str
    paper: str
    kind: str
    contrasts: tuple[Contrast, ...]
    remark: str = ""


def _claims() -> tuple[Claim, ...]:
    ours, none = ("lookhops-nf-pe",), ("licheb",)
    poolings = [row.slug for row in rows_of("pool")]
    return (
        Claim(
            "k-order convolutions beat 1-order ones",
            "k-order graph convolution strongly outperforms 1-order methods except for PROTEINS.",
            "beats",
            (
                Contrast(
                    "MixHop, LiMixHop, ChebConv, LiCheb against GCN, GAT",
                    ("mixhop", "limixhop", "cheb", "licheb"),
                    ("gcn", "gat"),
                ),
            ),
        ),
        Claim(
            "Accuracy rises with k",
            "The accuracy improves dramatically when a small k increases, and then fluctuates "
            "steadily.",
            "beats",
            tuple(
                Contrast(f"LiCheb, k = {k} against k = 1", (f"licheb-k{k}",), ("licheb-k1",))
                for k in (2, 3, 4, 5)
            ),
            "Five layers of one hop each look five hops far already.",
        ),
        Claim(
            "LiMixHop beats MixHop",
            "LiMixHop achieves higher performance under similar parameters.",
            "beats",
            (Contrast("LiMixHop against MixHop", ("limixhop",), ("mixhop",)),),
        ),
        Claim(
            "LiCheb matches ChebConv with half the parameters",
            "LiCheb reduces the parameters by more than half under similar performance.",
            "matches",
            (Contrast("LiCheb against ChebConv", none, ("cheb",)),),
        ),
        *(
            Claim(
                f"LookHops pooling{said} beats the other poolings",
                "The proposed pooling achieves state-of-the-art performance on most data sets.",
                "beats",
                tuple(
                    Contrast(f"{ROWS[our].label} against {ROWS[slug].label}", (our,), (slug,))
                    for slug in ("topk", "sag", "edge", "asap")
                ),
                remark,
            )
            for our, said, remark in (
                ("lookhops-nf-pe", "", ""),
                ("lookhops-nf", " that keeps all edges", "This is what its code did: see below."),
            )
        ),
        Claim(
            "NF helps",
            "The normalised feature increases the accuracy, except on DD and Mutagenicity.",
            "beats",
            (Contrast("NF+pN against noNF+pN", ("lookhops-nf",), ("lookhops-nonf",)),),
        ),
        Claim(
            "Edge dropping helps",
            "Edge dropping further improves the performance.",
            "beats",
            (Contrast("NF+pN+pE against NF+pN", ours, ("lookhops-nf",)),),
            "Ours really drops edges. In the authors' published code the selected edges are "
            "computed and then thrown away, so the paper's own rows measured no edge dropping.",
        ),
        Claim(
            "Pooling does not beat no pooling",
            "Networks with pooling could not exceed those with convolutions only.",
            "does-not-beat",
            tuple(
                Contrast(f"{ROWS[slug].label} against no pooling", (slug,), none)
                for slug in poolings
            ),
        ),
    )


CLAIMS = _claims()


@dataclass(frozen=True)
class Answer:
    """A contrast's numbers, in percentage points.

    Args:
        contrast: What was compared.
        by_dataset: The difference on each data set.
        overall: Their mean, or none where no data set has all rows.
        adjusted_p: Of the overall difference, Holm-adjusted over the claim's comparisons.
        holds: Whether the claim holds here: yes, no, or none for not decidable.
    """

    contrast: Contrast
    by_dataset: Mapping[str, Estimate]
    overall: Estimate | None
    adjusted_p: float
    holds: bool | None


@dataclass(frozen=True)
class Verdict:
    """What the runs say about a claim.

    Args:
        claim: The claim.
        answers: Its comparisons.
        word: Reproduced, not reproduced, or why neither can be said.
        datasets: On how many data sets all its comparisons were run.
    """

    claim: Claim
    answers: Sequence[Answer]
    word: str
    datasets: int

    @property
    def said(self) -> str:
        """The word, and on how much it rests where that is not all of the paper."""
        if 0 < self.datasets < len(DATASETS):
            return f"{self.word} (on {self.datasets} of {len(DATASETS)} data sets)"
        return self.word


def judge(claim: Claim, results: Results) -> Verdict:
    """Answer a claim from the runs that there are."""
    measured = [_measure(c, results) for c in claim.contrasts]
    overall = [over_datasets(list(m.values())) if m else None for m in measured]
    known = [e.p for e in overall if e is not None]
    adjusted = iter(holm(known)) if known else iter(())
    answers = []
    for contrast, by_dataset, estimate in zip(claim.contrasts, measured, overall, strict=True):
        p = float(next(adjusted)) if estimate is not None else 1.0
        answers.append(Answer(contrast, by_dataset, estimate, p, _holds(claim.kind, estimate, p)))
    seeds = max((e.n for m in measured for e in m.values()), default=0)
    return Verdict(claim, answers, _word(answers, seeds), min(len(m) for m in measured))


def _word(answers: Sequence[Answer], seeds: int) -> str:
    holds = [answer.holds for answer in answers]
    missing = sum(answer.overall is None for answer in answers)
    if seeds == 0:
        return "not run with two seeds or more"
    if any(h is False for h in holds):
        return NOT_REPRODUCED
    if all(holds):
        return REPRODUCED
    if missing:
        return f"not decided: {missing} of {len(answers)} comparisons were not run"
    number = {2: "two", 10: "ten"}.get(seeds, str(seeds))
    return f"not decidable with {number} seeds"


def _holds(kind: str, estimate: Estimate | None, p: float) -> bool | None:
    if estimate is None:
        return None
    above, below = (p < ALPHA and sign * estimate.mean > 0 for sign in (1, -1))
    if kind == "beats":
        return True if above else False if below else None
    if kind == "matches":
        return True if estimate.low > -MARGIN else False if estimate.high < -MARGIN else None
    return False if above else True if estimate.high < MARGIN else None


def _measure(contrast: Contrast, results: Results) -> dict[str, Estimate]:
    """The difference on each data set where all rows have the same two seeds or more."""
    found = {}
    for dataset in results.datasets:
        first, second = (
            [results.find(dataset, ROWS[slug].architecture(dataset)) for slug in slugs]
            for slugs in (contrast.first, contrast.second)
        )
        cells = [cell for cell in (*first, *second) if cell is not None]
        if len(cells) < len(first) + len(second):
            continue
        seeds = [s for s in cells[0].seeds if all(s in cell.seeds for cell in cells)]
        if len(seeds) >= 2:
            difference = _mean(first, seeds) - _mean(second, seeds)
            found[dataset] = corrected_t(difference, cells[0].test_to_train)
    return found


def _mean(cells: Sequence[CellResult | None], seeds: Sequence[int]) -> np.ndarray:
    tables = [cell.accuracy() for cell in cells if cell is not None]
    return np.mean([[table[seed] for seed in seeds] for table in tables], axis=0)
