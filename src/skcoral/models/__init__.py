"""Models and moments as files that hold nothing that can run: JSON and ONNX."""

from skcoral.models.files import load_model, load_moments, save_model, save_moments
from skcoral.models.onnx import to_onnx

__all__ = ["load_model", "load_moments", "save_model", "save_moments", "to_onnx"]
