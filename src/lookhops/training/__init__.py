"""Training: the protocol, the trainer and the engines that run its epochs; using what it made."""

from lookhops.training.inference import Predictions, Predictor
from lookhops.training.protocol import PAPER_SEEDS, Protocol
from lookhops.training.session import train_into
from lookhops.training.trainer import Run, train

__all__ = ["PAPER_SEEDS", "Predictions", "Predictor", "Protocol", "Run", "train", "train_into"]
