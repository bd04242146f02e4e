"""The network as scikit-learn's estimators: of classes, of numbers, of both at once."""

from lookhops.models.estimators.classifier import LookHopsClassifier
from lookhops.models.estimators.multitask import LookHopsMultitask
from lookhops.models.estimators.regressor import LookHopsRegressor

__all__ = ["LookHopsClassifier", "LookHopsMultitask", "LookHopsRegressor"]
