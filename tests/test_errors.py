"""Errors can be caught as what they are, and as what a Python programmer expects; their texts name what is wrong.

The text of each error is tested beside the function that raises it; here are the promises that all of them share.
"""

from __future__ import annotations

import inspect
import pickle

import numpy as np
import pytest

import sbnet as sb
from sbnet import errors
from sbnet.errors import SBNetError, unknown_unit

CLASSES = [cls for _, cls in inspect.getmembers(errors, inspect.isclass) if issubclass(cls, Exception)]


@pytest.mark.parametrize("cls", [cls for cls in CLASSES if not issubclass(cls, Warning)])
def test_every_error_is_one_of_ours(cls):
    assert issubclass(cls, SBNetError)


@pytest.mark.parametrize(
    ("cls", "builtin"),
    [
        (errors.NetworkError, ValueError),
        (errors.CycleError, errors.NetworkError),
        (errors.UnknownUnitError, KeyError),
        (errors.UnknownUnitError, ValueError),
        (errors.EvidenceError, ValueError),
        (errors.TooManyHiddenError, ValueError),
        (errors.FileFormatError, ValueError),
        (errors.ParameterError, ValueError),
        (errors.MissingExtraError, ImportError),
        (errors.TableError, errors.EvidenceError),
        (errors.TableError, errors.ParameterError),
        (errors.CodingWarning, UserWarning),
        (errors.ConvergenceWarning, UserWarning),
        (errors.NearNameWarning, UserWarning),
    ],
)
def test_errors_are_also_what_a_python_programmer_expects(cls, builtin):
    assert issubclass(cls, builtin)


@pytest.mark.parametrize("cls", CLASSES)
def test_errors_print_their_message_as_it_is_and_survive_pickling(cls):  # as between worker processes
    error = cls("the variable 'a' is odd")
    assert str(error) == "the variable 'a' is odd"
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is cls
    assert str(again) == str(error)


def test_an_error_may_have_no_message():
    assert str(errors.UnknownUnitError()) == ""


@pytest.mark.parametrize(
    ("asked", "hint"),
    [
        ("rian", "; did you mean 'rain'?"),
        ("Rain", "; did you mean 'rain'?"),
        ("RAIN", "; did you mean 'rain'?"),
        ("zzz", ""),
        (7, ""),
    ],
)
def test_unknown_units_are_named_with_the_nearest_unit_if_one_is_near(asked, hint):
    error = unknown_unit(asked, ("rain", "wet"), "evidence")
    assert str(error) == f"evidence names variable {asked!r}, which is not in the network{hint}"


def test_texts_stay_short_for_large_networks():
    network = sb.layered((5000, 2), rng=0)
    for call in (
        lambda: network.index("h1_50000"),
        lambda: network.index(10_000),
        lambda: network.with_parameters(bias=np.zeros(3)),
        lambda: network.with_parameters(weight=np.zeros(3)),
        lambda: sb.log_likelihood(network, [1, 1]),
        lambda: sb.log_likelihood(network, np.zeros(6000)),
        lambda: sb.log_joint(network, [1, 1]),
        lambda: sb.kl(network, [1, 1], [0.5]),
    ):
        with pytest.raises(SBNetError) as caught:
            call()
        assert len(str(caught.value)) < 200
        assert not str(caught.value).endswith(".")
