"""One palette for every figure, on paper and in the browser.

Okabe and Ito's colours, which people with any kind of colour vision can tell apart. Figures never
rely on them alone: markers or dashes differ too.
"""

from __future__ import annotations

BLUE, VERMILLION, GREEN, PURPLE, ORANGE, SKY, BLACK = (
    "#0072B2",
    "#D55E00",
    "#009E73",
    "#CC79A7",
    "#E69F00",
    "#56B4E9",
    "#000000",
)
#: Series are coloured in this order.
SERIES = (BLUE, VERMILLION, GREEN, PURPLE, ORANGE, SKY, BLACK)
#: Text and lines; what is there but does not count; a bar among bars that is not the chosen one.
INK, FAINT, PALE = "#1B2530", "#C3CCD5", "#C8C8C8"
#: Scores, from the lowest to the highest: light to dark, readable without telling hues apart.
SCORE_LOW, SCORE_HIGH = "#EDF2FA", BLUE

#: A page's colours by name, in light and in dark: the same hues, lighter where the page is dark.
PAGE = {
    "page": ("#FFFFFF", "#0F141A"),
    "panel": ("#F5F7F9", "#182029"),
    "ink": (INK, "#E6EBF0"),
    "muted": ("#56626E", "#9CA9B5"),
    "line": ("#DCE2E8", "#2B3641"),
    "pale": (PALE, "#4B5763"),
    "blue": (BLUE, "#4BA6E3"),
    "vermillion": ("#C25500", "#F08544"),
    "green": ("#00805D", "#35C29A"),
    "purple": ("#A8527F", "#E0A0C4"),
    "orange": ("#A87400", "#F0B73F"),
    "sky": ("#2C86BD", "#93D2F6"),
    "black": ("#3A4550", "#C9D2DA"),
}
#: The same order as :data:`SERIES`, by name.
SERIES_NAMES = ("blue", "vermillion", "green", "purple", "orange", "sky", "black")


def score_colour(share: float) -> str:
    """The colour of a score, from 0 for the lowest to 1 for the highest, as ``#rrggbb``."""
    ends = zip(_channels(SCORE_LOW), _channels(SCORE_HIGH), strict=True)
    return "#" + "".join(f"{round(low + (high - low) * share):02x}" for low, high in ends)


def _channels(colour: str) -> list[int]:
    return [int(colour[i : i + 2], 16) for i in (1, 3, 5)]
