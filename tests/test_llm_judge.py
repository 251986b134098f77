"""A model as a judge: one question, a checked answer, one more question if need be, or a reason."""

from __future__ import annotations

import asyncio
import json
import re
from contextlib import suppress
from types import SimpleNamespace
from typing import Any

import jsonschema
import pytest
from builders import one_sentence
from hypothesis import given
from hypothesis import strategies as st
from llm_builders import (
    KEY,
    PNG,
    Bench,
    case,
    configure,
    every_provider,
    good,
    lay_case,
    said,
)

from pytest_mlrbench.errors import SystemFault
from pytest_mlrbench.evidence.base import Evidence, Finding
from pytest_mlrbench.evidence.options import EvidenceOptions
from pytest_mlrbench.judges.base import Reviewable, as_judges
from pytest_mlrbench.judges.budget import Budget, Share
from pytest_mlrbench.judges.llm import MAX_TOKENS, LLMJudge, _review
from pytest_mlrbench.judges.llm_answer import UnusableAnswer, document
from pytest_mlrbench.judges.llm_schema import hallucination_schema, review_schema
from pytest_mlrbench.judges.review import HALLUCINATIONS, JudgeFault
from pytest_mlrbench.models.calls import Calls
from pytest_mlrbench.models.exchange import Completion, Stop
from pytest_mlrbench.stub import replies
from pytest_mlrbench.stub.replies import Reply
from pytest_mlrbench.stub.wire import Received
from pytest_mlrbench.suites.rubrics import rubric
from pytest_mlrbench.suites.stages import STAGES

pytest.importorskip("openai", reason="the SDK openai is not installed")
pytest.importorskip("tenacity", reason="tenacity is not installed")
pytest_plugins = ["llm_bench"]

# One question


@every_provider
def test_a_review_is_had_from_every_provider(bench: Bench, provider: str) -> None:
    answer = bench.review("end_to_end", {"results/fig.png": PNG}, bench.judge(provider))
    assert set(answer.dimensions) == set(rubric("end_to_end").names("end_to_end"))
    assert answer.overall.strengths
    assert answer.confidence in range(1, 6)
    (asked,) = bench.stub.requests
    assert asked.schema is not None
    assert set(asked.schema["properties"]) == {*answer.dimensions, "overall", "confidence"}
    assert "A paper." in asked.text
    assert asked.images == [PNG]
    assert answer.spent is not None
    assert (answer.spent.calls, answer.spent.attempts) == (1, 1)
    assert (answer.spent.input, answer.spent.output) == (11, 7)


@pytest.mark.parametrize("stage", STAGES)
def test_every_stage_is_scored_by_its_rubric(bench: Bench, stage: str) -> None:
    bench.stub.script = Reply(text=said(8, stage))
    answer = bench.review(stage)
    assert {one.score for one in answer.dimensions.values()} == {8}
    assert (answer.confidence is not None) == (stage == "end_to_end")
    assert (answer.hallucination is not None) == (stage == "experiment")
    text = bench.stub.requests[0].text
    for dimension in rubric(stage).dimensions_of(stage):
        assert dimension.question.strip() in text
        for band in dimension.bands.values():
            assert " ".join(band.split()) in text


@pytest.mark.parametrize("stage", STAGES)
def test_the_schema_is_as_strict_as_providers_ask_for(stage: str) -> None:
    def check(schema: Any) -> None:
        if isinstance(schema, dict):
            if schema.get("type") == "object":
                assert schema["additionalProperties"] is False
                assert schema["required"] == list(schema["properties"])
            for part in schema.values():
                check(part)

    for schema in (review_schema(rubric(stage), stage), hallucination_schema()):
        jsonschema.Draft202012Validator.check_schema(schema)
        check(schema)
    jsonschema.validate(good(10, stage), review_schema(rubric(stage), stage))


def test_a_valid_answer_is_never_asked_for_again(bench: Bench) -> None:
    bench.stub.script = Reply(text=said(1))
    assert bench.review().overall.score == 1
    assert len(bench.stub.requests) == 1


