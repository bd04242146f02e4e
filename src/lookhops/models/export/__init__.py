"""A trained model as one file that runs without LookHops: ``.onnx`` and ``.pt2``."""

from lookhops.models.export.check import Difference, compare, made_up
from lookhops.models.export.files import export_model, load_exported

__all__ = ["Difference", "compare", "export_model", "load_exported", "made_up"]
