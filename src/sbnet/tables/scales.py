"""Words that have an order which people know: brackets of numbers, and answers on a scale.

``18-29, 30-44, > 60`` and ``$0 - $24,999 … $150,000+`` are brackets; ``Very unimportant … Very important`` is a scale.
All values of a column must be on one; one answer may stand beside it, as "Unfamiliar (N/A)" does, and comes first.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

_RANGE = re.compile(r"(\d[\d.]*)\s*(?:-|–|—|to|until|bis|till|and|\.\.+)\s*(?:less than|under)?\s*(\d[\d.]*)")
_BELOW = re.compile(r"(?:<=?|≤|under|below|up to|less than|fewer than|younger than|at most|unter|bis)\s*(\d[\d.]*)")
_BELOW_AFTER = re.compile(r"(\d[\d.]*)\s*(?:and|or|&)?\s*(?:under|younger|less|fewer|below)")
_ABOVE = re.compile(r"(?:>=?|≥|over|above|more than|older than|at least|über|ab)\s*(\d[\d.]*)")
_ABOVE_AFTER = re.compile(r"(\d[\d.]*)\s*(?:\+|(?:and|or|&)?\s*(?:over|older|more|above|up|plus|higher)|\s*-)")
_ALONE = re.compile(r"(\d[\d.]*)")
_UNITS = re.compile(
    r"(?<![a-z])(years?( old)?|yrs?|aged?|days?|weeks?|wks?|months?|mos?|hours?|hrs?|minutes?|mins?|times?|usd|eur|gbp|"
    r"[cmk]?m|[mk]?g|m?l|cwt|lbs?|inch(es)?|miles?)(/\w+)?(?![a-z])"
)
_SPANS = {"mi": 1 / 1440, "h": 1 / 24, "d": 1.0, "w": 7.0, "mo": 30.4, "y": 365.25}
"""Days of a span of time, by how its name begins."""
_NUMBERED = re.compile(r"\(?(\d+) ?[.:)–-] ?[^\d\s].*")

_SCALES = """
never | almost never,very rarely,hardly ever | rarely,seldom,not often | occasionally,once in a while | sometimes |
    often,frequently,fairly often | usually,very often,mostly,most of the time | almost always,nearly always | always
not at all | not much,not very much,hardly,very little | a little,slightly,a little bit,somewhat little |
    some,somewhat,moderately,a moderate amount | quite a bit,fairly | a lot,much,quite a lot |
    very much,a great deal,extremely,very,completely
none,absent,no symptoms | minimal,trace | mild,slight,light | moderate | marked | severe,heavy |
    very severe,extreme,critical
lowest | very low | low,lo | medium low,lower middle | medium,middle,moderate,average,normal |
    medium high,upper middle | high,hi | very high | highest
terrible,awful | very poor,very bad | poor,bad | below average | fair,average,ok,okay,so-so,indifferent |
    above average | good | very good | excellent,outstanding
tiny | very small | xxs | xs,extra small,x-small | s,small | m,medium | l,large,big | xl,extra large,x-large |
    xxl,2xl | xxxl,3xl
l | m | h
i | ii | iii | iv | v | vi | vii | viii | ix | x | xi | xii
first,1st | second,2nd | third,3rd | fourth,4th | fifth,5th | sixth,6th | seventh,7th | eighth,8th |
    ninth,9th | tenth,10th
monday,mon | tuesday,tue | wednesday,wed | thursday,thu | friday,fri | saturday,sat | sunday,sun
january,jan | february,feb | march,mar | april,apr | may | june,jun | july,jul | august,aug | september,sep,sept |
    october,oct | november,nov | december,dec
no schooling,no formal education,none | less than high school degree,less than high school,some high school,
    did not finish high school,primary,primary school,elementary,elementary school |
    high school degree,high school,high school graduate,high school diploma,secondary,secondary school |
    some college or associate degree,some college,associate degree,associate,associate's degree,vocational |
    bachelor degree,bachelor,bachelors,bachelor's degree,college graduate,undergraduate degree |
    graduate degree,master,masters,master's degree,master degree,postgraduate | doctorate,phd,doctoral degree
