"""A trained model: its folder, and predicting."""

from lookhops.models.predictor import Predictions, Predictor
from lookhops.models.training import train_into

__all__ = ["Predictions", "Predictor", "train_into"]
