"""Sigmoid belief networks: posterior means and rigorous bounds on the log-likelihood of any evidence."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from sbnet import bounds, errors
from sbnet._version import __version__
from sbnet.bounds import UpperBound, UpperBounds, upper_bound
from sbnet.certificates import Certificate, Certificates, PosteriorIntervals, certify, posterior_intervals
from sbnet.decisions.asking import Contributions, NextQuestion, Questions, contributions, next_question
from sbnet.exact.answers import exact_pairs, exact_posterior, kl, log_likelihood
from sbnet.exact.means import ExactPosterior, ExactPosteriors
from sbnet.exact.probability import log_joint, sample
from sbnet.files import (
    Conversion,
    from_pgmpy,
    from_pyagrum,
    load,
    read,
    read_report,
    save,
    to_pgmpy,
    to_pyagrum,
    write,
)
from sbnet.inference import (
    Chains,
    Climber,
    Comparison,
    Conditioned,
    Estimate,
    Estimates,
    Gibbs,
    LazyPosteriors,
    MeanField,
    Mixture,
    MostProbable,
    MostProbableBatch,
    Posterior,
    PosteriorBatch,
    Slope,
    Solution,
    Solver,
    Status,
    Step,
    Structured,
    Xi,
    estimate,
    infer,
    infer_many,
    most_probable,
    steps,
)
from sbnet.learning import SGD, Adam, FitResult, Gaussian, Laplace, WakeSleepResult, fit, gradient, wake_sleep
from sbnet.model.build import add_switches, from_edges, from_networkx, from_weight_matrix, layered, to_networkx
from sbnet.model.graph import Graph
from sbnet.model.mixtures import NetworkMixture
from sbnet.model.network import Network
from sbnet.model.notes import Note
from sbnet.model.probabilities import Nearest, from_probabilities, nearest, noisy_or

if TYPE_CHECKING:
    from sbnet import datasets as datasets
    from sbnet import estimators as estimators
    from sbnet import explore as explore
    from sbnet import paper as experiments
    from sbnet import plots as plots

_LAZY = ("datasets", "estimators", "experiments", "explore", "plots")
"""Modules that are imported when they are first asked for: they bring scikit-learn or matplotlib along."""

__all__ = [
    "SGD",
    "Adam",
    "Certificate",
    "Certificates",
    "Chains",
    "Climber",
    "Comparison",
    "Conditioned",
    "Contributions",
    "Conversion",
    "Estimate",
    "Estimates",
    "ExactPosterior",
    "ExactPosteriors",
    "FitResult",
    "Gaussian",
    "Gibbs",
    "Graph",
    "Laplace",
    "LazyPosteriors",
    "MeanField",
    "Mixture",
    "MostProbable",
    "MostProbableBatch",
    "Nearest",
    "Network",
    "NetworkMixture",
    "NextQuestion",
    "Note",
    "Posterior",
    "PosteriorBatch",
    "PosteriorIntervals",
    "Questions",
    "Slope",
    "Solution",
    "Solver",
    "Status",
    "Step",
    "Structured",
    "UpperBound",
    "UpperBounds",
    "WakeSleepResult",
    "Xi",
    "__version__",
    "add_switches",
    "bounds",
    "certify",
    "contributions",
    "errors",
    "estimate",
    "exact_pairs",
    "exact_posterior",
    "fit",
    "from_edges",
    "from_networkx",
    "from_pgmpy",
    "from_probabilities",
    "from_pyagrum",
    "from_weight_matrix",
    "gradient",
    "infer",
    "infer_many",
    "kl",
    "layered",
    "load",
    "log_joint",
    "log_likelihood",
    "most_probable",
    "nearest",
    "next_question",
    "noisy_or",
    "posterior_intervals",
    "read",
    "read_report",
    "sample",
    "save",
    "steps",
    "to_networkx",
    "to_pgmpy",
    "to_pyagrum",
    "upper_bound",
    "wake_sleep",
    "write",
]


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        return import_module(f"sbnet.{name}")
    raise AttributeError(f"module 'sbnet' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_LAZY})
