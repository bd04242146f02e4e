"""Formulas as MathML: those of docstrings, in reStructuredText, and of pages, in GitHub's way."""

from __future__ import annotations

import re
from typing import Any

import griffe
from latex2mathml.converter import convert
from markdown import Extension, Markdown
from markdown.preprocessors import Preprocessor

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


#: Formulas of pages: a block, and within a line.
PAGE_BLOCK = re.compile(r"^```math\n(.*?)\n```$", re.MULTILINE | re.DOTALL)
PAGE_INLINE = re.compile(r"\$`(.*?)`\$")


def page(text: str) -> str:
    """A page with its formulas as MathML."""
    text = PAGE_BLOCK.sub(
        lambda match: f"<div>{convert(match.group(1), display='block')}</div>", text
    )
    text = re.sub(r"(?<=\S)\n(?=\$`)", " ", text)  # a line that begins with HTML is a block
    return PAGE_INLINE.sub(lambda match: convert(match.group(1)), text)


class _Pages(Preprocessor):
    def run(self, lines: list[str]) -> list[str]:
        return page("\n".join(lines)).split("\n")


class PageFormulas(Extension):
    """The formulas of pages, for Python-Markdown: before it looks for code."""

    def extendMarkdown(self, md: Markdown) -> None:
        """Called by Python-Markdown."""
        md.preprocessors.register(_Pages(md), "formulas", 100)


def makeExtension(**_: Any) -> PageFormulas:
    """What Python-Markdown looks for in a module that is named as an extension."""
    return PageFormulas()


class Formulas(griffe.Extension):
    """Called by mkdocstrings for every object that a page shows."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Make one docstring readable."""
        if obj.docstring:
            obj.docstring.value = readable(obj.docstring.value)
