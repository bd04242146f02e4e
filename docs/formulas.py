"""Docstrings write formulas as PyG's do, in reStructuredText; pages show them as MathML."""

from __future__ import annotations

import re
from typing import Any

import griffe
from latex2mathml.converter import convert

BLOCK = re.compile(r"^( *)\.\. math::\n((?:(?:\1 +.*)?\n)+?)(?=\1\S|\Z)", re.MULTILINE)
INLINE = re.compile(r":math:`(.*?)`", re.DOTALL)
ROLE = re.compile(r":(?:class|func|mod|meth|attr):`~?([\w.]+)`")


def _block(match: re.Match[str]) -> str:
    lines = re.split(r"\n\s*\n", match.group(2).replace("&", "").strip())
    shown = "".join(convert(" ".join(line.split()), display="block") for line in lines)
    return f"{match.group(1)}<div>{shown}</div>\n\n"


def readable(text: str) -> str:
    """A docstring with its formulas as MathML and its roles as plain code."""
    text = BLOCK.sub(_block, text + "\n")
    text = INLINE.sub(lambda match: convert(" ".join(match.group(1).split())), text)
    return ROLE.sub(lambda match: f"`{match.group(1).rsplit('.', 1)[-1]}`", text).rstrip()


class Formulas(griffe.Extension):
    """Called by mkdocstrings for every object that a page shows."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Make one docstring readable."""
        if obj.docstring:
            obj.docstring.value = readable(obj.docstring.value)
