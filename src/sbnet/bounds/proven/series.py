r"""The mean of t(x) of a noisy-OR unit with many parents, from above, in ball arithmetic: `kernels.terms.series` again.

The rules of `quadrature.lobatto` are found once more, as balls that hold the exact nodes and weights, so that the proof
given there covers what is computed here.
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

from sbnet.bounds.proven import gates, load
from sbnet.kernels.codes import NOISY_OR
from sbnet.quadrature.lobatto import FAR, FIRST, LAST, NOTHING, OCTAVES, POINTS


class _Rule(NamedTuple):
    """Nodes and weights of one stretch of the sum, and where it ends."""

    nodes: list[Any]
    weights: list[Any]
    until: float


def term(weight: list[Any], mu: list[Any], bias: Any) -> Any:
    """Not below the mean of t. Causes too weak to count have no influence, which only raises it."""
    strong = [(w, m) for w, m in zip(weight, mu, strict=True) if w > NOTHING]
    if not strong:
        return gates.t(NOISY_OR, bias)
    least = min((w for w, _ in strong), key=float)
    none, total, without = type(bias)(1), type(bias)(0), type(bias)(0)
    for _, m in strong:
        none *= 1 - m
    until = 0.0
    for rule in _rules():
        for k, w in zip(rule.nodes, rule.weights, strict=True):
            product = w * (-k * bias).exp()
            without += product
            for theta, m in strong:
                product *= 1 - m + m * (-k * theta).exp()
            total += product
        until = rule.until
        if until * float(least) > FAR:
            break
    reach = until * (least + bias)
    tail = (-reach).exp() / reach
    return total + tail + none * (gates.t(NOISY_OR, bias) - without - tail)


@cache
def _rules() -> list[_Rule]:
    """All stretches, the first terms each on its own. They are found at the precision of `balls`."""
    arb = load().arb
    rules = [_Rule([arb(k)], [1 / arb(k)], k + 0.5) for k in range(1, FIRST + 1)]
    a = FIRST
    while a < LAST:
        middle, half = arb(3 * a + 1) / 2, arb(a - 1) / 2
        atoms = [((k - middle) / half, 1 / arb(k)) for k in range(a + 1, 2 * a + 1)]
        moments = [sum((w * y**p for y, w in atoms), arb(0)) for p in range(2 * POINTS - 2)]
        nodes, weights = _lobatto(arb, moments)
        rules.append(_Rule([middle + half * y for y in nodes], weights, 2 * a + 0.5))
        a *= 2
    nodes, weights = _lobatto(arb, _octave(arb))
    for octave in range(OCTAVES):
        start = (LAST + 0.5) * 2.0**octave
        rules.append(_Rule([start * (3 + y) / 2 for y in nodes], weights, 2.0 * start))
    return rules


def _octave(arb: Any) -> list[Any]:
    """The moments of du / u between 1 and 2 in y = 2 u - 3: from those in u, by the recurrence u = (3 + y) / 2."""
    moments = [arb(2).log()]
    for p in range(1, 2 * POINTS - 2):  # the integral of y^(p-1) (3 + y) / 2 du / u is that of y^(p-1) du
        of_du = (1 + (-1) ** (p - 1)) / arb(2 * p)
        moments.append(2 * of_du - 3 * moments[-1])
    return moments


def _lobatto(arb: Any, moments: list[Any]) -> tuple[list[Any], list[Any]]:
    """The rule for a measure on [-1, 1] with -1 and 1 among its nodes, from its moments.

    The nodes inside are the roots of the polynomial that is orthogonal under (1 - y^2) times the measure; the weights
    make the rule exact for all powers of y below the number of nodes.
    """
    flint, n = load(), POINTS - 2
    inside = [moments[p] - moments[p + 2] for p in range(2 * n)]
    matrix = flint.arb_mat([[inside[r + c] for c in range(n)] for r in range(n)])
    found = matrix.solve(flint.arb_mat([[-inside[r + n]] for r in range(n)]))
    polynomial = flint.arb_poly([*(found[r, 0] for r in range(n)), 1])
    roots = sorted((root.real for root in polynomial.complex_roots()), key=float)
    nodes = [arb(-1), *(_narrowed(polynomial, root) for root in roots), arb(1)]
    powers = flint.arb_mat([[y**p for y in nodes] for p in range(POINTS)])
    weights = powers.solve(flint.arb_mat([[moments[p]] for p in range(POINTS)]))
    return nodes, [weights[r, 0] for r in range(POINTS)]


def _narrowed(polynomial: Any, root: Any) -> Any:
    """A ball with a root in it, made small by Newton's steps: the root is never more than f(y) / f' from its middle."""
    for _ in range(6):
        middle = root.mid()
        root = middle - polynomial(middle) / polynomial.derivative()(root)
    return root
