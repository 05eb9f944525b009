"""Estimators for scikit-learn: densities, a classifier, an imputer, an outlier detector; values may be missing."""

from __future__ import annotations

from sbnet.estimators._explain import Explanation, Explanations
from sbnet.estimators.classifier import SBNClassifier
from sbnet.estimators.density import SBNDensity
from sbnet.estimators.imputer import SBNImputer
from sbnet.estimators.outlier import SBNOutlier
from sbnet.estimators.settings import Training

__all__ = [
    "Explanation",
    "Explanations",
    "SBNClassifier",
    "SBNDensity",
    "SBNImputer",
    "SBNOutlier",
    "Training",
]
