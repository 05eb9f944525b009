"""The settings of an estimator: how weights are trained, and one checked record of all arguments."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from sbnet import checks
from sbnet._types import BoolArray
from sbnet.errors import ParameterError
from sbnet.estimators._rows import columns
from sbnet.inference import check_differentiable
from sbnet.learning import SGD, Adam, Gaussian
from sbnet.learning.priors import by_edge
from sbnet.model.network import Network
from sbnet.tables import frames

GROUPS = ("hidden", "autoregressive")
DEFAULT_PRIOR = {"hidden": 2.0, "autoregressive": 0.5}
"""Scales of Gaussian priors where none is given and nothing is chosen."""


def is_auto(value: Any) -> bool:
    """Is this left to be chosen?"""
    return isinstance(value, str) and value == "auto"


def is_autoregressive(network: Network, names: tuple[str, ...]) -> BoolArray:
    """Edges from columns, to other columns and to their mixture variables; all others are of the group "hidden"."""
    found: BoolArray = np.isin(network.graph.parent, columns(network, names))
    return found


def prior_for(prior: Any, network: Network, names: tuple[str, ...]) -> Any:
    """The prior that an argument `prior` puts on the weights of a network, or None."""
    hidden, autoregressive = by_group(prior)
    edges = is_autoregressive(network, names)
    if hidden is autoregressive or not edges.any():
        return hidden
    return by_edge(edges, autoregressive, hidden)


def by_group(given: Any) -> tuple[Any, Any]:
    """The priors of the groups "hidden" and "autoregressive" as `prior` says; one for both is the same object twice."""
    given = DEFAULT_PRIOR if is_auto(given) else given
    if isinstance(given, Mapping):
        unknown = [name for name in given if name not in GROUPS]
        if unknown:
            raise ParameterError(
                f"prior names {unknown[0]!r}; the groups of edges are {' and '.join(map(repr, GROUPS))}"
            )
        hidden, autoregressive = (_one(given.get(name)) for name in GROUPS)
        return hidden, autoregressive
    one = _one(given)
    return one, one


def _one(prior: Any) -> Any:
    """A penalty, or None: a number is the scale of a Gaussian one, and infinity is none."""
    checks.no_class("prior", prior)
    if prior is None or hasattr(prior, "gradient"):
        return prior
    number = isinstance(prior, int | float | np.integer | np.floating) and not isinstance(prior, bool)
    if number and prior == np.inf:
        return None
    if number and 0 < prior <= sys.float_info.max:
        return Gaussian(float(prior))
    raise ParameterError(
        f"prior is {checks.shown(prior)}; give 'auto', a positive scale such as 2.0, a penalty such as "
        'sbnet.Laplace(0.5), None, or one for each group of edges: {"autoregressive": 0.7, "hidden": 2.0}'
    )


_TINY, _MOST_PARTICLES, MOST = sys.float_info.min, 1_000_000, 2**31 - 1
"""The least number above zero; the most particles, and the largest count of anything."""
HIDDEN_LAYERS, RATE, WEIGHT_SCALE = (8,), 0.03, 0.2
"""Hidden layers, learning rate and size of the first weights where they are left open and nothing is chosen."""
_NAMED: dict[str, type[Adam | SGD]] = {"adam": Adam, "sgd": SGD}


def need(good: Any, name: str, value: Any, wanted: str) -> None:
    """An error that names an argument, its value and what is wanted, unless the value is good."""
    if not good:
        raise ParameterError(f"{name} is {checks.shown(value)}; {wanted}")


def flag(name: str, value: Any, most: int = 1) -> None:
    """Yes or no; 0 and 1 will do."""
    good = isinstance(value, bool | np.bool_) or (checks.is_whole(value) and 0 <= value <= most)
    need(good, name, value, "give True or False")


def count(name: str, value: Any, least: int, other: str = "") -> None:
    """A whole number that a computer can count to."""
    words = {0: "zero", 1: "one"}.get(least, least)
    good = checks.is_whole(value)
    need(good and value >= least, name, value, f"it must be a whole number, {words} or more{other}")
    need(value <= MOST, name, value, f"at most {MOST:,} are taken")


def check_particles(value: Any) -> None:
    """Particles of a row, which are all in memory at once."""
    good = checks.is_whole(value) and 0 <= value <= _MOST_PARTICLES
    wanted = f"it must be a whole number from 0 to {_MOST_PARTICLES:,}: 256 are usual, and 0 is mean field theory"
    need(good, "particles", value, wanted)


def _is_number(value: Any, least: float, below: float) -> bool:
    """A finite number from `least` on and below another?"""
    if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
        return False
    try:
        return bool(math.isfinite(value) and least <= value < below)
    except OverflowError:  # a whole number that no float can hold
        return False


def _are_layers(value: Any) -> bool:
    if is_auto(value) or (checks.is_whole(value) and 0 <= value <= MOST):
        return True
    listed = list(value) if isinstance(value, Iterable) and not isinstance(value, str | bytes) else [value]
    return all(checks.is_whole(size) and 1 <= size <= MOST for size in listed)


def _is_seed(value: Any) -> bool:
    """What scikit-learn takes for a `random_state`; a whole number is not negative."""
    try:
        return value >= 0 if checks.is_whole(value) else bool(check_random_state(value))
    except (ValueError, TypeError):
        return False


@dataclass(frozen=True, kw_only=True)
class Training:
    """How weights are learned: what few have to set, as ``SBNDensity(settings=Training(batch_size=20))``.

    Parameters
    ----------
    batch_size : int
        Rows for each step.
    optimizer : {"adam", "sgd"} or object
        Or an object such as ``sbnet.SGD(0.05, momentum=0.5)``, with a rate of its own.
    learning_rate : float or "auto"
        The rate of ``"adam"`` or ``"sgd"`` in the first epoch; it falls along a straight line. ``"auto"`` is 0.03, and
        where the prior is chosen, higher for hidden variables at first, and lower from stage to stage.
    weight_scale : float or "auto"
        Weights and hidden biases start uniform between minus and plus this. ``"auto"`` is 1 where the prior is chosen,
        and 0.2 where it is given.
    validation_fraction : float or None
        Share of the rows held out; the network of the epoch with the best bound there is kept.
    patience : int or None
        Stop after so many epochs without a better bound of the held-out rows.
    executor : concurrent.futures.Executor or None
        Where rows are learned from and scored instead of in threads, as in :func:`sbnet.infer_many`. Results do not
        depend on it. Copies of an estimator share it; it is not saved.

    Examples
    --------
    >>> from sbnet.estimators import SBNDensity, Training
    >>> SBNDensity(settings=Training(batch_size=20)).settings.batch_size
    20
    """

    batch_size: int = 100
    optimizer: Any = "adam"
    learning_rate: Any = "auto"
    weight_scale: Any = "auto"
    validation_fraction: float | None = None
    patience: int | None = None
    executor: Any = None

    def __post_init__(self) -> None:
        count("batch_size", self.batch_size, 1)
        rate, scale, share = self.learning_rate, self.weight_scale, self.validation_fraction
        good = is_auto(rate) or _is_number(rate, _TINY, math.inf)
        need(good, "learning_rate", rate, "it must be positive and finite, or 'auto'")
        checks.no_class("optimizer", self.optimizer)
        self.optimizer_until(None)
        good = is_auto(scale) or _is_number(scale, 0.0, math.inf)
        need(good, "weight_scale", scale, "it must be finite and not negative, or 'auto'")
        good = share is None or _is_number(share, _TINY, 1.0)
        need(good, "validation_fraction", share, "a fraction lies between 0 and 1")
        if self.patience is not None:
            count("patience", self.patience, 1, ", or None")
            if share is None:
                raise ParameterError("patience watches held-out rows; give their share with validation_fraction=")
        good = not isinstance(self.executor, type) and callable(getattr(self.executor, "submit", None))
        need(self.executor is None or good, "executor", self.executor, "give a concurrent.futures.Executor, or None")

    def __deepcopy__(self, memo: Any) -> Training:
        """It never changes, so that copies may share it; an executor, a way to workers, could not be copied."""
        return self

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "executor": None}

    def optimizer_until(self, epochs: int | None) -> Any:
        """What steps; given by name, at a rate that falls to zero over so many epochs, or stays if there is no end."""
        given = self.optimizer
        if isinstance(given, str) and given in _NAMED:
            return _NAMED[given](RATE if is_auto(self.learning_rate) else self.learning_rate, until=epochs)
        if hasattr(given, "init") and hasattr(given, "step"):
            return given
        raise ParameterError(f"optimizer is {given!r}; give 'adam', 'sgd', or an object such as sbnet.SGD(0.05)")

    @property
    def start_scale(self) -> float:
        """How large weights are at first."""
        return WEIGHT_SCALE if is_auto(self.weight_scale) else float(self.weight_scale)

    @property
    def steps_are_ours(self) -> bool:
        """Are the optimiser and its rate left to us?"""
        return isinstance(self.optimizer, str) and self.optimizer == "adam" and is_auto(self.learning_rate)


@dataclass(frozen=True, kw_only=True)
class Settings(Training):
    """All arguments of an estimator, checked: those of :class:`SBNDensity` and of its `settings`."""

    hidden: Any
    autoregressive: bool
    column_mixtures: Any
    orders: int
    label: str | None
    epochs: Any
    prior: Any
    solver: Any
    columns: Any
    missing: Any
    n_jobs: int | None
    random_state: Any
    verbose: int

    @classmethod
    def of(cls, density: Any, training: Training | None, **instead: Any) -> Settings:
        """The settings of a density; `instead` replaces some of them."""
        training = Training() if training is None else training
        wanted = "give sbnet.estimators.Training(batch_size=20), or None"
        need(isinstance(training, Training), "settings", training, wanted)
        given = vars(training)
        own = {f.name: getattr(density, f.name) for f in fields(cls) if f.name not in given}
        return cls(**{**given, **own, **instead})

    def __post_init__(self) -> None:
        super().__post_init__()
        wanted = "give the sizes of the hidden layers, such as (8, 24), or 'auto'"
        need(_are_layers(self.hidden), "hidden", self.hidden, wanted)
        flag("autoregressive", self.autoregressive)
        if not is_auto(self.column_mixtures):
            count("column_mixtures", self.column_mixtures, 0, ", or 'auto'")
        count("orders", self.orders, 1)
        good = self.label is None or isinstance(self.label, str)
        need(good, "label", self.label, "give the name of a column, such as 'x3', or None")
        if not is_auto(self.epochs):
            count("epochs", self.epochs, 1, ", or 'auto'")
        by_group(self.prior)
        if self.solver is not None:
            check_differentiable(self.solver)
        frames.missing_values(self.missing)
        jobs = self.n_jobs
        good = jobs is None or (checks.is_whole(jobs) and jobs != 0 and abs(jobs) <= MOST)
        need(good, "n_jobs", jobs, "give a number of threads, -1 for all cores, or None")
        wanted = "give a whole number, zero or more, a RandomState or None"
        need(_is_seed(self.random_state), "random_state", self.random_state, wanted)
        flag("verbose", self.verbose, MOST)

    @property
    def layers(self) -> tuple[int, ...]:
        """Sizes of the hidden layers."""
        return layers(self.hidden)


def layers(hidden: Any) -> tuple[int, ...]:
    """Sizes of hidden layers, from a number or a list of them; eight units where they are left open."""
    if is_auto(hidden):
        return HIDDEN_LAYERS
    if isinstance(hidden, Iterable):
        return tuple(hidden)
    return () if hidden == 0 else (hidden,)
