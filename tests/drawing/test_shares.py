"""Graphs coloured by shares."""

import re
from xml.etree import ElementTree

import numpy as np
import pytest

from lookhops.drawing.shares import coloured

EDGES = np.array([[0, 1], [1, 2]])


@pytest.mark.parametrize("smiles", [None, "CCO"])
def test_sign_and_size_of_a_share_are_seen(smiles):
    text = coloured(
        EDGES, np.array([0.5, -1.0, 0.0]), np.array([0.25, 0.0]), "<words> & more", smiles
    )
    picture = ElementTree.fromstring(text)
    assert picture.get("aria-label") == "<words> & more"
    circles = list(picture.iter("{http://www.w3.org/2000/svg}circle"))
    assert [circle.get("class") for circle in circles] == ["for", "against", "for"]
    opacity = [float(circle.get("fill-opacity")) for circle in circles]
    assert opacity[1] > opacity[0] > opacity[2] == 0
    assert [circle.get("stroke-dasharray") is not None for circle in circles] == [
        False,
        True,
        False,
    ]
    titles = re.findall("<title>(.*?)</title>", text)
    names = ["C (atom 0)", "C (atom 1)", "O (atom 2)"] if smiles else ["node 0", "node 1", "node 2"]
    assert titles == [
        f"{names[0]} and {names[1]}: +0.25",
        f"{names[0]}: +0.5",
        f"{names[1]}: \N{MINUS SIGN}1",
        f"{names[2]}: +0",
    ]


def test_a_graph_without_edges_or_shares():
    ElementTree.fromstring(coloured(np.zeros((0, 2), int), np.zeros(2), np.zeros(0), "two", None))
