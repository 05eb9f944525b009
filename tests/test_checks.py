"""Checks of arguments: what is good comes back as a plain number, anything else is named."""

from __future__ import annotations

import re
from fractions import Fraction

import numpy as np
import pytest

from sbnet import checks
from sbnet.errors import ParameterError


@pytest.mark.parametrize("value", [2, 5, np.int8(3), np.uint64(4)])
def test_whole_numbers_of_any_kind_become_int(value):
    assert type(checks.whole("n", value, 2, 5)) is int
    assert checks.whole("n", value, 2, 5) == value


@pytest.mark.parametrize("value", [1, 6, 3.0, "3", None, True, np.nan])
def test_anything_else_is_refused_and_named(value):
    with pytest.raises(ParameterError, match=re.escape(f"n is {value!r}; it must be a whole number from 2 to 5")):
        checks.whole("n", value, 2, 5)


def test_a_range_without_end_reads_as_words():
    with pytest.raises(ParameterError, match=r"^n is -1; it must be a whole number, zero or more$"):
        checks.whole("n", -1, 0)
    assert checks.whole("n", 2**63 - 1, 0) == 2**63 - 1


@pytest.mark.parametrize(
    ("check", "good", "bad"),
    [
        (checks.fraction, [0.5, np.float32(0.25)], [0.0, 1.0, np.nan, "half"]),
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


class Silent:
    def __repr__(self):
        raise RuntimeError("no text")


@pytest.mark.parametrize("value", [10**400, -(10**400), Fraction(10**400, 3), 10**5000, Silent()], ids="abcde")
def test_numbers_that_no_float_holds_and_what_cannot_be_shown_are_refused_in_short(value):
    for check in (checks.fraction, checks.below_one, checks.positive, checks.not_negative, checks.finite):
        with pytest.raises(ParameterError, match="^rate is .{1,60}; it must ") as caught:
            check("rate", value)
        assert len(str(caught.value)) < 120


def test_whole_numbers_end_where_arrays_cannot_count_any_further():
    with pytest.raises(ParameterError, match=r"^n is 9223372036854775808; .* zero or more, below 2\*\*63$"):
        checks.whole("n", 2**63, 0)
    with pytest.raises(ParameterError, match="^n is a int; it must be a whole number"):
        checks.whole("n", 10**5000, 0)  # too long for Python to print


@pytest.mark.parametrize("value", [True, False, np.True_, 0, 1])
def test_flags_are_truth_values(value):
    assert checks.flag("shuffle", value) is bool(value)


@pytest.mark.parametrize("value", [None, "no", 2, 1.0, np.array([True, False]), []])
def test_what_is_neither_true_nor_false_is_no_flag(value):
    with pytest.raises(ParameterError, match=r"^shuffle is .*; it must be True or False$"):
        checks.flag("shuffle", value)


def test_arrays_of_numbers_are_read_and_others_refused():
    masked = np.ma.array([1, 2], mask=[False, True])
    assert np.array_equal(checks.numbers("start", masked), [1.0, np.nan], equal_nan=True)
    for value in (["a"], [[1], [1, 2]], [1j], np.array([1j]), np.array(["2020-01-01"], "datetime64[D]"), [10**400], {}):
        with pytest.raises(ParameterError, match="^start is .*; give an array of numbers, one for every variable$"):
            checks.numbers("start", value)


def test_a_choice_is_one_of_the_options():
    assert checks.choice("method", "a", ("a", "b")) == "a"
    with pytest.raises(ParameterError, match=r"^method is 'c'; choose one of 'a', 'b'$"):
        checks.choice("method", "c", ("a", "b"))
