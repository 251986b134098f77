"""The plan of a run: all that was asked for, found and checked before the first case."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from pytest_mlrbench.agents.base import Agent
from pytest_mlrbench.agents.function import FunctionAgent
from pytest_mlrbench.agents.needs import needs_of
from pytest_mlrbench.agents.replay import ReplayAgent
from pytest_mlrbench.agents.specs import make_agent
from pytest_mlrbench.errors import InputError
from pytest_mlrbench.fetching.verify import check_files
from pytest_mlrbench.fetching.wanted import WITH_RESULTS, tasks_with_results
from pytest_mlrbench.judges.base import Judge
from pytest_mlrbench.judges.kinship import Kinship, author_of, kin, warning
from pytest_mlrbench.judges.specs import make_judges
from pytest_mlrbench.options import Options
from pytest_mlrbench.run.live import Live
from pytest_mlrbench.run.thresholds import DEFAULT, EVIDENCE, RECORDED, Threshold, check_names
from pytest_mlrbench.sandbox.given import check_given
from pytest_mlrbench.sandbox.rooms import Rooms
from pytest_mlrbench.sandbox.together import check_replay
from pytest_mlrbench.spent import usd
from pytest_mlrbench.suites.choice import select_tasks
from pytest_mlrbench.suites.loading import load_suite
from pytest_mlrbench.suites.rubrics import Rubric, stage_rubrics
from pytest_mlrbench.suites.select import Case, make_cases, parse_stages
from pytest_mlrbench.suites.stages import STAGES
from pytest_mlrbench.suites.tasks import Suite, share

#: As ``--mlr-agent`` or ``--mlr-judge``: the user's fixture of that name gives it.
FIXTURE = "fixture"
#: How many cases are under way at once where they wait for models and nothing else.
CONCURRENCY = 16


@dataclass(frozen=True)
class Plan:
    """What will be run. *agent* is null, or *judges* empty, where a fixture gives them."""

    options: Options
    suite: Suite
    stages: tuple[str, ...]
    cases: tuple[Case, ...]
    agent: Agent | None
    judges: tuple[Judge, ...]
    thresholds: tuple[Threshold, ...]
    rubrics: Mapping[str, Rubric]
    live: Live
    rooms: Rooms

    @classmethod
    def make(cls, options: Options) -> Plan:
        """Load and check what *options* name.

        :raises InputError: the first thing that cannot be used.
        """
        stages = parse_stages(options.stage)
        suite = load_suite(options.suite, options.bases["suite"], options.tasks_dir)
        tasks = select_tasks(suite, options.choice)
        if options.rerun and not options.resume:
            raise InputError("--mlr-rerun runs cases of an earlier run again: add --mlr-resume.")
        if options.evidence.asks:
            from pytest_mlrbench.evidence.papers.resolver import check

            check()
        live = Live(options)
        agent = None
        if options.agent != FIXTURE:
            agent = make_agent(options.agent, options.bases["agent"], live)
        judges: Sequence[Judge] = ()
        if options.judge != (FIXTURE,):
            judges = make_judges(
                options.judge, options.bases["judge"], stages, options.rubrics, live
            )
        if options.rubrics or not judges:  # the user's own are read even where no judge asks
            rubrics = dict(stage_rubrics(options.rubrics))
        if judges:
            rubrics = {stage: judges[0].rubric(stage) for stage in STAGES}
        cases = make_cases(suite, stages, tasks, options.repeats)
        needs = needs_of(agent) if agent else None
        resuming = bool(options.resume)
        rooms = Rooms(options.sandbox, options.agent, needs, stages, live, resuming=resuming)
        if options.evidence.replays and agent:
            check_replay(rooms, options.agent)
        rules = options.threshold or _defaults(stages, rooms, agent)
        thresholds = tuple(Threshold.parse(text) for text in rules)
        check_names(thresholds, rubrics, stages)
        return cls(
            options, suite, stages, cases, agent, tuple(judges), thresholds, rubrics, live, rooms
        )

    def prepare(self) -> None:
        """Check that agent and judges can work; once per run, since it may take a while.

        :raises InputError: one of them cannot.
        """
        if self.agent:
            if self.agent.needs_inputs:
                self._need_inputs(self.agent)
                self._check_inputs()
            prepare(self.agent, self.rooms, self.cases)
        agent: Agent = self.agent or FunctionAgent(_unknown)
        for judge in self.judges:
            judge.prepare(agent, self.cases)

    def _need_inputs(self, agent: Agent) -> None:
        """Refuse a run in which no case has its inputs; where only some do, those are measured."""
        if len(self.lacking) == len(self.cases):
            first = (self._attainable or self.lacking)[0]
            missing = ", ".join(self.suite.missing_inputs(first.task, STAGES[first.stage]))
            raise InputError(
                f"suite {self.suite.name!r} has no {missing} for {first.name} (inputs are missing"
                f" for {len(self.lacking)} of {len(self.cases)} cases), and agent {agent.spec!r}"
                f" needs them: {self._remedy}."
            )

    def _check_inputs(self) -> None:
        """Refuse files that are not the published ones: scores of other tasks are other scores."""
        tasks = dict.fromkeys(case.task for case in self.cases)
        if faults := check_files(self.suite, list(tasks), self.stages):
            verify = f"mlrbench tasks verify {self.options.tasks_dir or ''}".strip()
            more = f" ({len(faults) - 1} more: `{verify}`)" if faults[1:] else ""
            raise InputError(faults[0] + more)

    @property
    def _remedy(self) -> str:
        """How to get the inputs of the first case that lacks some."""
        if self.suite.source:
            return self._fetch
        case, folder = self.lacking[0], self.suite.folder
        missing = self.suite.missing_inputs(case.task, STAGES[case.stage])
        places = [f"{folder}/tasks/{case.task.id}.md"] * ("task.md" in missing)
        places += [f"{folder}/inputs/{case.task.id}/{n}" for n in missing if n != "task.md"]
        return f"add {', '.join(places)}" + ", and so for the others" * (len(self.lacking) > 1)

    @property
    def _fetch(self) -> str:
        """The command that gets what is published, and what that is not."""
        never = len(self.lacking) - len(self._attainable)
        results = f"published for the ten tasks of {WITH_RESULTS} only: --mlr-suite={WITH_RESULTS}"
        if not self._attainable:
            return f"the results a paper starts from are {results}"
        words = f"mlrbench tasks fetch --stage {','.join(self.stages)}"
        if self.options.tasks_dir:
            fetch = f"run `{words} --tasks-dir {self.options.tasks_dir}`"
        else:
            fetch = f"run `{words}`, or give a checkout with --mlr-tasks-dir"
        return f"{fetch}; {never} of them need results, {results}" if never else fetch

    @cached_property
    def _attainable(self) -> Sequence[Case]:
        """The cases that lack inputs, all of which are published or the user's to add."""
        if not self.suite.source or not any("results" in STAGES[s].inputs for s in self.stages):
            return self.lacking
        ten = tasks_with_results()
        return [
            case
            for case in self.lacking
            if case.task.id in ten
            or "results" not in self.suite.missing_inputs(case.task, STAGES[case.stage])
        ]

    @cached_property
    def lacking(self) -> tuple[Case, ...]:
        """The cases for which an input of their stage is not here."""
        missing = self.suite.missing_inputs
        return tuple(case for case in self.cases if missing(case.task, STAGES[case.stage]))

    def check_rubrics(self, judge: Judge) -> None:
        """A run has one rubric a stage; a judge from a fixture must score by it too.

        :raises InputError: it does not.
        """
        for stage in self.stages:
            if judge.rubric(stage).digest != self.rubrics[stage].digest:
                raise InputError(
                    f"judge {judge.id!r} of the fixture mlr_judges scores {stage} by another rubric"
                    " than the run: give rubrics with --mlr-rubrics."
                )

    @cached_property
    def kin(self) -> Mapping[str, Kinship]:
        """Judge id → how it is related to who made the work."""
        return kin(author_of(self.agent) if self.agent else FIXTURE, self.judges)

    @property
    def concurrency(self) -> int:
        """How many cases to have under way at once, if the user does not say.

        More than one only where agent and judges but wait for others.
        """
        return CONCURRENCY if self.live.models and getattr(self.agent, "waits", False) else 1

    @property
    def demo(self) -> bool:
        """Whether this is the embedded demonstration, whose scores say nothing about an agent."""
        return self.options.agent == "reference" and self.options.judge == ("checklist",)

    def asserted(self, stage: str) -> list[str]:
        """Return the thresholds asserted in *stage*, as text."""
        names = self.rubrics[stage].names(stage)
        return [t.rule for t in self.thresholds if t.applies(stage, names)]

    def describe(self) -> list[str]:
        """Return lines that say what will be run, for people."""
        chosen = len({case.task.id for case in self.cases})
        part = share(chosen, len(self.suite.tasks), self.suite.benchmark)
        if said := self.options.choice.describe():
            part += f", {said}"
        parts = [
            f"suite {self.suite.name} ({part})",
            ", ".join(self.stages),
            f"agent {self.options.agent}{self._whose}",
            "judges " + (", ".join(judge.id for judge in self.judges) or FIXTURE),
        ]
        if self.options.repeats > 1:
            parts.insert(2, f"{self.options.repeats} repeats")
        limits = self.options.live
        if self.live.models and limits.max_cost is not None:
            parts.append(f"at most {usd(limits.max_cost)}")
        if self.live.models and limits.max_tokens is not None:
            parts.append(f"at most {limits.max_tokens:,} tokens")
        if self.live.replays:
            parts.append(f"calls replayed from {limits.replay}: nobody is asked or paid")
        if self.demo:
            parts.append("DEMO")
        return [
            "mlrbench: " + " · ".join(parts),
            *self.rooms.describe(),
            *self._describe_lacking(),
            *(f"mlrbench: {warning(name, related)}" for name, related in self.kin.items()),
            *self._describe_thresholds(),
        ]

    @property
    def _whose(self) -> str:
        author = author_of(self.agent) if self.agent else self.options.agent
        if author != self.options.agent:
            return f" (work of {author})"
        return f" (experiments by {self.options.coder})" if self.options.coder else ""

    def _describe_lacking(self) -> list[str]:
        if not self.lacking or not (self.agent is None or self.agent.needs_inputs):
            return []
        return [
            f"mlrbench: {len(self.lacking)} of {len(self.cases)} cases lack inputs, and will not be"
            f" measured: {self._remedy}"
        ]

    def _describe_thresholds(self) -> list[str]:
        by_rule: dict[str, list[str]] = {}
        for stage in self.stages:
            by_rule.setdefault(", ".join(self.asserted(stage)) or "none", []).append(stage)
        rules = [f"{rule} in {', '.join(stages)}" for rule, stages in by_rule.items()]
        if len(by_rule) == 1:
            rules = list(by_rule)
        default = _defaults(self.stages, self.rooms, self.agent)
        own = [str(threshold) for threshold in self.thresholds] != list(default)
        replaced = f" (in place of {' and '.join(default)})" if own else ""
        return [f"mlrbench: thresholds{replaced}: " + "; ".join(rules)]


