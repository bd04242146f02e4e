"""Which k: how much each further hop can tell, how that dies away, and what it suggests."""

from lookhops.information.entropy import kinfo
from lookhops.information.gain import Decay, fit_decay, smallest_k
from lookhops.information.label_information import LabelInformation
from lookhops.information.labels import look_labels
from lookhops.information.result import HopInformation
from lookhops.information.suggestion import look

__all__ = [
    "Decay",
    "HopInformation",
    "LabelInformation",
    "fit_decay",
    "kinfo",
    "look",
    "look_labels",
    "smallest_k",
]
