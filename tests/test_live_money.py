"""Whole runs with a budget: what they may spend, what they would spend, and going on with more."""

from __future__ import annotations

import signal
from collections import Counter

import pytest
from live import JUDGE, SCAFFOLD, Live, kill, until

from pytest_mlrbench.models.budget import Budget, Counted
from pytest_mlrbench.models.shared import SharedState
from pytest_mlrbench.stub import replies
from pytest_mlrbench.stub.replies import Reply, Tokens

pytest_plugins = ["live_bench"]

ANY = "--mlr-threshold=overall>=1"
NO_PREFLIGHT = "--mlr-no-preflight"
IDEAS = ("--mlr-stage=idea", SCAFFOLD, JUDGE, ANY)
PRICED = "--mlr-model=openai:* price_in=1 price_out=10 max_tokens=600"
#: An answer uses what one of a real model would, and a call costs that much.
USUAL = Reply(tokens=Tokens(input=2000, output=500, cached=0, reasoning=0), delay=0.02)
COST = (2000 * 1 + 500 * 10) / 1e6


def counted(live: Live) -> Counted:
    """What the last run has spent by its own account."""
    state = SharedState(live.repo.runs[-1].path / "shared.json")
    return Budget(None, None, state).counted()


def spent(live: Live) -> float:
    """What the results of the last run say that they cost."""
    parts = [(found.spent_agent, found.spent_judge) for found in live.results().values()]
    return sum(part.cost_usd or 0 for both in parts for part in both if part is not None)


def causes(live: Live) -> Counter[str]:
    return Counter(found.fault.cause for found in live.results().values() if found.fault)


@pytest.mark.parametrize(
    "more",
    [("--mlr-concurrency=8",), pytest.param(("-n4",), marks=pytest.mark.slow)],
    ids=["at once", "workers"],
)
def test_a_run_spends_no_more_than_it_may(live: Live, more: tuple[str, ...]) -> None:
    live.stub.script = USUAL
    run = (*IDEAS, live.lay_tasks(16), PRICED, NO_PREFLIGHT)
    limit = 0.15  # of 32 calls that cost 0.224 together
    result = live.run(*run, "--mlr-max-cost=0.15", *more, code=1)
    used = len(live.stub.requests) * COST
    print(f"\n{len(live.stub.requests)} calls cost ${used:.4f} of ${limit} {causes(live)}")
    assert 0.75 * limit < used <= limit
    assert counted(live).usd == pytest.approx(used)
    assert spent(live) == pytest.approx(used)
    results = live.results().values()
    parts = [part for found in results for part in (found.spent_agent, found.spent_judge) if part]
    assert sum(part.calls for part in parts) == len(live.stub.requests)  # one refused is none
    assert len(results) == 16
    assert {found.verdict for found in results} == {"pass", "not_measured"}
    assert set(causes(live)) == {"budget"}
    assert causes(live)["budget"] >= 1
    for found in results:
        if found.fault is not None:
            assert (found.fault.blame, found.overall) == ("system", None)
            assert "of the budget of $0.1500 are spent" in found.fault.message
    result.stdout.fnmatch_lines(["idea   */16 *", "*idea not measured:*budget*"])
    # A higher limit, and it goes on where the money was at its end.
    live.run(*run, "--mlr-max-cost=2", "--mlr-resume", *more, code=0)
    assert len(live.stub.requests) == 32
    assert Counter(found.verdict for found in live.results().values()) == {"pass": 16}
    assert counted(live).usd == pytest.approx(32 * COST)
    assert spent(live) == pytest.approx(32 * COST)
    total = live.report()["summary"][0]["spent"]
    assert total["agent"]["cost_usd"] + total["judge"]["cost_usd"] == pytest.approx(32 * COST)


@pytest.mark.slow
def test_the_same_limit_buys_nothing_more(live: Live) -> None:
    live.stub.script = USUAL
    run = (*IDEAS, live.lay_tasks(8), PRICED, NO_PREFLIGHT, "--mlr-max-cost=0.05")
    live.run(*run, code=1)
    before = len(live.stub.requests)
    live.run(*run, "--mlr-resume", code=1)
    assert len(live.stub.requests) == before
    assert counted(live).usd <= 0.05


