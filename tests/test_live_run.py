"""Whole runs with live models, as users have them: reports, reuse, recordings, own fixtures."""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from live import JUDGE, SCAFFOLD, TWO_JUDGES, Live, files, kind, lasting, scripted
from llm_builders import said

from pytest_mlrbench.cli import main
from pytest_mlrbench.judges.review import HALLUCINATIONS, Review
from pytest_mlrbench.run.folder import RunFolder, read_model
from pytest_mlrbench.stub.replies import Reply

pytest_plugins = ["live_bench"]

ANY = "--mlr-threshold=overall>=1"
IDEAS = ("--mlr-stage=idea", SCAFFOLD, ANY)
THREE = (*IDEAS, JUDGE, "--mlr-limit=3")
BOTH = ("--mlr-stage=idea,proposal", SCAFFOLD, *TWO_JUDGES, ANY)
PRICED = tuple(
    f"--mlr-model={one}:* price_in=1 price_out=10" for one in ("openai", "anthropic", "google")
)
#: What the stub's 11 tokens in and 7 out cost then.
COST = (11 * 1 + 7 * 10) / 1e6


# A run from start to end


def test_a_scaffold_writes_and_two_judges_of_other_providers_score(live: Live) -> None:
    result = live.run(*BOTH, *PRICED, code=0)
    assert result.stderr.str() == ""
    assert live.asked() == {"preflight": 3, "agent": 12, "judge": 24}
    models = Counter(one.model for one in live.stub.requests)
    assert models == {"gpt-5": 13, "claude-x": 13, "gemini-x": 13}
    found = live.properties()
    assert len(found) == 12
    for case, told in found.items():
        assert told["mlr.verdict"] == "pass", case
        given = [int(told[f"mlr.judge.{name}.overall"]) for name in ("claude", "gemini")]
        assert float(told["mlr.overall"]) == sum(given) / 2
        assert float(told["mlr.judges.spread"]) == max(given) - min(given)
        assert (told["mlr.tokens.agent.input"], told["mlr.tokens.agent.output"]) == ("11", "7")
        assert (told["mlr.tokens.judge.input"], told["mlr.tokens.judge.output"]) == ("22", "14")
        assert float(told["mlr.cost_usd.agent"]) == pytest.approx(COST)
        assert float(told["mlr.cost_usd.judge"]) == pytest.approx(2 * COST)
        assert not any(name.endswith(".kin") for name in told)
        for name in ("claude", "gemini"):
            folder = live.repo.runs[-1].path / live.results()[case].artifacts
            review = read_model(folder / f"reviews/{name}.json", Review)
            assert review is not None
            assert review.answer.overall.score == int(told[f"mlr.judge.{name}.overall"])
            assert review.answer.spent is not None
            assert review.answer.spent.calls == 1
    result.stdout.fnmatch_lines(
        [
            "idea      6/6     6 *",
            "proposal  6/6     6 *",
            "  idea judges' overall means: claude * (n=6), gemini * (n=6)",
            "  idea models of the agent: 6 calls in 6 cases, 66 tokens in and 42 tokens out, $*",
            "  idea models of the judge: 12 calls in 6 cases, 132 tokens in and 84 tokens out, *",
        ]
    )
    (idea, _) = live.report()["summary"]
    assert idea["spent"]["judge"]["cost_usd"] == pytest.approx(12 * COST)
    assert live.report()["run"]["versions"]["prices"].startswith("genai-prices ")


@pytest.mark.slow
def test_workers_measure_record_and_replay_the_same(live: Live) -> None:
    live.run(*BOTH, *PRICED, code=0)
    alone = live.properties()
    live.stub.reset()
    for calls in ("--mlr-record=calls", "--mlr-replay-calls=calls"):
        live.run(*BOTH, *PRICED, "-n2", calls, code=0)
        assert live.asked() == {"preflight": 3, "agent": 12, "judge": 24}
        spread = live.properties()
        mark = {"mlr.replayed": "True"} if "replay" in calls else {}
        assert {case: lasting(found) for case, found in spread.items()} == {
            case: lasting(found) | mark for case, found in alone.items()
        }


