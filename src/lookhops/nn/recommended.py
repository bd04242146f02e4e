"""The recommended network: one configuration for all data sets."""

from __future__ import annotations

from lookhops.nn.classifier import Architecture

#: Chosen by validation accuracy on other seeds than the ten that are reported (docs/compare.md);
#: `lookhops train` and ``LookHopsClassifier`` begin with it.
RECOMMENDED = Architecture(pool="lookhops", readout="max+mean+sum", dropout=0.2)
