"""Check the baselines against each other and time them: ``python -m benchmarks.baselines`` from the project folder."""

from __future__ import annotations

import argparse
import sys
import time

import numpy as np

import sbnet as sb
from sbnet.datasets import load_digits

from . import cpp, numpy_oracle
from .digits import digit_networks, score

AGREEMENT = 1e-6
LAYOUTS = ("blocks", "parents")


def check_small(n_networks: int = 20) -> float:
    """Bounds below the exact value; C++ equal to NumPy. Returns the largest difference."""
    worst, excess = 0.0, -np.inf
    shapes = [((2, 4, 6), False), ((3, 5, 7), True), ((2, 3, 4, 8), False)]
    for seed in range(n_networks):
        sizes, autoregressive = shapes[seed % len(shapes)]
        network = sb.layered(sizes, rng=seed, scale=(1.0, 2.0, 5.0)[seed // 3 % 3], autoregressive=autoregressive)
        X = np.random.default_rng(seed).integers(0, 2, (3, sizes[-1]))
        exact = sb.log_likelihood(network, X)
        oracle = [numpy_oracle.solve(network, x, tol=1e-10, max_sweeps=2000).bound for x in X]
        for layout in LAYOUTS:
            bounds = cpp.solve(network, X, tol=1e-10, max_sweeps=2000, layout=layout).bounds
            worst = max(worst, float(np.abs(bounds - oracle).max()))
            excess = max(excess, float((bounds - exact).max()))
    print(
        f"small networks: largest |C++ - NumPy| {worst:.1e} nats; largest bound - exact {excess:.1e} (must be below 0)"
    )
    return np.inf if excess > 1e-9 else worst


def check_digits(networks: list[sb.Network], n_rows: int = 3) -> float:
    """C++ equal to NumPy on a few test digits. Returns the largest difference."""
    digits = load_digits()
    chosen = np.linspace(0, len(digits.test) - 1, n_rows).astype(int)
    worst = 0.0
    print("digit   NumPy        C++ blocks   C++ parents")
    for x, digit in zip(digits.test[chosen], digits.test_target[chosen], strict=True):
        network = networks[digit]
        oracle = numpy_oracle.solve(network, x, tol=1e-8).bound
        found = [cpp.solve(network, x[None], tol=1e-8, layout=layout).bounds[0] for layout in LAYOUTS]
        print(f"  {digit}   {oracle:.8f} {found[0]:.8f} {found[1]:.8f}")
        worst = max(worst, *(abs(bound - oracle) for bound in found))
    return float(worst)


def time_digits(networks: list[sb.Network], layout: str, repeats: int) -> None:
    digits = load_digits()
    seconds = []
    for _ in range(repeats):
        start = time.perf_counter()
        solutions = [cpp.solve(network, digits.test, layout=layout) for network in networks]
        seconds.append(time.perf_counter() - start)
    result = score(np.stack([s.bounds for s in solutions], axis=1), digits)
    sweeps = np.mean([s.mean_sweeps for s in solutions])
    print(
        f"C++ {layout}: {min(seconds):.2f} s (best of {repeats}) for {len(networks)} networks x {len(digits.test)} "
        f"rows, {sweeps:.2f} sweeps; error {100 * result.error:.2f} %, score {result.normalised:.4f}"
    )


def time_autodiff(network: sb.Network, n_rows: int = 200) -> None:
    try:
        from . import autodiff
    except ImportError as error:
        print(f"autodiff: left out ({error})")
        return
    X = load_digits().test[:: 4000 // n_rows]
    start = time.perf_counter()
    target = cpp.solve(network, X).bounds.mean()
    seconds = time.perf_counter() - start
    for gap in (0.1, 0.01):
        found = autodiff.maximise(network, X, target, gap)
        spent = f"autodiff, {n_rows} rows, gap {gap}: {found.seconds:.2f} s, {found.steps} steps"
        if found.reached:
            print(f"{spent}; C++ {seconds:.4f} s, ratio {found.seconds / seconds:.0f}")
        else:  # it may have settled on other maxima of some rows, so the ratio of times would mean nothing
            print(f"{spent}: NOT reached, {target - found.bounds.mean():.4f} nats short of C++")


def check_tables(network: sb.Network) -> None:
    try:
        from . import pyagrum_exact
    except ImportError as error:
        print(f"pyAgrum: left out ({error})")
        return
    small = sb.layered((12, 6), rng=0, scale=1.0)
    X = np.zeros((1, 6), dtype=int)
    exact = pyagrum_exact.log_likelihood(small, X).log_likelihood[0]
    print(f"pyAgrum: ln P {exact:.8f}, enumeration {sb.log_likelihood(small, X)[0]:.8f}")
    try:
        pyagrum_exact.log_likelihood(network, np.zeros((1, 64), dtype=int))
    except pyagrum_exact.DoesNotFit as refusal:
        print(f"pyAgrum, a digit network: {refusal}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--all", action="store_true", help="also the autodiff and the table baselines")
    arguments = parser.parse_args()
    worst = check_small()
    start = time.perf_counter()
    networks = digit_networks(arguments.seed)
    print(f"C++ training: {time.perf_counter() - start:.2f} s for 10 networks, 5 epochs of 700 rows")
    worst = max(worst, check_digits(networks))
    for layout in LAYOUTS:
        time_digits(networks, layout, arguments.repeats)
    if arguments.all:
        time_autodiff(networks[3])
        check_tables(networks[3])
    agree = worst < AGREEMENT
    print(f"largest difference {worst:.1e} nats: {'agreement' if agree else 'NO AGREEMENT'} (limit {AGREEMENT:.0e})")
    return 0 if agree else 1


if __name__ == "__main__":
    sys.exit(main())