def test_a_judge_of_the_agents_family_is_named_in_all_reports(live: Live) -> None:
    agent = "--mlr-agent=scaffold:openai/gpt-5"
    judges = ("--mlr-judge=own=openai:gpt-5", "--mlr-judge=near=openai:gpt-5-mini")
    result = live.run("--mlr-stage=idea", agent, *judges, *TWO_JUDGES, ANY, "--mlr-limit=1", code=0)
    assert live.asked() == {"preflight": 4, "agent": 1, "judge": 4}
    (said,) = live.properties().values()
    kin = {name: value for name, value in said.items() if name.endswith(".kin")}
    assert kin == {"mlr.judge.own.kin": "model", "mlr.judge.near.kin": "family"}
    assert live.report()["run"]["kin"] == {"own": "model", "near": "family"}
    result.stdout.fnmatch_lines(["*judge own is the agent's own model*"] * 2)


@pytest.mark.slow
def test_many_cases_are_under_way_at_once_where_all_only_wait(live: Live) -> None:
    live.stub.script = Reply(delay=0.2)
    live.run(*IDEAS, *TWO_JUDGES, "--mlr-no-preflight", code=0)
    assert live.stub.max_in_flight > 6


def test_where_a_failure_ends_the_session_models_are_asked_for_one_case_at_a_time(
    live: Live,
) -> None:
    live.stub.script = Reply(delay=0.02)
    live.run(*THREE, "-x", "--mlr-no-preflight", code=0)
    assert live.stub.max_in_flight == 1
    assert live.asked() == {"agent": 3, "judge": 3}


def test_a_failure_under_x_ends_the_calls(live: Live) -> None:
    live.stub.script = scripted(judge=Reply(text=said(3)))
    live.run(*IDEAS[:2], JUDGE, "-x", code=1)
    assert live.asked() == {"preflight": 2, "agent": 1, "judge": 1}


# The user's own agent and judges


def test_an_agent_of_the_users_is_judged_by_models(live: Live) -> None:
    own = live.lay_agent()
    live.run(*own, JUDGE, ANY, code=0)
    assert live.asked() == {"preflight": 1, "judge": 6}
    assert len(live.agents) == 6
    said = next(iter(live.properties().values()))
    assert "mlr.tokens.agent.input" not in said
    assert said["mlr.tokens.judge.input"] == "11"


def test_agents_of_the_users_wait_beside_models(live: Live) -> None:
    own = live.lay_agent()
    live.stub.script = Reply(delay=0.2)
    live.run(*own, JUDGE, ANY, "--mlr-concurrency=6", "--mlr-no-preflight", code=0)
    assert live.stub.max_in_flight > 2
    assert sorted(live.agents) == sorted(set(live.agents))


# Judged again, resumed, repeated


@pytest.mark.slow
def test_a_run_is_judged_again_without_its_agent(
    live: Live, capfd: pytest.CaptureFixture[str]
) -> None:
    live.run(*IDEAS, live.lay_tasks(2), JUDGE, "--mlr-repeats=2", code=0)
    run = live.repo.runs[-1].path
    live.stub.reset()
    live.unset("PYTEST_ADDOPTS")
    judges = ("--mlr-judge", "other=openai:judge-y", "--mlr-judge=claude=anthropic:claude-x")
    code = main(["judge", str(run), *judges, ANY, *QUIET])
    assert code == 0, capfd.readouterr()
    assert live.asked() == {"preflight": 2, "judge": 8}
    assert {one.model for one in live.stub.requests} == {"judge-y", "claude-x"}
    # Those who judge see what the work was to be about.
    shown = [one.text for one in live.stub.requests if kind(one) == "judge"]
    assert sum("# The task t001" in text for text in shown) == 4
    assert len(live.repo.runs) == 2
    assert [*live.results()["tiny/idea/t001/r2"].judges] == ["other", "claude"]


QUIET = ("-p", "no:randomly", "-p", "no:hypothesispytest", "-p", "no:asyncio")


def test_one_more_judge_is_all_that_is_paid_for(live: Live) -> None:
    live.run(*THREE, code=0)
    before = live.results()
    live.stub.reset()
    result = live.run(*THREE, "--mlr-judge=mild=openai:judge-y", "--mlr-resume", code=0)
    # Who judges is not who judged before, so all are asked whether they can.
    assert live.asked() == {"preflight": 3, "judge": 3}
    assert {one.model for one in live.stub.requests[3:]} == {"judge-y"}
    for name, found in live.results().items():
        assert found.judges["strict"] == before[name].judges["strict"]
        assert found.spent_judge is not None
        assert (found.spent_judge.calls, found.spent_judge.input) == (2, 22)
        assert found.spent_agent == before[name].spent_agent
    result.stdout.fnmatch_lines(["3 run again since the judges changed"])