def _defaults(stages: Sequence[str], rooms: Rooms, agent: Agent | None) -> tuple[str, ...]:
    """The thresholds where the user gives none: with a record of what ran, something has to have.

    A run that is judged again keeps its lines of evidence, since its record lies beside its work.
    """
    if isinstance(agent, ReplayAgent):
        stored = (Threshold.parse(text) for text in agent.rules)
        kept = (t for t in stored if t.name == EVIDENCE and any(t.applies(s, ()) for s in stages))
        return (DEFAULT, *map(str, kept))
    recorded = rooms.uses("docker") and "experiment" in stages
    return (DEFAULT, RECORDED) if recorded else (DEFAULT,)


def prepare(agent: Agent, rooms: Rooms, cases: Sequence[Case]) -> None:
    """Check, once per run, that *agent* can work, and *rooms* give it what it needs.

    :raises InputError: one of them cannot.
    """
    wanted = getattr(agent, "image_contents", tuple) if rooms.uses("docker") else tuple
    rooms.prepare(wanted())
    if given := getattr(agent, "given", None) if rooms.uses("docker") else None:
        check_given(given, rooms.container.outside)
    if rooms.uses("local") and (check := getattr(agent, "check_here", None)):
        check()
    agent.prepare(cases)


def _unknown(assignment: object) -> None:
    """Stands for the agent a fixture will give."""
