"""A trained model: its folder, predicting and explaining."""

from lookhops.models.folder_training import train_into
from lookhops.models.predictor import Predictions, Predictor

__all__ = ["Predictions", "Predictor", "train_into"]
