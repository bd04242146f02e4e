"""How numbers and names are written, in a terminal, a table or a page: the one place for it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import SupportsFloat

MINUS, NONE = "\N{MINUS SIGN}", "\N{EN DASH}"
#: Longer names are cut where there is little room.
NAME_WIDTH = 28
#: Stands after what was run by ``lookhops paper --quick``.
QUICK_MARK = " (quick version)"


def counted(count: int, thing: str, things: str | None = None) -> str:
    """``1 run``, ``1,080 runs``."""
    return f"{count:,} {thing if count == 1 else things or thing + 's'}"


def agreeing(count: int, one: str, several: str) -> str:
    """The words that go with a count: ``1 of 4 runs is``, ``2 of 4 runs are``."""
    return one if count == 1 else several


def percent(share: float | None, digits: int = 1) -> str:
    """``77.5 %``; a dash where there is none."""
    return NONE if share is None else f"{100 * share:.{digits}f} %"


def number(count: int | None) -> str:
    """A count such as 12,345, or a dash."""
    return NONE if count is None else f"{count:,}"


def compact_percent(share: SupportsFloat) -> str:
    """``77.5%``, ``<0.1%``."""
    value = 100 * float(share)
    return "<0.1%" if 0 < value < 0.05 else f"{value:.1f}%"


def plus_minus(value: tuple[float, float], count: int = 2) -> str:
    """``80.6 ± 1.8``; without the spread where there is one value only."""
    return f"{value[0]:.1f} ± {value[1]:.1f}" if count > 1 else f"{value[0]:.1f}"


def between(ends: Sequence[float] | None, digits: int = 1) -> str:
    """``88.4 to 92.9``, with real minus signs; a dash where there are no ends."""
    if ends is None:
        return NONE
    return " to ".join(f"{value:.{digits}f}".replace("-", MINUS) for value in ends)


def span(low: int, high: int) -> str:
    """``7``, ``7 to 1,080``."""
    return f"{low:,}" if low >= high else f"{low:,} to {high:,}"


def signed(value: float, digits: int = 1) -> str:
    """``+1.2`` or ``−0.4``: a small difference keeps its sign, an interval holds 0 or does not."""
    return f"{value:+.{digits}f}".replace("-", MINUS)


def ahead(points: float, of: str) -> str:
    """``1.2 points ahead of GCN``; nobody is ahead by nothing."""
    return f"level with {of}" if points < 0.05 else f"{points:.1f} points ahead of {of}"


def p_value(p: float) -> str:
    """``0.023``, ``< 0.001``."""
    return "< 0.001" if p < 0.001 else f"{p:.2g}"


def p_said(p: float) -> str:
    """``p = 0.023``, ``p < 0.001``."""
    text = p_value(p)
    return f"p {text if text.startswith('<') else '= ' + text}".replace(" ", "\N{NO-BREAK SPACE}")


def joined(words: Sequence[str], by: str = "and") -> str:
    """``a``, ``a and b``, ``a, b and c``."""
    return f" {by} ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


#: Control characters, and those that turn the direction of text: terminals, tables and pictures
#: obey them. Tabs and line feeds are left alone.
CONTROL = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069"
    r"\ud800-\udfff\ufffe\uffff]"
)


def visible(text: str) -> str:
    """Text whose control characters are shown, not obeyed: ``\\x1b``."""
    return CONTROL.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def short(name: str, width: int = NAME_WIDTH) -> str:
    """A name cut to a width in its middle: names of one kind differ at either end."""
    end = (width - 1) // 3
    return name if len(name) <= width else f"{name[: width - 1 - end]}…{name[-end:]}"


def memory(size: float | None) -> str:
    """``412 MB``, ``1.3 GB``, in powers of ten; a dash where it is not known."""
    if size is None:
        return NONE
    return f"{size / 1e9:.1f} GB" if size >= 1e9 else f"{size / 1e6:.0f} MB"


def duration(seconds: float) -> str:
    """``34 ms``, ``1.92 s``, ``2 min 5 s``."""
    if seconds < 0.1:
        return f"{1000 * seconds:.0f} ms"
    if seconds < 60:
        return f"{seconds:.2f} s" if seconds < 10 else f"{seconds:.0f} s"
    return f"{int(seconds // 60)} min {int(seconds % 60)} s"
