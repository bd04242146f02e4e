"""Using a trained model: one answer from all its seeds, with calibrated probabilities."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from typing import cast

import numpy as np
import torch
from torch import Tensor

from lookhops.core.arrays import Array
from lookhops.core.errors import LookHopsError
from lookhops.core.reading import listed
from lookhops.encoding import ReadOtherwise
from lookhops.encoding.preprocessing import PreparedGraphs
from lookhops.graphs import Graphs
from lookhops.learners import Fitted, FittedNetwork
from lookhops.learners.learner import mean_variance
from lookhops.learners.network import ensemble_of
from lookhops.models.answers import BITS, Embeddings, Predictions, folded
from lookhops.models.folder import Checkpoint, load_model
from lookhops.models.reference import MOST_NEIGHBOURS, Neighbours
from lookhops.neighbourhoods.similarity import HOPS
from lookhops.nn import GraphNetwork
from lookhops.sources.rdkit.descriptors import rdkit_version
from lookhops.tasks.answers import Ensemble
from lookhops.tasks.conformal import COVERAGE
from lookhops.training.device import choose_device
from lookhops.training.inputs import MemberInputs


class Predictor:
    """A model folder, ready to answer.

    Args:
        folder: What ``lookhops train`` or :func:`~lookhops.models.train_into` wrote.
        device: ``cpu``, ``cuda``, or ``auto``: a GPU where there is one.
    """

    def __init__(self, folder: Path | str, device: str | torch.device = "auto") -> None:
        self.checkpoint: Checkpoint = load_model(folder)
        self.encoding = self.checkpoint.encoding
        self.device = choose_device(device)
        #: What was fitted for each seed, whose answers are averaged.
        self.fitted: dict[int, list[Fitted]] = {
            seed: [one.to(self.device) for one in members]
            for seed, members in self.checkpoint.members.items()
        }
        self._together: dict[tuple[int, ...], Callable[[PreparedGraphs], list[Tensor]]] = {}

    @cached_property
    def networks(self) -> dict[int, list[FittedNetwork]]:
        """The networks of each seed, alone or in blends; other learners are refused by name."""
        each = {
            seed: [part for one in members for _, part in one.parts(0) if not part.is_sum]
            for seed, members in self.fitted.items()
        }
        if not self.checkpoint.learner.explains or not any(each.values()):
            _ = self.checkpoint.architecture
        return cast(dict[int, list[FittedNetwork]], each)

    @cached_property
    def members(self) -> dict[int, list[GraphNetwork]]:
        """The same as modules."""
        return {seed: [one.network for one in each] for seed, each in self.networks.items()}

    @cached_property
    def models(self) -> dict[int, GraphNetwork]:
        """The first network of each seed, to look into."""
        return {seed: members[0] for seed, members in self.members.items()}

    def read(self, graphs: Graphs) -> Graphs:
        """The graphs in the columns that the model was trained on; others are refused."""
        if self._other_rdkit:
            warnings.warn(self._other_rdkit, ReadOtherwise, stacklevel=2)
        return self.encoding.read(graphs)

    @cached_property
    def _other_rdkit(self) -> str:
        """Which descriptors another version of RDKit computes otherwise, in a sentence."""
        checkpoint, names = self.checkpoint, self.encoding.descriptors
        then = checkpoint.config["versions"].get("rdkit")
        if not names or then in (None, rdkit_version()):
            return ""
        if not (changed := checkpoint.reference.computed_otherwise(names)):
            return ""
        return (
            f"{checkpoint.folder}: RDKit {rdkit_version()} gives other values of {listed(changed)} "
            f"than RDKit {then}, with which the model was trained: answers may be off; install "
            "that version, or train again."
        )

    def prepare(self, graphs: Graphs) -> PreparedGraphs:
        """The graphs as the model reads them, and what it needs to know of each of them."""
        graphs = self.read(graphs).to(self.device)
        return self.checkpoint.learner.prepare(graphs, self.encoding)

    def inputs(self, prepared: PreparedGraphs, seed: int) -> MemberInputs:
        """Graphs as the inputs of a seed's network."""
        first = self.networks[seed][0]
        return MemberInputs(prepared, first.encoding, first.preprocessing)

    @torch.inference_mode()
    def predict(
        self, graphs: Graphs, coverage: float = COVERAGE, neighbours: int = 0
    ) -> Predictions:
        """What the models of all seeds answer together, and how sure that is.

        Args:
            coverage: The probability with which the truth is to be in its conformal set or
                interval.
            neighbours: How many of the most similar training graphs are given with each answer.
        """
        self.check_question(coverage, neighbours)
        checkpoint, prepared = self.checkpoint, self.prepare(graphs)
        outputs = self.outputs_of(prepared, checkpoint.answering)
        by_seed = torch.stack([self._calibrated(each, seed) for seed, each in outputs.items()])
        alone = [
            (self._calibrated([one], seed).numpy(), checkpoint.calibration(seed))
            for seed, each in outputs.items()
            for one in each
        ]
        mean, networks = by_seed.mean(0).numpy(), np.stack([answers for answers, _ in alone])
        regions = self._regions(prepared, outputs, by_seed.numpy(), coverage)
        targets = tuple(
            head.task.answer(
                Ensemble(
                    head.name,
                    mean[:, head.channels],
                    networks[:, :, head.channels],
                    [head.values(calibration) for _, calibration in alone],
                    regions[number] if regions else None,
                )
            )
            for number, head in enumerate(checkpoint.task.heads)
        )
        reference = checkpoint.reference
        if neighbours:
            found = reference.neighbours(prepared, neighbours, checkpoint.task)
            return Predictions(graphs.ids, targets, found.similarity[:, 0], reference.limit, found)
        similarity = reference.index.nearest(prepared.graphs, prepared.codes_of(HOPS))
        return Predictions(graphs.ids, targets, similarity, reference.limit)

    def neighbours(self, graphs: Graphs, count: int = 3) -> Neighbours:
        """The ``count`` training graphs that each graph is most similar to."""
        self.check_question(neighbours=count)
        checkpoint = self.checkpoint
        return checkpoint.reference.neighbours(self.prepare(graphs), count, checkpoint.task)

    @property
    def version(self) -> str:
        """A short name for the weights."""
        return str(self.checkpoint.config["weights_sha256"])[:12]

    @property
    def knows_neighbours(self) -> bool:
        """Whether the folder keeps names and targets of training graphs."""
        return self.checkpoint.reference.known is not None

    def check_question(self, coverage: float = COVERAGE, neighbours: int = 0) -> None:
        """Refuse what is no probability, and neighbours that cannot be given."""
        if not 0 < coverage < 1:
            raise LookHopsError(f"A coverage is between 0 and 1, not {coverage}.")
        if not 0 <= neighbours <= MOST_NEIGHBOURS:
            raise LookHopsError(
                f"The number of neighbours is from 1 to {MOST_NEIGHBOURS}, or 0 for none, not "
                f"{neighbours}."
            )
        if neighbours and not self.knows_neighbours:
            raise LookHopsError(
                f"{self.checkpoint.folder}: does not keep names and targets of its training "
                "graphs, as folders of this version do: train again to see neighbours."
            )

    def _regions(
        self,
        prepared: PreparedGraphs,
        outputs: dict[int, list[Tensor]],
        answers: Array,
        coverage: float,
    ) -> list[Array]:
        """The conformal sets or intervals of each target, where the folder has what it takes."""
        reference, task = self.checkpoint.reference, self.checkpoint.task
        rows: list[int] = []
        scores: list[Sequence[Array]] = []
        deviations: list[Tensor | None] = []
        for row, (seed, each) in enumerate(outputs.items()):
            found = reference.scores_of(seed)
            if not found:
                continue
            pairs = zip(task.heads, found, strict=True)
            wanted = any(one.ndim > 1 and not head.task.class_names for head, one in pairs)
            variance = mean_variance(self.fitted[seed], prepared.graphs, task) if wanted else None
            deviations.append(task.deviation(each, variance) if wanted else None)
            rows.append(row)
            scores.append(found)
        if not rows:
            return []
        return task.conformal_regions(answers[rows], scores, coverage, deviations)

    def embed(self, graphs: Graphs, seed: int | None = None, bits: int = BITS) -> Embeddings:
        """Each graph as a vector: what a network read of it, and its exact neighbourhoods.

        Networks of other seeds read other features: vectors of one network alone can be compared.

        Args:
            seed: Which of the model's seeds to ask; by default the first that answers.
            bits: Length of the fingerprint; 0 leaves it out.
        """
        network = self.checkpoint.networks(self.known_seed(seed))[0]
        prepared = self.prepare(graphs)
        readout = ensemble_of([network]).readout(prepared).float().numpy()
        preprocessing = network.preprocessing
        if preprocessing.vocabulary is None or not bits:
            return Embeddings(graphs.ids, readout, np.zeros((len(graphs), 0), np.uint8))
        fingerprint = folded(prepared.graphs, prepared.codes_with(preprocessing.bins), bits)
        return Embeddings(graphs.ids, readout, fingerprint)

    def known_seed(self, seed: int | None = None) -> int:
        """A seed of the model; none means the first that answers."""
        if seed is None:
            return self.checkpoint.answering[0]
        if seed not in self.fitted:
            known = ", ".join(str(known) for known in self.checkpoint.seeds)
            raise LookHopsError(f"{self.checkpoint.folder}: has no seed {seed}, but {known}.")
        return seed

    def outputs_of(self, prepared: PreparedGraphs, seeds: Sequence[int]) -> dict[int, list[Tensor]]:
        """What each member of some seeds gives, in the targets' units, shape (g, channels)."""
        key = tuple(seeds)
        if key not in self._together:
            every = [one for seed in seeds for one in self.fitted[seed]]
            self._together[key] = self.checkpoint.learner.together(every)
        outputs = iter(self._together[key](prepared))
        return {seed: [next(outputs) for _ in self.fitted[seed]] for seed in seeds}

    def answers(self, prepared: PreparedGraphs, seed: int) -> Tensor:
        """One seed's calibrated answers, those of its members together, shape (g, channels)."""
        return self._calibrated(self.outputs_of(prepared, (seed,))[seed], seed)

    def _calibrated(self, outputs: Sequence[Tensor], seed: int) -> Tensor:
        task, calibration = self.checkpoint.task, self.checkpoint.calibration(seed)
        together = outputs[0] if len(outputs) == 1 else task.average(outputs)
        return task.answers(together, calibration)
