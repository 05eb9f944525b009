"""Numbers and dates by their size: intervals with about equally many rows in each, and what these are called."""

from __future__ import annotations

import datetime
import re
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import scipy

from sbnet._types import FloatArray, IndexArray
from sbnet.errors import TableError
from sbnet.tables import frames
from sbnet.tables.words import as_number, word

_MOST_BINS, _BINS, _ROWS_A_BIN = 16, 12, 10
_SHARE = 0.005
"""Of rows, on either side of a cut that tells classes apart."""
KEPT = 33
"""Cells of a state that are kept, to fill in: evenly spaced by size, so that the middle one is the median."""
_CLOCK = r"[T ](\d{1,2}):(\d{2})(?::(\d{2})(?:\.\d+)?)?(?:Z|[+-]\d{2}:?\d{2})?"
_DATE = re.compile(rf"(\d{{4}})-(\d{{1,2}})-(\d{{1,2}})(?:{_CLOCK})?")
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MONTH = rf"({'|'.join(_MONTHS)})[a-z]*\.?"
_DAY_MONTH = re.compile(rf"(\d{{1,2}})\.?[ -]{_MONTH}[ -](\d{{4}})", re.IGNORECASE)
_MONTH_DAY = re.compile(rf"{_MONTH} (?:(\d{{1,2}})(?:,| ) ?)?(\d{{4}})", re.IGNORECASE)
FIGURES = re.compile(r"(1[89]\d\d|2[01]\d\d)(\d\d)(\d\d)")
_EUROPEAN, _AMERICAN = re.compile(r"(\d{1,2})[./](\d{1,2})[./](\d{4})"), re.compile(r"(\d{1,2})/(\d{1,2})/(\d{4})")


def n_bins(rows: float) -> int:
    """How many intervals: 12 from 120 rows on, more where rows abound, up to 16."""
    few = rows / _ROWS_A_BIN
    return int(np.clip(few, 2, _BINS)) if rows < 2000 else int(min(_MOST_BINS, _BINS * (rows / 2000) ** 0.25))


def ends(mass: FloatArray, n: int) -> IndexArray:
    """The last value of each interval but the last; one that has an interval's share of rows has an interval alone."""
    ends, inside, left, share = list[int](), 0.0, float(mass.sum()), float(mass.sum()) / n
    for k, own in enumerate(mass[:-1].tolist()):
        inside += own
        bins = n - len(ends)
        full = inside >= left / bins * (1.0 - 1e-12) or mass[k + 1] >= share or own >= share
        nearer = inside + mass[k + 1] - left / bins > left / bins - inside > 0.0
        if bins > 1 and (full or nearer):
            ends.append(k)
            left, inside = left - inside, 0.0
    return np.array(ends or [int(np.searchsorted(np.cumsum(mass), 0.5 * mass.sum()).clip(0, len(mass) - 2))], np.int64)


def telling_ends(counts: FloatArray, ends: IndexArray, most: int) -> IndexArray:
    """Where intervals end if some are cut again so that they tell classes apart; `counts` are of values by classes.

    At most so many cuts are made, each where the entropy of the classes falls most, as long as it falls by more nats
    than it takes to describe the cut (Fayyad & Irani 1993).
    """
    above = np.concatenate([np.zeros((1, counts.shape[1])), np.cumsum(counts, axis=0)])
    total, rows = float(above[-1].sum()), above.sum(axis=1)
    least, fewest = np.log(total) + counts.shape[1] * np.log(3.0), max(_ROWS_A_BIN, _SHARE * total)

    def cut(first: int, last: int) -> tuple[float, int, int, int]:
        """The gain of the best cut between two ends, and where it is."""
        at = np.arange(first + 1, last)
        at = at[np.minimum(rows[at] - rows[first], rows[last] - rows[at]) >= fewest]
        if not len(at):
            return 0.0, first, first, last
        gain = _nats(above[[last]] - above[first]) - _nats(above[at] - above[first]) - _nats(above[last] - above[at])
        return float(gain.max()), int(at[gain.argmax()]), first, last

    begin = [0, *(ends + 1).tolist(), len(counts)]
    found, open_ = ends.tolist(), [cut(*pair) for pair in pairwise(begin)]
    for _ in range(most):
        gain, at, first, last = best = max(open_)
        if gain < least:
            break
        found.append(at - 1)
        open_.remove(best)
        open_ += [cut(first, at), cut(at, last)]
    return np.array(sorted(found), np.int64)


def _nats(counts: FloatArray) -> FloatArray:
    """The entropy of each line of counts, times their sum."""
    total: FloatArray = scipy.special.xlogy(rows := counts.sum(axis=1), rows) - scipy.special.xlogy(counts, counts).sum(
        axis=1
    )
    return total


