"""Judges that ask a model: ``anthropic:MODEL``, ``openai:MODEL``, ``google:MODEL``."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from pytest_mlrbench.agents.base import Agent
from pytest_mlrbench.errors import InputError, SystemFault
from pytest_mlrbench.evidence.options import EvidenceOptions
from pytest_mlrbench.evidence.table import table
from pytest_mlrbench.judges import hallucinations, llm_prompt
from pytest_mlrbench.judges.base import Reviewable
from pytest_mlrbench.judges.budget import Budget
from pytest_mlrbench.judges.hallucinations import Found
from pytest_mlrbench.judges.llm_answer import UnusableAnswer, document
from pytest_mlrbench.judges.llm_prompt import Question
from pytest_mlrbench.judges.llm_schema import normalised, violation
from pytest_mlrbench.judges.material import Material, gather, with_evidence
from pytest_mlrbench.judges.review import UNUSABLE, Answer, JudgeFault, parse_answer
from pytest_mlrbench.models.calls import Calls, Meter
from pytest_mlrbench.models.config import ModelConfig
from pytest_mlrbench.models.exchange import Completion, Prompt, Request
from pytest_mlrbench.models.registry import check
from pytest_mlrbench.run import digests
from pytest_mlrbench.run.examining import rules
from pytest_mlrbench.suites.rubrics import Rubric, rubric
from pytest_mlrbench.suites.select import Case
from pytest_mlrbench.suites.stages import STAGES

#: Tokens of an answer, reasoning included, where the user has not said otherwise.
MAX_TOKENS = 16_000

#: Modules that an answer depends on; not ``models``, where the same is asked in the same words.
_OURS = (
    *("budget", "fence", "figures", "hallucinations", "images", "llm", "llm_answer", "llm_prompt"),
    *("llm_schema", "material", "pdf", "pdf_pages", "reading"),
)
#: Settings that change how a model is reached and not what it says; headers may hold secrets.
_MEANS = {"base_url", "headers", "key_env", "timeout", "price_in", "price_out"}

T = TypeVar("T")


class LLMJudge:
    """A model as a judge: the rubric becomes a prompt, and its answer a checked review.

    :param calls: the models of the run.
    :param rubrics: a folder whose rubrics replace the shipped ones of the same name.
    :param hallucination: whether it is asked as well what was made up, where something was run.
    :param budget: how much of a submission it is shown.
    :param evidence: what is found out about results, and whether it is shown.
    """

    def __init__(
        self,
        judge_id: str,
        spec: str,
        config: ModelConfig,
        calls: Calls,
        rubrics: Path | None = None,
        *,
        hallucination: bool = False,
        budget: Budget | None = None,
        evidence: EvidenceOptions | None = None,
    ) -> None:
        self.id = judge_id
        self.spec = spec
        self.config = config
        self._calls = calls
        self._rubrics = rubrics
        self._hallucination = hallucination
        self._budget = budget or (Budget() if config.images else Budget(figures=0))
        # How it is found out; where it is not shown, answers do not depend on it.
        shown = evidence if evidence and evidence.is_shown else None
        self._found_by = [rules(), shown.asks, shown.replays] if shown else []
        self._questions: dict[str, Question] = {}
        self.digest = self._digest()

    def _digest(self) -> str:
        here = Path(__file__).parent
        files = [here / f"{name}.py" for name in _OURS] + sorted(llm_prompt.PROMPTS.glob("*.md"))
        return digests.of_json(
            {
                "id": self.id,  # it is a part of the fence
                "model": self.config.model_dump(exclude=_MEANS),
                "address": self.config.address,
                "hallucination": self._hallucination,
                "budget": asdict(self._budget),
                **({"evidence": self._found_by} if self._found_by else {}),
                "shown": {name: stage.shown for name, stage in STAGES.items()},
                "files": digests.of_files((path.name, path) for path in files),
            }
        )

    def rubric(self, stage: str) -> Rubric:
        """The stage's own rubric."""
        return rubric(stage, self._rubrics)

    def prepare(self, agent: Agent, cases: Sequence[Case]) -> None:
        """Make sure that the model can be asked and has something to read."""
        if not agent.has_files:
            raise InputError(
                f"judge {self.spec!r} reads files, and agent {agent.spec!r} has none: use"
                " --mlr-judge=published."
            )
        if not self._calls.is_replay:
            check(self.config)
        self._calls.check([self.config])

    async def review(self, work: Reviewable) -> Answer:
        """Have the model score one submission.

        :raises JudgeFault: no usable answer could be had; it knows what was said and used.
        :raises SystemFault: the paper is a PDF, and the library to read it is not installed.
        """
        stage = work.case.stage
        material = await self._material(work)
        talk = _Talk(self._calls, self.config, Meter(work.case.name, "judge", self.id))
        answer, found = await asyncio.gather(
            self._scores(talk, material, stage),
            self._made_up(talk, material, stage),
            return_exceptions=True,
        )
        spent = talk.meter.spent()
        if isinstance(answer, JudgeFault):
            raise JudgeFault(answer.cause, answer.message, said=answer.said, spent=spent) from None
        if isinstance(answer, BaseException):
            raise answer
        # Sorted: which of two calls ends first is a matter of chance.
        notices = [*material.notices, *sorted(talk.dropped)]
        if isinstance(found, SystemFault):
            notices.append(f"the hallucination review was not made: {found.message}")
        elif isinstance(found, BaseException):
            raise found
        elif found:
            answer = answer.model_copy(update={"hallucinations": found.hallucinations})
            notices += found.notices(material)
        update = {"notices": tuple(dict.fromkeys(notices)), "spent": spent}
        return answer.model_copy(update=update)

    async def _material(self, work: Reviewable) -> Material:
        """What is shown: gathered once for all judges of the work that see as much."""
        key = (Material, self._budget)
        if key not in work.shared:
            # In a thread: an agent may leave much, and other cases share this loop.
            work.shared[key] = asyncio.ensure_future(
                asyncio.to_thread(gather, work.workspace, work.case.stage, self._budget)
            )
        material: Material = await asyncio.shield(work.shared[key])
        if self._found_by and work.evidence:
            return with_evidence(material, table(work.evidence))
        return material

    async def _scores(self, talk: _Talk, material: Material, stage: str) -> Answer:
        by = self.rubric(stage)
        question = self._questions.get(stage) or llm_prompt.review_question(by, stage)
        self._questions[stage] = question

        def read(answer: Completion) -> Answer:
            return _review(answer, by, stage, question.schema)

        return await talk.document(question, material, "review", read)

    async def _made_up(self, talk: _Talk, material: Material, stage: str) -> Found | None:
        if not self._hallucination or not STAGES[stage].has_figures:
            return None
        question = llm_prompt.hallucination_question()
        return await talk.document(question, material, "hallucination", hallucinations.read)


