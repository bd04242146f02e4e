"""The weights of many members as stacks, their optimiser, and the state that both leave."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from lookhops.core.errors import LookHopsError
from lookhops.nn import GraphNetwork
from lookhops.ops.adam import Adam
from lookhops.training.runs import Rates

#: What Adam remembers of each parameter.
MOMENTS = ("step", "exp_avg", "exp_avg_sq")
Weights = Mapping[str, Tensor]
#: The parameter that has a row for each neighbourhood of a member's vocabulary.
TABLE = "fingerprint.weight"


def moments(optimizer: Adam, weights: Mapping[str, Tensor]) -> dict[str, dict[str, Tensor]]:
    """What Adam remembers: moment, name of the parameter, value; empty before the first step."""
    state = optimizer.state
    return {
        f"adam-{moment}": {n: state[w][moment] for n, w in weights.items() if w in state}
        for moment in MOMENTS
    }


def entries(state: Mapping[str, Tensor], name: str, what: str) -> dict[str, Tensor]:
    """A member's entries of a state: ``now``, ``kept`` or one of Adam's moments."""
    prefix = f"{name}.{what}."
    return {key[len(prefix) :]: value for key, value in state.items() if key.startswith(prefix)}


def check_state(state: Mapping[str, Tensor], names: Iterable[str]) -> None:
    """Refuse a state that lacks a member's weights."""
    for name in names:
        if not entries(state, name, "kept"):
            raise LookHopsError(
                f"The unfinished training holds no weights of seed {name}: another version of "
                "LookHops began it. Begin again with --overwrite."
            )


class ModelWeights:
    """The weights of one network, trained in place, and the kept ones."""

    def __init__(
        self,
        model: GraphNetwork,
        name: str,
        begin: Callable[[Iterable[Tensor], Sequence[int]], Adam],
    ) -> None:
        self.model, self.name = model, name
        self.kept = {key: value.clone() for key, value in model.state_dict().items()}
        self.optimizer = begin(model.parameters(), [0])

    def remember(self, better: Tensor) -> None:
        if bool(better[0]):
            for key, value in self.model.state_dict().items():
                self.kept[key].copy_(value)

    def each(self) -> list[dict[str, Tensor]]:
        return [{key: value.cpu() for key, value in self.kept.items()}]

    def state(self) -> dict[str, Tensor]:
        adam = moments(self.optimizer, dict(self.model.named_parameters()))
        parts = {"now": self.model.state_dict(), "kept": self.kept, **adam}
        return {
            f"{self.name}.{part}.{key}": value.detach().cpu().clone()
            for part, values in parts.items()
            for key, value in values.items()
        }

    def restore(self, state: Mapping[str, Tensor]) -> None:
        check_state(state, [self.name])
        kept = entries(state, self.name, "kept")
        self.model.load_state_dict(entries(state, self.name, "now") or kept)
        self.kept = {key: value.to(self.kept[key]) for key, value in kept.items()}
        adam = {moment: entries(state, self.name, f"adam-{moment}") for moment in MOMENTS}
        for key, value in self.model.named_parameters():
            if key in adam["step"]:
                found = {moment: values[key].to(value.device) for moment, values in adam.items()}
                self.optimizer.state[value] = found


