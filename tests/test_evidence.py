"""Every form of evidence is one and the same thing inside, and what cannot be evidence is refused in plain words."""

from __future__ import annotations

from decimal import Decimal
from types import MappingProxyType

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from hypothesis import given
from numpy.testing import assert_allclose

import sbnet as sb
from sbnet.errors import EvidenceError, SBNetError, UnknownUnitError
from sbnet.questions.evidence import coerce, coerce_many, coerce_one
from sbnet.questions.reduction import absorb
from strategies import cases, tables

nan = np.nan
BINARY = 'variables are binary: 0, 1 or NaN for "not observed"'
WORDS = "; in words, no or yes"

# The same evidence on rain, sprinkler, wet, slippery in all its forms.
PATTERN = [-1, 0, 1, -1]
ONE = {
    "mapping by name": {"sprinkler": 0, "wet": 1},
    "mapping by number": {1: 0, 2: 1},
    "mapping by both": {"sprinkler": 0, np.int64(2): 1},
    "mapping with gaps": {"rain": None, "sprinkler": 0, "wet": 1, "slippery": nan},
    "mapping of other types": {"sprinkler": False, "wet": np.float32(1), "rain": pd.NA, "slippery": np.ma.masked},
    "read-only mapping": MappingProxyType({"sprinkler": Decimal(0), "wet": np.bool_(True)}),
    "list with NaN": [nan, 0, 1, nan],
    "list with None": [None, 0, 1, None],
    "list with -1": [-1, 0, 1, -1],
    "list of everything": [pd.NA, False, 1.0, pd.NaT],
    "tuple": (None, 0, 1, -1),
    "float array": np.array([nan, 0.0, 1.0, nan]),
    "float32 array": np.array([nan, 0.0, 1.0, nan], dtype=np.float32),
    "int8 array": np.array([-1, 0, 1, -1], dtype=np.int8),
    "object array": np.array([None, 0, True, nan], dtype=object),
    "masked array": np.ma.masked_array([9, 0, 1, 9], mask=[1, 0, 0, 1]),
    "masked bools": np.ma.masked_array([True, False, True, True], mask=[1, 0, 0, 1]),
    "masked objects": np.ma.masked_array([None, 0, 1, "x"], mask=[0, 0, 0, 1], dtype=object),
    "series by name": pd.Series({"wet": 1, "sprinkler": 0}),
    "series by name and number": pd.Series({"wet": 1, 1: 0}),
    "nullable series": pd.Series([pd.NA, 0, 1, pd.NA], dtype="Int8"),
    "series of floats": pd.Series([nan, 0.0, 1.0, nan]),
}

TABLE = [[-1, 0, 1, -1], [1, 1, -1, 0]]
MANY = {
    "float array": np.array([[nan, 0, 1, nan], [1, 1, nan, 0]]),
    "column-major array": np.asfortranarray([[nan, 0, 1, nan], [1, 1, nan, 0]]),
    "int array": np.array(TABLE),
    "lists with None": [[None, 0, 1, None], [1, 1, None, 0]],
    "masked array": np.ma.masked_less(np.array(TABLE), 0),
    "mappings": [{"sprinkler": 0, "wet": 1}, {"rain": 1, 1: 1, "slippery": 0, "wet": None}],
    "tuple of mappings": ({"sprinkler": 0, "wet": 1}, {"rain": 1, 1: 1, "slippery": 0}),
    "frame of floats": pd.DataFrame(
        {"slippery": [nan, 0.0], "rain": [nan, 1.0], "wet": [1.0, nan], "sprinkler": [0.0, 1.0]}
    ),
    "frame of booleans": pd.DataFrame(
        {"sprinkler": [False, True], "rain": pd.array([None, True], dtype="boolean"), 2: [1, -1], "slippery": [None, 0]}
    ),
    "frame of nullable integers": pd.DataFrame(
        {"rain": [None, 1], "sprinkler": [0, 1], "wet": [1, None], "slippery": [None, 0]}, dtype="Int8"
    ),
    "frame of objects": pd.DataFrame(
        {"rain": [pd.NA, True], "sprinkler": [0, 1.0], "wet": [1, None], "slippery": [nan, False]}, dtype=object
    ),
    "frame of categories": pd.DataFrame(
        {"rain": [nan, 1], "sprinkler": pd.Categorical([0, 1]), "wet": [1, nan], "slippery": pd.Categorical([nan, 0])}
    ),
    "frame without names": pd.DataFrame([[nan, 0, 1, nan], [1, 1, nan, 0]], index=["first", "second"]),
}


