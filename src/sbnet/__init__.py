"""Belief networks with many parents: posterior means and rigorous bounds on the log-likelihood of any evidence.

A name is imported when it is first asked for, so that ``import sbnet`` costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from sbnet._version import __version__

if TYPE_CHECKING:
    from sbnet import bounds, convert, errors, results, solvers
    from sbnet import datasets as datasets
    from sbnet import estimators as estimators
    from sbnet import explore as explore
    from sbnet import paper as paper
    from sbnet import plots as plots
    from sbnet.bounds import upper_bound
    from sbnet.certificates import certify, posterior_intervals
    from sbnet.decisions.contributions import contributions
    from sbnet.decisions.next_question import next_question
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

_HOMES = {
    "bounds": ("upper_bound",),
    "certificates": ("certify", "posterior_intervals"),
    "decisions.contributions": ("contributions",),
    "decisions.next_question": ("next_question",),
    "exact.answers": ("exact_pairs", "exact_posterior", "kl", "log_likelihood"),
    "exact.probability": ("log_joint", "sample"),
    "files": ("load", "read", "save", "write"),
    "inference": ("estimate", "infer", "infer_many", "most_probable", "steps"),
    "learning": ("SGD", "Adam", "Gaussian", "Laplace", "fit", "gradient", "wake_sleep"),
    "model.build": ("add_column_mixtures", "from_edges", "from_weight_matrix", "layered"),
    "model.graph": ("Graph",),
    "model.mixtures": ("NetworkMixture",),
    "model.network": ("Network",),
    "model.notes": ("Note",),
    "model.probabilities": ("from_probabilities", "noisy_or"),
    "solvers": ("Conditioned", "Gibbs", "MeanField", "Mixture", "Structured"),
}
_HOME = {name: f"sbnet.{module}" for module, names in _HOMES.items() for name in names}
"""The module of each name; type checkers read the imports above."""
_MODULES = ("bounds", "convert", "datasets", "errors", "estimators", "explore", "paper", "plots", "results", "solvers")


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f"sbnet.{name}")
    if name not in _HOME:
        raise AttributeError(f"module 'sbnet' has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(_HOME[name]), name)  # asked for once
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_MODULES})