beginner,novice | basic,elementary | intermediate | advanced | expert
freshman | sophomore | junior | senior
child,children | teenager,teen,adolescent,youth | young adult | adult | senior,elderly
"""
_POLES = (
    ("disagree", "agree"), ("unfavorably", "favorably"), ("unfavorable", "favorable"), ("unfavourable", "favourable"),
    ("unimportant", "important"), ("unlikely", "likely"), ("dissatisfied", "satisfied"), ("unsatisfied", "satisfied"),
    ("uncomfortable", "comfortable"), ("unhappy", "happy"), ("negative", "positive"), ("difficult", "easy"),
    ("oppose", "support"), ("disapprove", "approve"), ("dislike", "like"), ("unconcerned", "concerned"),
    ("uninterested", "interested"), ("unsafe", "safe"), ("liberal", "conservative"), ("worse", "better"),
    ("unhelpful", "helpful"), ("unfamiliar", "familiar"), ("unaware", "aware"), ("untrue", "true"), ("bad", "good"),
    ("low", "high"), ("poor", "good"),
)  # fmt: skip
"""Opposites, the lower one first; "very", "somewhat" and their kin say how far out an answer stands."""
_FAR = "very|strongly|extremely|completely|totally|highly|much|definitely|greatly"
_NEAR = "somewhat|slightly|fairly|mostly|rather|moderately|quite|tend to|a little|mildly|probably|leaning"
_MIDDLE = re.compile(
    r"neither\b.*|neutral|undecided|no opinion|not sure|mixed|about the same|unsure|middle.*|moderate|"
    r"average|medium|normal|indifferent"
)


def order(words: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]] | None:
    """The words in their order, and those beside the scale, at most one; None if they have no order that is known."""
    ways: list[dict[str, Any]] = [brackets(words), _numbered(words), *_on_scales(words)]
    for place in ways:
        known = [word for word in words if word in place]
        distinct = len({place[word] for word in known}) == len(known)
        beside = tuple(word for word in words if word not in place)
        if distinct and ((len(known) >= 3 and len(beside) <= 1) or (len(known) == 2 and not beside)):
            return tuple(sorted(known, key=place.__getitem__)), beside
    return None


def brackets(words: Iterable[str]) -> dict[str, tuple[float, float]]:
    """Where brackets of numbers begin and end; nothing if all words are single numbers without a unit. Spans of time
    in different units are compared as such.
    """
    found = {word: ends for word in words if (ends := _bracket(word)) is not None}
    spans = {word: _span(word) for word in found}
    if len(set(spans.values()) - {None}) > 1:
        found = {word: (low * span, high * span) for word, (low, high) in found.items() if (span := spans[word])}
    said = any(low != high for low, high in found.values()) or all(_UNITS.search(word.casefold()) for word in found)
    return found if said else {}


def _span(word: str) -> float | None:
    """The days of the unit of time in a word."""
    match = re.search(r"(?<![a-z])(mi(?=n)|h(?=our|r)|d(?=ay)|w(?=eek|k)|mo|y(?=ear|r))", word.casefold())
    return _SPANS[match[1]] if match else None


def _numbered(words: Sequence[str]) -> dict[str, float]:
    """Answers that all begin with a number of their own: "1. never", "2. often"."""
    found = {word: float(match[1]) for word in words if (match := _NUMBERED.fullmatch(word.strip()))}
    return found if len(found) == len(words) else {}


def _bracket(word: str) -> tuple[float, float] | None:
    text = re.sub(r"[$€£¥%]|(?<=\d),(?=\d{3})", "", word.casefold())
    text = re.sub(r"(?<=\d)\s*k\b", "000", _UNITS.sub(" ", text)).strip(" .()[]")
    for pattern, below, above in (
        (_RANGE, False, False), (_BELOW, True, False), (_BELOW_AFTER, True, False),
        (_ABOVE, False, True), (_ABOVE_AFTER, False, True), (_ALONE, False, False),
    ):  # fmt: skip
        match = pattern.fullmatch(text)
        if match:
            try:
                ends = [float(group) for group in match.groups()]
            except ValueError:  # several points
                return None
            low, high = ends[0], ends[-1]
            return (float("-inf") if below else low, float("inf") if above else high)
    return None


def _on_scales(words: Sequence[str]) -> Iterable[dict[str, float]]:
    plain = {word: re.sub(r"\s+", " ", re.sub(r"\(.*?\)", "", word)).strip(" .!").casefold() for word in words}
    plain = {word: re.sub(r"(\w) (class|grade|degree|level|year)$", r"\1", text) for word, text in plain.items()}
    for scale in _PLACES:
        yield {word: scale[text] for word, text in plain.items() if text in scale}
    for low, high in _POLES:
        places = {word: _between(text, low, high) for word, text in plain.items()}
        yield {word: place for word, place in places.items() if place is not None}


def _between(text: str, low: str, high: str) -> float | None:
    """How far an answer stands from the middle between two opposites."""
    if _MIDDLE.fullmatch(text):
        return 0.0
    for pole, sign in ((low, -1.0), (high, 1.0)):
        match = re.fullmatch(
            rf"(?:({_FAR})|({_NEAR})|(not at all)|(not (?:very|so|too|that))|(not))? ?{pole}\b.*", text
        )
        if match:
            far, near, never, less, negated = match.groups()
            return sign * (
                3.0 if far else 1.0 if near else -4.0 if never else -0.5 if less else -2.0 if negated else 2.0
            )
    return None


def _parsed(text: str) -> list[dict[str, float]]:
    lines = re.sub(r"([|,])\s*\n\s+", r"\1 ", text.strip()).splitlines()
    scales = [[step.split(",") for step in line.split("|")] for line in lines]
    return [{word.strip(): float(k) for k, step in enumerate(scale) for word in step} for scale in scales]


_PLACES = _parsed(_SCALES)
