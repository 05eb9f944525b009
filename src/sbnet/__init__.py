"""Belief networks with many parents: posterior means and rigorous bounds on the log-likelihood of any evidence."""

from __future__ import annotations

import warnings
from importlib import import_module
from typing import TYPE_CHECKING, Any

from sbnet import bounds, convert, errors, results, solvers
from sbnet._version import __version__
from sbnet.bounds import upper_bound
from sbnet.certificates import certify, posterior_intervals
from sbnet.decisions import contributions, next_question
from sbnet.exact.answers import exact_pairs, exact_posterior, kl, log_likelihood
from sbnet.exact.probability import log_joint, sample
from sbnet.files import load, read, save, write
from sbnet.inference import estimate, infer, infer_many, most_probable, steps
from sbnet.learning import SGD, Adam, Gaussian, Laplace, fit, gradient, wake_sleep
from sbnet.model.build import add_column_mixtures, from_edges, from_weight_matrix, layered
from sbnet.model.graph import Graph
from sbnet.model.mixtures import NetworkMixture
from sbnet.model.network import Network
from sbnet.model.notes import Note
from sbnet.model.probabilities import from_probabilities, noisy_or
from sbnet.solvers import Conditioned, Gibbs, MeanField, Mixture, Structured

if TYPE_CHECKING:
    from sbnet import datasets as datasets
    from sbnet import estimators as estimators
    from sbnet import explore as explore
    from sbnet import paper as paper
    from sbnet import plots as plots

_LAZY = ("datasets", "estimators", "explore", "paper", "plots")
"""Modules that are imported when they are first asked for: they bring scikit-learn or matplotlib along."""

__all__ = [
    "SGD",
    "Adam",
    "Conditioned",
    "Gaussian",
    "Gibbs",
    "Graph",
    "Laplace",
    "MeanField",
    "Mixture",
    "Network",
    "NetworkMixture",
    "Note",
    "Structured",
    "__version__",
    "add_column_mixtures",
    "bounds",
    "certify",
    "contributions",
    "convert",
    "errors",
    "estimate",
    "exact_pairs",
    "exact_posterior",
    "fit",
    "from_edges",
    "from_probabilities",
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
    "next_question",
    "noisy_or",
    "posterior_intervals",
    "read",
    "results",
    "sample",
    "save",
    "solvers",
    "steps",
    "upper_bound",
    "wake_sleep",
    "write",
]

_RENAMED = {"add_switches": "add_column_mixtures"}
"""Old names and new ones."""


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        return import_module(f"sbnet.{name}")
    for module in (results, solvers, convert):
        if name in module.__all__:
            text = f"sbnet.{name} has moved to {module.__name__}.{name}, and will not be found here after version 0.2"
            warnings.warn(text, DeprecationWarning, stacklevel=2)
            return getattr(module, name)
    if name in _RENAMED:
        raise AttributeError(f"sbnet.{name} is called sbnet.{_RENAMED[name]} since version 0.2")
    raise AttributeError(f"module 'sbnet' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_LAZY})