@pytest.mark.parametrize("form", ONE)
def test_every_form_of_one_pattern_is_the_same_inside(sprinkler, form):
    states, single = coerce(sprinkler, ONE[form])
    assert states.dtype == np.int8
    assert states.tolist() == [PATTERN]
    assert single
    assert coerce_one(sprinkler, ONE[form]).tolist() == [PATTERN]


@pytest.mark.parametrize("form", MANY)
def test_every_form_of_a_table_is_the_same_inside(sprinkler, form):
    states, single = coerce(sprinkler, MANY[form])
    assert states.dtype == np.int8
    assert states.tolist() == TABLE
    assert not single
    assert coerce_many(sprinkler, MANY[form]).tolist() == TABLE


@pytest.mark.parametrize("dtype", [bool, np.uint8, np.int8, np.int64, np.float16, np.float64, np.longdouble, object])
def test_complete_states_of_every_type_are_the_same_inside(sprinkler, dtype):
    assert coerce(sprinkler, np.array([[0, 1, 1, 0]], dtype=dtype))[0].tolist() == [[0, 1, 1, 0]]


@pytest.mark.parametrize("form", ["csr", "csc", "coo", "lil", "dok"])
def test_entries_that_a_sparse_table_does_not_store_are_zeros(sprinkler, form):
    table = scipy.sparse.coo_array(([1, 1, -1], ([0, 1, 1], [1, 0, 3])), shape=(2, 4)).asformat(form)
    states, single = coerce(sprinkler, table)
    assert states.tolist() == [[0, 1, 0, 0], [1, 0, 0, -1]]
    assert not single


def test_fewer_columns_than_units_are_the_last_units(sprinkler):
    assert coerce(sprinkler, [0, 1])[0].tolist() == [[-1, -1, 0, 1]]
    assert coerce(sprinkler, np.array([[0, 1], [nan, 0]]))[0].tolist() == [[-1, -1, 0, 1], [-1, -1, -1, 0]]
    assert coerce(sprinkler, pd.DataFrame([[0, 1]]))[0].tolist() == [[-1, -1, 0, 1]]
    assert coerce(sprinkler, pd.Series([0, 1]))[0].tolist() == [[-1, -1, 0, 1]]


def test_a_table_by_name_may_leave_units_out(sprinkler):
    assert coerce(sprinkler, pd.DataFrame({"rain": [1.0, nan]}))[0].tolist() == [[1, -1, -1, -1], [-1, -1, -1, -1]]


def test_no_evidence_at_all_is_one_pattern_without_observations(sprinkler):
    for nothing in ({}, [], np.array([]), [nan] * 4, pd.Series(dtype=float)):
        states, single = coerce(sprinkler, nothing)
        assert states.tolist() == [[-1, -1, -1, -1]]
        assert single


def test_a_table_may_have_no_rows(sprinkler):
    for nothing in (np.empty((0, 4)), np.empty((0, 2)), pd.DataFrame({"rain": []}), pd.DataFrame()):
        states, single = coerce(sprinkler, nothing)
        assert states.shape == (0, 4)
        assert not single


@given(tables())
def test_names_numbers_and_arrays_say_the_same(table):
    network, rows = table
    expected, _ = coerce(network, rows)
    assert np.array_equal(expected, np.nan_to_num(rows, nan=-1))
    frame = pd.DataFrame(rows, columns=list(network.names))
    assert np.array_equal(coerce(network, frame.iloc[:, ::-1])[0], expected)
    assert np.array_equal(coerce(network, frame.astype("Int8"))[0], expected)
    for row, states in zip(rows, expected, strict=True):
        by_number = {i: value for i, value in enumerate(row) if not np.isnan(value)}
        by_name = {network.names[i]: value for i, value in by_number.items()}
        assert np.array_equal(coerce_one(network, by_number)[0], states)
        assert np.array_equal(coerce_one(network, by_name)[0], states)


def test_evidence_is_not_changed_by_being_read(sprinkler):
    given_array = np.array([[nan, 0.0, 1.0, nan]])
    states, _ = coerce(sprinkler, given_array)
    states[:] = 1
    assert np.array_equal(given_array, [[nan, 0.0, 1.0, nan]], equal_nan=True)


@given(cases())
def test_absorbed_evidence_shifts_each_bias_by_the_weights_of_the_parents_that_are_on(case):
    network, evidence = case
    expected = network.bias + network.weight_matrix() @ np.nan_to_num(evidence)
    assert_allclose(absorb(network, coerce(network, evidence)[0])[0], expected, rtol=1e-13, atol=1e-10)


# --- refused --------------------------------------------------------------------------------------------------------

