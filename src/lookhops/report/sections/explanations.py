"""What answers rest on: shares of some test graphs, and the neighbourhoods that speak."""

from __future__ import annotations

import numpy as np

from lookhops.core.errors import LookHopsError
from lookhops.core.words import counted, signed
from lookhops.explain import attribute
from lookhops.explain.attribution import common_limit
from lookhops.explain.drawing.shares import draw_shares
from lookhops.explain.neighbourhoods import SHOWN, speaking_neighbourhoods
from lookhops.graphs import Graphs
from lookhops.models.predictor import Predictor
from lookhops.report.content import Block, Note, Picture, Pictures, Section, Subheading
from lookhops.report.folders import ModelFolder
from lookhops.report.sections.gallery import check_same, choose

#: Graphs whose shares are shown: of each kind of answer a few.
MOST = 12


def explanation_sections(model: ModelFolder, graphs: Graphs | None) -> list[Section | None]:
    """Shares and neighbourhoods; nothing without the graphs, or of several targets at once.

    Args:
        model: The model's folder.
        graphs: The graphs it was trained on, or none where they are not at hand.
    """
    if graphs is None or len(model.task.heads) > 1:
        return []
    check_same(model, graphs)
    predictor = Predictor(model.path, device="cpu")
    return [_shares(model, predictor, graphs), _neighbourhoods(predictor, graphs)]


def _shares(model: ModelFolder, predictor: Predictor, graphs: Graphs) -> Section | None:
    """Some test graphs with each part's share of the answer."""
    rows = _chosen(model)
    if not len(rows):
        return None
    found = attribute(predictor, graphs.select(rows))
    every = [found[number] for number in range(len(found))]
    limit = common_limit(every)
    pictures = [
        Picture(
            f"{one.id}: {one.answer}",
            draw_shares(one, limit, one.unit, styled=False, words=one.sentence),
            [one.sentence],
        )
        for one in every
    ]
    lead = (
        "Each node's and edge's share of the answer, in its units. Orange pulls towards the "
        "answer, blue away from it; with an average graph and the graph as a whole all "
        "shares add up to it."
    )
    caption = (
        f"{counted(len(pictures), 'test graph')} of seed {model.seeds[0]}; the same colours for "
        "the same shares in all of them. Shares are those of all networks together."
    )
    return Section("shares", "What answers rest on", lead, [Pictures(pictures, caption)])


def _chosen(model: ModelFolder) -> np.ndarray:
    """Numbers of the test graphs to show."""
    if model.answers is None:
        return np.zeros(0, dtype=int)
    answers = model.answers.of_seed(model.seeds[0])
    if not model.task.class_names:
        order = np.argsort(answers.graph, kind="stable")
        return np.asarray(answers.graph[order[:MOST]])
    rows = list(choose(answers, np.ones(len(answers.true), dtype=bool)))[:MOST]
    return np.asarray(answers.graph[rows], dtype=int)


def _neighbourhoods(predictor: Predictor, graphs: Graphs) -> Section | None:
    """The neighbourhoods with most weight, class after class."""
    try:
        every = speaking_neighbourhoods(predictor, graphs)
    except LookHopsError:  # a network that reads none
        return None
    blocks: list[Block] = []
    [head] = predictor.checkpoint.task.heads
    for side, found in every.items():
        title = f"For {side}" if head.task.class_names else f"For {side} values"
        sign = -1 if title == "For low values" else 1  # a class may be called low too
        if not found:
            blocks += [Subheading(title), Note("No neighbourhood speaks for it.")]
            continue
        pictures = [
            Picture(
                one.words,
                one.picture(styled=False),
                [
                    f"{signed(sign * one.weight, 3)} each, in "
                    f"{counted(one.graphs, 'graph')}, {counted(one.hops, 'hop')}",
                    *(f"in {example}" for example in one.examples),
                ],
            )
            for one in found
        ]
        caption = f"The {len(pictures)} with most weight, of at least five graphs each."
        blocks += [Subheading(title), Pictures(pictures, caption, small=True)]
    lead = (
        f"The model adds up what exact neighbourhoods say. These {SHOWN} or fewer weigh most: what "
        f"each adds to {head.task.unit} wherever it stands, on average, how many graphs hold it, "
        "and two of them. The coloured node is the one in the middle."
    )
    return Section("neighbourhoods", "The neighbourhoods that speak", lead, blocks)
