"""Whatever stands in the place of an argument, a public function answers, or refuses it with an error of ours.

Each public function has a good call here. One argument after another is then replaced by each of the hostile values,
alone and inside lists and mappings. A name that is made public without a good call, or a reason for none, fails.
"""

from __future__ import annotations

import datetime
import inspect
import itertools
import re
import signal
import types
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from pathlib import Path
from typing import Any, Protocol

import dask.array
import matplotlib.pyplot as plt
import networkx
import numpy as np
import pandas as pd
import pytest
import scipy.sparse

import sbnet as sb
from sbnet import datasets, explore, plots
from sbnet.errors import KindError, RowError, SBNetError
from sbnet.estimators import SBNDensity

pytest.importorskip("pyagrum")  # here, where warnings are not errors yet: as an error, one of its own kills Python
pytest.importorskip("pgmpy")

pytestmark = [
    pytest.mark.filterwarnings("ignore::sbnet.errors.ConvergenceWarning"),
    pytest.mark.filterwarnings("ignore::sbnet.errors.CodingWarning"),
    pytest.mark.filterwarnings("ignore::sbnet.errors.ConversionWarning"),
    pytest.mark.filterwarnings("ignore::sbnet.errors.NearNameWarning"),
]

HANGS = 300
"""Seconds after which a call counts as one that never ends; cold kernels are compiled in less."""
QUICK = 8
"""Nested values that each argument is given in the quick suite; all plain ones are always given."""

# --- hostile values ---------------------------------------------------------------------------------------------------


class Odd(float):
    """A float of another class."""


VALUES: dict[str, Callable[[], Any]] = {
    "None": lambda: None,
    "empty text": lambda: "",
    "text": lambda: "a",
    "a variable": lambda: "wet",
    "bytes": lambda: b"x",
    "nan": lambda: np.nan,
    "inf": lambda: np.inf,
    "-inf": lambda: -np.inf,
    "-1": lambda: -1,
    "0": lambda: 0,
    "1.5": lambda: 1.5,
    "10**400": lambda: 10**400,
    "-10**400": lambda: -(10**400),
    "2**63": lambda: 2**63,
    "10**400 / 3": lambda: Fraction(10**400, 3),
    "Decimal": lambda: Decimal("1e400"),
    "Decimal sNaN": lambda: Decimal("sNaN"),
    "True": lambda: True,
    "[]": list,
    "[[]]": lambda: [[]],
    "[[[]]]": lambda: [[[]]],
    "{}": dict,
    "mapping of mapping": lambda: {"a": {}},
    "{1: 2}": lambda: {1: 2},
    "set()": set,
    "object()": object,
    "lambda": lambda: lambda: None,
    "array of no axes": lambda: np.array(1),
    "empty array": lambda: np.array([]),
    "array of text": lambda: np.array(["a"]),
    "array of NaN": lambda: np.array([np.nan]),
    "array of objects": lambda: np.array([None, {}, "a", 10**400], dtype=object),
    "array of three axes": lambda: np.zeros((2, 2, 2)),
    "array of complex": lambda: np.array([1 + 1j]),
    "array of dates": lambda: np.array(["2020-01-01"], dtype="datetime64[D]"),
    "array of records": lambda: np.array([(1, 2.0)], dtype=[("wet", int), ("b", float)]),
    "masked array": lambda: np.ma.masked_all(4),
    "sparse": lambda: scipy.sparse.csr_array(np.eye(3)),
    "complex": lambda: complex(1, 1),
    "(1, 2, 3)": lambda: (1, 2, 3),
    "((1, 2), 3)": lambda: ((1, 2), 3),
    "control characters": lambda: "\x1b]0;x\x07\x00\n",
    "surrogate": lambda: "\ud800",
    "a long text": lambda: "x" * 100_000,
    "datetime": lambda: datetime.datetime(2020, 1, 1),
    "range(0)": lambda: range(0),
    "generator": lambda: (x for x in "ab"),
    "class": lambda: dict,
    "module": lambda: types,
    "DataFrame": lambda: pd.DataFrame(),
    "Series": lambda: pd.Series(["a"], index=[("b", 1)]),
    "NA": lambda: pd.NA,
    "NaT": lambda: pd.NaT,
    "Odd": lambda: Odd(0.5),
    "slice": lambda: slice(None, None, "a"),
    "Ellipsis": lambda: ...,
}

