"""Decisions: which finding to ask for next, what each contributes to a cause, which cause if there is only one."""

from __future__ import annotations

from sbnet.decisions.contributions import Contributions, contributions
from sbnet.decisions.next_question import NextQuestion, Questions, next_question
from sbnet.decisions.sensitivity import Influence, Sensitivity, sensitivity
from sbnet.decisions.single_cause import SingleCause, single_cause

__all__ = [
    "Contributions",
    "Influence",
    "NextQuestion",
    "Questions",
    "Sensitivity",
    "SingleCause",
    "contributions",
    "next_question",
    "sensitivity",
    "single_cause",
]
