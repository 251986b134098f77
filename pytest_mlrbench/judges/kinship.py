"""Judges that score work of their own model, or of one of the same family: they favour it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Literal

from pytest_mlrbench.agents.base import Agent
from pytest_mlrbench.judges.base import Judge

Kinship = Literal["model", "family"]

#: Family → how its models, and the tools built on them, are called.
_FAMILIES: Mapping[str, str] = {
    "Claude": r"claude",
    "GPT": r"gpt|chatgpt|codex|o[134](?![0-9])",
    "Gemini": r"gemini|gemma",
    "Llama": r"llama",
    "Qwen": r"qwen|qwq",
    "DeepSeek": r"deepseek",
    "Mistral": r"mistral|mixtral|ministral|codestral|magistral",
    "Grok": r"grok",
    "Kimi": r"kimi",
    "GLM": r"glm",
}


def family(name: str) -> str:
    """Return the family of models that *name*, as a spec, speaks of; empty if it names none."""
    words = name.lower()
    found = [
        title
        for title, pattern in _FAMILIES.items()
        # A number may follow, as in gpt5 or qwen2; a letter makes it another word.
        if re.search(rf"(?<![a-z0-9])(?:{pattern})(?![a-z])", words)
    ]
    return found[0] if len(found) == 1 else ""


def kinship(agent: str, judge: str) -> Kinship | None:
    """How the judge with spec *judge* is related to the agent with spec *agent*, as far as the
    specs say: a command may ask any model.
    """
    agent_kind, _, agent_model = agent.partition(":")
    judge_kind, _, judge_model = judge.partition(":")
    if agent_kind in ("cmd", "py", "fixture") or judge_kind not in (
        "anthropic",
        "openai",
        "google",
    ):
        return None
    asked = agent_model.replace("/", ":", 1) if agent_kind == "scaffold" else agent_model
    if asked and judge_model and asked.rpartition(":")[2] == judge_model:
        return "model"
    same = family(agent)
    return "family" if same and same == family(judge) else None


def author_of(agent: Agent) -> str:
    """The spec of who made the work: of a run that is judged again, its own agent."""
    return str(getattr(agent, "author", agent.spec))


def kin(agent: str, judges: Sequence[Judge]) -> dict[str, Kinship]:
    """Return judge id → kinship, for those judges that are related to the agent."""
    found = {judge.id: kinship(agent, judge.spec) for judge in judges}
    return {name: related for name, related in found.items() if related}


def warning(name: str, related: Kinship) -> str:
    """Return what is said of such a judge."""
    whose = "the agent's own model" if related == "model" else "of the agent's family of models"
    return f"judge {name} is {whose}: such judges favour their own work"
