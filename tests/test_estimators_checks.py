"""scikit-learn's own checks of its contract; none is expected to fail. Classifiers are in test_mixed_tables.py."""

from __future__ import annotations

from sklearn.utils.estimator_checks import parametrize_with_checks

from sbnet.estimators import SBNDensity, SBNImputer, SBNOutlier, Training

QUICK = {"epochs": 5, "settings": Training(learning_rate=0.05)}


@parametrize_with_checks(
    [
        SBNDensity(**QUICK, hidden=(3,)),
        SBNImputer(density=SBNDensity(**QUICK), hidden=(3,)),
        SBNImputer(density=SBNDensity(**QUICK, hidden=(3,)), strategy="sample"),
        SBNOutlier(density=SBNDensity(**QUICK), hidden=(3,)),
        SBNOutlier(density=SBNDensity(**QUICK, hidden=()), contamination=0.1),
    ]
)
def test_the_contract_of_scikit_learn(estimator, check):
    check(estimator)
