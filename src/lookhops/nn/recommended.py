"""The recommended network: one configuration for all data sets."""

from __future__ import annotations

from lookhops.nn.network import Architecture

#: Chosen on other splits than the ten that are reported (docs/compare.md says how);
#: `lookhops train` and ``LookHopsClassifier`` begin with it.
RECOMMENDED = Architecture(pool="lookhops", readout="max+mean+sum", dropout=0.2)