def test_the_same_work_gives_the_same_prompt(bench: Bench) -> None:
    first = bench.prompt("experiment", {"b.py": "b", "a.py": "a", "results/f.png": PNG})
    assert bench.prompt("experiment") == first


@pytest.mark.parametrize(("settings", "tokens"), [({}, MAX_TOKENS), ({"max_tokens": 900}, 900)])
def test_an_answer_has_room_unless_the_user_says_otherwise(
    bench: Bench, settings: dict[str, int], tokens: int
) -> None:
    bench.review(judge=bench.judge(**settings))
    assert bench.stub.requests[0].body["max_tokens"] == tokens


def test_a_parameter_that_was_not_sent_is_recorded_once(bench: Bench) -> None:
    pytest.importorskip("anthropic", reason="the SDK anthropic is not installed")
    answer = bench.review(judge=bench.judge("anthropic", temperature=0))
    (notice,) = [one for one in answer.notices if one.startswith("temperature: ")]
    assert "no such argument" in notice


# Answers as models write them

USABLE = {
    "plain": said(),
    "fenced": f"```json\n{said()}\n```",
    "prefix": f"Sure! Here is my review of {{the idea}}:\n{said()}",
    "suffix": f"{said()}\nI hope this helps.",
    "draft": f"Draft: {said(2)}\n\nOn reflection:\n```json\n{said()}\n```",
    "broken draft": f'{{"clarity": {{"score": 2,}}}}\nNo, properly: {said()}',
    "indented": json.dumps(good(), indent=2),
    "byte order mark": f"\ufeff{said()}",
    "published spelling": said(overall=None, OverallAssessment=good()["overall"]),
    "something extra": said(verdict="accept"),
    "line breaks in texts": said().replace("about clarity", "about\nclarity"),
    "LaTeX": said().replace("about clarity", r"\alpha \le \sum_i \frac{1}{x} \beta, \underline{x}"),
    "quotes and LaTeX": said().replace("about clarity", r"says \"\sigma\\n\""),
}


@pytest.mark.parametrize("text", USABLE.values(), ids=USABLE)
def test_what_models_write_around_a_review_does_no_harm(bench: Bench, text: str) -> None:
    bench.stub.script = Reply(text=text)
    answer = bench.review()
    assert {one.score for one in (*answer.dimensions.values(), answer.overall)} == {7}
    assert len(bench.stub.requests) == 1


def test_latex_keeps_its_backslashes(bench: Bench) -> None:
    bench.stub.script = Reply(text=USABLE["LaTeX"])
    words = bench.review().dimensions["clarity"].justification
    assert words == r"\alpha \le \sum_i \frac{1}{x} \beta, \underline{x}"


def scored(score: str) -> str:
    return said().replace('"score": 7', f'"score": {score}', 1)


UNUSABLE = {
    "eleven": (Reply(text=scored("11")), "from 1 to 10"),
    "zero": (Reply(text=scored("0")), "from 1 to 10"),
    "negative": (Reply(text=scored("-3")), "from 1 to 10"),
    "fraction": (Reply(text=scored("7.5")), "not 7.5"),
    "float": (Reply(text=scored("7.0")), "not 7.0"),
    "text": (Reply(text=scored('"7"')), "not '7'"),
    "true": (Reply(text=scored("true")), "not True"),
    "null": (Reply(text=scored("null")), "not None"),
    "NaN": (Reply(text=scored("NaN")), "NaN"),
    "infinity": (Reply(text=scored("1e999")), "not inf"),
    "huge": (Reply(text=scored("9" * 5000)), "not JSON"),
    "twice": (Reply(text=said().replace('"score": 7', '"score": 7, "score": 9', 1)), "'score'"),
    "missing": (Reply(text=said(clarity=None)), "clarity is missing"),
    "no reason": (Reply(text=said(clarity={"score": 7})), "clarity has no justification"),
    "no list": (Reply(text=said(overall={**good()["overall"], "strengths": "x"})), "strengths"),
    "a list": (Reply(text=f"[{said()}]"), "no JSON object"),
    "prose": (Reply(text="A fine idea, 8 of 10."), "no JSON object"),
    "off schema": (replies.off_schema(), "missing"),
    "cut off": (Reply(stop="length", text=said()[:-5]), "cut off"),
    "cut off after a draft": (Reply(stop="length", text=f"{said(2)} so: {said()[:-5]}"), "cut off"),
    "unfinished after a draft": (Reply(text=f"{said(2)} so: {said()[:-5]}"), "not JSON"),
    "wrapped and unfinished": (Reply(text=f'{{"draft": {said(2)}, "final": '), "not JSON"),
    "refused": (replies.refusing(), "refused"),
    "filtered": (replies.filtered(), "filter"),
    "empty": (Reply(text=" \n"), "empty"),
    "nested": (Reply(text='{"a":' * 50_000), "not JSON"),
}