EDGE = ("rain", "wet")
NESTS: dict[str, Callable[[Any], Any]] = {
    "[{}]": lambda value: [value],
    "({0}, {0})": lambda value: (value, value),
    "{{'wet': {}}}": lambda value: {"wet": value},
    "{{'wet': ({}, 1)}}": lambda value: {"wet": (value, 1)},
    "{{'wet': [{}]}}": lambda value: {"wet": [value]},
    "{{('rain', 'wet'): {}}}": lambda value: {EDGE: value},
    "{{{}: 1}}": lambda value: {value: 1},
    "[('rain', 'wet', {})]": lambda value: [(*EDGE, value)],
    "[{{'wet': {}}}]": lambda value: [{"wet": value}],
    "array of {}": lambda value: np.array([value, None], dtype=object)[:1],
}


def hostile(everything: bool, seed: str) -> Iterator[tuple[str, Any]]:
    """Each value alone; and inside others, all of them or a few that the seed chooses."""
    for name, make in VALUES.items():
        yield name, make()
    nested = [(nest, name) for nest in NESTS for name in VALUES]
    if not everything:
        rng = np.random.default_rng(zlib.crc32(seed.encode()))
        nested = [nested[k] for k in rng.permutation(len(nested))[:QUICK]]
    for nest, name in nested:
        try:
            value = NESTS[nest](VALUES[name]())
        except TypeError:  # what cannot be hashed is no key
            continue
        yield nest.format(name), value


# --- good calls -------------------------------------------------------------------------------------------------------

LAWN = sb.from_edges(
    {EDGE: 2.0, ("sprinkler", "wet"): 1.5, ("wet", "slippery"): -0.5}, bias={"rain": -1.0, "wet": -2.0}
)
LAYERS = sb.layered((2, 4), rng=0)
ROWS = sb.sample(LAYERS, 4, rng=1)[:, 2:]
TABLE = [{"wet": 1}, {"wet": 0, "rain": 1}]
SEEN = {"wet": 1}
GRAPH = {"indptr": [0, 0, 1], "parent": [0]}


@dataclass(frozen=True)
class Good:
    """A call that is answered: the arguments that it needs, and which of them are files."""

    function: Callable[..., Any]
    arguments: Mapping[str, Any] = field(default_factory=dict)
    files: tuple[str, ...] = ()

    def call(self, **changed: Any) -> None:
        found = self.function(**{**self.arguments, **changed})
        if isinstance(found, Iterator):
            list(itertools.islice(found, 3))
        elif isinstance(found, sb.results.LazyPosteriors):
            found.compute()
        elif isinstance(found, plt.Axes):
            plt.close("all")


def good(function: Callable[..., Any], *, files: tuple[str, ...] = (), **arguments: Any) -> Good:
    return Good(function, arguments, files)


def item(of: Any, key: Any = 0) -> Good:
    """``of[key]`` as a call."""

    def __getitem__(key: Any) -> Any:
        return of[key]

    return good(__getitem__, key=key)


def density() -> SBNDensity:
    return SBNDensity(hidden=0, column_mixtures=0, epochs=1, random_state=0).fit(ROWS)


def answered(**more: Any) -> dict[str, Any]:
    return {"network": LAWN, "evidence": SEEN, **more}


def write_files() -> None:
    """The files that good calls read."""
    sb.save(LAWN, "lawn.sbn")
    sb.write(LAWN, "lawn.toml")
    Path("found.csv").write_text("disease,term,frequency\nflu,fever,0.9\n")
    Path("terms.csv").write_text("term,name,parents\nfever,Fever,\n")
    Path("patient.json").write_text('{"phenotypicFeatures": []}')


