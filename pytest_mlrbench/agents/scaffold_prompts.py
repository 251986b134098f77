"""The scaffold's prompts: texts in ``prompts/``, filled with what a case has, within limits."""

from __future__ import annotations

from pathlib import Path

from pytest_mlrbench.agents.templates import Templates

TEMPLATES = Templates(Path(__file__).with_name("prompts"))

#: Most characters of an input that a prompt shows; what is longer is cut in its middle.
LIMITS = {
    "task": 40_000,
    "idea": 20_000,
    "related_work": 60_000,
    "proposal": 80_000,
    "results": 120_000,
    "works": 80_000,
    "figures": 12_000,
    "reason": 500,
}
#: Stands in a prompt for an input that the workspace does not have.
ABSENT = "(none was given)"


def fill(name: str, **texts: str) -> str:
    """Return the prompt *name* with *texts* in its places, each within its limit."""
    return TEMPLATES.fill(name, {place: _shown(place, text) for place, text in texts.items()})


def _shown(name: str, text: str) -> str:
    return cut(text.strip(), LIMITS[name]) or ABSENT


def cut(text: str, limit: int) -> str:
    """Return *text* with its middle left out, and a word about that, if it is over *limit*."""
    if len(text) <= limit:
        return text
    # More of the beginning: that is where texts say what they are about.
    head = limit * 2 // 3
    tail = limit - head
    left_out = len(text) - head - tail
    return f"{text[:head]}\n\n[... {left_out} characters left out here ...]\n\n{text[-tail:]}"
