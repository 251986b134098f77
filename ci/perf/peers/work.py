"""The same work for the runners beside ours: an idea for a task, six scores by each of two."""

from __future__ import annotations

import json
from pathlib import Path

JUDGES = ("judge-a", "judge-b")
WRITER = "idea-model"
NAMES = ("consistency", "clarity", "novelty", "feasibility", "significance", "overall")
_SCORED = {
    "type": "object",
    "properties": {
        "score": {"type": "integer", "minimum": 1, "maximum": 10},
        "justification": {"type": "string"},
    },
    "required": ["score", "justification"],
    "additionalProperties": False,
}
SCHEMA = {
    "type": "object",
    "properties": dict.fromkeys(NAMES, _SCORED),
    "required": list(NAMES),
    "additionalProperties": False,
}


def tasks(number: int) -> list[Path]:
    """The files of the first *number* tasks."""
    return sorted(Path("suite/tasks").glob("*.md"))[:number]


def ask_for_idea(task: str) -> str:
    """The writer's prompt."""
    return f"Write one research idea (title, motivation, method) for this task.\n\n{task}"


def ask_for_scores(task: str, idea: str) -> str:
    """A judge's prompt."""
    return f"Score the idea for the task on {', '.join(NAMES)}, from 1 to 10.\n\n{task}\n\n{idea}"


def overall(text: str) -> int:
    """Read and check a judge's answer."""
    scores = {name: json.loads(text)[name]["score"] for name in NAMES}
    for name, score in scores.items():
        if not isinstance(score, int) or not 1 <= score <= 10:
            raise ValueError(f"{name}: {score!r}")
    return scores["overall"]
