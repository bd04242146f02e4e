"""Every convolution and pooling with its formula, its paper, its size and where it runs.

All of it is read off the registry and the docstrings of the classes.
"""

import inspect
import re
from collections.abc import Iterator
from dataclasses import dataclass

from torch import nn

from lookhops.nn.conv.base import Convolution
from lookhops.nn.network import GraphNetwork
from lookhops.nn.others.convolutions import survey
from lookhops.nn.registry import CONVOLUTIONS, POOLINGS

#: Features and classes of NCI1, on which the paper counts parameters.
FEATURES, CLASSES = 37, 2
RECORDED = "recorded"
STACKED = "stacked"
EAGER = "one seed at a time"

#: What docstrings are written in, and Markdown is not.
LINK = re.compile(r"`([^`<]+?)\s+<([^>]+)>`_")
FORMULA = re.compile(r"^\.\. math::\n((?:(?: {4}.*)?\n)+)", re.MULTILINE)
INLINE = re.compile(r":math:`(.*?)`", re.DOTALL)
ROLE = re.compile(r":(?:class|func|meth):`~?(?:[\w.]+\.)?(\w+)`")
#: Where a docstring goes on to what only programmers read.
REST = re.compile(r"^(?:Args:|Shapes:|Arguments and shapes)", re.MULTILINE)


@dataclass(frozen=True)
class Layer:
    """What is known of a layer."""

    name: str
    kind: type[nn.Module]
    said: str  # what its docstring says of what it computes, in Markdown
    paper: str | None  # the address that its docstring gives
    parameters: int  # of the paper's network on NCI1 with it; poolings follow LiCheb convolutions
    runs: str  # on a GPU: RECORDED, STACKED or EAGER


def convolutions() -> Iterator[Layer]:
    """The convolutions that names stand for, those that a user registered among them."""
    for name in CONVOLUTIONS:
        model = GraphNetwork(FEATURES, CLASSES, conv=name)
        runs = RECORDED if isinstance(model.convs[0], Convolution) else EAGER
        yield _layer(name, model.convs[0], model, runs)


def poolings() -> Iterator[Layer]:
    """The poolings that names stand for."""
    for name in POOLINGS:
        model = GraphNetwork(FEATURES, CLASSES, pool=name)
        if model.pools:
            pool = model.pools[0]
            stacked = RECORDED if pool.fixed_shapes else STACKED
            yield _layer(name, pool, model, stacked if pool.stackable else EAGER)


def _layer(name: str, layer: nn.Module, model: GraphNetwork, runs: str) -> Layer:
    text = inspect.cleandoc(type(layer).__doc__ or "") + "\n"
    link = LINK.search(text)
    count = sum(parameter.numel() for parameter in model.parameters())
    return Layer(name, type(layer), markdown(text), link and link[2], count, runs)


def markdown(docstring: str) -> str:
    """What a docstring says of what a layer computes, in Markdown with GitHub's formulas."""
    text = REST.split(docstring)[0].replace("``", "`")
    text = FORMULA.sub(lambda found: _formulas(found[1]), text)
    text = INLINE.sub(lambda found: f"$`{' '.join(found[1].split())}`$", text)
    text = LINK.sub(lambda found: f"[{' '.join(found[1].split())}]({found[2]})", text)
    text = re.sub(r"(\.\]\([^)]+\))\.", r"\1", text)  # one full stop after "et al."
    return ROLE.sub(r"`\1`", text).strip()


def _formulas(block: str) -> str:
    """The formulas of a block, one below the other; a blank line lies between two."""
    lines = [" ".join(part.replace("&", "").split()) for part in re.split(r"\n\s*\n", block)]
    return "\n".join(f"```math\n{line}\n```\n" for line in lines if line) + "\n"


def page() -> str:
    """The page of all layers, in Markdown."""
    parts = [INTRODUCTION]
    for title, layers, what in (
        ("Convolutions", list(convolutions()), "the network with it and no pooling"),
        ("Poolings", list(poolings()), "the network with it and LiCheb convolutions"),
    ):
        head = "| name | class | parameters on NCI1 | on a GPU |\n| --- | --- | ---: | --- |"
        rows = [
            f"| [`{layer.name}`](#{layer.name}) | `{layer.kind.__name__}` | {layer.parameters:,} | "
            f"{layer.runs} |"
            for layer in layers
        ]
        table = "\n".join((head, *rows))
        parts.append(f"## {title}\n\nParameters are those of {what}.\n\n{table}")
        parts += [f"### {layer.name}\n\n{layer.said}" for layer in layers]
    return "\n\n".join((*parts, _pyg())) + "\n"


def _pyg() -> str:
    """The convolutions of PyG: what works, and why the others do not."""
    from torch_geometric import __version__ as version

    lines = ["| name | works |", "| --- | --- |"]
    with_features = dict(survey(edge_channels=3))
    for name, why in survey():
        other = with_features[name]
        if why and not other:
            said = "where edges have features, with `edges=use`"
        else:
            said = "yes" if not why else f"no: it {other}"
        lines.append(f"| `{name}` | {said} |")
    return PYG.format(version=version) + "\n" + "\n".join(lines)


INTRODUCTION = f"""# Models: every convolution and pooling

This page is made from the code, by `lookhops models --page docs/models.md`; a test holds the two
together. A name here is one in `lookhops train --conv NAME --pool NAME`, in
`lookhops compare --models NAME+NAME` and in `GraphNetwork`:
[how they are used](layers.md#names-and-one-more).

All layers train on a CPU and on a GPU. On a GPU **{RECORDED}** says that all seeds train at once,
in steps that are recorded once and replayed; **{STACKED}**, that they train at once in steps that
are not recorded, because what the layer makes has another shape in each batch. Layers of other
libraries train one seed at a time.

The network is the paper's: five layers of 128 channels, and two hops where a layer looks more than
one."""

PYG = """## Convolutions of PyG

With `pyg:` before it and the options that it needs: any convolution of the installed PyTorch
Geometric that takes node features and edges and gives node features. These are all of PyG
{version}; values of options are examples.
"""
