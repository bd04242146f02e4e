"""A trained model, read from its folder: one answer from all its seeds, calibrated."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import cast

import numpy as np
import torch
from torch import Tensor

from lookhops.core.arrays import Array
from lookhops.core.errors import LookHopsError
from lookhops.core.files import read_bytes, unpack_tensors
from lookhops.core.options import Architecture
from lookhops.core.reading import Reading, listed
from lookhops.core.schema import located
from lookhops.encoding import Encoding, ReadOtherwise
from lookhops.encoding.preprocessing import PreparedGraphs, Preprocessing
from lookhops.graphs import Graphs
from lookhops.learners import Fitted, FittedNetwork
from lookhops.learners.learner import fitted_target, mean_variance
from lookhops.learners.network import ensemble_of
from lookhops.models.answers import BITS, Embeddings, Predictions, folded
from lookhops.models.config import (
    CONFIG,
    REFERENCE,
    WEIGHTS,
    calibration_of,
    learner_in,
    one_model,
    read_config,
    task_in,
)
from lookhops.models.folder import check_hash
from lookhops.models.reference import MOST_NEIGHBOURS, Neighbours, Reference
from lookhops.neighbourhoods.similarity import HOPS
from lookhops.nn import GraphNetwork
from lookhops.sources.rdkit.descriptors import rdkit_version
from lookhops.tasks import Calibration
from lookhops.tasks.answers import Ensemble
from lookhops.tasks.conformal import COVERAGE
from lookhops.training.device import choose_device
from lookhops.training.inputs import MemberInputs
from lookhops.training.runs import FINAL, run_key


class Predictor:
    """A model folder, ready to answer.

    Args:
        folder: What ``lookhops train`` or :func:`~lookhops.models.train_into` wrote.
        device: ``cpu``, ``cuda``, or ``auto``: a GPU where there is one.
    """

    def __init__(self, folder: Path | str, device: str | torch.device = "auto") -> None:
        self.folder, self.device = Path(folder), choose_device(device)
        one_model(self.folder, self._load)
        self._together: dict[tuple[int, ...], Callable[[PreparedGraphs], list[Tensor]]] = {}

    def _load(self, folder: Path) -> None:
        """Read the folder, and check that its files fit each other and this version."""
        #: The content of ``config.json``, with its totals.
        self.config = config = read_config(folder)
        with located(str(folder / CONFIG)):
            self.learner, self.task = learner_in(config), task_in(config)
            self.encoding = Encoding.from_dict(config["encoding"])
        path = folder / WEIGHTS
        content = read_bytes(path)
        tensors, _ = unpack_tensors(content, path)
        with located(f"{path}: does not fit {CONFIG}"):
            self._take(tensors)
        check_hash(path, content, config["weights_sha256"])
        path = folder / REFERENCE
        content = read_bytes(path)
        check_hash(path, content, config["reference_sha256"])
        tensors, _ = unpack_tensors(content, path)
        seeds, descriptors = map(int, config["metrics"]["seeds"]), self.encoding.descriptors
        with located(str(path)):
            self.reference = Reference.from_tensors(tensors, self.task, list(seeds), descriptors)

    def _take(self, tensors: Mapping[str, Tensor]) -> None:
        """What was fitted, from the tensors of all members; of a seed the first has the shared."""
        config, learner, task = self.config, self.learner, self.task
        #: What was fitted for each seed: one, or several whose answers are averaged.
        self.fitted: dict[int, list[Fitted]] = {}
        #: What the task took from each seed's training part, where answers need it.
        self.target_scales: dict[int, Tensor] = {}
        counts = {int(seed): config["members"].get(seed, 1) for seed in config["epochs"]}
        if last := config.get("final_model"):
            counts[FINAL] = last["members"]
        by_member: dict[str, dict[str, Tensor]] = {}
        for key, value in tensors.items():
            owner, _, name = key.partition(".")
            by_member.setdefault(owner, {})[name] = value
        for seed, count in counts.items():
            if count > len(by_member):
                raise LookHopsError(f"it has not the {count:,} members of {run_key(seed, 0)}")
            each = [by_member.pop(run_key(seed, member), {}) for member in range(count)]
            shared = {k: v for k, v in each[0].items() if k.startswith(learner.fitted.shared)}
            made = (
                learner.fitted.from_tensors(learner, task, self.encoding, shared | one)
                for one in each
            )
            self.fitted[seed] = [one.to(self.device) for one in made]
            if (scale := fitted_target(task, shared)) is not None:
                self.target_scales[seed] = scale
        if by_member:
            raise LookHopsError(f"it also has tensors of {next(iter(by_member))!r}")

    @property
    def architecture(self) -> Architecture:
        """That of its networks; other learners have none, and are refused by name."""
        with located(str(self.folder)):
            return self.learner.network_architecture

    @property
    def seeds(self) -> tuple[int, ...]:
        """The seeds whose models are here."""
        return tuple(seed for seed in self.fitted if seed != FINAL)

    @property
    def answering(self) -> tuple[int, ...]:
        """The seeds whose models answer: all, or what was trained on all graphs alone."""
        return (FINAL,) if FINAL in self.fitted else self.seeds

    def calibration(self, seed: int) -> Calibration:
        """What turns a seed's outputs into answers."""
        return calibration_of(self.config["metrics"], seed)

    @property
    def reading(self) -> Reading:
        """How the graphs were read that it was trained on."""
        return Reading.from_dict(self.config["reading"])

    @cached_property
    def networks(self) -> dict[int, list[FittedNetwork]]:
        """The networks of each seed, alone or in blends; other learners are refused by name."""
        each = {
            seed: [part for one in members for _, part in one.parts(0) if not part.is_sum]
            for seed, members in self.fitted.items()
        }
        if not self.learner.explains or not any(each.values()):
            _ = self.architecture
        return cast(dict[int, list[FittedNetwork]], each)

    def preprocessing(self, seed: int) -> Preprocessing:
        """What was fitted beside the weights of a seed's networks."""
        _ = self.architecture
        return self.networks[seed][0].preprocessing

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
        names, then = self.encoding.descriptors, self.config["versions"].get("rdkit")
        if not names or then in (None, rdkit_version()):
            return ""
        if not (changed := self.reference.computed_otherwise(names)):
            return ""
        return (
            f"{self.folder}: RDKit {rdkit_version()} gives other values of {listed(changed)} "
            f"than RDKit {then}, with which the model was trained: answers may be off; install "
            "that version, or train again."
        )

    def prepare(self, graphs: Graphs) -> PreparedGraphs:
        """The graphs as the model reads them, and what it needs to know of each of them."""
        graphs = self.read(graphs).to(self.device)
        return self.learner.prepare(graphs, self.encoding)

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
        prepared = self.prepare(graphs)
        outputs = self.outputs_of(prepared, self.answering)
        by_seed = torch.stack([self._calibrated(each, seed) for seed, each in outputs.items()])
        alone = [
            (self._calibrated([one], seed).numpy(), self.calibration(seed))
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
            for number, head in enumerate(self.task.heads)
        )
        reference = self.reference
        if neighbours:
            found = reference.neighbours(prepared, neighbours, self.task)
            return Predictions(graphs.ids, targets, found.similarity[:, 0], reference.limit, found)
        similarity = reference.index.nearest(prepared.graphs, prepared.codes_of(HOPS))
        return Predictions(graphs.ids, targets, similarity, reference.limit)

    def neighbours(self, graphs: Graphs, count: int = 3) -> Neighbours:
        """The ``count`` training graphs that each graph is most similar to."""
        self.check_question(neighbours=count)
        return self.reference.neighbours(self.prepare(graphs), count, self.task)

    @property
    def version(self) -> str:
        """A short name for the weights."""
        return str(self.config["weights_sha256"])[:12]

    @property
    def knows_neighbours(self) -> bool:
        """Whether the folder keeps names and targets of training graphs."""
        return "targets" in self.reference.tensors

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
                f"{self.folder}: does not keep names and targets of its training "
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
        reference, task = self.reference, self.task
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
        _ = self.architecture  # a blend has networks, and none of them is the model
        network = self.networks[self.known_seed(seed)][0]
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
            return self.answering[0]
        if seed not in self.fitted:
            known = ", ".join(str(known) for known in self.seeds)
            raise LookHopsError(f"{self.folder}: has no seed {seed}, but {known}.")
        return seed

    def outputs_of(self, prepared: PreparedGraphs, seeds: Sequence[int]) -> dict[int, list[Tensor]]:
        """What each member of some seeds gives, in the targets' units, shape (g, channels)."""
        key = tuple(seeds)
        if key not in self._together:
            every = [one for seed in seeds for one in self.fitted[seed]]
            self._together[key] = self.learner.together(every)
        outputs = iter(self._together[key](prepared))
        return {seed: [next(outputs) for _ in self.fitted[seed]] for seed in seeds}

    def answers(self, prepared: PreparedGraphs, seed: int) -> Tensor:
        """One seed's calibrated answers, those of its members together, shape (g, channels)."""
        return self._calibrated(self.outputs_of(prepared, (seed,))[seed], seed)

    def _calibrated(self, outputs: Sequence[Tensor], seed: int) -> Tensor:
        together = outputs[0] if len(outputs) == 1 else self.task.average(outputs)
        return self.task.answers(together, self.calibration(seed))