def _review(answer: Completion, by: Rubric, stage: str, schema: Mapping[str, Any]) -> Answer:
    raw = document(answer)
    try:
        found = parse_answer(raw, by, stage)
    except SystemFault as fault:
        raise UnusableAnswer(fault.message.removesuffix(".")) from None
    # Scores are right; whether reasons are there is not asked of recorded reviews, but of a model.
    if why := violation(normalised(raw), schema):
        raise UnusableAnswer(why)
    return found


@dataclass
class _Talk:
    """The talk with one model about one submission.

    :param dropped: parameters that could not be sent, and why.
    """

    calls: Calls
    config: ModelConfig
    meter: Meter
    dropped: list[str] = field(default_factory=list)

    async def document(
        self,
        question: Question,
        material: Material,
        purpose: str,
        read: Callable[[Completion], T],
    ) -> T:
        """Return what *read* makes of the answer, which is asked for once more at most.

        :raises JudgeFault: there is no answer, or none that *read* can use.
        """
        prompt = llm_prompt.build(question, material, self.meter.who)
        request = Request(
            json_schema=dict(question.schema), max_tokens=self.config.max_tokens or MAX_TOKENS
        )
        said: list[str] = []

        async def ask(prompt: Prompt) -> Completion:
            try:
                answer = await self.calls.ask(
                    self.config, prompt, request, meter=self.meter, purpose=purpose
                )
            except SystemFault as fault:  # the model's, or one of the run, as a budget
                raise JudgeFault(fault.cause, fault.message, said=tuple(said)) from None
            said.append(answer.text)
            self.dropped += [f"{one.name}: {one.why}" for one in answer.dropped]
            return answer

        return await _twice(ask, read, prompt, str(self.config), said)


async def _twice(
    ask: Callable[[Prompt], Awaitable[Completion]],
    read: Callable[[Completion], T],
    prompt: Prompt,
    model: str,
    said: list[str],
) -> T:
    try:
        return read(answer := await ask(prompt))
    except UnusableAnswer as why:
        first, again = str(why), llm_prompt.ask_again(prompt, answer, str(why))
    except JudgeFault as fault:
        if fault.cause != "malformed":
            raise
        # What came is no answer of a model at all, as a page of the gateway before it.
        first = "what arrived was no answer"
        again = llm_prompt.ask_again(prompt, None, first)
    try:
        return read(await ask(again))
    except UnusableAnswer as why:
        message = f"no answer of {model} could be used: {first}; asked again, {why}."
        raise JudgeFault(UNUSABLE, message, said=tuple(said)) from None
