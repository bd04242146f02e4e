"""What a page is made of: a report has sections, a section has blocks of a few shapes.

All text here is plain text, which the page escapes. Only pictures are markup, and the modules that
draw them escape what they take from the data.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lookhops.core.charts import Chart as Chart
from lookhops.core.tables import Table

#: Command lines, each after what it does.
Lines = Sequence[tuple[str, str]]


@dataclass(frozen=True)
class Folded:
    """A table of which only the note shows until it is opened."""

    table: Table


@dataclass(frozen=True)
class Card:
    """One graph of the gallery: its true and its predicted class, with the latter's probability.

    Args:
        group: ``certain``, ``unsure`` or ``wrong``.
        picture: An SVG whose shapes say at which layer they are dropped.
        steps: What to say at each position of the slider.
        like: The most similar training graphs, where they are known.
    """

    name: str
    true: str
    predicted: str
    probability: float
    group: str
    picture: str
    steps: Sequence[str]
    like: str = ""


@dataclass(frozen=True)
class Gallery:
    """Graphs with a slider that walks through the pooling layers."""

    cards: Sequence[Card]
    caption: str

    @property
    def layers(self) -> int:
        """How many pooling layers there are."""
        return len(self.cards[0].steps) - 1

    @property
    def classes(self) -> list[str]:
        """The true classes that occur, in order of appearance."""
        return list(dict.fromkeys(card.true for card in self.cards))


@dataclass(frozen=True)
class Picture:
    """A picture (SVG) with lines of text below it."""

    title: str
    svg: str
    lines: Sequence[str] = ()


@dataclass(frozen=True)
class Pictures:
    """Pictures side by side; small ones stand many in a row."""

    pictures: Sequence[Picture]
    caption: str
    small: bool = False


@dataclass(frozen=True)
class Commands:
    """Command lines, each with what it does."""

    lines: Lines


@dataclass(frozen=True)
class Note:
    """A remark."""

    text: str


@dataclass(frozen=True)
class Subheading:
    """A heading within a section, and what one sees below it."""

    text: str
    lead: str = ""


Block = Table | Folded | Chart | Gallery | Pictures | Commands | Note | Subheading


@dataclass(frozen=True)
class Section:
    """A part of the page: its name for links, its heading, what one sees here, and the blocks."""

    name: str
    title: str
    lead: str
    blocks: Sequence[Block]


@dataclass(frozen=True)
class Tile:
    """A key figure: what it is, its value, and what to know besides."""

    label: str
    value: str
    note: str = ""


@dataclass(frozen=True)
class Report:
    """A page: its heading, all of it in one sentence, the key figures, the sections in order."""

    title: str
    summary: str
    tiles: Sequence[Tile]
    sections: Sequence[Section]