def test_tokens_can_be_bounded_without_any_price(live: Live) -> None:
    live.stub.script = USUAL
    run = (*IDEAS, live.lay_tasks(12), NO_PREFLIGHT, "--mlr-model=openai:* max_tokens=600")
    live.run(*run, "--mlr-max-tokens=40000", "--mlr-concurrency=4", code=1)
    used = len(live.stub.requests) * 2500
    assert 30_000 < used <= 40_000
    assert counted(live).tokens == used
    assert causes(live)["budget"] >= 1
    told = [found.fault.message for found in live.results().values() if found.fault]
    assert all("tokens of the budget of 40,000 are used" in words for words in told)


def test_a_preflight_counts_as_well(live: Live) -> None:
    live.stub.script = USUAL
    live.run(*IDEAS, PRICED, "--mlr-max-cost=1", "--mlr-limit=1", code=0)
    assert live.asked() == {"preflight": 2, "agent": 1, "judge": 1}
    assert counted(live).usd == pytest.approx(4 * COST)
    assert spent(live) == pytest.approx(2 * COST)


def test_a_limit_below_one_call_buys_none(live: Live) -> None:
    result = live.run(*IDEAS, PRICED, "--mlr-max-cost=0.0001", NO_PREFLIGHT, "--mlr-limit=3")
    assert result.ret == 1
    assert live.asked() == {}
    assert sum(causes(live).values()) == 3
    refused = live.run(*IDEAS, PRICED, "--mlr-max-cost=0.0001", "--mlr-limit=3")
    assert refused.ret == pytest.ExitCode.USAGE_ERROR
    assert "raise the budget, or lower" in refused.stderr.str()
    assert live.asked() == {}


def test_what_has_no_price_has_no_limit_in_dollars(live: Live) -> None:
    result = live.run(*IDEAS, "--mlr-max-cost=1")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    (sentence,) = [line for line in result.errlines if line.strip()]
    assert "has no known price" in sentence
    assert "price_in" in sentence
    assert "--mlr-max-tokens" in sentence
    assert live.asked() == {}
    assert live.repo.runs == []


def test_what_may_have_been_paid_counts_at_its_worst(live: Live) -> None:
    live.stub.script = {1: replies.truncated()}
    live.run(*IDEAS, PRICED, "--mlr-max-cost=1", NO_PREFLIGHT, "--mlr-limit=1", code=0)
    assert len(live.stub.requests) == 3
    assert counted(live).usd > 600 * 10 / 1e6
    assert spent(live) == pytest.approx(2 * (11 + 70) / 1e6)  # what is known of the answers


@pytest.mark.parametrize(
    ("more", "line"),
    [
        ((), "2 calls were cut off in all sessions; nobody says what that cost"),
        (
            ("--mlr-max-cost=9",),
            "2 calls were cut off in all sessions; nobody says what that cost: at most $0.50*",
        ),
    ],
    ids=["without a maximum", "with one"],
)
def test_calls_that_were_cut_off_are_told_of(live: Live, more: tuple[str, ...], line: str) -> None:
    run = (*IDEAS, PRICED, *more, "--mlr-limit=1")
    live.run(*run, code=0)
    with SharedState(live.repo.runs[-1].path / "shared.json").change() as content:
        content["budget"]["cut"] = {"calls": 2, "nano": 500_000_000 * bool(more), "tokens": 0}
    live.run(*run, "--mlr-resume", code=0).stdout.fnmatch_lines([line])


@pytest.mark.slow
@pytest.mark.parametrize("workers", [(), ("-n2",)], ids=["alone", "workers"])
def test_a_killed_run_keeps_its_accounts(live: Live, workers: tuple[str, ...]) -> None:
    live.stub.script = Reply(tokens=USUAL.tokens, delay=0.2)
    run = (*IDEAS, live.lay_tasks(40), PRICED, NO_PREFLIGHT, "--mlr-max-cost=9")
    process = live.start(*run, *workers)
    until(lambda: len(live.stub.requests) >= 40 or process.poll() is not None, 120)
    assert kill(process) == -signal.SIGKILL
    until(lambda: live.stub.in_flight == 0)
    asked = len(live.stub.requests)
    used = counted(live)
    print(f"\n{asked} calls: {used}")
    # A few more may have been about to be sent.
    assert asked <= round(used.usd / COST) + used.cut_calls <= asked + 16
    live.stub.script = USUAL
    result = live.run(*run, "--mlr-resume", *workers, code=0)
    result.stdout.fnmatch_lines([f"{used.cut_calls} calls were cut off*at most $*"])
    after = counted(live)
    assert after.held_usd == 0
    assert round(after.usd / COST) + used.cut_calls >= len(live.stub.requests)