@pytest.mark.parametrize(("reply", "why"), UNUSABLE.values(), ids=UNUSABLE)
def test_an_unusable_answer_is_asked_for_once_more_with_the_reason(
    bench: Bench, reply: Reply, why: str
) -> None:
    bench.stub.script = [reply, Reply(text=said(6))]
    answer = bench.review()
    assert answer.overall.score == 6
    assert answer.spent is not None
    assert answer.spent.calls == 2
    first, second = bench.stub.requests
    assert why in second.text[len(first.text) :]
    assert second.schema == first.schema
    roles = [message["role"] for message in second.body["messages"]]
    if reply.text and reply.text.strip() and reply.stop not in ("refusal", "filter"):
        # It goes on from what was said, and is not to think of other scores.
        assert roles == ["system", "user", "assistant", "user"]
        assert second.body["messages"][1] == first.body["messages"][1]
        assert "Do not change your scores" in second.text
    else:
        assert roles == ["system", "user"]


@pytest.mark.parametrize(("reply", "why"), UNUSABLE.values(), ids=UNUSABLE)
def test_no_score_comes_of_two_unusable_answers(bench: Bench, reply: Reply, why: str) -> None:
    bench.stub.script = reply
    with pytest.raises(JudgeFault, match=re.escape(why)) as caught:
        bench.review()
    fault = caught.value
    assert (fault.cause, fault.blame) == ("review", "system")
    assert len(bench.stub.requests) == 2
    assert fault.said == (reply.text,) * 2
    assert fault.spent is not None
    assert (fault.spent.calls, fault.spent.input) == (2, 22)
    assert len(fault.message) < 800
    assert "\n" not in fault.message


def test_a_whole_review_counts_though_the_limit_was_reached(bench: Bench) -> None:
    bench.stub.script = Reply(stop="length", text=said(5))
    assert bench.review().overall.score == 5
    assert len(bench.stub.requests) == 1


@every_provider
def test_every_provider_can_be_asked_once_more(bench: Bench, provider: str) -> None:
    bench.stub.script = [Reply(text=scored("11")), Reply(text=said(6))]
    assert bench.review(judge=bench.judge(provider)).overall.score == 6
    assert '"score": 11' in bench.stub.requests[1].text
    bench.stub.reset([replies.refusing(), Reply(text=said(4))])
    assert bench.review(judge=bench.judge(provider)).overall.score == 4


# No answer at all


