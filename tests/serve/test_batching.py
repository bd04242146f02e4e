"""Requests that arrive together are answered together, and as if each had come alone."""

import asyncio
from threading import Event

import numpy as np
import pytest

from lookhops.core.errors import LookHopsError
from lookhops.models.predictor import Predictor
from lookhops.serve import models
from lookhops.serve.models import Batcher
from lookhops.sources.loading import load
from lookhops.sources.molecules import from_smiles

SMILES = [["CCO"], ["c1ccccc1", "CCN"], ["CC(=O)O"], ["CCCC"]]


@pytest.fixture(scope="module")
def predictor(molecule_model):
    return Predictor(molecule_model, "cpu")


@pytest.fixture(scope="module")
def questions(predictor):
    return [predictor.read(from_smiles(own, ids=[f"{s}!" for s in own])) for own in SMILES]


def together(batcher, *asked):
    """What comes of questions that all wait while the thread is held up."""

    async def ask():
        gate = Event()
        held = asyncio.create_task(batcher.call(gate.wait))
        await asyncio.sleep(0.05)
        waiting = [asyncio.create_task(one) for one in asked]
        await asyncio.sleep(0.05)
        gate.set()
        await held
        return await asyncio.gather(*waiting, return_exceptions=True)

    return asyncio.run(ask())


def same(one, other):
    assert one.ids == other.ids
    assert one.classes == other.classes
    np.testing.assert_allclose(one.probabilities, other.probabilities, atol=1e-5)
    np.testing.assert_allclose(one.similarity, other.similarity)
    assert (one.targets[0].sets == other.targets[0].sets).all()


def test_one_batch_and_the_answers_of_each_alone(predictor, questions):
    batches = []
    batcher = Batcher("test", lambda requests, graphs: batches.append((requests, graphs)))
    found = together(batcher, *(batcher.predict(predictor, one, 0.9) for one in questions))
    assert batches == [(4, 5)]
    for answers, graphs in zip(found, questions, strict=True):
        same(answers, predictor.predict(graphs))
    batcher.close()


def test_other_coverages_and_large_sets_are_other_batches(predictor, questions, monkeypatch):
    batches = []
    batcher = Batcher("test", lambda requests, graphs: batches.append((requests, graphs)))
    coverages = (0.9, 0.8, 0.9, 0.8)
    asked = [batcher.predict(predictor, g, c) for g, c in zip(questions, coverages, strict=True)]
    found = together(batcher, *asked)
    assert batches == [(2, 2), (2, 3)]
    for answers, graphs, coverage in zip(found, questions, coverages, strict=True):
        same(answers, predictor.predict(graphs, coverage))
    batches.clear()
    monkeypatch.setattr(models, "BATCH_NODES", 8)  # of 3, 9, 4 and 4 nodes
    together(batcher, *(batcher.predict(predictor, one, 0.9) for one in questions))
    assert batches == [(1, 1), (1, 2), (2, 2)]
    batcher.close()


def test_one_bad_question_fails_alone(predictor, questions):
    batcher = Batcher("test")
    graphs = [questions[0], load("hops-1", size=2), questions[1]]
    found = together(batcher, *(batcher.predict(predictor, one, 0.9) for one in graphs))
    same(found[0], predictor.predict(questions[0]))
    assert isinstance(found[1], LookHopsError)
    same(found[2], predictor.predict(questions[1]))
    batcher.close()


def test_who_has_gone_is_not_answered(predictor, questions):
    batches = []
    batcher = Batcher("test", lambda requests, graphs: batches.append(requests))

    async def give_up():
        async with asyncio.timeout(0.01):
            await batcher.predict(predictor, questions[0], 0.9)

    found = together(batcher, give_up(), batcher.predict(predictor, questions[1], 0.9))
    assert isinstance(found[0], TimeoutError)
    same(found[1], predictor.predict(questions[1]))
    assert batches == [1]
    batcher.close()


def test_closing_waits_for_what_was_asked(predictor, questions):
    batcher = Batcher("test")

    async def ask():
        waiting = [asyncio.create_task(batcher.predict(predictor, g, 0.9)) for g in questions]
        await asyncio.sleep(0)
        closing = asyncio.to_thread(batcher.close)
        return (await asyncio.gather(closing, *waiting))[1:]

    for answers, graphs in zip(asyncio.run(ask()), questions, strict=True):
        same(answers, predictor.predict(graphs))