def test_an_estimate_asks_nobody_and_leaves_nothing(live: Live) -> None:
    live.unset("OPENAI_API_KEY", "OPENAI_BASE_URL")
    run = ("--mlr-stage=idea,paper", "--mlr-agent=scaffold:openai/gpt-5", JUDGE, ANY)
    result = live.run(*run, "--mlr-hallucination", "--mlr-estimate", code=0)
    result.stdout.fnmatch_lines(
        [
            "estimate for 12 cases (6 of idea, 6 of paper); nothing has been asked or spent",
            "*openai:judge-x: 18 calls, * tokens in, * out, price unknown",
            "*openai:gpt-5: 12 calls, * tokens in, * out, $*",
            "*together $* and what openai:judge-x cost (genai-prices *)",
        ]
    )
    assert live.asked() == {}
    assert live.repo.runs == []
    assert not (live.path / "report.json").exists()


def test_an_estimate_stands_instead_of_a_run_under_workers_too(live: Live) -> None:
    result = live.run(*IDEAS, "--mlr-limit=3", "--mlr-estimate", "-n2", code=0)
    result.stdout.fnmatch_lines(["estimate for 3 cases (3 of idea)*"])
    assert live.asked() == {}
    assert live.repo.runs == []


@pytest.mark.parametrize(
    ("cap", "words"),
    [
        ((), "--mlr-agent-max-cost bounds it in each case"),
        (
            ("--mlr-agent-max-cost=2.5",),
            "at most $15.00 (6 cases of $2.50, --mlr-agent-max-cost) apart from calls under way",
        ),
    ],
    ids=["no cap", "cap"],
)
def test_an_estimate_says_what_it_does_not_know_of_agents_that_ask_by_themselves(
    live: Live, cap: tuple[str, ...], words: str
) -> None:
    codex = "--mlr-agent=codex:gpt-5"
    result = live.run("--mlr-stage=idea", codex, JUDGE, ANY, "--mlr-estimate", *cap, code=0)
    said = f"  what codex:gpt-5 spends on models by itself is not estimated: {words}"
    assert said in result.outlines
    result.stdout.fnmatch_lines(["  openai:judge-x: 6 calls, *", "  what it costs is not known*"])


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--mlr-agent=cmd:sh agent.sh"], None),
        (["--mlr-agent=cmd:sh agent.sh", "--mlr-network=models"], "cmd:sh agent.sh"),
        ([SCAFFOLD, "--mlr-coder=cmd:sh agent.sh"], None),
        ([SCAFFOLD, "--mlr-coder=codex"], "codex"),
    ],
    ids=["no network", "network", "coder without", "coder"],
)
def test_of_which_agents_an_estimate_says_so(
    live: Live, options: list[str], said: str | None
) -> None:
    """Of those that reach models, and for the cases in which they do."""
    # Typed for a run whose commands ask no models, it would be refused.
    ini = "[pytest]\nmlr_agent_max_cost = 0.5\n"
    live.repo.lay({"agent.sh": "exit 1", "pytest.ini": ini})
    stages = "--mlr-stage=idea,experiment"
    if SCAFFOLD in options:
        stages = "--mlr-stage=idea,end_to_end"
    result = live.run(stages, *options, "--mlr-limit=2", ANY, "--mlr-estimate", code=0)
    lines = [line for line in result.outlines if "by itself" in line]
    if said is None:
        assert lines == []
    else:
        (line,) = lines
        assert line.startswith(f"  what {said} spends on models by itself is not estimated")
        assert "at most $1.00 (2 cases of $0.5000, --mlr-agent-max-cost)" in line
        assert "no model is asked" not in result.stdout.str()
