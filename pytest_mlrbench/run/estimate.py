"""What a run would take, before anything is spent: calls, tokens and money, and what is assumed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pytest_mlrbench.run.plan import Plan
from pytest_mlrbench.spent import usd
from pytest_mlrbench.suites.select import Case
from pytest_mlrbench.suites.stages import CHAIN, STAGES

if TYPE_CHECKING:
    from pytest_mlrbench.models.config import ModelConfig

#: Characters of a text where it is not here yet: medians of the published runs (201 tasks, 118
#: ideas, reviews of literature and proposals, 18 reports, 22 logs, 5 papers).
TYPICAL = {
    "task.md": 2500,
    "idea.md": 1500,
    "related_work.md": 6300,
    "proposal.md": 10_000,
    "results/results.md": 3800,
    "results/log.txt": 3400,
    "results/paper.md": 18_300,
}
#: Code a judge is shown in experiments and end to end, and figures in those and papers.
CODE, FIGURES = 20_000, 4
#: Characters of English a token; tokens of an image, of a review, of our rubrics and words.
PER_TOKEN, IMAGE, REVIEW, RUBRIC = 4, 1600, 1500, 2500
#: Prompts and answers of the scaffold: stage → calls, tokens in, tokens out.
SCAFFOLD = {
    "idea": (1, 1500, 1500),
    "proposal": (1, 4000, 4000),
    "experiment": (0, 0, 0),
    "paper": (1, 15_000, 8000),
    "end_to_end": (3, 20_000, 14_000),
}


@dataclass
class _Sum:
    calls: int = 0
    input: int = 0
    output: int = 0

    def add(self, calls: int, tokens_in: int, tokens_out: int) -> None:
        self.calls += calls
        self.input += tokens_in
        self.output += tokens_out


def estimate(plan: Plan, cases: Sequence[Case]) -> list[str]:
    """Return lines for people: what measuring *cases* from nothing would take."""
    sums: dict[ModelConfig, _Sum] = {}
    for case in cases:
        for judge in plan.judges:
            if config := _model(judge):
                for one in _reviewed(plan, case):
                    calls, shown = _review(plan, one)
                    sums.setdefault(config, _Sum()).add(calls, calls * shown, calls * REVIEW)
        if plan.agent and (config := _model(plan.agent)):
            sums.setdefault(config, _Sum()).add(*SCAFFOLD[case.stage])
    counts = Counter(case.stage for case in cases)
    head = ", ".join(f"{number} of {stage}" for stage, number in counts.items())
    lines = [f"estimate for {len(cases)} cases ({head}); nothing has been asked or spent"]
    alone = _alone(plan, cases)
    if not sums:
        return [*lines, *(alone or ["  no model is asked: 0 calls"])]
    limits = plan.options.live
    limited = limits.max_cost is not None or limits.max_tokens is not None
    return [*lines, *_rows(sums, limited), *alone, *_assumed()]


def _alone(plan: Plan, cases: Sequence[Case]) -> list[str]:
    """What is not known of an agent that asks models by itself; nothing of one that does not."""
    number = sum(plan.rooms.asks_models(case.stage) for case in cases)
    if not plan.agent or not number:
        return []
    most = plan.options.sandbox.agent_max_cost
    bound = "--mlr-agent-max-cost bounds it in each case"
    if most is not None:
        each = f"{number} cases of {usd(most)}, --mlr-agent-max-cost"
        bound = f"at most {usd(number * most)} ({each}) apart from calls under way"
    who = getattr(plan.agent, "coder", None) or plan.agent
    return [f"  what {who.spec} spends on models by itself is not estimated: {bound}"]


def _model(who: object) -> ModelConfig | None:
    """The model that a judge or agent asks; null for one that asks none."""
    return getattr(who, "config", None)


def _reviewed(plan: Plan, case: Case) -> list[Case]:
    """The case, and the checkpoints in it that are scored too."""
    if case.stage != "end_to_end" or not plan.options.evidence.checkpoints:
        return [case]
    return [case, *(replace(case, stage=stage, chain=case.stage) for stage in CHAIN[:-1])]


def _review(plan: Plan, case: Case) -> tuple[int, int]:
    """How many calls a judge makes in *case*, and the tokens of the prompt of each."""
    stage = STAGES[case.stage]
    characters = sum(TYPICAL[name] for name in stage.shown)
    characters += CODE * stage.runs_code
    calls = 1 + (stage.has_figures and plan.options.hallucination)
    return calls, RUBRIC + characters // PER_TOKEN + stage.has_figures * FIGURES * IMAGE


def _held(config: ModelConfig, part: _Sum) -> str:
    """The worst case of one call, which has to fit into what is left of the budget."""
    from pytest_mlrbench.models.estimates import BYTES_PER_TOKEN, UNSAID
    from pytest_mlrbench.models.exchange import Usage
    from pytest_mlrbench.models.prices import cost_usd

    longest = part.input * PER_TOKEN // BYTES_PER_TOKEN // max(part.calls, 1)
    most = Usage(input=longest, output=config.max_tokens or UNSAID)
    cost = cost_usd(config, most)
    tokens = f"{longest + (config.max_tokens or UNSAID):,} tokens"
    return tokens if cost is None else f"{tokens}, {usd(cost)}"


def _rows(sums: dict[ModelConfig, _Sum], limited: bool) -> Iterator[str]:
    from pytest_mlrbench.models.exchange import Usage
    from pytest_mlrbench.models.prices import cost_usd, table_version

    known, unknown = 0.0, []
    for config, part in sums.items():
        usage = Usage(input=part.input, output=part.output, cached_input=0, reasoning=0)
        cost = cost_usd(config, usage)
        known += cost or 0.0
        unknown += [str(config)] * (cost is None)
        price = "price unknown" if cost is None else usd(cost)
        tokens = f"{part.input:,} tokens in, {part.output:,} out"
        yield f"  {config}: {part.calls} calls, {tokens}, {price}"
        if limited:
            yield f"    one call is held at up to {_held(config, part)} until it has ended"
    names = ", ".join(unknown)
    if unknown and not known:
        yield f"  what it costs is not known: no price of {names} ({table_version()})"
    else:
        more = f" and what {names} cost" if unknown else ""
        yield f"  together {usd(known)}{more} ({table_version()})"


def _assumed() -> list[str]:
    return [
        "  assumed: texts as long as the median of the published ones,"
        f" {FIGURES} figures, {REVIEW} tokens a review, no retries;",
        "  models that reason use several times as many tokens out",
    ]
