"""Sigmoid belief networks: posterior means and rigorous bounds on the log-likelihood of any evidence."""

from __future__ import annotations

from sbnet import bounds, errors
from sbnet._version import __version__
from sbnet.bounds import UpperBound, UpperBounds, upper_bound
from sbnet.build import add_switches, from_edges, from_networkx, from_weight_matrix, layered, to_networkx
from sbnet.certificates import Certificate, Certificates, certify, posterior_intervals
from sbnet.exact import exact_pairs, exact_posterior, kl, log_likelihood
from sbnet.graph import Graph
from sbnet.inference import (
    Chains,
    Climber,
    Conditioned,
    Estimate,
    Estimates,
    Gibbs,
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
    Xi,
    estimate,
    infer,
    infer_many,
    most_probable,
    steps,
)
from sbnet.io import load, save
from sbnet.learning import SGD, Adam, FitResult, Gaussian, Laplace, WakeSleepResult, fit, gradient, wake_sleep
from sbnet.network import Network
from sbnet.probability import log_joint, sample

__all__ = [
    "SGD",
    "Adam",
    "Certificate",
    "Certificates",
    "Chains",
    "Climber",
    "Conditioned",
    "Estimate",
    "Estimates",
    "FitResult",
    "Gaussian",
    "Gibbs",
    "Graph",
    "Laplace",
    "MeanField",
    "Mixture",
    "MostProbable",
    "MostProbableBatch",
    "Network",
    "Posterior",
    "PosteriorBatch",
    "Slope",
    "Solution",
    "Solver",
    "Status",
    "Step",
    "UpperBound",
    "UpperBounds",
    "WakeSleepResult",
    "Xi",
    "__version__",
    "add_switches",
    "bounds",
    "certify",
    "errors",
    "estimate",
    "exact_pairs",
    "exact_posterior",
    "fit",
    "from_edges",
    "from_networkx",
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
    "posterior_intervals",
    "sample",
    "save",
    "steps",
    "to_networkx",
    "upper_bound",
    "wake_sleep",
]