def goods() -> dict[str, Good]:
    """A good call of everything public, by name."""
    both = sb.NetworkMixture((LAWN, LAWN), columns=LAWN.names)
    batch, post, exact = sb.infer_many(LAWN, TABLE), sb.infer(LAWN, SEEN), sb.exact_posterior(LAWN, SEEN)
    asked = {"network": LAYERS, "X": ROWS, "epochs": 1, "progress": False}
    write_files()
    of_network = {
        name: getattr(LAWN, name)
        for name in (
            "check_binary",
            "check_no_tables",
            "children",
            "columns_of",
            "conditional",
            "family",
            "index",
            "parents",
            "subnetwork",
            "with_notes",
            "with_parameters",
        )
    }
    first = {"subnetwork": {"units": ["wet"]}, "with_notes": {"notes": {}}, "with_parameters": {}}
    first["check_binary"] = first["check_no_tables"] = {"what": "a matrix"}
    return {
        "SGD": good(sb.SGD),
        "Adam": good(sb.Adam),
        "Gaussian": good(sb.Gaussian),
        "Laplace": good(sb.Laplace),
        "Gibbs": good(sb.Gibbs),
        "MeanField": good(sb.MeanField),
        "Mixture": good(sb.Mixture),
        "Conditioned": good(sb.Conditioned),
        "Structured": good(sb.Structured),
        "CertifySettings": good(sb.solvers.CertifySettings),
        "EstimateSettings": good(sb.solvers.EstimateSettings),
        "UpperBoundSettings": good(sb.solvers.UpperBoundSettings),
        "Note": good(sb.Note),
        "Graph": good(sb.Graph, **GRAPH),
        "Network": good(sb.Network, names=("rain", "wet"), graph=sb.Graph(**GRAPH), weight=[1.0], bias=[0.0, 0.0]),
        **{f"Network.{name}": good(method, **first.get(name, {"unit": "wet"})) for name, method in of_network.items()},
        "NetworkMixture": good(sb.NetworkMixture, networks=(LAWN, LAWN), columns=("wet",)),
        "NetworkMixture.log_mean": good(both.log_mean, bounds=[[-1.0], [-2.0]]),
        "Posterior.__getitem__": item(post),
        "Posterior.compare": good(post.compare, other=exact),
        "PosteriorBatch.__getitem__": item(batch),
        "Comparison.__getitem__": item(post.compare(exact), "rain"),
        "Certificates.__getitem__": item(sb.certify(LAWN, TABLE)),
        "Estimates.__getitem__": item(sb.estimate(LAWN, TABLE, samples=20)),
        "UpperBounds.__getitem__": item(sb.upper_bound(LAWN, TABLE)),
        "MostProbable.__getitem__": item(sb.most_probable(LAWN, SEEN)),
        "MostProbableBatch.__getitem__": item(sb.most_probable(LAWN, TABLE)),
        "Questions.__getitem__": item(sb.next_question(LAWN, SEEN)),
        "Contributions.__getitem__": item(sb.contributions(LAWN, SEEN), "rain"),
        "Sensitivity.__getitem__": item(sb.sensitivity(LAWN, SEEN), "prior of rain"),
        "SingleCause.__getitem__": item(sb.single_cause(LAWN, SEEN), "rain"),
        "LazyPosteriors.__getitem__": item(lazily()),
        "Step.__getitem__": item(next(sb.steps(LAWN, SEEN))),
        "FitResult.plot": good(sb.fit(**asked).plot),
        "add_column_mixtures": good(sb.add_column_mixtures, network=LAWN),
        "certify": good(sb.certify, **answered()),
        "contributions": good(sb.contributions, **answered()),
        "estimate": good(sb.estimate, **answered(samples=20)),
        "exact_pairs": good(sb.exact_pairs, **answered()),
        "exact_posterior": good(sb.exact_posterior, **answered()),
        "fit": good(sb.fit, files=("X", "checkpoint", "resume"), **asked),
        "from_edges": good(sb.from_edges, edges={EDGE: 1.0}),
        "from_networkx": good(sb.convert.from_networkx, graph=networkx.DiGraph([EDGE])),
        "from_pgmpy": good(sb.convert.from_pgmpy, network=sb.convert.to_pgmpy(LAWN)),
        "from_probabilities": good(sb.from_probabilities, causes={EDGE: 0.5}, prior=0.5),
        "from_pyagrum": good(sb.convert.from_pyagrum, network=sb.convert.to_pyagrum(LAWN)),
        "from_weight_matrix": good(sb.from_weight_matrix, weight=[[0, 0], [1, 0]]),
        "gradient": good(sb.gradient, **answered()),
        "infer": good(sb.infer, **answered()),
        "infer_many": good(sb.infer_many, **answered(evidence=TABLE)),
        "kl": good(sb.kl, **answered(means=[0.5] * 4)),
        "layered": good(sb.layered, sizes=(2, 3), rng=0),
        "load": good(sb.load, files=("path",), path="lawn.sbn"),
        "log_joint": good(sb.log_joint, network=LAWN, states=[0, 1, 0, 1]),
        "log_likelihood": good(sb.log_likelihood, **answered()),
        "most_probable": good(sb.most_probable, **answered()),
        "nearest": good(sb.convert.nearest, network=LAWN, unit="wet", gate="noisy-or"),
        "next_question": good(sb.next_question, **answered()),
        "noisy_or": good(sb.noisy_or, causes={EDGE: 0.5}, prior=0.5),
        "posterior_intervals": good(sb.posterior_intervals, **answered()),
        "read": good(sb.read, files=("path",), path="lawn.toml"),
        "sample": good(sb.sample, network=LAWN, n=2, rng=0),
        "save": good(sb.save, files=("path",), network=LAWN, path="saved.sbn"),
        "sensitivity": good(sb.sensitivity, **answered()),
        "single_cause": good(sb.single_cause, **answered()),
        "steps": good(sb.steps, **answered()),
        "to_networkx": good(sb.convert.to_networkx, network=LAWN),
        "to_pgmpy": good(sb.convert.to_pgmpy, network=LAWN),
        "to_pyagrum": good(sb.convert.to_pyagrum, network=LAWN),
        "upper_bound": good(sb.upper_bound, **answered()),
        "wake_sleep": good(sb.wake_sleep, network=LAYERS, X=ROWS, epochs=1, progress=False),
        "write": good(sb.write, files=("path",), network=LAWN, path="written.toml"),
        "bounds.lower_bound": good(sb.bounds.lower_bound, **answered(means=[0.5] * 4)),
        "catalogue.Ontology.term": good(sb.catalogue.Ontology({}, {}).term, identifier="HP:1"),
        "catalogue.read_annotations": good(sb.catalogue.read_annotations, files=("path",), path="found.csv"),
        "catalogue.read_ontology": good(sb.catalogue.read_ontology, files=("path",), path="terms.csv"),
        "catalogue.read_patient": good(sb.catalogue.read_patient, files=("path",), path="patient.json"),
        "catalogue.network": good(sb.catalogue.network, annotations=[("flu", "fever", 0.9), ("cold", "cough")]),
        "plots.associations": good(plots.associations, density=density()),
        "plots.breakdown": good(plots.breakdown, posterior=post),
        "plots.means": good(plots.means, posterior=post),
        "plots.missing": good(plots.missing, table=ROWS),
        "plots.network": good(plots.network, net=LAWN),
        "plots.receptive_fields": good(plots.receptive_fields, network=LAYERS, shape=(2, 2)),
        "plots.tornado": good(plots.tornado, sensitivity=sb.sensitivity(LAWN, SEEN)),
        "plots.trace": good(plots.trace, posterior=post),
        "plots.weights": good(plots.weights, network=LAWN),
        "datasets.car_path": good(datasets.car_path),
        "datasets.clinic_path": good(datasets.clinic_path),
        "datasets.example_car": good(datasets.example_car),
        "datasets.example_clinic": good(datasets.example_clinic),
        "datasets.load_digits": good(datasets.load_digits),
        "datasets.make_clinic": good(datasets.make_clinic, diseases=2, findings=3, rng=0),
        "explore.html": good(explore.html, network=LAWN),
        "explore.widget": good(explore.widget, network=LAWN),
    }


