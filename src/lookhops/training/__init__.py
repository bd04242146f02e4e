"""Training: the protocol, the trainer and the engines that run its epochs."""

from lookhops.core.options import PAPER_SEEDS, Protocol
from lookhops.training.runs import Run
from lookhops.training.trainer import train

__all__ = ["PAPER_SEEDS", "Protocol", "Run", "train"]
