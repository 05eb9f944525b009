"""Belief networks with many parents: posterior means and rigorous bounds on the log-likelihood of any evidence.

A name is imported when it is first asked for, so that ``import sbnet`` costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from sbnet._version import __version__ as __version__

if TYPE_CHECKING:  # the names of `_HOMES` and `_MODULES` once more, for type checkers
    from sbnet import bounds as bounds
    from sbnet import catalogue as catalogue
    from sbnet import convert as convert
    from sbnet import datasets as datasets
    from sbnet import errors as errors
    from sbnet import estimators as estimators
    from sbnet import explore as explore
    from sbnet import paper as paper
    from sbnet import plots as plots
    from sbnet import results as results
    from sbnet import solvers as solvers
    from sbnet.bounds import upper_bound as upper_bound
    from sbnet.certificates import certify as certify
    from sbnet.certificates import posterior_intervals as posterior_intervals
    from sbnet.decisions.contributions import contributions as contributions
    from sbnet.decisions.next_question import next_question as next_question
    from sbnet.decisions.sensitivity import sensitivity as sensitivity
    from sbnet.decisions.single_cause import single_cause as single_cause
    from sbnet.exact.answers import exact_pairs as exact_pairs
    from sbnet.exact.answers import exact_posterior as exact_posterior
    from sbnet.exact.answers import kl as kl
    from sbnet.exact.answers import log_likelihood as log_likelihood
    from sbnet.exact.probability import log_joint as log_joint
    from sbnet.exact.probability import sample as sample
    from sbnet.files import load as load
    from sbnet.files import read as read
    from sbnet.files import save as save
    from sbnet.files import write as write
    from sbnet.inference import estimate as estimate
    from sbnet.inference import infer as infer
    from sbnet.inference import infer_many as infer_many
    from sbnet.inference import most_probable as most_probable
    from sbnet.inference import steps as steps
    from sbnet.learning import SGD as SGD
    from sbnet.learning import Adam as Adam
    from sbnet.learning import Gaussian as Gaussian
    from sbnet.learning import Laplace as Laplace
    from sbnet.learning import fit as fit
    from sbnet.learning import gradient as gradient
    from sbnet.learning import wake_sleep as wake_sleep
    from sbnet.model.build import add_column_mixtures as add_column_mixtures
    from sbnet.model.build import from_edges as from_edges
    from sbnet.model.build import from_weight_matrix as from_weight_matrix
    from sbnet.model.build import layered as layered
    from sbnet.model.graph import Graph as Graph
    from sbnet.model.mixtures import NetworkMixture as NetworkMixture
    from sbnet.model.network import Network as Network
    from sbnet.model.notes import Note as Note
    from sbnet.model.probabilities import from_probabilities as from_probabilities
    from sbnet.model.probabilities import noisy_or as noisy_or
    from sbnet.solvers import Conditioned as Conditioned
    from sbnet.solvers import Gibbs as Gibbs
    from sbnet.solvers import MeanField as MeanField
    from sbnet.solvers import Mixture as Mixture
    from sbnet.solvers import Structured as Structured

_HOMES = {
    "bounds": ("upper_bound",),
    "certificates": ("certify", "posterior_intervals"),
    "decisions.contributions": ("contributions",),
    "decisions.next_question": ("next_question",),
    "decisions.sensitivity": ("sensitivity",),
    "decisions.single_cause": ("single_cause",),
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
_OFFERED = ("bounds", "catalogue", "convert", "errors", "results", "solvers")
_MODULES = (*_OFFERED, "datasets", "estimators", "explore", "paper", "plots")

__all__ = sorted(["__version__", *_HOME, *_OFFERED])


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f"sbnet.{name}")
    if name not in _HOME:
        raise AttributeError(f"module 'sbnet' has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(_HOME[name]), name)  # asked for once
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_MODULES})
