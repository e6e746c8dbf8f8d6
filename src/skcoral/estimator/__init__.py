"""CORAL as a scikit-learn transformer."""

from skcoral.estimator.coral import CORAL

__all__ = ["CORAL"]
