"""Findings in a hierarchy: one is a kind of another, and what is known of one says something of its relatives.

A cause that brings "focal seizure" may be reported as the vaguer "seizure"; one that is only known to bring "seizure"
may show as "focal seizure". With noisy-OR links both are links of their own, from the same cause to the relatives of a
finding, so that no answer has to know of the hierarchy:

- to each ancestor, with the probability p times `vague`;
- to each descendant x of a, with p times `specific` times the leak of x over the leak of a: as often as a is an x when
  nothing is the matter.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from sbnet import checks
from sbnet._types import FloatArray
from sbnet.errors import CycleError, NetworkError, hint

if TYPE_CHECKING:
    import scipy.sparse

VAGUE, SPECIFIC = 0.3, 0.3
"""How often a finding is reported by a vaguer name, and a vague one is meant more precisely: as the benchmark of
diagnoses has it, which changes little from 0.2 to 0.5."""
_GIVEN = "give a mapping from findings to what they are kinds of, such as is_a={'focal seizure': ['seizure']}"


def checked(is_a: Any) -> dict[str, tuple[str, ...]]:
    """The parents of each finding; one may stand by itself, without a list."""
    found = {}
    for name, parents in checks.mapping("is_a", is_a, _GIVEN, NetworkError).items():
        listed = (
            [parents] if isinstance(parents, str) else checks.listed(f"is_a[{name!r}]", parents, _GIVEN, NetworkError)
        )
        for text in (name, *listed):
            if not isinstance(text, str):
                raise NetworkError(f"is_a names {checks.shown(text)}; {_GIVEN}")
        found[name] = tuple(dict.fromkeys(listed))
    return found


def members(is_a: Mapping[str, Sequence[str]]) -> dict[str, None]:
    """All findings that a hierarchy names, in order."""
    return dict.fromkeys([*is_a, *(one for parents in is_a.values() for one in parents)])


def ancestors(names: Sequence[str], is_a: Mapping[str, Sequence[str]]) -> scipy.sparse.csr_array:
    """Findings by findings, one where the second is an ancestor of the first; a cycle is an error."""
    import scipy.sparse

    number = {name: i for i, name in enumerate(names)}
    for name, parents in is_a.items():
        for one in (name, *parents):
            if one not in number:
                raise NetworkError(f"is_a names {one!r}, which is not a finding{hint(one, names)}")
    above: dict[str, set[str]] = {}
    for name in is_a:
        _climb(name, is_a, above)
    pairs = [(number[name], number[one]) for name, found in above.items() for one in found]
    rows, columns = np.array(pairs, np.int64).reshape(-1, 2).T
    shape = (len(names), len(names))
    return scipy.sparse.csr_array((np.ones(len(pairs)), (rows, columns)), shape=shape)


def _climb(name: str, is_a: Mapping[str, Sequence[str]], above: dict[str, set[str]]) -> None:
    """All ancestors of a finding and of those on the way; without recursion, for chains may be long."""
    path, open_ = [name], {name}
    while path:
        now = path[-1]
        waiting = next((one for one in is_a.get(now, ()) if one not in above), None)
        if waiting is None:
            above[now] = {one for parent in is_a.get(now, ()) for one in (parent, *above[parent])}
            open_.discard(path.pop())
        elif waiting in open_:
            cycle = (*path[path.index(waiting) :], waiting)
            raise CycleError(f"is_a goes round in a circle: {' -> '.join(cycle)}", cycle)
        else:
            path.append(waiting)
            open_.add(waiting)


def spread(
    weight: scipy.sparse.csr_array,
    above: scipy.sparse.csr_array,
    leak: FloatArray,
    *,
    vague: float = VAGUE,
    specific: float = SPECIFIC,
    telling: float = 1.0,
) -> scipy.sparse.csr_array:
    """Weights -ln(1 - p) from causes to findings, those to the relatives of each finding included.

    Of findings with a leak above `telling`, which say little, nothing passes on to descendants: there are many of them.
    """
    p, own = -np.expm1(-weight.data), leak[weight.indices]
    up, down = weight.copy(), weight.copy()
    up.data = -np.log1p(-vague * p)
    up = up @ above
    kept = (own > 0.0) & (own <= telling)
    down.data = np.divide(specific * p, own, out=np.zeros_like(p), where=kept)
    down.eliminate_zeros()
    down = down @ above.T.tocsr()
    down.data = -np.log1p(-np.minimum(down.data * leak[down.indices], specific))
    whole: scipy.sparse.csr_array = weight + up + down
    whole.eliminate_zeros()
    return whole


def links(
    causes: Mapping[tuple[str, str], float], leak: Mapping[str, float], is_a: Mapping[str, Sequence[str]]
) -> dict[tuple[str, str], float]:
    """Probabilities by (cause, finding), those of the relatives of each finding included."""
    import scipy.sparse

    first = list(dict.fromkeys(cause for cause, _ in causes))
    names = list(
        dict.fromkeys([*(effect for _, effect in causes), *is_a, *(one for of in is_a.values() for one in of)])
    )
    place, number = {name: i for i, name in enumerate(first)}, {name: i for i, name in enumerate(names)}
    p = np.fromiter(causes.values(), np.float64, len(causes))
    with np.errstate(divide="ignore"):
        weight = np.minimum(-np.log1p(-p), 1e3)
    ends = [place[cause] for cause, _ in causes], [number[effect] for _, effect in causes]
    own = scipy.sparse.csr_array((weight, ends), shape=(len(first), len(names)))
    found = spread(own, ancestors(names, is_a), np.array([leak.get(name, 0.0) for name in names])).tocoo()
    every = {
        (first[i], names[j]): float(-np.expm1(-x)) for i, j, x in zip(found.row, found.col, found.data, strict=True)
    }
    return {**causes, **{key: value for key, value in every.items() if key not in causes or value > causes[key]}}
