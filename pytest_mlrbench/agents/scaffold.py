"""``scaffold:PROVIDER/MODEL``: a language model that writes ideas, reviews, proposals and papers.

It runs no code. Experiments, by themselves or within an end-to-end case, are another agent's: the
coder.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path

from pytest_mlrbench.agents import scaffold_openalex as openalex
from pytest_mlrbench.agents import scaffold_prompts as prompts
from pytest_mlrbench.agents import scaffold_stages as stages
from pytest_mlrbench.agents.base import Agent, Assignment
from pytest_mlrbench.agents.needs import Needs, needs_of
from pytest_mlrbench.agents.scaffold_asking import Asking, Log
from pytest_mlrbench.agents.scaffold_author import Author, case_files, content_of
from pytest_mlrbench.agents.scaffold_literature import SEARCHES
from pytest_mlrbench.agents.scaffold_steps import Steps
from pytest_mlrbench.errors import AgentFault, InputError
from pytest_mlrbench.models import registry
from pytest_mlrbench.models.calls import Calls, Meter
from pytest_mlrbench.models.config import PROVIDERS, ModelConfig
from pytest_mlrbench.run import digests
from pytest_mlrbench.run.examining import rules
from pytest_mlrbench.sandbox.contents import Content
from pytest_mlrbench.spent import Spent
from pytest_mlrbench.suites.select import Case
from pytest_mlrbench.suites.stages import STAGES

#: Kinds of agents that ask no model, so that they cost nothing.
_FREE = ("reference", "null", "parrot", "fabricator", "replay")


def model_of(spec: str) -> str:
    """Return the model a spec names, as ``Settings`` takes it: ``openai:gpt-5``.

    :raises InputError: it names none.
    """
    provider, _, model = spec.removeprefix("scaffold:").strip().partition("/")
    if not spec.startswith("scaffold:") or provider not in PROVIDERS or not model:
        raise InputError(
            f"agent {spec!r} must be of the form scaffold:PROVIDER/MODEL, where PROVIDER is one of"
            f" {', '.join(PROVIDERS)}."
        )
    return f"{provider}:{model}"


class ScaffoldAgent:
    """A model behind our prompts.

    :param config: the model.
    :param calls: the run's.
    :param search: where literature is searched for in end-to-end cases; empty for nowhere.
    :param coder: runs experiments; null where none are asked for.
    :param stops: whether results that nothing executed supports end an end-to-end case.
    :raises InputError: there is no such search.
    """

    needs_inputs = True
    has_files = True
    system: str | None = None

    def __init__(
        self,
        spec: str,
        base: Path,
        config: ModelConfig,
        calls: Calls,
        *,
        search: str = "",
        coder: Agent | None = None,
        stops: bool = False,
    ) -> None:
        if search and search not in SEARCHES:
            raise InputError(
                f"there is no literature search {search!r}: write {', '.join(SEARCHES)}, or nothing"
                " for none (the search tools of models themselves are not supported)."
            )
        self.spec = spec
        self.base = base
        self.config = config
        self.search = search
        self.coder = coder
        self._stops = stops
        self._calls = calls
        self._authors: dict[str, Author] = {}

    def prepare(self, cases: Sequence[Case]) -> None:
        """Check the model, the search and the coder, without asking any of them."""
        asked = dict.fromkeys(case.stage for case in cases)
        if not self._calls.is_replay:
            registry.check(self.config)
        self._calls.check([self.config])
        if self.search and "end_to_end" in asked:
            openalex.check()
        if runs := [stages.experiment_of(case) for case in cases if STAGES[case.stage].runs_code]:
            coder = self._coder(next(stage for stage in asked if STAGES[stage].runs_code))
            if not coder.has_files:
                raise InputError(
                    f"agent {coder.spec!r} leaves no files, so it runs no experiments."
                )
            coder.prepare(runs)

    def _coder(self, stage: str) -> Agent:
        if self.coder is None:
            raise InputError(
                f"agent {self.spec!r} writes no code, and stage {stage} needs some: name who runs"
                " the experiments with --mlr-coder SPEC."
            )
        return self.coder

    def digest(self, case: Case) -> str | None:
        """Digest of model, prompts and code; of search and coder where the stage has them."""
        coder = None
        if STAGES[case.stage].runs_code:
            agent = self._coder(case.stage)
            if (content := agent.digest(stages.experiment_of(case))) is None:
                return None
            coder = [agent.spec, content]
        chained = [self.search, self._stops, rules()] if case.stage == "end_to_end" else [""]
        return digests.of_json([self._content, *chained, coder])

    @property
    def needs(self) -> Needs | None:
        """What the coder needs; texts are written in this process."""
        coder = needs_of(self.coder) if self.coder else None
        return replace(coder, otherwise=None) if coder else None

    def check_here(self) -> None:
        """Make sure that the coder is on this machine.

        :raises InputError: it is not.
        """
        if check := getattr(self.coder, "check_here", None):
            check()

    def image_contents(self) -> list[Content]:
        """Return what containers must have for the coder.

        :raises InputError: a file that it names is not on this machine.
        """
        ask: Callable[[], list[Content]] = getattr(self.coder, "image_contents", list)
        return ask()

    @property
    def given(self) -> Mapping[Path, int]:
        """The files that containers are given for the coder."""
        return getattr(self.coder, "given", {})

    @property
    def waits(self) -> bool:
        """Whether it only waits for others, so that many cases can be under way at once."""
        return self.coder is None or getattr(self.coder, "waits", False)

    @cached_property
    def _content(self) -> str:
        code = [(path.name, path) for path in Path(__file__).parent.glob("scaffold*.py")]
        own = [content_of(self.config), prompts.TEMPLATES.digest, digests.of_files(code)]
        return digests.of_json(own)

    def spent(self, case: Case) -> Spent | None:
        """Return what the answer to *case* took, kept steps and coder included; null if unknown.

        A kept step was paid for in an earlier try, so this may be more than the calls of today.
        """
        parts = []
        if author := self._authors.get(case.name):
            parts.append(author.asking.meter.spent())
        if STAGES[case.stage].runs_code and (coder := self.coder):
            ask = getattr(coder, "spent", None)
            known = ask(stages.experiment_of(case)) if ask else None
            free = coder.spec.partition(":")[0] in _FREE
            parts.append(known or (Spent.total(()) if free else Spent(calls=0, attempts=0)))
        return Spent.total(parts) if parts else None

    async def run(self, case: Case, work: Assignment) -> None:
        """Answer one case."""
        if case.stage == "experiment":
            await self._coder(case.stage).run(case, work)
            return
        author = self._authors[case.name] = self._author(case, work)
        try:
            async with asyncio.timeout(work.seconds_left) as limit:
                await self._write(case, author)
        except TimeoutError:
            if not limit.expired():
                raise
            author.log.say("the deadline has passed")
            raise AgentFault("timeout", "the agent did not end before its deadline.") from None

    async def _write(self, case: Case, author: Author) -> None:
        if case.stage == "end_to_end":
            coder = self._coder(case.stage)
            await stages.end_to_end(author, case, coder, self.search, stops=self._stops)
            return
        steps = {"idea": stages.idea, "proposal": stages.proposal, "paper": stages.paper}
        await steps[case.stage](author)

    def _author(self, case: Case, work: Assignment) -> Author:
        calls, steps = case_files(work)
        log, meter = Log(work.log), Meter(case.name, "agent", self.spec)
        asking = Asking(self.config, self._calls, meter, log, calls)
        return Author(work, asking, Steps(steps), log)