def some(rows: IndexArray, weights: FloatArray) -> IndexArray:
    """Rows at evenly spaced quantiles, the median in the middle."""
    below = np.cumsum(weights)
    n = min(KEPT, 2 * ((len(rows) + 1) // 2) - 1)
    at = (np.arange(n) + 0.5) / n * below[-1] * (1.0 - 1e-12)
    chosen: IndexArray = rows[np.searchsorted(below, at, side="left").clip(0, len(rows) - 1)]
    return chosen


def short(low: float, high: float) -> float:
    """The decimal with the fewest digits that is at least `low` and below `high`."""
    if low <= 0.0 < high:
        return 0.0
    for digits in range(1, 17):
        for text in (f"{low:.{digits}g}", f"{0.5 * low + 0.5 * high:.{digits}g}"):
            if low <= float(text) < high:
                return float(text)
    return float(low)


def intervals(ends: Sequence[tuple[float, float]], cuts: Sequence[float], whole: bool) -> list[str]:
    """Names of intervals: whole numbers by those that are in them, others by where they end."""
    last = len(ends) - 1
    if whole:
        names = [word(low) if low == high else f"{word(low)} to {word(high)}" for low, high in ends]
        if ends[0][0] != ends[0][1]:
            names[0] = f"up to {word(ends[0][1])}"
        if ends[last][0] != ends[last][1]:
            names[last] = f"{word(ends[last][0])} or more"
        return names
    texts = [word(cut) for cut in cuts]
    return [
        word(low) if low == high else f"up to {texts[0]}" if k == 0
        else f"above {texts[-1]}" if k == last else f"{texts[k - 1]} to {texts[k]}"
        for k, (low, high) in enumerate(ends)
    ]  # fmt: skip


def moments(ends: Sequence[tuple[float, float]], cuts: Sequence[float]) -> list[str]:
    days = all(end % 86400.0 == 0.0 for pair in ends for end in pair)
    if all(0.0 <= end < 86400.0 for pair in ends for end in pair):  # times of a day, or durations
        return intervals(ends, cuts, whole=False)

    def text(seconds: float) -> str:
        moment = datetime.datetime(1970, 1, 1) + datetime.timedelta(seconds=seconds)
        return moment.date().isoformat() if days else moment.isoformat(" ", "seconds")

    try:
        named = [text(low) if low == high else f"{text(low)} to {text(high)}" for low, high in ends]
    except OverflowError:  # durations of many thousand years
        named = []
    return named if len(set(named)) == len(ends) else intervals(ends, cuts, whole=False)


def sizes(column: frames.Column, dates: bool = False) -> FloatArray:
    """The numbers that cells are or spell, or the dates in seconds; NaN for all others."""
    values = column.values
    if values.dtype.kind == "f":
        return values if column.dates or not dates else dates_in_figures(values)
    texts = values.tolist()
    if dates:
        return spelled_dates(texts)
    known = {text: as_number(text) for text in set(texts) if text is not None}
    return np.array([np.nan if text is None or known[text] is None else known[text] for text in texts], np.float64)


def dates_in_figures(values: FloatArray) -> FloatArray:
    """Seconds since 1970 of numbers such as 19750103; NaN for all that are no dates."""
    each, place = np.unique(values, return_inverse=True)
    found = [FIGURES.fullmatch(word(value)) for value in each.tolist()]
    return np.array([np.nan if match is None else _second(match, (0, 1, 2)) for match in found])[place]


def spelled_dates(texts: Sequence[Any]) -> FloatArray:
    """Seconds since 1970 of text such as 2024-03-31, 20240331, 31.3.2024, 31 March 2024, March 31, 2024, March 2024, or
    3/31/2024 where a day above 12 tells which.
    """
    words = [_with_months_as_numbers(text) if isinstance(text, str) else "" for text in texts]
    best = np.full(len(words), np.nan)
    for pattern, where in ((_DATE, (0, 1, 2)), (FIGURES, (0, 1, 2)), (_EUROPEAN, (2, 1, 0)), (_AMERICAN, (2, 0, 1))):
        found = [pattern.fullmatch(text) for text in words]
        days = [int(match[where[2] + 1]) for match in found if match]
        if where[0] == 2 and max(days, default=0) <= 12 and all("/" in text for text in words if text):
            continue  # a day or a month
        moments = np.array([np.nan if match is None else _second(match, where) for match in found])
        if np.isnan(moments).sum() < np.isnan(best).sum():
            best = moments
    return best


def _with_months_as_numbers(text: str) -> str:
    """A date whose month is a word, as year, month and day."""
    if match := _DAY_MONTH.fullmatch(text):
        day, month, year = match.groups()
    elif match := _MONTH_DAY.fullmatch(text):
        month, day, year = match.groups()
    else:
        return text
    return f"{year}-{_MONTHS.index(month.lower()) + 1}-{day or 1}"


def _second(match: re.Match[str], where: tuple[int, int, int]) -> float:
    groups = match.groups()
    year, month, day = (int(groups[k]) for k in where)
    hour, minute, second = (int(group or 0) for group in (*groups[3:6], 0, 0, 0)[:3])
    try:
        moment = datetime.datetime(year, month, day, hour, minute, second)
    except ValueError:
        return np.nan
    return (moment - datetime.datetime(1970, 1, 1)).total_seconds()


def check_finite(name: str, numbers: FloatArray) -> None:
    """Refuse infinity, which has no size."""
    if np.isinf(numbers).any():
        row = int(np.flatnonzero(np.isinf(numbers))[0])
        raise TableError(f"column {name!r} holds infinity in row {row}; a number is finite, or NaN if missing")
