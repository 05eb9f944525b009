"""The settings of an estimator: how weights are trained, and one checked record of all arguments."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable
from dataclasses import dataclass, fields
from typing import Any

from sbnet import checks
from sbnet.errors import ParameterError
from sbnet.estimators import _arguments, _priors
from sbnet.estimators._priors import is_auto
from sbnet.inference import check_differentiable
from sbnet.learning import SGD, Adam
from sbnet.tables import frames

TINY = sys.float_info.min
HIDDEN_LAYERS, RATE = (8,), 0.03
"""Hidden layers and learning rate where they are left open and nothing is chosen."""
_NAMED: dict[str, type[Adam | SGD]] = {"adam": Adam, "sgd": SGD}


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
        where the prior is chosen, higher for hidden units at first, and lower from stage to stage.
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
        _arguments.count("batch_size", self.batch_size, 1)
        if not is_auto(self.learning_rate):
            wanted = "it must be positive and finite, or 'auto'"
            _arguments.number("learning_rate", self.learning_rate, TINY, math.inf, wanted)
        checks.no_class("optimizer", self.optimizer)
        self.optimizer_until(None)
        if not is_auto(self.weight_scale):
            wanted = "it must be finite and not negative, or 'auto'"
            _arguments.number("weight_scale", self.weight_scale, 0.0, math.inf, wanted)
        if self.validation_fraction is not None:
            wanted = "a fraction lies between 0 and 1"
            _arguments.number("validation_fraction", self.validation_fraction, TINY, 1.0, wanted)
        if self.patience is not None:
            _arguments.count("patience", self.patience, 1, ", or None")
            if self.validation_fraction is None:
                raise ParameterError("patience watches held-out rows; give their share with validation_fraction=")
        _arguments.executor(self.executor)

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
    binarize: float | None
    encode: Any
    missing: Any
    n_jobs: int | None
    random_state: Any
    verbose: int

    @classmethod
    def of(cls, density: Any, training: Training | None, **instead: Any) -> Settings:
        """Those of a density; `instead` has other values for some."""
        training = Training() if training is None else training
        if not isinstance(training, Training):
            raise ParameterError(
                f"settings is {checks.shown(training)}; give sbnet.estimators.Training(batch_size=20), or None"
            )
        given = vars(training)
        own = {f.name: getattr(density, f.name) for f in fields(cls) if f.name not in given}
        return cls(**{**given, **own, **instead})

    def __post_init__(self) -> None:
        super().__post_init__()
        _arguments.hidden(self.hidden)
        _arguments.flag("autoregressive", self.autoregressive)
        if not is_auto(self.column_mixtures):
            _arguments.count("column_mixtures", self.column_mixtures, 0, ", or 'auto'")
        _arguments.count("orders", self.orders, 1)
        _arguments.label(self.label)
        if not is_auto(self.epochs):
            _arguments.count("epochs", self.epochs, 1, ", or 'auto'")
        _priors.by_group(self.prior)
        if self.solver is not None:
            check_differentiable(self.solver)
        _arguments.threshold(self.binarize)
        frames.missing_values(self.missing)
        _arguments.jobs(self.n_jobs)
        _arguments.seed(self.random_state)
        _arguments.flag("verbose", self.verbose, _arguments.MOST)

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
