"""What a network is made of, and the models that are not networks."""

from __future__ import annotations

from dataclasses import dataclass

from lookhops.core.errors import LookHopsError
from lookhops.core.options.fields import option

#: What a model may make of what edges carry.
EDGES = ("use", "ignore")
#: Scales of numeric features; the first leaves them as they are.
SCALES = ("none", "standard", "quantiles")
#: The largest network that is built: more would only ask for memory and time without end.
MOST = {"k": 1000, "hidden": 65_536, "layers": 1000, "fingerprint": 1000, "bins": 100_000}


@dataclass(frozen=True)
class Architecture:
    """Everything that shapes a :class:`~lookhops.nn.GraphNetwork` but its input and its outputs.

    Args:
        conv: Name of the convolution: ``licheb``, ``cheb``, ``gcn``, ... (all: docs/models.md).
        pool: Name of the pooling: ``lookhops``, ``topk``, ... (all: docs/models.md), or ``none``.
        k: Hops that each layer looks.
        hidden: Channels of each layer.
        layers: Number of layers.
        ratio: Fraction of nodes that pooling keeps.
        edge_ratio: Fraction of edges that LookHops pooling keeps; by default all.
        normalize: Put features onto the unit sphere before the activation (NF); by default as in
            the paper, for the light convolutions alone.
        activation: Of LookHops pooling's score: ``sigmoid``, ``relu`` (the paper's), ``tanh`` or
            ``none``.
        readout: What is read of each graph: ``max+mean`` (the paper's), or ``max+mean+sum``, where
            the sum (divided by ten) tells large graphs from small ones.
        dropout: Share of the features that is dropped between layers while training (the paper's:
            0).
        fingerprint: Hops of the exact neighbourhoods that are read beside the network; by default
            none are read.
        totals: Read beside the network what a graph holds in all: its size, counts of labels and
            degrees, means of attributes.
        edges: What edges carry (labels, numbers, weights): ``use`` it everywhere, or ``ignore`` it
            everywhere; with ``none`` of these, fingerprint and totals use it, and layers, as the
            paper's, do not.
        scale: Of numeric features, learnt from the training part: ``standard`` (mean 0, standard
            deviation 1; heavy tails by quantiles), ``quantiles`` (as many values below as a normal
            distribution has) or ``none`` (as they are: the paper's).
        bins: Of each numeric feature in the exact neighbourhoods, learnt from the training part; 0
            leaves numbers out of them.
    """

    conv: str = "licheb"
    pool: str = "none"
    k: int = 2
    hidden: int = 128
    layers: int = 5
    ratio: float = 0.9
    edge_ratio: float | None = None
    normalize: bool | None = None
    activation: str = "sigmoid"
    readout: str = "max+mean"
    dropout: float = 0.0
    fingerprint: int | None = None
    totals: bool = False
    edges: str | None = None
    scale: str = "none"
    bins: int = option(0, least=0)

    def __post_init__(self) -> None:
        if self.edges is not None and self.edges not in EDGES:
            raise LookHopsError(f"edges is {' or '.join(EDGES)}, not {self.edges!r}.")
        if self.scale not in SCALES:
            raise LookHopsError(f"scale is one of {', '.join(SCALES)}, not {self.scale!r}.")
        if self.bins < 0:
            raise LookHopsError(f"bins must be at least 0, not {self.bins}.")
        for name, most in MOST.items():
            if (getattr(self, name) or 0) > most:
                raise LookHopsError(f"{name} must be at most {most:,}, not {getattr(self, name)}.")

    @property
    def reads_edges(self) -> bool:
        """Whether features of edges are looked at."""
        of_wholes = self.fingerprint is not None or self.totals
        return of_wholes if self.edges is None else self.edges == "use"


#: One network for all data sets, chosen on other splits than the ten that are reported
#: (docs/compare.md says how); `lookhops train` and ``LookHopsClassifier`` begin with it.
RECOMMENDED = Architecture(
    pool="lookhops",
    readout="max+mean+sum",
    dropout=0.2,
    fingerprint=5,
    totals=True,
    edges="use",
    scale="standard",
)
#: Exact neighbourhoods without a network: a linear model of which of them a graph holds.
FINGERPRINT = Architecture(conv="none", fingerprint=5)

#: Names of the models that are fitted without the engines (:mod:`lookhops.learners`).
CLASSICAL = (
    "gp",
    "wl",
    "wl-oa",
    "baseline",
    "descriptors-boosting",
    "descriptors-ridge",
    "descriptors-forest",
    "morgan-forest",
    "morgan-ridge",
    "mean",
)


@dataclass(frozen=True)
class Classical:
    """A model that is fitted without the engines; it stands where an :class:`Architecture` does.

    Args:
        classical: Its name, one of :data:`CLASSICAL`, with its options: ``gp/hops=3``. No field of
            an architecture is called so: the stored texts of the two are never equal.
    """

    classical: str
