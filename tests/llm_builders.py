"""A model as a judge, a case for it to review, and answers it may give."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from pytest_mlrbench.evidence.base import Evidence
from pytest_mlrbench.judges.base import Reviewable
from pytest_mlrbench.judges.llm import LLMJudge
from pytest_mlrbench.judges.pdf_pages import png
from pytest_mlrbench.judges.review import Answer
from pytest_mlrbench.models.calls import Calls
from pytest_mlrbench.models.config import ModelConfig, parse_model
from pytest_mlrbench.models.registry import Models
from pytest_mlrbench.models.retrying import Retries
from pytest_mlrbench.stub.server import StubProvider
from pytest_mlrbench.suites.rubrics import rubric
from pytest_mlrbench.suites.select import Case
from pytest_mlrbench.suites.tasks import Task

KEY = "sk-test-0123456789"
QUICK = Retries(attempts=2, first=0.001, longest=0.002)
PNG = png(3, 2, bytes(range(18)))
#: What a stage needs at least.
WORK: Mapping[str, Mapping[str, str]] = {
    "idea": {"task.md": "# The task", "idea.md": "An idea of Zoë's."},
    "proposal": {"task.md": "# The task", "idea.md": "An idea.", "proposal.md": "A plan."},
    "experiment": {
        "task.md": "# The task",
        "idea.md": "An idea.",
        "proposal.md": "A plan.",
        "results/results.md": "We measured 0.91.",
        "results/log.txt": "acc 0.91",
    },
    "paper": {"task.md": "# The task", "results/results.md": "0.91", "results/paper.md": "A paper"},
    "end_to_end": {"task.md": "# The task", "results/paper.md": "A paper."},
}
_MODULES = {"anthropic": "anthropic", "openai": "openai", "google": "google.genai"}


def _is_there(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:
        return False


every_provider = pytest.mark.parametrize(
    "provider",
    [
        pytest.param(one, marks=pytest.mark.skipif(not _is_there(module), reason=f"no {module}"))
        for one, module in _MODULES.items()
    ],
)


def configure(stub: StubProvider, provider: str = "openai", **settings: Any) -> ModelConfig:
    return parse_model(f"{provider}:m", **{"base_url": stub.base_url(provider), **settings})


def case(stage: str = "idea") -> Case:
    return Case("small", stage, Task("alpha", "Alpha"))


def lay_case(folder: Path, stage: str, files: Mapping[str, str | bytes] | None = None) -> Path:
    """Lay a submission with *files* beside what the stage needs; return the workspace."""
    workspace = folder / "submission"
    for name, content in {**WORK[stage], **(files or {})}.items():
        path = workspace / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    return workspace


class Bench:
    """Reviews of what lies in *folder*, on one loop: to make a client takes longer than to ask."""

    def __init__(self, stub: StubProvider, runner: asyncio.Runner) -> None:
        self.stub = stub
        self.folder = Path()
        self.calls = Calls(Models(QUICK))
        self.runner = runner

    def judge(self, provider: str = "openai", **settings: Any) -> LLMJudge:
        known = ("hallucination", "budget", "rubrics", "evidence")
        own = {name: settings.pop(name) for name in known if name in settings}
        config = configure(self.stub, provider, **settings)
        return LLMJudge("anna", f"{provider}:m", config, self.calls, **own)

    def review(
        self,
        stage: str = "idea",
        files: Mapping[str, str | bytes] | None = None,
        judge: LLMJudge | None = None,
        evidence: Evidence | None = None,
    ) -> Answer:
        workspace = lay_case(self.folder, stage, files)
        work = Reviewable(case(stage), workspace, "files", None, evidence=evidence)
        return self.runner.run((judge or self.judge()).review(work))

    def prompt(self, stage: str = "idea", files: Mapping[str, str | bytes] | None = None) -> str:
        """All texts of the prompt of a review."""
        self.review(stage, files)
        return self.stub.requests[-1].text


def good(score: int = 7, stage: str = "idea", **changes: Any) -> dict[str, Any]:
    """A review as the schema asks for it."""
    by = rubric(stage)
    parts: dict[str, Any] = {
        name: {"justification": f"about {name}", "score": score} for name in by.names(stage)
    }
    parts["overall"] = {
        "strengths": ["short"],
        "weaknesses": ["old"],
        "justification": "on the whole",
        "score": score,
    }
    if by.hallucination:
        parts["hallucination"] = {"details": "", "has_hallucination": False}
    if by.confidence:
        parts["confidence"] = 4
    return {name: part for name, part in {**parts, **changes}.items() if part is not None}


def said(score: int = 7, stage: str = "idea", **changes: Any) -> str:
    return json.dumps(good(score, stage, **changes))


def blocks(prompt: str) -> dict[str, str]:
    """File → what stands between the fences around it; all else of the prompt under ````` ````."""
    opened = re.findall(r"^<<<mlr-material (\w+) begin (\d+)/(\d+)>>>$", prompt, re.MULTILINE)
    closed = re.findall(r"^<<<mlr-material (\w+) end (\d+)/(\d+)>>>$", prompt, re.MULTILINE)
    total = len(opened)
    # Exactly one of each, in order, all of one kind: anything else is a forgery that worked.
    assert opened == closed == [(opened[0][0], str(n), str(total)) for n in range(1, total + 1)]
    assert prompt.count("<<<mlr-material") == 2 * total
    found, rest, place = {}, [], 0
    pattern = rf"<<<mlr-material {opened[0][0]} begin (\d+)/\d+>>>\nfile: ([^\n]*)\n(.*?)"
    pattern += rf"\n<<<mlr-material {opened[0][0]} end \1/\d+>>>"
    for block in re.finditer(pattern, prompt, re.DOTALL):
        found[block[2]] = block[3].removeprefix("\n")
        rest.append(prompt[place : block.start()])
        place = block.end()
    assert len(found) == total
    return {**found, "": "".join([*rest, prompt[place:]])}