PARTITIONS = dask.array.from_array(ROWS.astype(float), chunks=(2, 4))


def lazily() -> sb.results.LazyPosteriors:
    return sb.infer_many(LAWN, PARTITIONS)


def elsewhere() -> dict[str, Good]:
    """Good calls with rows that are not in memory; they take longer."""
    stream, asked = [*np.array_split(ROWS, 2)], {"network": LAYERS, "epochs": 1, "progress": False}
    return {
        "fit of partitions": good(sb.fit, files=("X", "checkpoint", "resume"), X=PARTITIONS, **asked),
        "fit of a stream": good(sb.fit, files=("X", "checkpoint", "resume"), X=lambda: iter(stream), **asked),
        "infer_many of partitions": good(sb.infer_many, network=LAYERS, evidence=PARTITIONS),
    }


RESULTS = "a record that our own functions make and nobody else"
PROTOCOL = "what fit() and infer() call, with arrays that they have checked"
NOT_CALLED = {
    **dict.fromkeys(
        (
            *("Certificate", "Certificates", "Chains", "Comparison", "Contributions", "Estimate"),
            *("Estimates", "ExactPosterior", "ExactPosterior.of", "ExactPosteriors", "ExactPosteriors.of"),
            *("FitResult", "LazyPosteriors", "MostProbable", "MostProbableBatch", "Nearest", "NextQuestion"),
            *("Influence", "Sensitivity", "SingleCause"),
            *(
                "Posterior",
                "PosteriorBatch",
                "PosteriorIntervals",
                "PosteriorIntervals.of",
                "Questions",
                "BoundGradient",
            ),
            *("Solution", "Solution.rows", "Solution.where", "Step", "UpperBound", "UpperBounds", "WakeSleepResult"),
            *("catalogue.Annotation", "catalogue.Ontology"),
            *("Xi", "bounds.Breakdown", "datasets.Digits", "explore.Widget"),
        ),
        RESULTS,
    ),
    **dict.fromkeys(
        (
            *("SGD.init", "SGD.step", "SGD.size", "Adam.init", "Adam.step", "Adam.size"),
            *("Gaussian.gradient", "Laplace.gradient"),
            *("Gibbs.solve", "MeanField.solve", "MeanField.maximise", "Mixture.solve", "Mixture.divide"),
            *("Conditioned.solve", "Conditioned.problems", "Structured.solve"),
        ),
        PROTOCOL,
    ),
    **dict.fromkeys(("ExactPosterior.__getitem__", "ExactPosteriors.__getitem__"), "an array: its keys are NumPy's"),
    **dict.fromkeys(("ExactPosterior.copy", "ExactPosteriors.copy"), "an array: its order is NumPy's"),
    "Solution.ruled_out": PROTOCOL,
    "Questions.rows": "what the command prints, so many as it says",
    "explore.serve": "listens until it is stopped",
}
MODULES = (
    *(("", module) for module in (sb, sb.results, sb.solvers, sb.convert)),
    *(("bounds.", sb.bounds), ("plots.", plots), ("datasets.", datasets), ("explore.", explore)),
    ("catalogue.", sb.catalogue),
)