def test_a_complete_run_asks_nobody_when_it_is_resumed(live: Live) -> None:
    live.run(*THREE, code=0)
    before = live.properties()
    live.stub.reset()
    live.run(*THREE, "--mlr-resume", code=0)
    assert live.asked() == {}
    after = live.properties()
    assert {name: lasting(found) for name, found in after.items()} == {
        name: lasting(found) for name, found in before.items()
    }


def test_repeats_share_nothing(live: Live) -> None:
    live.run(*THREE, "--mlr-repeats=2", "--mlr-record=calls", code=0)
    assert live.asked() == {"preflight": 2, "agent": 6, "judge": 6}
    folders = {path.name: len(list(path.iterdir())) for path in (live.path / "calls").iterdir()}
    assert folders.pop("preflight") == 2
    assert len(folders) == 6
    assert set(folders.values()) == {2}


# Recorded and replayed


def test_a_recorded_run_replays_without_models_and_keys(live: Live) -> None:
    run = (*BOTH, *PRICED, "--mlr-limit=3")
    live.run(*run, "--mlr-record=calls", code=0)
    first = _lasting_results(live.repo.runs[-1].path)
    assert len(list(files(live.path / "calls"))) == 3 + 6 * 3
    live.stub.reset()
    live.unset("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GOOGLE_API_KEY")
    live.run(*run, "--mlr-replay-calls=calls", code=0)
    assert live.asked() == {}
    assert _lasting_results(live.repo.runs[-1].path) == first


