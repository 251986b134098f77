"""Whole runs in which models, keys, servers or the run itself fail: no case is lost or made up."""

from __future__ import annotations

import json
import random
import signal
import socket
import sys
from collections import Counter
from typing import Any

import pytest
from live import JUDGE, KEYS, SCAFFOLD, TWO_JUDGES, Live, files, kill, kind, scripted, until
from llm_builders import good, said

from pytest_mlrbench.judges.review import Review, UnusableReview
from pytest_mlrbench.run.folder import RunFolder, read_model
from pytest_mlrbench.stub import replies
from pytest_mlrbench.stub.replies import Reply
from pytest_mlrbench.stub.wire import Received

pytest_plugins = ["live_bench"]

ANY = "--mlr-threshold=overall>=1"
IDEAS = ("--mlr-stage=idea", SCAFFOLD, ANY)
NO_PREFLIGHT = "--mlr-no-preflight"


def slow(*of: object) -> Any:
    return pytest.param(*of, marks=pytest.mark.slow)


def refused(result: pytest.RunResult) -> str:
    """The one sentence that a run which could not begin has said."""
    assert result.ret == pytest.ExitCode.USAGE_ERROR, result.stdout.str()
    lines = [line for line in result.errlines if line.strip()]
    assert len(lines) == 1, result.stderr.str()
    assert lines[0].startswith("ERROR: ")
    assert lines[0].endswith(".")
    return lines[0]