def public() -> set[str]:
    """The names of all public functions, classes and methods that take arguments."""
    names = set()
    for prefix, module in MODULES:
        for name in module.__all__:
            thing = getattr(module, name)
            if inspect.isfunction(thing):
                names.add(prefix + name)
            elif inspect.isclass(thing) and not issubclass(thing, Enum) and Protocol not in thing.__bases__:
                names |= {prefix + name} | {f"{prefix}{name}.{method}" for method in methods(thing)}
    return names - {"bounds.upper_bound", *(f"bounds.{n}" for n in names if n.startswith("UpperBound"))}


def methods(cls: type) -> Iterator[str]:
    """Those of ours that take an argument."""
    for name in dir(cls):
        method = inspect.getattr_static(cls, name)
        if isinstance(method, staticmethod | classmethod):
            method = method.__func__
        if name != "__getitem__" and name.startswith("_"):
            continue
        ours = inspect.isfunction(method) and method.__module__.startswith("sbnet")
        if ours and len(inspect.signature(method).parameters) > 1:
            yield name


NAMES = sorted(public() - NOT_CALLED.keys())


@pytest.fixture(scope="module")
def calls(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Good]:
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("good"))
        return goods()


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Where files that hostile names stand for may be written."""
    monkeypatch.chdir(tmp_path)
    write_files()


def test_everything_public_has_a_good_call_or_a_reason_for_none(calls):
    assert set(NAMES) == set(calls)
    assert NOT_CALLED.keys() <= public()


@pytest.mark.parametrize("name", NAMES)
def test_any_value_of_any_argument_is_taken_or_refused_in_our_words(name, calls, folder):
    attack(name, calls[name], everything=False)


@pytest.mark.slow
def test_every_value_nested_in_every_way(calls, folder):
    count = sum(attack(name, call, everything=True) for name, call in {**calls, **elsewhere()}.items())
    print(f"\nhostile arguments: {count:,} calls of {len(NAMES)} public functions, classes and methods, none crashed")
    assert count > 100_000


def attack(name: str, call: Good, everything: bool) -> int:
    """Each argument replaced by each value, and how many calls that were."""
    call.call()
    failures, count = [], 0
    for argument in inspect.signature(call.function).parameters:
        allowed = (SBNetError, OSError) if argument in call.files else (SBNetError,)
        for label, value in hostile(everything, f"{name} {argument}"):
            count += 1
            with ending(f"{name}({argument}={label})"):
                try:
                    call.call(**{argument: value})
                except allowed as error:
                    failures += complaints(f"{name}({argument}={label})", error)
                except Exception as error:
                    failures.append(f"{name}({argument}={label}): {type(error).__name__}: {str(error)[:200]}")
        plt.close("all")
    assert not failures, f"{len(failures)} of {count}:\n" + "\n".join(failures)
    return count


HUGE = 10**400
TEXTS = {
    "a scale that is a text": (
        lambda: sb.Gaussian("wide"),
        "scale is 'wide'; the scales of a prior are positive: give",
    ),
    "a scale beyond any float": (lambda: sb.Laplace(HUGE), "scale is 1000000000000000000000000000000000000"),
    "no scale of biases": (
        lambda: sb.Gaussian(bias_scale=None),
        "bias_scale is None; the scales of a prior are positive",
    ),
    "a rate that is a list": (lambda: sb.SGD([0.1]), "rate is [0.1]; it must be positive and finite"),
    "a rate beyond any float": (lambda: sb.Adam(HUGE), "…; it must be positive and finite"),
    "epochs that are a text": (lambda: sb.SGD(until="5"), "until is '5'; it must be a whole number, one or more"),
    "epochs without end": (
        lambda: sb.fit(LAYERS, ROWS, epochs=HUGE),
        "it must be a whole number, one or more, below 2**63",
    ),
    "networks that are one": (
        lambda: sb.NetworkMixture(3, ("wet",)),
        "networks is 3; give a list of networks, one or more",
    ),
    "columns that are lists": (
        lambda: sb.NetworkMixture((LAWN,), [[]]),
        "a mixture names variable [], which is not in the net",
    ),
    "a number for callbacks": (lambda: sb.fit(LAYERS, ROWS, callbacks=3), "callbacks is 3; give a list of functions"),
    "callbacks of no argument": (lambda: sb.fit(LAYERS, ROWS, callbacks=[lambda: None]), "callbacks[0] is <function"),
    "frozen variables as a number": (
        lambda: sb.fit(LAYERS, ROWS, frozen=3),
        "frozen is 3; give a list of variables and of edges",
    ),
    "frozen edges of three": (lambda: sb.fit(LAYERS, ROWS, frozen=[(0, 1, 2)]), "frozen holds (0, 1, 2); an edge is"),
    "a checkpoint by number": (
        lambda: sb.fit(LAYERS, ROWS, checkpoint=3),
        "the name of a file is 3; give a text or a path",
    ),
    "weights that are texts": (
        lambda: sb.fit(LAYERS, ROWS, sample_weight="a"),
        "sample_weight is 'a'; it must hold 4 num",
    ),
    "weights of partitions": (
        lambda: sb.fit(LAYERS, PARTITIONS, sample_weight="a"),
        "sample_weight is 'a'; it must hold",
    ),
    "threads of partitions": (
        lambda: sb.fit(LAYERS, PARTITIONS, threads=[]),
        "threads is []; it must be a whole number",
    ),
    "threads of answers": (
        lambda: sb.infer_many(LAYERS, PARTITIONS, threads=0),
        "threads is 0; it must be a whole number",
    ),
    "a stream of nothing": (
        lambda: sb.fit(LAYERS, lambda: None),
        "X is a function that gives None; it must give an iter",
    ),
    "an order by word": (lambda: sb.fit(LAYERS, ROWS, shuffle="no"), "shuffle is 'no'; it must be True or False"),
    "no rows held out": (lambda: sb.fit(LAYERS, ROWS, validation=[]), "validation has no rows; give some"),
    "together as a list": (
        lambda: sb.contributions(LAWN, SEEN, together=["wet"]),
        "together is ['wet']; give a mapping",
    ),
    "together with numbers": (
        lambda: sb.contributions(LAWN, SEEN, together={"a": 1}),
        "together['a'] is 1; give a mapping",
    ),
    "no network to be near": (
        lambda: sb.convert.nearest("a", "b", gate="sigmoid"),
        "network is 'a', which is no Network",
    ),
    "a parent as a number": (
        lambda: LAWN.conditional("wet", given=3),
        "given is 3; give a mapping from parents to 0 or 1",
    ),
    "a parent in a list": (
        lambda: LAWN.conditional("wet", given={"rain": []}),
        "parent 'rain' is given as []; variables are",
    ),
    "notes that are a text": (lambda: LAWN.with_notes("a"), "notes is 'a'; give a mapping from names to Note(about=…)"),
    "names that are lists": (lambda: sb.from_edges({}, names=[[]]), "variable names are strings; [] is of type list"),
    "pairs of pairs": (
        lambda: sb.infer(LAWN, {"wet": ((1, 2), 3)}),
        "variable 'wet' holds ((1, 2), 3); soft evidence is a pair",
    ),
    "likelihoods without end": (lambda: sb.infer(LAWN, {"wet": (HUGE, 1)}), "soft evidence is a pair of likelihoods"),
    "axes that are none": (
        lambda: plots.weights(LAWN, ax=3),
        "ax is 3; give matplotlib axes, such as plt.subplots()[1]",
    ),
    "no posterior to draw": (lambda: plots.trace(3), "posterior is 3; give an answer, such as sbnet.infer() returns"),
    "an image of one side": (lambda: plots.receptive_fields(LAYERS, 8), "shape is 8; give the rows and the columns"),
    "infinite bounds": (
        lambda: sb.NetworkMixture((LAWN,), ("wet",)).log_mean([np.inf]),
        "no bound on ln P is infinite",
    ),
    "no network of others": (lambda: sb.convert.from_pyagrum(3), "network is 3; give a pyagrum.BayesNet"),
    "tables that are near": (lambda: sb.convert.from_pgmpy(3), "network is 3; give a DiscreteBayesianNetwork of pgmpy"),
}


@pytest.mark.parametrize("what", TEXTS)
def test_refusals_name_the_argument_the_value_and_the_way_out(what):
    call, text = TEXTS[what]
    with pytest.raises(SBNetError, match=re.escape(text)):
        call()


def test_a_batch_is_asked_for_its_rows_in_its_own_errors():
    batch = sb.most_probable(LAWN, TABLE)
    with pytest.raises(RowError, match="there is no row 2 in this batch; it has rows 0 to 1"):
        batch[2]
    with pytest.raises(KindError, match=r"a row is given by its number, a variable by its name; got 1\.5"):
        batch[1.5]
    assert [one.exact for one in batch] == [True, True]  # an IndexError ends a loop


def test_a_mixture_in_which_one_network_rules_a_row_out_has_the_bound_of_the_others():
    both = sb.NetworkMixture((LAWN, LAWN), columns=("wet",))
    assert both.log_mean([[-np.inf], [-1.0]])[0] == pytest.approx(-1.0 - np.log(2.0))
    assert both.log_mean([[-np.inf], [-np.inf]])[0] == -np.inf


def complaints(what: str, error: Exception) -> list[str]:
    """What is wrong with a message of ours: it is short, and is no riddle."""
    text = str(error)
    return [] if 0 < len(text) <= 330 or not isinstance(error, SBNetError) else [f"{what}: the message is {text!r}"]


class ending:
    """Around a call that must end; one that does not is stopped and named."""

    def __init__(self, what: str) -> None:
        self.what = what

    def _stop(self, *_: Any) -> None:
        raise AssertionError(f"{self.what} does not end")

    def __enter__(self) -> None:
        self.before = signal.signal(signal.SIGALRM, self._stop)
        signal.alarm(HANGS)

    def __exit__(self, *_: Any) -> None:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, self.before)