def test_elsewhere_neither_addresses_nor_sdks_are_needed_to_replay(
    live: Live, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = (*IDEAS, *TWO_JUDGES, "--mlr-limit=2")
    live.run(*run, "--mlr-record=calls", code=0)
    scores = {name: found.overall for name, found in live.results().items()}
    live.stub.reset()
    live.unset("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GOOGLE_API_KEY")
    live.unset("OPENAI_BASE_URL", "ANTHROPIC_BASE_URL", "GOOGLE_GEMINI_BASE_URL")
    for module in ("openai", "anthropic", "google.genai"):
        monkeypatch.setitem(sys.modules, module, None)
    live.run(*run, "--mlr-replay-calls=calls", code=0)
    assert live.asked() == {}
    assert {name: found.overall for name, found in live.results().items()} == scores


@pytest.mark.slow
def test_a_fault_replays_as_well(live: Live) -> None:
    live.stub.script = lambda asked: (
        Reply(status=500, message="down") if kind(asked) == "judge" else None
    )
    run = (*IDEAS, JUDGE, "--mlr-limit=2")
    live.run(*run, "--mlr-record=calls", code=1)
    first = _lasting_results(live.repo.runs[-1].path)
    assert {found["fault"]["cause"] for found in first.values()} == {"provider"}
    live.stub.reset()
    live.run(*run, "--mlr-replay-calls=calls", code=1)
    assert live.asked() == {}
    assert _lasting_results(live.repo.runs[-1].path) == first


def test_a_run_is_answered_from_a_recording_as_a_whole_or_not_at_all(live: Live) -> None:
    live.run(*IDEAS, JUDGE, "--mlr-limit=2", "--mlr-record=calls", code=0)
    replay = (*IDEAS, JUDGE, "--mlr-limit=2", "--mlr-replay-calls=calls")
    result = live.run(*replay, "--mlr-resume", code=4)
    result.stderr.fnmatch_lines(["ERROR: run * was not answered from a recording, and a run is *"])
    live.run(*replay, code=0)
    live.run(*IDEAS, JUDGE, "--mlr-limit=2", "--mlr-resume", code=4)
    assert [said["mlr.replayed"] for said in live.properties().values()] == ["True"] * 2


def test_a_missing_recording_is_named(live: Live) -> None:
    live.run(*IDEAS, JUDGE, "--mlr-limit=2", "--mlr-record=calls", code=0)
    (lost,) = (live.path / "calls/mini__idea__conformal_diabetes__r1").glob("review-*.json")
    lost.unlink()
    live.stub.reset()
    live.run(*IDEAS, JUDGE, "--mlr-limit=2", "--mlr-replay-calls=calls", code=1)
    assert live.asked() == {}
    kept, missed = live.results().values()
    assert kept.verdict == "pass"
    assert missed.fault is not None
    assert (missed.verdict, missed.fault.cause) == ("not_measured", "no_recording")
    assert str(lost.relative_to(live.path)) in missed.fault.message


# What was made up


def test_the_review_of_what_was_made_up_informs_and_scores_nothing(live: Live) -> None:
    paper = ("--mlr-stage=paper", SCAFFOLD, JUDGE, ANY, "--mlr-limit=2", "--mlr-no-preflight")
    live.run(*paper, code=0)
    without = live.properties()
    live.stub.reset()
    live.run(*paper, "--mlr-hallucination", code=0)
    assert live.asked() == {"agent": 2, "judge": 2, "hallucination": 2}
    for case, told in live.properties().items():
        names = [f"mlr.hallucination.strict.{one}" for one in HALLUCINATIONS]
        assert sum(int(told[name]) for name in names) == 2  # what the stub fills in
        assert told["mlr.tokens.judge.input"] == "22"
        added = {*names, "mlr.tokens.judge.input", "mlr.tokens.judge.output"}
        assert _but(lasting(told), added) == _but(lasting(without[case]), added)


def _but(found: dict[str, str], names: set[str]) -> dict[str, str]:
    return {name: value for name, value in found.items() if name not in names}


def _lasting_results(run: Path) -> dict[str, Any]:
    """Case → what ``result.json`` says, but for times."""
    found = {}
    for name in RunFolder(run).selection():
        path = run / "cases" / name.split("/", 1)[1] / "result.json"
        told = json.loads(path.read_text("utf-8"))
        found[name] = {
            key: value
            for key, value in told.items()
            if not key.startswith("seconds_") and key != "submission_stamp"
        }
    return found


# What a stranger missed


def test_a_run_that_is_judged_again_keeps_its_author(
    live: Live, monkeypatch: pytest.MonkeyPatch
) -> None:
    live.run(*THREE, code=0)
    own = "--mlr-judge=own=openai:gpt-5"
    live.run(
        "--mlr-stage=idea", f"--mlr-agent=replay:{live.repo.runs[-1].path}", own, "--mlr-limit=3"
    )
    assert {found.judges["own"].kin for found in live.results().values()} == {"model"}
    assert {said["mlr.judge.own.kin"] for said in live.properties().values()} == {"model"}


def test_a_judge_that_cannot_be_asked_does_not_undo_a_finished_run(live: Live) -> None:
    live.run(*THREE, code=0)
    before = live.results()
    live.stub.script = lambda asked: Reply(status=404) if "no-such" in asked.model else None
    other = "--mlr-judge=mild=openai:no-such-model"
    assert live.run(*THREE, other, "--mlr-resume").ret == pytest.ExitCode.USAGE_ERROR
    assert live.results() == before


def test_the_settings_of_models_are_in_the_record_without_their_keys(live: Live) -> None:
    line = "--mlr-model=openai:* temperature=0.5 price_in=1 price_out=2 header.X-Team=s3cret"
    live.run(*THREE, line, code=0)
    text = (live.repo.runs[-1].path / "run.json").read_text()
    assert "s3cret" not in text
    models = live.repo.report.run.models
    assert models["openai:gpt-5"]["temperature"] == "0.5"
    assert models["openai:gpt-5"]["headers"] == "X-Team"
    assert models["openai:gpt-5"]["base_url"] == live.stub.base_url("openai")


def test_what_was_spent_may_have_become_unreadable(live: Live) -> None:
    """The scores are told all the same."""
    damage = """
from pathlib import Path
def pytest_sessionfinish():
    for path in Path(".mlrbench/runs").glob("*/shared.json"):
        path.write_text("[]")
"""
    live.repo.lay({"conftest.py": damage})
    result = live.run(*THREE, code=0)
    result.stdout.fnmatch_lines(
        ["idea * 3/3 *", "what models have used in all is not known: * is damaged, *"]
    )


def test_all_that_was_spent_is_told(live: Live) -> None:
    result = live.run(*THREE, "--mlr-model=openai:* price_in=1000 price_out=0", code=0)
    tokens = len(live.stub.requests) * 18
    result.stdout.fnmatch_lines(
        [f"models in all, with preflight and answers of no use: {tokens} tokens, $*"]
    )
