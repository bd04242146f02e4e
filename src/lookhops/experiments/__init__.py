"""Experiments: the paper's tables and figures, and fair comparisons on any data."""
