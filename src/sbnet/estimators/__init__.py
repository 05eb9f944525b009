"""Estimators for scikit-learn: densities, a classifier and an imputer for binary tables with holes."""

from __future__ import annotations

from sbnet.estimators.classifier import SBNClassifier
from sbnet.estimators.density import SBNDensity
from sbnet.estimators.imputer import SBNImputer

__all__ = ["SBNClassifier", "SBNDensity", "SBNImputer"]
