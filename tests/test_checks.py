"""Checks of arguments: what is good comes back as a plain number, anything else is named."""

from __future__ import annotations

import re

import numpy as np
import pytest

from sbnet import checks
from sbnet.errors import ParameterError


@pytest.mark.parametrize("value", [2, 5, np.int8(3), np.uint64(4)])
def test_whole_numbers_of_any_kind_become_int(value):
    assert type(checks.whole("n", value, 2, 5)) is int
    assert checks.whole("n", value, 2, 5) == value


@pytest.mark.parametrize("value", [1, 6, 3.0, "3", None, True, np.nan, np.True_])
def test_anything_else_is_refused_and_named(value):
    with pytest.raises(ParameterError, match=re.escape(f"n is {value!r}; it must be a whole number from 2 to 5")):
        checks.whole("n", value, 2, 5)


def test_a_range_without_end_reads_as_words():
    with pytest.raises(ParameterError, match=r"^n is -1; it must be a whole number, zero or more$"):
        checks.whole("n", -1, 0)
    assert checks.whole("n", 10**30, 0) == 10**30


@pytest.mark.parametrize(
    ("check", "good", "bad"),
    [
        (checks.chance, [0.5, np.float32(0.25)], [0.0, 1.0, np.nan, "half"]),
        (checks.below_one, [0, 0.5], [-0.1, 1.0, np.nan, None]),
        (checks.positive, [1e-300, 7], [0.0, -1, np.inf, np.nan, "1"]),
        (checks.not_negative, [0.0, 7], [-1e-300, np.inf, np.nan, [1]]),
        (checks.tolerance, [0.0, np.inf], [-1e-300, np.nan, "0"]),
    ],
)
def test_numbers_inside_come_back_and_those_outside_are_named(check, good, bad):
    for value in good:
        assert check("rate", value) == value
        assert type(check("rate", value)) is float
    for value in bad:
        with pytest.raises(ParameterError, match=re.escape(f"rate is {value!r}; it must ")):
            check("rate", value)


def test_a_choice_is_one_of_the_options():
    assert checks.choice("method", "a", ("a", "b")) == "a"
    with pytest.raises(ParameterError, match=r"^method is 'c'; choose one of 'a', 'b'$"):
        checks.choice("method", "c", ("a", "b"))
