"""What to do with answers: which finding to ask for next, and what each finding contributes to a cause."""

from __future__ import annotations

from sbnet.decisions.contributions import Contributions, contributions
from sbnet.decisions.next_question import NextQuestion, Questions, next_question

__all__ = ["Contributions", "NextQuestion", "Questions", "contributions", "next_question"]