@pytest.mark.parametrize(
    ("reply", "cause", "attempts"),
    [
        (replies.rate_limited(0), "rate_limit", 2),
        (replies.failing(500), "provider", 2),
        (replies.failing(401), "auth", 1),
        (replies.failing(400), "bad_request", 1),
        (replies.resetting(), "connection", 2),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_fault_of_the_model_keeps_its_cause(
    bench: Bench, reply: Reply, cause: str, attempts: int
) -> None:
    bench.stub.script = reply
    with pytest.raises(JudgeFault) as caught:
        bench.review()
    assert caught.value.cause == cause
    assert caught.value.said == ()
    assert caught.value.spent is not None
    assert (caught.value.spent.calls, caught.value.spent.attempts) == (1, attempts)
    assert KEY not in str(caught.value)


@pytest.mark.parametrize(
    "reply", [replies.not_json(), replies.broken_json(), replies.empty(), replies.wrong_shape()]
)
def test_what_is_no_answer_of_a_model_is_asked_for_once_more(bench: Bench, reply: Reply) -> None:
    bench.stub.script = [reply, Reply(text=said(6))]
    answer = bench.review()
    assert answer.overall.score == 6
    assert answer.spent is not None
    assert (answer.spent.calls, answer.spent.attempts, answer.spent.input) == (2, 2, 11)
    first, second = bench.stub.requests
    assert "what arrived was no answer" in second.text[len(first.text) - 200 :]
    bench.stub.reset(reply)
    with pytest.raises(JudgeFault) as caught:
        bench.review()
    assert (caught.value.cause, caught.value.said) == ("malformed", ())
    assert len(bench.stub.requests) == 2


def test_a_timeout_is_a_timeout(bench: Bench) -> None:
    bench.stub.script = replies.hanging()
    with pytest.raises(JudgeFault) as caught:
        bench.review(judge=bench.judge(timeout=0.2))
    assert caught.value.cause == "timeout"


def test_a_fault_after_an_unusable_answer_keeps_what_was_said(bench: Bench) -> None:
    bench.stub.script = lambda asked: (
        Reply(text="Hm.") if asked.number == 1 else replies.failing(503)
    )
    with pytest.raises(JudgeFault) as caught:
        bench.review()
    assert (caught.value.cause, caught.value.said) == ("provider", ("Hm.",))
    assert caught.value.spent is not None
    assert (caught.value.spent.calls, caught.value.spent.attempts) == (2, 3)


def test_a_fault_of_the_run_keeps_its_cause_as_well(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def ask(*_: Any, **__: Any) -> Completion:
        raise SystemFault("budget", "there is no money left.")

    monkeypatch.setattr(bench.calls, "ask", ask)
    with pytest.raises(JudgeFault, match="no money") as caught:
        bench.review()
    assert caught.value.cause == "budget"


def test_a_review_can_be_interrupted(bench: Bench) -> None:
    bench.stub.script = replies.hanging()
    work = Reviewable(case(), lay_case(bench.folder, "idea"), "files", None)

    async def interrupted() -> None:
        task = asyncio.create_task(bench.judge().review(work))
        while not bench.stub.in_flight:
            await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    bench.runner.run(interrupted())


# Before the first case


def test_a_judge_without_a_key_is_refused_before_the_first_case(bench: Bench) -> None:
    agent: Any = SimpleNamespace(has_files=True, spec="reference")
    bench.judge("openai").prepare(agent, [])
    config = configure(bench.stub, "openai", key_env="NO_SUCH_KEY", base_url="https://example.org")
    judge = LLMJudge("anna", "openai:m", config, bench.calls)
    with one_sentence("openai:m", "NO_SUCH_KEY"):
        judge.prepare(agent, [])


def test_a_judge_needs_files(bench: Bench) -> None:
    agent: Any = SimpleNamespace(has_files=False, spec="published:codex")
    with one_sentence("openai:m", "published:codex"):
        bench.judge().prepare(agent, [])


def test_it_is_a_judge(bench: Bench) -> None:
    assert as_judges([bench.judge()])


def test_the_digest_is_of_what_answers_depend_on(bench: Bench) -> None:
    usual = bench.judge().digest
    assert bench.judge(timeout=5, key_env="OTHER", headers={"x-team": "a"}).digest == usual
    small = Share(each=10, total=10, files=1, read=10)
    others = [
        bench.judge(temperature=0).digest,
        bench.judge(effort="low").digest,
        bench.judge(api="responses").digest,
        bench.judge(hallucination=True).digest,
        bench.judge(budget=Budget(code=small)).digest,
        bench.judge("google").digest,
        LLMJudge("bert", "openai:m", configure(bench.stub), Calls()).digest,
    ]
    assert len({usual, *others}) == 8


# What was made up

FINDING = {"kind": "faked_results", "description": "typed", "evidence": "We  measured\n0.91"}


def answering(found: Reply) -> Any:
    """A script: a review for who scores, *found* for who looks for what was made up."""

    def script(asked: Received) -> Reply:
        looks = "hallucinations" in (asked.schema or {}).get("properties", {})
        return found if looks else Reply(text=said(6, "experiment"), delay=0.1)

    return script


def findings(*found: Any, confidence: Any = 4) -> Reply:
    return Reply(text=json.dumps({"hallucinations": found, "confidence": confidence}), delay=0.1)


def test_what_was_made_up_is_asked_at_the_same_time(bench: Bench) -> None:
    invented = {**FINDING, "kind": "nonexistent_citation", "evidence": "Smith (2031)"}
    apart = {**FINDING, "evidence": '"We measured … 0.91" [...] acc 0.91'}
    bench.stub.script = answering(findings(FINDING, invented, apart))
    answer = bench.review("experiment", judge=bench.judge(hallucination=True))
    assert bench.stub.max_in_flight == 2
    assert answer.overall.score == 6
    assert answer.hallucinations is not None
    kinds = [one.kind for one in answer.hallucinations]
    assert kinds == ["faked_results", "nonexistent_citation", "faked_results"]
    evidence = [one for one in answer.notices if one.startswith("evidence")]
    assert evidence == ["evidence of finding 2 is not in the work"]
    assert "confidence of the hallucination review: 4 of 5" in answer.notices
    assert answer.spent is not None
    assert answer.spent.calls == 2
    asked = next(one for one in bench.stub.requests if "find what was made up" in one.text)
    assert all(kind in asked.text for kind in HALLUCINATIONS)
    assert "We measured 0.91." in asked.text


EVIDENCE = Evidence(
    level="claimed",
    because="found: typed_results",
    examined=("transcript",),
    fabricated=True,
    undisclosed_synthetic=False,
    paper_untraced=None,
    findings=(
        Finding(
            kind="typed_results",
            severity="strong",
            means="fabricated",
            sentence="The numbers were typed.",
            place="results/metrics.json",
        ),
    ),
)


@pytest.mark.parametrize("sees", [False, True])
def test_what_was_found_out_is_shown_where_that_is_asked(bench: Bench, sees: bool) -> None:
    judge = bench.judge(evidence=EvidenceOptions(is_shown=sees))
    bench.review("experiment", judge=judge, evidence=EVIDENCE)
    asked = bench.stub.requests[-1].text
    assert ("Level of evidence: claimed" in asked) is sees
    assert ("The numbers were typed." in asked) is sees
    # Who is shown nothing answers as before there was anything to show.
    assert (judge.digest == bench.judge().digest) is not sees
    # Who is shown something answers anew where more is found out.
    more = bench.judge(evidence=EvidenceOptions(is_shown=sees, replays=True))
    assert (judge.digest == more.digest) is not sees


def test_nothing_found_is_not_the_same_as_not_looked_for(bench: Bench) -> None:
    bench.stub.script = answering(findings())
    assert bench.review("experiment").hallucinations is None
    looked = bench.review("experiment", judge=bench.judge(hallucination=True))
    assert looked.hallucinations == ()


@pytest.mark.parametrize(
    "reply",
    [
        replies.failing(400),
        findings({**FINDING, "kind": "plagiarism"}),
        findings({**FINDING, "evidence": None}),
        findings(confidence=6),
        replies.refusing(),
    ],
    ids=["fault", "unknown kind", "no evidence", "too sure", "refused"],
)
def test_a_review_stands_though_the_other_failed(bench: Bench, reply: Reply) -> None:
    bench.stub.script = answering(reply)
    answer = bench.review("experiment", judge=bench.judge(hallucination=True))
    assert answer.overall.score == 6
    assert answer.hallucinations is None
    assert any("hallucination review was not made: " in one for one in answer.notices)
    assert answer.spent is not None
    assert answer.spent.calls == 2 + (reply.status == 200)


def test_without_a_review_what_was_made_up_is_nothing(bench: Bench) -> None:
    bench.stub.script = lambda asked: (
        findings(FINDING)
        if "hallucinations" in (asked.schema or {}).get("properties", {})
        else Reply(text="no")
    )
    with pytest.raises(JudgeFault) as caught:
        bench.review("experiment", judge=bench.judge(hallucination=True))
    assert caught.value.said == ("no", "no")
    assert caught.value.spent is not None
    assert caught.value.spent.calls == 3


@pytest.mark.parametrize("stage", ["idea", "proposal"])
def test_where_nothing_was_run_nothing_is_looked_for(bench: Bench, stage: str) -> None:
    bench.review(stage, judge=bench.judge(hallucination=True))
    assert len(bench.stub.requests) == 1


# Any text at all


def completion(text: str, stop: Stop = "end") -> Completion:
    return Completion(text=text, stop=stop, raw_stop=stop, latency=1, request_id="", attempts=1)


def scores(text: str, stop: Stop = "end") -> set[int]:
    by = rubric("idea")
    found = _review(completion(text, stop), by, "idea", review_schema(by, "idea"))
    return {one.score for one in (*found.dimensions.values(), found.overall)}


words = st.text(st.characters(exclude_characters="{}", exclude_categories=["Cs"]), max_size=60)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=9,
)


@given(st.integers(1, 10), st.integers(1, 10), words, words, words)
def test_the_last_of_several_reviews_counts_whatever_is_around_them(
    draft: int, final: int, before: str, between: str, after: str
) -> None:
    text = f"{before}{said(draft)}{between}{said(final)}{after}"
    assert scores(text) == {final}


@given(st.integers(1, 10), st.text(max_size=80), st.booleans())
def test_a_justification_may_say_anything(score: int, text: str, ascii_only: bool) -> None:
    part = {"justification": text, "score": score}
    whole = json.dumps(good(score, clarity=part), ensure_ascii=ascii_only)
    assert scores(f"So:\n{whole}\n") == {score}
    assert scores(whole, "length") == {score}


@given(st.integers(1, 10), st.text(r"\abfnrtu{}[]x01\"", max_size=30))
def test_backslashes_may_cost_an_answer_but_never_change_a_score(score: int, text: str) -> None:
    raw = said(score).replace("about clarity", text)
    with suppress(UnusableAnswer):
        assert scores(raw) == {score}


@given(st.integers(0, 2000), st.integers(1, 10), st.integers(1, 10))
def test_a_review_that_ends_early_is_not_replaced_by_a_draft(
    length: int, draft: int, final: int
) -> None:
    whole = said(final)
    part = whole[: length % (len(whole) - 1) + 1]
    for text in (f"{said(draft)}\n{part}", f'{{"draft": {said(draft)}, "final": {part}'):
        with pytest.raises(UnusableAnswer):
            scores(text)
        with pytest.raises(UnusableAnswer):
            scores(text, "length")


@given(st.text(max_size=200) | st.text('{}[]":,\\ aé1\n', max_size=60))
def test_any_text_is_a_document_or_a_reason(text: str) -> None:
    try:
        assert isinstance(document(completion(text)), dict)
    except UnusableAnswer as why:
        assert str(why)  # noqa: PT017


@given(values, st.sampled_from(["clarity", "overall", "score"]))
def test_nothing_but_a_whole_number_in_range_is_a_score(value: Any, place: str) -> None:
    changed = good()
    if place == "score":
        changed["novelty"]["score"] = value
    else:
        changed[place] = value
    text = json.dumps(changed)
    try:
        found = scores(text)
    except UnusableAnswer:
        return
    assert place == "score"
    assert type(value) is int
    assert found == {7, value}
    assert 1 <= value <= 10