def nobody_is_there() -> str:
    """An address where no server is."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{taken.getsockname()[1]}/v1"


# Before the first case


@pytest.mark.parametrize(
    ("reply", "words"),
    [
        (replies.failing(401), ("openai:judge-x", "OPENAI_API_KEY", "set a key")),
        (replies.failing(404), ("openai:judge-x", "check the name of the model")),
        (replies.failing(500), ("openai:judge-x", "try again later", NO_PREFLIGHT)),
    ],
    ids=["wrong key", "unknown model", "down"],
)
@pytest.mark.parametrize("workers", [(), slow(("-n2",))], ids=["alone", "workers"])
def test_a_model_that_cannot_be_used_ends_the_run_before_it_begins(
    live: Live, reply: Reply, words: tuple[str, ...], workers: tuple[str, ...]
) -> None:
    own = live.lay_agent()
    live.stub.script = reply
    sentence = refused(live.run(*own, JUDGE, *workers))
    for word in words:
        assert word in sentence
    assert set(live.asked()) == {"preflight"}
    assert live.agents == []
    assert live.repo.runs == []


@pytest.mark.slow
def test_a_wrong_key_is_noticed_under_workers_too(live: Live) -> None:
    own = live.lay_agent()
    live.stub.script = replies.failing(401)
    assert "OPENAI_API_KEY" in refused(live.run(*own, JUDGE, "-n1"))
    assert live.asked() == {"preflight": 1}
    assert live.repo.runs == []


@pytest.mark.slow
def test_all_models_that_cannot_be_used_are_named(live: Live) -> None:
    live.stub.script = replies.failing(404)
    sentence = refused(live.run(*IDEAS, JUDGE, *TWO_JUDGES))
    assert "(nor can openai:judge-x, anthropic:claude-x, google:gemini-x be used)" in sentence
    assert live.asked() == {"preflight": 4}


def test_a_model_without_eyes_is_no_judge_of_figures(live: Live) -> None:
    live.stub.script = lambda asked: replies.failing(400) if asked.images else None
    sentence = refused(live.run("--mlr-stage=paper", SCAFFOLD, JUDGE))
    assert "takes no images" in sentence
    assert live.asked() == {"preflight": 4}
    live.stub.reset(live.stub.script)
    live.run(*IDEAS, JUDGE, "--mlr-limit=1", code=0)  # it is shown none there
    assert live.asked() == {"preflight": 2, "agent": 1, "judge": 1}


@pytest.mark.slow
def test_a_model_without_schemas_is_no_judge(live: Live) -> None:
    live.stub.script = lambda asked: replies.failing(400) if asked.schema else None
    assert "does not take a JSON schema" in refused(live.run(*live.lay_agent(), JUDGE))
    assert len(live.stub.requests) == 2


def test_a_server_that_is_not_there(live: Live) -> None:
    live.set(OPENAI_BASE_URL=nobody_is_there())
    sentence = refused(live.run(*live.lay_agent(), JUDGE))
    assert "cannot be reached" in sentence
    assert "check base_url" in sentence
    assert live.repo.runs == []


def test_without_a_key_nobody_is_asked(live: Live) -> None:
    live.unset("OPENAI_API_KEY", "OPENAI_BASE_URL")
    assert "set OPENAI_API_KEY" in refused(live.run(*live.lay_agent(), JUDGE))
    assert "set OPENAI_API_KEY" in refused(live.run(*IDEAS, *TWO_JUDGES))
    assert live.asked() == {}
    assert live.repo.runs == []


def test_without_an_sdk_nobody_is_asked(live: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "openai", None)
    sentence = refused(live.run(*live.lay_agent(), JUDGE))
    assert "openai:judge-x needs openai: pip install 'pytest-mlrbench[models]'." in sentence
    assert live.repo.runs == []


def test_a_resumed_run_that_is_refused_is_kept(live: Live) -> None:
    live.run(*IDEAS, JUDGE, "--mlr-limit=2", code=0)
    before = live.results()
    live.stub.reset(replies.failing(401))
    assert "does not accept the key" in refused(live.run(*IDEAS, JUDGE, "--mlr-resume"))
    (run,) = live.repo.runs
    assert {name: found for name, found in run.results().items() if name in before} == before
    live.stub.reset()
    live.run(*IDEAS, JUDGE, "--mlr-resume", code=0)
    assert live.asked() == {"preflight": 2, "agent": 4, "judge": 4}


# Keys


@pytest.mark.parametrize("during", [slow("preflight"), "judge", slow("agent")])
def test_no_key_is_anywhere_though_the_provider_repeats_it(live: Live, during: str) -> None:
    secret = "hdr-00112233445566778899"
    live.set(TEAM_SECRET=secret)
    headers = "--mlr-model=openai:* header.X-Team=$TEAM_SECRET"
    known = {
        "chat": f"{KEYS['OPENAI_API_KEY']} and {secret}",
        "anthropic": KEYS["ANTHROPIC_API_KEY"],
        "google": KEYS["GOOGLE_API_KEY"],
    }

    def repeating(asked: Received) -> Reply | None:
        words = f"it was you who sent {known[asked.format]}"
        return Reply(status=400, message=words) if kind(asked) == during else None

    live.stub.script = repeating
    run = (*IDEAS, JUDGE, *TWO_JUDGES, headers, "--mlr-limit=2", "--mlr-record=calls")
    result = live.run(*run, code=4 if during == "preflight" else 1)
    sent = {one.headers.get("x-team") for one in live.stub.requests if one.format == "chat"}
    assert sent == {secret}
    told = f"{result.stdout.str()}{result.stderr.str()}"
    kept = {path.name: path.read_bytes() for path in files(live.path)}
    assert "it was you who sent [key]" in told
    assert any(b"it was you who sent [key]" in content for content in kept.values())
    for key in (*KEYS.values(), secret):
        assert key not in told
        assert [name for name, content in kept.items() if key.encode() in content] == []


# Answers that cannot be used

#: What a judge may say that is no review → what is said of it.
UNUSABLE = {
    "t000": (replies.cut(), "it was cut off"),
    "t001": (replies.refusing(), "it was refused"),
    "t002": (Reply(text=" \n"), "it is empty"),
    "t003": (replies.off_schema(), "overall is missing"),
    "t004": (Reply(text=json.dumps(good(7, clarity={"justification": "", "score": 7.5}))), "7.5"),
    "t005": (Reply(text=said(11)), "must be a whole number from 1 to 10, not 11"),
    "t006": (Reply(text=said(0)), "not 0"),
    "t007": (replies.filtered(), "a filter of the provider ended it"),
    "t008": (Reply(text="I would give it a 7."), "there is no JSON object in it"),
}


def task_of(asked: Received) -> str:
    return next(one for one in UNUSABLE if f"The task {one}" in asked.text)


def test_what_cannot_be_used_is_asked_for_once_more(live: Live) -> None:
    seen: Counter[str] = Counter()

    def script(asked: Received) -> Reply | None:
        task = task_of(asked)
        seen[task] += 1
        return UNUSABLE[task][0] if seen[task] == 1 else Reply(text=said(8))

    live.stub.script = scripted(judge=script)
    live.run(*live.lay_agent(), live.lay_tasks(len(UNUSABLE)), JUDGE, code=0)
    assert live.asked() == {"preflight": 1, "judge": 2 * len(UNUSABLE)}
    for name, result in live.results().items():
        assert (result.verdict, result.overall) == ("pass", 8.0), name
        assert result.spent_judge is not None
        assert (result.spent_judge.calls, result.spent_judge.input) == (2, 22)
    assert not [path for path in files(live.repo.runs[-1].path) if "unusable" in path.name]


def test_what_cannot_be_used_twice_is_not_measured_and_kept(live: Live) -> None:
    live.stub.script = scripted(judge=lambda asked: UNUSABLE[task_of(asked)][0])
    result = live.run(*live.lay_agent(), live.lay_tasks(len(UNUSABLE)), JUDGE, code=1)
    assert live.asked() == {"preflight": 1, "judge": 2 * len(UNUSABLE)}
    for task, (reply, why) in UNUSABLE.items():
        found = live.results()[f"tiny/idea/{task}/r1"]
        assert (found.verdict, found.overall, found.scores) == ("not_measured", None, {})
        assert found.fault is not None
        assert (found.fault.blame, found.fault.cause) == ("system", "review")
        assert why in found.fault.message
        folder = live.repo.runs[-1].path / found.artifacts / "reviews"
        kept = read_model(folder / "strict.unusable.json", UnusableReview)
        assert kept is not None
        assert kept.message in found.fault.message
        assert found.spent_judge == kept.spent
        raw = "" if reply.stop in ("filter",) else reply.text
        assert [text.strip() for text in kept.said] == [(raw or "").strip()] * 2
    result.stdout.fnmatch_lines(["idea   0/9 * 9 *", "  idea not measured: 9 *review*"])
    properties = live.properties()
    assert all("mlr.overall" not in found for found in properties.values())
    assert {found["mlr.cause"] for found in properties.values()} == {"review"}


# Providers that fail


def test_a_provider_that_asks_for_patience_is_asked_again(live: Live) -> None:
    refused = Counter[str]()

    def script(asked: Received) -> Reply | None:
        who = asked.model
        refused[who] += 1
        return replies.rate_limited(0.01) if refused[who] <= 2 else None

    live.stub.script = script
    live.run(*IDEAS, JUDGE, NO_PREFLIGHT, "--mlr-limit=1", code=0)
    assert len(live.stub.requests) == 6
    (result,) = live.results().values()
    for spent in (result.spent_agent, result.spent_judge):
        assert spent is not None
        assert (spent.calls, spent.attempts, spent.input) == (1, 3, 11)
    review = read_model(live.repo.runs[-1].path / result.artifacts / "reviews/strict.json", Review)
    assert review is not None
    assert review.answer.spent == result.spent_judge


def test_a_panel_is_whole_or_none(live: Live) -> None:
    live.stub.script = lambda asked: (
        replies.failing(503) if kind(asked) == "judge" and asked.format == "google" else None
    )
    run = (*live.lay_agent(), *TWO_JUDGES, "--mlr-limit=3")
    result = live.run(*run, code=1)
    for found in live.results().values():
        assert (found.verdict, found.overall, found.spread) == ("not_measured", None, None)
        assert found.fault is not None
        assert found.fault.cause == "provider"
        assert found.fault.message.startswith("judge gemini: google:gemini-x failed: 503")
        assert found.judges["claude"].overall is not None
        assert found.judges["gemini"].overall is None
    result.stdout.fnmatch_lines(["idea   0/3     0       0       3 *", "*3 provider*"])
    # The reviews that were had are not paid for again.
    live.stub.reset()
    live.run(*run, "--mlr-resume", "--mlr-rerun=errors", ANY, code=0)
    assert live.asked() == {"judge": 3}
    assert {one.model for one in live.stub.requests} == {"gemini-x"}
    assert len(live.agents) == 3


def test_a_model_that_refuses_to_write_has_failed(live: Live) -> None:
    live.stub.script = scripted(agent=replies.refusing())
    live.run(*IDEAS, JUDGE, "--mlr-limit=1", code=1)
    assert live.asked() == {"preflight": 2, "agent": 2}
    (result,) = live.results().values()
    assert result.fault is not None
    assert (result.verdict, result.fault.blame, result.fault.cause) == (
        "fail",
        "agent",
        "no_output",
    )
    assert result.spent_agent is not None
    assert result.spent_agent.calls == 2


def test_an_agent_whose_provider_is_down_is_not_to_blame(live: Live) -> None:
    live.stub.script = scripted(agent=replies.failing(500))
    live.run(*IDEAS, JUDGE, "--mlr-limit=1", code=1)
    assert live.asked() == {"preflight": 2, "agent": 3}
    (result,) = live.results().values()
    assert result.fault is not None
    assert (result.verdict, result.fault.blame) == ("not_measured", "system")
    assert result.fault.cause == "provider"
    assert result.spent_agent is not None
    assert (result.spent_agent.calls, result.spent_agent.attempts) == (1, 3)


# Who fails for good is left alone


def test_no_agent_is_started_for_a_judge_that_is_down(live: Live) -> None:
    run = (*live.lay_agent(), live.lay_tasks(20), JUDGE, ANY)
    live.stub.script = scripted(judge=replies.failing(500))
    result = live.run(*run, code=1)
    assert len(live.agents) == 5
    assert live.asked() == {"preflight": 1, "judge": 15}  # each of 5 was tried three times
    causes = Counter(r.fault.cause for r in live.results().values() if r.fault)
    assert causes == {"provider": 5, "not_started": 15}
    result.stdout.fnmatch_lines(["idea   0/20 * 20 *", "*: 15 not started, 5 provider*"])
    # It has recovered. Cases that were not started are measured; those that were judged and had no
    # answer count as measured in vain, and stay so unless the user wants them again.
    live.stub.reset()
    live.run(*run, "--mlr-resume", code=1)
    assert live.asked() == {"judge": 15}
    assert Counter(r.verdict for r in live.results().values()) == {"pass": 15, "not_measured": 5}
    live.stub.reset()
    live.run(*run, "--mlr-resume", "--mlr-rerun=errors", code=0)
    assert live.asked() == {"judge": 5}
    assert len(live.agents) == 20  # each has answered once


@pytest.mark.slow
def test_not_many_more_are_started_where_many_are_under_way(live: Live) -> None:
    live.stub.script = scripted(agent=replies.failing(500))
    live.run(*IDEAS, live.lay_tasks(20), JUDGE, "--mlr-concurrency=4", code=1)
    causes = Counter(r.fault.cause for r in live.results().values() if r.fault)
    assert causes["provider"] + causes["not_started"] == 20
    assert 5 <= causes["provider"] <= 5 + 4


@pytest.mark.slow
def test_workers_learn_from_each_other_who_is_down(live: Live) -> None:
    live.stub.script = scripted(judge=replies.failing(500))
    run = (*live.lay_agent(), live.lay_tasks(20), JUDGE, ANY)
    live.run(*run, "-n2", code=1)
    assert 5 <= len(live.agents) <= 6
    causes = Counter(r.fault.cause for r in live.results().values() if r.fault)
    assert causes == {"provider": len(live.agents), "not_started": 20 - len(live.agents)}


# A storm

#: Everything that can go wrong on the way to a review, each as likely as the others.
STORM = {
    "429": replies.rate_limited(),
    "429, soon": replies.rate_limited(0.02),
    "500": replies.failing(500),
    "529": replies.failing(529),
    "reset": replies.resetting(),
    "hang": replies.hanging(),
    "truncated": replies.truncated(),
    "not JSON": replies.not_json(),
    "broken JSON": replies.broken_json(),
    "no body": replies.empty(),
    "wrong shape": replies.wrong_shape(),
    "refused": replies.refusing(),
    "filtered": replies.filtered(),
    "cut off": replies.cut(),
    "off schema": replies.off_schema(),
}


class Weather:
    """A script with a fault in every fifth answer, and what has struck so far."""

    def __init__(self, seed: int) -> None:
        self._dice = random.Random(seed)
        self.struck: Counter[str] = Counter()

    def __call__(self, asked: Received) -> Reply | None:
        if self._dice.random() >= 0.2:
            return None
        name = self._dice.choice([*STORM])
        self.struck[name] += 1
        return STORM[name]


@pytest.mark.parametrize(
    ("cases", "timeout"),
    [(50, 4), slow(500, 4)],
    ids=["100 calls", "1000 calls"],
)
def test_in_a_storm_no_case_is_lost_and_no_score_made_up(
    live: Live, cases: int, timeout: float
) -> None:
    live.stub.script = weather = Weather(7)
    patience = tuple(f"--mlr-model={one}:* timeout={timeout}" for one in ("anthropic", "google"))
    run = (*live.lay_agent(), live.lay_tasks(cases), *TWO_JUDGES, *patience)
    live.run(*run, NO_PREFLIGHT, "--mlr-concurrency=64")
    results = live.results()
    verdicts = Counter(
        (found.verdict, found.fault.cause if found.fault else "") for found in results.values()
    )
    _tell(live, weather, verdicts)
    assert len(results) == len(live.properties()) == cases
    assert len(live.agents) == cases
    for name, found in results.items():
        if found.verdict == "not_measured":
            assert found.fault is not None, name
            assert found.fault.blame == "system"
            assert found.fault.cause in ("review", "malformed", *PASSING)
            assert len(found.fault.message) > 30
            assert (found.overall, found.scores) == (None, {})
        else:
            given = [judge.overall for judge in found.judges.values()]
            assert len(given) == 2
            assert found.fault is None
            assert found.overall == sum(one for one in given if one) / 2
            assert all(1 <= score <= 10 for score in (found.overall, *found.scores.values()))
    spent = [found.spent_judge for found in results.values()]
    assert sum(one.attempts for one in spent if one) == len(live.stub.requests)
    assert sum(verdicts.values()) == cases
    report = live.report()["summary"][0]
    assert report["selected"] == cases
    assert report["passed"] + report["failed"] == report["scored"]
    assert report["scored"] + report["not_measured"] == cases


PASSING = ("rate_limit", "provider", "connection", "timeout")


def _tell(live: Live, weather: Weather, verdicts: Counter[tuple[str, str]]) -> None:
    faults = sum(weather.struck.values())
    print(f"\n{len(live.stub.requests)} requests, {faults} faults, {dict(weather.struck)}")
    for (verdict, cause), number in sorted(verdicts.items()):
        print(f"  {number:4} {verdict:13} {cause}")


# Ended in the middle


def paid_for(run: RunFolder) -> int:
    """How many answers are on disk: a step of the agent's, or a review, each."""
    reviews = [path for path in run.path.glob("cases/*/*/*/reviews/*.json") if path.name[0] != "."]
    return len(reviews) + len([*run.path.glob("cases/*/*/*/steps/*.json")])


