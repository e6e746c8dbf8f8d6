"""Correlation matrices of tables: moments, estimators, and the effect of a transformation."""