REFUSED = {
    "fraction": ([nan, 0, 0.3, 1], f"column 2 ('wet') holds 0.3 in row 0; {BINARY}"),
    "fraction in a table": ([[0, 0, 0, 0], [0, 1, 0.3, 2]], f"column 2 ('wet') holds 0.3 in row 1; {BINARY}"),
    "fraction among the last variables": ([0.3, 1], f"column 0 ('wet') holds 0.3 in row 0; {BINARY}"),
    "fraction by name": ({"wet": 0.3}, f"variable 'wet' holds 0.3; {BINARY}"),
    "numpy fraction by name": ({"wet": np.float64(0.3)}, f"variable 'wet' holds 0.3; {BINARY}"),
    "fraction in a record": ([{}, {"wet": 0.3}], f"variable 'wet' holds 0.3 in row 1; {BINARY}"),
    "whole number": ([[0, 1, 2, 0]], f"column 2 ('wet') holds 2 in row 0; {BINARY}"),
    "other negative number": (np.array([0, -2, 0, 0]), f"column 1 ('sprinkler') holds -2 in row 0; {BINARY}"),
    "unsigned 255": (np.array([0, 255, 0, 0], np.uint8), f"column 1 ('sprinkler') holds 255 in row 0; {BINARY}"),
    "infinity": ([0, 0, 0, np.inf], f"column 3 ('slippery') holds inf in row 0; {BINARY}"),
    "complex": (
        np.array([1j, 0, 0, 0]),
        "column 'x0' holds 1j; a cell is a number, a truth value, text, or missing",
    ),
    "string": ([0, "maybe", 0, 0], f"column 1 ('sprinkler') holds 'maybe' in row 0; {BINARY}{WORDS}"),
    "array of strings": (np.array([["wet", "1"]]), f"column 0 ('wet') holds 'wet' in row 0; {BINARY}{WORDS}"),
    "string by name": ({"wet": "very"}, f"variable 'wet' holds 'very'; {BINARY}{WORDS}"),
    "list by name": ({"wet": [1]}, f"variable 'wet' holds [1]; {BINARY}"),
    "mapping by name": ({"wet": {}}, f"variable 'wet' holds {{}}; {BINARY}"),
    "frame": (
        pd.DataFrame({"wet": [1.0, 0.0], "rain": [nan, 42.0]}),
        f"column 1 ('rain') holds 42.0 in row 1; {BINARY}",
    ),
    "frame of nullable integers": (
        pd.DataFrame({"rain": pd.array([None, 3], dtype="Int8")}),
        f"column 0 ('rain') holds 3 in row 1; {BINARY}",
    ),
    "frame of strings": (pd.DataFrame({"rain": ["none"]}), f"column 0 ('rain') holds 'none' in row 0; {BINARY}{WORDS}"),
    "masked array": (
        np.ma.masked_array([0, 5, 7, 1], mask=[0, 1, 0, 0]),
        f"column 2 ('wet') holds 7.0 in row 0; {BINARY}",
    ),
    "too many columns": (
        np.zeros((2, 5)),
        "evidence has 5 columns, but the network has only 4 variables; rows are patterns, columns are variables",
    ),
    "no dimensions": (np.array(1), "evidence has 0 dimensions; expected one pattern or a table of rows by variables"),
    "text": ("0101", "evidence is the text '0101'; write a mapping from names to 0 or 1: {'slippery': 1}"),
    "three dimensions": (
        np.zeros((1, 1, 4)),
        "evidence has 3 dimensions; expected one pattern or a table of rows by variables",
    ),
    "ragged": ([[0, 1], [0]], "the rows of the evidence differ in length"),
    "number": (1, "evidence is a mapping, an array or a table; got int"),
    "nothing": (None, "evidence is a mapping, an array or a table; got NoneType"),
    "set": ({"wet"}, "evidence is a mapping, an array or a table; got set"),
    "variable twice": ({"wet": 1, 2: 1}, "evidence names variable 'wet' twice, as 'wet' and 2"),
    "variable twice in a record": ([{"wet": 1, 2: 1}], "evidence in row 0 names variable 'wet' twice, as 'wet' and 2"),
    "variable twice in a series": (pd.Series([0, 1], index=["wet", "wet"]), "evidence names variable 'wet' twice"),
    "variable twice in a frame": (
        pd.DataFrame([[0, 1]], columns=["wet", "wet"]),
        "the table has two columns 'wet'; rename one of them",
    ),
    "variable twice in a frame, by name and by number": (
        pd.DataFrame([[0, 1]], columns=["wet", 2]),
        "the table has two columns for variable 2",
    ),
    "number too large": ({4: 1}, "evidence names variable number 4; the network has 0 to 3"),
    "negative number": ({-1: 1}, "evidence names variable number -1; the network has 0 to 3"),
    "name of another type": ({1.0: 1}, "evidence names variables by name or by number; got 1.0"),
    "true as a name": ({True: 1}, "evidence names variables by name or by number; got True"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_not_evidence_is_refused_and_shown(sprinkler, case):
    evidence, text = REFUSED[case]
    with pytest.raises(EvidenceError) as caught:
        coerce(sprinkler, evidence)
    assert str(caught.value) == text


@pytest.mark.parametrize(
    "evidence", [{"slipery": 1}, [{}, {"slipery": 1}], pd.DataFrame({"slipery": [1]}), pd.Series({"slipery": 1})]
)
def test_unknown_names_are_refused_with_the_nearest_one(sprinkler, evidence):
    with pytest.raises(UnknownUnitError) as caught:
        sb.log_likelihood(sprinkler, evidence)
    expected = "evidence names variable 'slipery', which is not in the network; did you mean 'slippery'?"
    assert str(caught.value) == expected


def test_unknown_names_that_are_near_none_are_refused_without_a_guess(sprinkler):
    with pytest.raises(UnknownUnitError) as caught:
        sb.log_likelihood(sprinkler, {"quux": 1})
    assert str(caught.value) == "evidence names variable 'quux', which is not in the network"


def test_one_pattern_and_a_table_are_not_mistaken_for_one_another(sprinkler):
    with pytest.raises(EvidenceError) as caught:
        coerce_one(sprinkler, np.zeros((2, 4)))
    assert str(caught.value) == "one pattern was expected, but the evidence has 2 rows; use infer_many()"
    with pytest.raises(EvidenceError) as caught:
        coerce_many(sprinkler, {"wet": 1})
    assert str(caught.value) == "a table of patterns was expected, but the evidence is one pattern; use infer()"


def test_words_are_answered_in_words(sprinkler):
    with pytest.raises(EvidenceError, match="variable 'wet' holds 'maybe'; variables are binary.*in words, no or yes"):
        sb.infer(sprinkler, {"wet": "maybe"})
    named = sprinkler.with_notes({"wet": sb.Note(about="Wet grass")})
    with pytest.raises(UnknownUnitError, match="names 'Wet grass', which is what variable 'wet' is about; write"):
        sb.infer(named, {"Wet grass": 1})


# --- two states of which the first one means yes --------------------------------------------------------------------


BACKWARDS = [["yes", "no"], ["present", "absent"], ["true", "false"], ["on", "off"], ["ja", "nein"], ["Y", "N"]]
SAID = "its states are {} and {}, in this order: say which by name"


def backwards(states):
    return sb.from_edges({("a", "x"): 2.0}, bias={"a": -1.0, "x": -2.0}, states={"a": states})


@pytest.mark.parametrize("states", BACKWARDS, ids="-".join)
@pytest.mark.parametrize("value", [True, 1, 1.0, "1", False, 0, "0", np.int8(1), np.True_])
def test_numbers_and_truth_values_do_not_say_which_of_yes_and_no(states, value):
    net = backwards(states)
    for ask in (
        lambda: sb.infer(net, {"a": value}),
        lambda: sb.infer_many(net, [{"a": value}, {"a": states[0]}]),
        lambda: sb.infer_many(net, pd.DataFrame({"a": [value]})),
        lambda: sb.infer(net, {"x": 1}, do={"a": value}),
        lambda: sb.sample(net, 3, do={"a": value}),
    ):
        with pytest.raises(SBNetError, match=SAID.format(*states)):
            ask()
    with pytest.raises(SBNetError, match=f"parent 'a' is given as .*; its states are {states[0]} and {states[1]}"):
        net.conditional("x", {"a": value})
    with pytest.raises(SBNetError, match="soft evidence by name has a likelihood for each of its states"):
        sb.infer(net, {"a": {value: 0.5, states[0]: 0.5}})


@pytest.mark.parametrize("states", [*BACKWARDS, ["1", "0"]], ids="-".join)
def test_their_names_do_and_answers_name_them_too(states):
    net = backwards(states)
    for k, name in enumerate(states):
        assert sb.infer(net, {"a": name})["a"] == k
        assert sb.infer_many(net, pd.DataFrame({"a": [name]}))["a"][0] == k
        assert np.asarray(sb.exact_posterior(net, [k, 1]))[0] == k  # in arrays, by number
        best = sb.most_probable(net, {"a": name})
        assert best["a"] == name
        assert best.states["a"] == name
        again = sb.most_probable(net, best.states)
        assert again.log_p == best.log_p
    batch = sb.most_probable(net, [{"a": name} for name in states])
    assert batch["a"].tolist() == states


def test_ones_and_zeros_are_what_states_are_called():
    net = backwards(["1", "0"])
    for value in (True, 1, "1"):
        assert sb.infer(net, {"a": value})["a"] == 0.0
    assert sb.infer(net, {"a": False})["a"] == 1.0