@pytest.mark.parametrize(
    ("number", "cases", "workers"),
    [
        (signal.SIGKILL, 24, ()),
        slow(signal.SIGKILL, 60, ()),
        slow(signal.SIGINT, 60, ()),
        slow(signal.SIGTERM, 60, ()),
        slow(signal.SIGKILL, 60, ("-n2",)),
        slow(signal.SIGINT, 60, ("-n2",)),
    ],
)
def test_a_run_ended_at_half_pays_again_for_what_was_in_flight_and_no_more(
    live: Live, number: signal.Signals, cases: int, workers: tuple[str, ...]
) -> None:
    judges = (JUDGE, "--mlr-judge=mild=openai:judge-y")
    run = (*IDEAS, live.lay_tasks(cases), *judges, NO_PREFLIGHT)
    # The second judge takes longer, so that there are cases with one review of two.
    live.stub.script = lambda asked: Reply(delay=0.3 if asked.model == "judge-y" else 0.1)
    at_once = min(16, cases // 4)
    process = live.start(*run, *(workers or (f"--mlr-concurrency={at_once}",)))
    try:
        until(lambda: len(live.stub.requests) >= 1.5 * cases or process.poll() is not None, 120)
        code = kill(process, number)
    finally:
        if process.poll() is None:
            kill(process)
    output = (live.path / "output").read_text()
    assert code == {signal.SIGKILL: -signal.SIGKILL}.get(number, 2), output
    assert not any(word in output for word in ("Traceback", "INTERNALERROR", "never retrieved"))
    until(lambda: live.stub.in_flight == 0)
    (folder,) = live.repo.runs
    asked, kept, finished = len(live.stub.requests), paid_for(folder), folder.results()
    lost = asked - kept
    single = [p for p in folder.path.glob("cases/*/*/*/reviews") if len([*p.iterdir()]) == 1]
    print(f"\nended after {asked} of {3 * cases} calls: {kept} kept, {lost} lost,")
    print(f"{len(finished)} cases finished, {len(single)} with one review of two")
    assert 1.5 * cases <= asked < 3 * cases
    assert 0 <= lost <= 2 * (2 if workers else at_once)
    assert finished
    live.stub.script = None
    live.run(*run, "--mlr-resume", code=0)
    assert len(live.stub.requests) == 3 * cases + lost
    results = live.results()
    assert Counter(found.verdict for found in results.values()) == {"pass": cases}
    assert {name: results[name] for name in finished} == finished


#: Ctrl-C after the first test's report, when answers have come for the cases behind it.
INTERRUPT = """
import time
from pathlib import Path

def pytest_runtest_logreport(report):
    if report.when == "call":
        time.sleep(0.5)
        Path("interrupted").touch()
        raise KeyboardInterrupt
"""


def test_ctrl_c_between_two_tests_pays_for_nothing_more(live: Live) -> None:
    module = "from pytest_mlrbench.stage_tests import *\n"
    live.repo.lay({"conftest.py": INTERRUPT, "test_mlr.py": module})
    late = []

    def script(asked: Received) -> Reply:
        late.extend([asked] * (live.path / "interrupted").exists())
        return Reply(delay=0.3 if "t000" in asked.text else 0.4)

    live.stub.script = script
    run = (*IDEAS, live.lay_tasks(12), JUDGE, NO_PREFLIGHT, "--mlr-concurrency=6", "test_mlr.py")
    with pytest.raises(KeyboardInterrupt):
        live.run(*run)
    until(lambda: live.stub.in_flight == 0)
    assert late == []
    before = len(live.stub.requests)
    lost = before - paid_for(live.repo.runs[-1])
    live.stub.script = None
    (live.path / "conftest.py").unlink()
    live.run(*run, "--mlr-resume", code=0)
    assert len(live.stub.requests) == 24 + lost
