"""Estimators whose networks are learned as a template says: an SBNDensity, which owns the settings of learning."""

from __future__ import annotations

from typing import Any

from sbnet.errors import ParameterError
from sbnet.estimators._base import SBNEstimator
from sbnet.estimators._priors import is_auto
from sbnet.estimators.density import SBNDensity
from sbnet.estimators.settings import Settings, layers

_SHORT = ("hidden", "binarize", "encode", "missing", "n_jobs", "random_state", "verbose")


class FromTemplate(SBNEstimator):
    """An estimator with a template, and short-hands for the few settings that are often given."""

    density: Any
    hidden: Any
    encode: Any
    settings: Any

    def set_params(self, **params: Any) -> Any:
        """Set arguments; those of the template as ``density__epochs=3``, also where none was given.

        Parameters
        ----------
        **params
            Arguments by name.

        Returns
        -------
        self
        """
        nested = any(name.startswith("density__") for name in params)
        if nested and params.get("density", self.density) is None:
            params = {**params, "density": SBNDensity()}
        return super().set_params(**params)

    def _is_encoded(self) -> bool:
        return self.encode is not None or getattr(self.density, "encode", None) is not None

    def _auto(self) -> dict[str, Any]:
        """What "auto" in the template stands for here, where a density alone takes it for something else."""
        return {}

    def _settings(self) -> Settings:
        """Those of the template, with the short-hands in it."""
        template = SBNDensity() if self.density is None else self.density
        if not isinstance(template, SBNDensity):
            raise ParameterError(f"density is {template!r}; give an SBNDensity, such as SBNDensity(epochs=5)")
        given = {name: getattr(self, name) for name in _SHORT if getattr(self, name) is not None}
        # Who runs an estimator decides on seeds and cores, as in scikit-learn's ensembles; but of two networks
        # one would be lost without a word, in a search over density__hidden for instance.
        both = "hidden" in given and not is_auto(template.hidden)
        if both and given["hidden"] != template.hidden and layers(given["hidden"]) != layers(template.hidden):
            raise ParameterError(
                f"hidden is {self.hidden!r}, but hidden of density is {template.hidden!r}; give one of them"
            )
        auto = {k: v for k, v in self._auto().items() if is_auto(given.get(k, getattr(template, k)))}
        return Settings.of(template, self.settings or template.settings, **{**given, **auto})
