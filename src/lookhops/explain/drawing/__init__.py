"""Graphs as SVG: the places of the nodes, molecules as chemists draw them, scores as colours."""
