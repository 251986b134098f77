"""The review that looks for what was made up: it informs, and no score depends on it."""

from __future__ import annotations

import re
from dataclasses import dataclass

from pytest_mlrbench.judges.llm_answer import UnusableAnswer, document
from pytest_mlrbench.judges.llm_schema import SUREST, hallucination_schema, violation
from pytest_mlrbench.judges.material import Material
from pytest_mlrbench.judges.review import Hallucination
from pytest_mlrbench.models.exchange import Answer

_SCHEMA = hallucination_schema()
#: What stands between two passages, or for words left out of one.
_GAP = re.compile(r"\[?(?:…|\.\.\.)\]?")
_QUOTES = "\"'` \u201c\u201d\u2018\u2019\u00ab\u00bb"


@dataclass(frozen=True)
class Found:
    """What a judge holds to be made up.

    :param confidence: how sure it is, 1..5.
    """

    hallucinations: tuple[Hallucination, ...]
    confidence: int

    def notices(self, material: Material) -> list[str]:
        """Return what a reader of the findings should know."""
        shown = _plain("\n".join(block.text for block in material.blocks))
        missing = [
            f"evidence of finding {number} is not in the work"
            for number, found in enumerate(self.hallucinations, start=1)
            if not _is_in(found.evidence, shown)
        ]
        return [*missing, f"confidence of the hallucination review: {self.confidence} of {SUREST}"]


def read(answer: Answer) -> Found:
    """Return what an answer says.

    :raises UnusableAnswer: it is not of the form that was asked for.
    """
    raw = document(answer)
    if why := violation(raw, _SCHEMA):
        raise UnusableAnswer(why)
    names = Hallucination.model_fields
    return Found(
        tuple(
            Hallucination(**{name: one[name] for name in names}) for one in raw["hallucinations"]
        ),
        raw["confidence"],
    )


def _is_in(evidence: str, shown: str) -> bool:
    passages = [_plain(part).strip(_QUOTES) for part in _GAP.split(evidence)]
    return any(passages) and all(passage in shown for passage in passages)


def _plain(text: str) -> str:
    return " ".join(text.split())