class MemberWeights:
    """Weights with a leading axis of members, and the kept ones of members that have left.

    A state calls members by their ``names``; ``begin`` makes the optimiser of some of them.
    """

    now: dict[str, Tensor]
    kept: dict[str, Tensor]
    optimizer: Adam

    def __init__(
        self,
        models: Sequence[GraphNetwork],
        names: Sequence[str],
        vocabularies: Sequence[int],
        begin: Callable[[Iterable[Tensor], Sequence[int]], Adam],
    ) -> None:
        self.names, self.vocabularies, self.begin = names, vocabularies, begin
        self.like = next(models[0].parameters())
        self.members = list(range(len(models)))  # those that are still in the stack
        self.retired: dict[int, dict[str, Tensor]] = {}  # the kept weights of the others
        now = self.stacked([dict(model.named_parameters()) for model in models])
        self._fill(now, now)

    def stacked(self, each: Sequence[Weights]) -> dict[str, Tensor]:
        """The weights of several members with a leading axis, on the device."""
        return {
            key: padded_stack([one[key].detach().to(self.like) for one in each]) for key in each[0]
        }

    def _fill(self, now: Weights, kept: Weights) -> None:
        """Make the stack of the present members with these weights and a fresh optimiser."""
        self.now = {key: value.clone().requires_grad_() for key, value in now.items()}
        self.kept = {key: value.clone() for key, value in kept.items()}
        self.optimizer = self.begin(self.now.values(), self.members)

    @torch.no_grad()
    def remember(self, better: Tensor) -> None:
        chosen = better[self.members].to(self.like.device)
        for key, value in self.now.items():
            mask = chosen.view(-1, *[1] * (value.dim() - 1))
            self.kept[key].copy_(torch.where(mask, value, self.kept[key]))

    def each(self) -> list[dict[str, Tensor]]:
        """The kept weights of each member, in main memory."""
        host = {key: value.cpu() for key, value in self.kept.items()}
        present = {
            member: {k: self._without_padding(member, k, value[i]) for k, value in host.items()}
            for i, member in enumerate(self.members)
        }
        return [weights for _, weights in sorted((self.retired | present).items())]

    def _without_padding(self, member: int, key: str, value: Tensor) -> Tensor:
        """A member's slice of a stack, without what pads its table of neighbourhoods."""
        return value[: self.vocabularies[member]] if key.endswith(TABLE) else value

    def retire(self, still: Sequence[int]) -> None:
        state, weights = self.state(), self.each()
        self.retired |= {m: weights[m] for m in self.members if m not in still}
        self.members = list(still)
        self._load(state)

    def state(self) -> dict[str, Tensor]:
        parts = {"now": self.now, "kept": self.kept, **moments(self.optimizer, self.now)}
        state = {}
        for part, values in parts.items():
            for key, value in values.items():
                shared = value.dim() == 0  # Adam's count of steps
                for i, member in enumerate(self.members):
                    mine = value if shared else self._without_padding(member, key, value[i])
                    state[f"{self.names[member]}.{part}.{key}"] = mine.detach().cpu().clone()
        for member, weights in self.retired.items():
            state |= {f"{self.names[member]}.kept.{key}": v for key, v in weights.items()}
        return state

    def restore(self, state: Mapping[str, Tensor]) -> None:
        check_state(state, self.names)
        names = dict(enumerate(self.names))
        self.members = [member for member, name in names.items() if entries(state, name, "now")]
        gone = names.keys() - self.members
        self.retired = {member: entries(state, names[member], "kept") for member in sorted(gone)}
        self._load(state)

    def _load(self, state: Mapping[str, Tensor]) -> None:

        def stacked(what: str) -> dict[str, Tensor]:
            return self.stacked([entries(state, self.names[m], what) for m in self.members])

        self._fill(stacked("now"), stacked("kept"))
        step, *others = (stacked(f"adam-{moment}") for moment in MOMENTS)
        for key, value in self.now.items():
            if key in step:
                averages = {m: each[key] for m, each in zip(MOMENTS[1:], others, strict=True)}
                self.optimizer.state[value] = {"step": step[key][0].float(), **averages}


def padded_stack(values: Sequence[Tensor]) -> Tensor:
    """Values of members with a leading axis; tables of neighbourhoods as long as the longest."""
    if values[0].dim() < 2:
        return torch.stack(list(values))
    return torch.nn.utils.rnn.pad_sequence(list(values), batch_first=True)


class MemberAdam(Adam):
    r"""Adam with a learning rate and a weight decay for each member, the parameters' first axis.

    PyTorch's takes one rate for all of a parameter. A step of it with the rate 1 moves a parameter
    :math:`\theta` by :math:`u`, which does not depend on the rate; of this each member :math:`m`
    takes its share, where there is no kernel that takes one rate for each:

    .. math::
        \theta_m \leftarrow \theta_m + \eta_m u_m, \qquad
        u = \mathrm{Adam}_1(\nabla_m + \lambda_m \theta_m)

    The rates are tensors on the device of the parameters, which a recorded step reads.
    """

    def __init__(
        self, parameters: Iterable[Tensor], rates: Sequence[Rates], **options: Any
    ) -> None:
        super().__init__(parameters, lr=1.0, **options)
        self.learning = self._rates(*(rate.learning_rate for rate in rates))
        self.decay = self._rates(*(rate.weight_decay for rate in rates))

    def step_of_pytorch(self, closure: Callable[[], Any] | None) -> None:
        assert closure is None
        moved = [value for value in self.values if value.grad is not None]
        for value in moved:
            value.grad.addcmul_(value, _along(self.decay, value))  # type: ignore[union-attr]
        before = [value.clone() for value in moved]
        super().step_of_pytorch(closure)
        for value, old in zip(moved, before, strict=True):
            value.copy_(old.lerp_(value, _along(self.learning, value)))


def _along(each: Tensor, value: Tensor) -> Tensor:
    return each.view(-1, *[1] * (value.dim() - 1))
