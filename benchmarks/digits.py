"""The paper's digit networks: sbnet beside the same algorithm in C++, NumPy and PyTorch."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

import sbnet as sb
from sbnet.datasets import load_digits

from .baselines import cpp, numpy_oracle
from .baselines.digits import SIZES, digit_networks
from .report import NONE, Run, Table, before, before_note, race, say, seconds

TOL = 1e-4
SOLVER = sb.MeanField(log_term="xi", enumerate_up_to=0, tol=TOL)
EXACT = sb.MeanField(log_term="exact", enumerate_up_to=0, tol=TOL)
EVERY = 5  # the exact term takes every fifth row, scaled up: it would take longer than all others together
FEW, SOME = 2, 300  # rows for NumPy and for PyTorch
ONE, TWO, SLOW = "sbnet, 1 thread", "sbnet, 2 threads", "sbnet, exact term, 1 thread"
GAP = 0.1  # nats: the bound has many maxima, and an ascent that settles on others may never come closer


class Total(NamedTuple):
    """Sums over networks: seconds for all rows, mean sweeps, mean bounds."""

    seconds: float = 0.0
    sweeps: float = 0.0
    bound: float = 0.0

    def plus(self, run: Run, seconds: float) -> Total:
        """With one network more; C++ and sbnet call their results by different names."""
        s = run.result
        sweeps, bound = (
            (s.mean_sweeps, s.bounds.mean()) if isinstance(s, cpp.Solution) else (s.sweeps.mean(), s.bound.mean())
        )
        return Total(self.seconds + seconds, self.sweeps + float(sweeps), self.bound + float(bound))


def networks() -> tuple[list[sb.Network], str]:
    """Ten trained networks and a remark; random ones where there is no compiler to train them with."""
    try:
        return digit_networks(), "Networks trained as in the paper's section 4: 700 images a digit, 5 epochs."
    except cpp.CompilerMissing:
        made = [sb.layered(SIZES, rng=digit, scale=1.0) for digit in range(10)]
        return made, "Random networks (weights uniform in ±1): training them needs the C++ baseline."


def table() -> list[Table]:
    say("training ten networks")
    nets, remark = networks()
    X = load_digits().test
    for solver in (SOLVER, EXACT):
        sb.infer_many(nets[0], X[:2], solver=solver)  # compile

    missing, layouts = [], ("parents", "blocks")
    try:
        cpp.library()
    except cpp.CompilerMissing as error:
        missing, layouts = [("C++", str(error))], ()
    total: dict[str, Total] = {}
    for digit, net in enumerate(nets):
        say(f"network {digit} of {len(nets)}")
        contestants: dict[str, Callable[[], Any]] = {
            ONE: partial(sb.infer_many, net, X, solver=SOLVER, threads=1),
            TWO: partial(sb.infer_many, net, X, solver=SOLVER, threads=2),
            SLOW: partial(sb.infer_many, net, X[::EVERY], solver=EXACT, threads=1),
        }
        for layout in layouts:
            contestants[f"C++ {layout}, 1 thread"] = partial(cpp.solve, net, X, TOL, layout=layout)
        for name, run in race(contestants, repeats=2).items():
            spent = run.seconds if name == TWO else run.processor * (EVERY if name == SLOW else 1)
            total[name] = total.get(name, Total()).plus(run, spent)
    against = "C++ parents, 1 thread" if layouts else ONE
    reference = total[against].seconds
    rows = [
        (
            name,
            seconds(t.seconds),
            f"{t.sweeps / len(nets):.1f}",
            f"{t.bound / len(nets):.4f}",
            f"{t.seconds / reference:.2f}",
        )
        for name, t in total.items()
    ]
    after = {
        "the paper's term, over C++ parents": (total[ONE].seconds / reference if layouts else None, 0.54),
        "the exact term, over the paper's": (total[SLOW].seconds / total[ONE].seconds, 2.5),
        "learning ten networks, over C++": (_learning() if layouts else None, 6.8),
    }
    rows += [_numpy(nets[3], X, len(nets), reference), *_autodiff(nets[3], X, len(nets), reference)]
    rows += [(name, "not installed", NONE, NONE, NONE) for name, _ in missing]
    return [
        Table(
            f"digits: ten {' × '.join(map(str, SIZES))} networks, {len(X):,} test images each, tol {TOL:g}, "
            "the paper's bound",
            ("", "time", "sweeps", "mean bound", "ratio"),
            rows,
            (
                remark,
                "Processor time of one thread; by the clock for two. Best of 2 for each network, in turns. "
                f"The exact term: every {EVERY}th image, scaled up to all.",
                "ratio: time over that of C++ parents, a loop along the parents of a unit, vectorised by the compiler;"
                " C++ blocks is laid out by hand for layered networks."
                if layouts
                else "ratio: time over that of sbnet with one thread.",
                f"NumPy: time of {FEW} rows, PyTorch: of {SOME} rows, each of one network, scaled up to all. PyTorch "
                f"maximises with L-BFGS, 1 thread, until its mean bound is within {GAP} nats of that of sbnet on the "
                "same rows, so it is asked for less.",
                *(f"{name}: {why}" for name, why in missing),
            ),
        ),
        _ratios(after),
    ]


def _learning() -> float:
    """Time of learning the ten networks row by row, 5 epochs each, over that of the C++ that made them."""
    digits = load_digits()

    def learn() -> None:
        for digit in range(10):
            start = sb.layered(SIZES, rng=digit, scale=0.1)
            sb.fit(start, digits.train[digits.train_target == digit], epochs=5, rng=0, threads=1)

    sb.fit(sb.layered(SIZES, rng=0, scale=0.1), digits.train[:2], epochs=1, rng=0)  # compile
    runs = race({"sbnet": learn, "C++": digit_networks}, repeats=2)
    return runs["sbnet"].processor / runs["C++"].processor


def _ratios(after: dict[str, tuple[float | None, float]]) -> Table:
    """The ratios that matter, beside what they were and what they should be."""
    rows = [
        (name, _ratio(before("digits", name)), _ratio(now), f"≤ {budget:g}") for name, (now, budget) in after.items()
    ]
    notes = ("Ratios of processor times, one thread, measured in one run.", before_note("digits"))
    return Table("digits: before and after", ("", "before", "after", "budget"), rows, notes)


def _ratio(value: float | None) -> str:
    return NONE if value is None else f"{value:.2f}"


def _numpy(net: sb.Network, X: np.ndarray, n_networks: int, reference: float) -> tuple[str, ...]:
    few = X[:: len(X) // FEW][:FEW]
    run = race({"NumPy": lambda: [numpy_oracle.solve(net, x, TOL) for x in few]}, repeats=1)["NumPy"]
    whole = run.processor * n_networks * len(X) / FEW
    sweeps = np.mean([len(s.trace) for s in run.result])
    return (
        f"NumPy, one equation a line ({FEW} rows)",
        f"≈ {seconds(whole)}",
        f"{sweeps:.1f}",
        NONE,
        f"≈ {whole / reference:,.0f}",
    )


def _autodiff(net: sb.Network, X: np.ndarray, n_networks: int, reference: float) -> list[tuple[str, ...]]:
    name = f"PyTorch, automatic gradients ({SOME} rows)"
    try:
        from .baselines import autodiff
    except ImportError:
        return [(name, "not installed", NONE, NONE, NONE)]
    some = X[:: len(X) // SOME][:SOME]
    target = sb.infer_many(net, some, solver=SOLVER).bound.mean()
    say("PyTorch")
    ascent = autodiff.maximise(net, some, target, gap=GAP, max_seconds=60.0)
    if not ascent.reached:
        return [(name, f"not reached: {target - ascent.bounds.mean():.3f} nats short", NONE, NONE, NONE)]
    whole = ascent.seconds * n_networks * len(X) / SOME
    steps = f"{ascent.steps} steps"
    return [(name, f"≈ {seconds(whole)}", steps, NONE, f"≈ {whole / reference:,.0f}")]
