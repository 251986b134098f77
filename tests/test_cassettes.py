"""A run that was recorded is replayed with no model, no key and no network, and comes out alike."""

from __future__ import annotations

import asyncio
import hashlib
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_calls import COST, ONCE, TWICE, ask, fail, judge, priced, run

from pytest_mlrbench.errors import InputError, SystemFault
from pytest_mlrbench.models.budget import Budget
from pytest_mlrbench.models.calls import Calls, Meter
from pytest_mlrbench.models.cassettes import Asked, Cassette, Outcome
from pytest_mlrbench.models.config import NO_KEY, parse_model
from pytest_mlrbench.models.exchange import Completion, Image, Message, Prompt, Request
from pytest_mlrbench.models.faults import ModelFault
from pytest_mlrbench.models.shared import SharedState
from pytest_mlrbench.stub import replies
from pytest_mlrbench.stub.replies import Reply
from pytest_mlrbench.stub.server import StubProvider

KEY = "sk-test-0123456789"
PNG = Image(b"\x89PNG\r\n\x1a\n\xff\xfe", "image/png")


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)


def files(path: Path) -> dict[str, bytes]:
    return {str(file.relative_to(path)): file.read_bytes() for file in path.rglob("*.json")}


def test_a_whole_run_replays_as_it_was(
    tmp_path: Path, mlr_stub_provider: StubProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("openai", reason="the SDK openai is not installed")
    model, unpriced = (priced(mlr_stub_provider, **prices) for prices in ({}, _NO_PRICES))
    texts = {
        "Well?": None,
        "Retried": {2: replies.failing(500), 3: Reply()},
        "Refused": replies.refusing(),
        "Cut": replies.cut("Line 1\nLine 2\n"),
        "Broken": replies.not_json(),
        "Down": replies.failing(503),
        "Uncounted": Reply(tokens=None),
    }

    def script(asked: Any) -> Any:
        found = texts[asked.text]
        return found.get(asked.number) if isinstance(found, dict) else found

    mlr_stub_provider.script = script
    said: list[list[Any]] = []

    async def story(calls: Calls) -> None:
        heard: list[Any] = []
        for config in (model, unpriced):
            for text in texts:
                try:
                    heard.append(await ask(calls, config, meter, text))
                except ModelFault as fault:
                    heard.append((str(fault), vars(fault)))
        said.append(heard)

    meters = [judge(), judge()]
    meter = meters[0]
    run(story, TWICE, cassette=Cassette.record(tmp_path / "calls"))
    number = len(mlr_stub_provider.requests)

    monkeypatch.delenv("OPENAI_API_KEY")
    monkeypatch.setattr("pytest_mlrbench.models.registry.find_spec", lambda name: None)
    meter = meters[1]
    # Another address of the same model; the budget of a run that costs nothing.
    model, unpriced = (
        one.model_copy(update={"base_url": "https://example.org/v1"}) for one in (model, unpriced)
    )
    second = run(
        story,
        cassette=Cassette.replay(tmp_path / "calls"),
        budget=Budget(0.0, None, SharedState()),
    )
    assert said[0] == said[1]
    assert meters[0] == meters[1]
    assert len(mlr_stub_provider.requests) == number
    assert second.is_replay
    assert second.broken(model) is None
    second.check([unpriced])


_NO_PRICES = {"price_in": None, "price_out": None, "name": "other-model"}


def test_a_recording_can_be_read_and_holds_no_key(
    tmp_path: Path, mlr_stub_provider: StubProvider
) -> None:
    pytest.importorskip("openai", reason="the SDK openai is not installed")
    secret = "Bearer gateway-0123456789"
    model = priced(mlr_stub_provider, headers={"x-gateway": secret})
    mlr_stub_provider.script = Reply(text=f"One.\nTwo: {KEY}\n{secret[7:]}")
    heard = []

    async def story(calls: Calls) -> None:
        prompt = Prompt.of("Look:\nhere", PNG, system="Be strict.").then("Of what?", KEY)
        meter = judge()
        heard.append(
            await calls.ask(
                model, prompt, Request(json_schema={"type": "object"}), meter=meter, purpose="re/1"
            )
        )

    for mode in ("record", "replay"):
        run(story, cassette=getattr(Cassette, mode)(tmp_path))
    # Who records gets what who replays will get.
    assert heard[0] == heard[1]
    assert heard[0].text == "One.\nTwo: [key]\n[key]"
    ((name, text),) = files(tmp_path).items()
    document = json.loads(text)
    assert name == f"mini__idea__some_task__r1/re_1-{document['key'][:16]}.json"
    assert document["messages"] == [
        {
            "role": "user",
            "parts": [
                ["Look:", "here"],
                {"image": "image/png", "bytes": 10, "sha256": hashlib.sha256(PNG.data).hexdigest()},
            ],
        },
        {"role": "assistant", "parts": ["Of what?"]},
        {"role": "user", "parts": ["[key]"]},
    ]
    assert document["answer"]["text"] == ["One.", "Two: [key]", "[key]"]
    assert document["cost_usd"] == pytest.approx(COST)
    assert document["parameters"] == {"max_tokens": 100, "json_schema": {"type": "object"}}
    for part in (KEY, secret, secret[7:]):
        assert part.encode() not in text


def test_a_call_that_was_not_recorded_is_named_and_not_made(
    tmp_path: Path, mlr_stub_provider: StubProvider
) -> None:
    model = priced(mlr_stub_provider)
    meter = judge()

    async def story(calls: Calls) -> None:
        fault = await fail(calls, model, meter)
        assert fault.cause == "no_recording"
        assert type(fault) is SystemFault
        assert f"{tmp_path}/mini__idea__some_task__r1/review-" in fault.message
        assert fault.message.endswith("record it again with --mlr-record.")

    run(story, cassette=Cassette.replay(tmp_path))
    assert mlr_stub_provider.requests == []
    assert (meter.records[0].cause, meter.records[0].attempts) == ("no_recording", 0)


@pytest.mark.parametrize("text", ["", "{", "[]", "null", '{"version": 2}', '{"version": 1}'])
def test_a_recording_that_cannot_be_read_is_named(tmp_path: Path, text: str) -> None:
    asked = _asked()
    path = Cassette.record(tmp_path).file(asked)
    path.parent.mkdir()
    path.write_text(text)
    fault = Cassette.replay(tmp_path).find(asked).fault
    assert fault
    assert fault.cause == "no_recording"
    assert str(path) in fault.message


def test_what_the_breaker_and_the_budget_said_is_recorded_too(
    tmp_path: Path, mlr_stub_provider: StubProvider
) -> None:
    pytest.importorskip("openai", reason="the SDK openai is not installed")
    model, other = (priced(mlr_stub_provider, name, max_tokens=9) for name in ("a", "b"))
    mlr_stub_provider.script = replies.failing(401)
    causes = []

    async def story(calls: Calls) -> None:
        faults = [await fail(calls, model) for _ in range(3)]
        faults.append(await fail(calls, other.model_copy(update={"max_tokens": 500_000})))
        causes.append([(fault.cause, fault.message) for fault in faults])

    budget = Budget(1.0, None, SharedState())
    run(story, cassette=Cassette.record(tmp_path), budget=budget)
    # The same call three times is one recording: the last.
    assert "was not asked" in causes[0][2][1]
    run(story, cassette=Cassette.replay(tmp_path))
    assert causes[1] == [causes[0][2]] * 3 + [causes[0][3]]


def test_recording_again_writes_the_same_bytes(
    tmp_path: Path, mlr_stub_provider: StubProvider
) -> None:
    pytest.importorskip("openai", reason="the SDK openai is not installed")
    model = priced(mlr_stub_provider)
    cassette = Cassette.record(tmp_path)

    async def story(calls: Calls) -> None:
        await asyncio.gather(*(ask(calls, model, text=f"Äh, {n}?") for n in range(5)))

    run(story, ONCE, cassette=cassette)
    before = files(tmp_path)
    mlr_stub_provider.reset()
    run(story, ONCE, cassette=cassette)
    after = files(tmp_path)
    assert before.keys() == after.keys()
    assert len(after) == 5
    drop = ("latency", "request_id")
    for name, text in before.items():
        one, other = (json.loads(each) for each in (text, after[name]))
        for document in (one, other):
            for key in drop:
                del document["answer"][key]
        assert one == other
        assert "Äh, ".encode() in text


def test_a_folder_that_is_none_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"--mlr-replay-calls .* is no folder"):
        Cassette.replay(tmp_path / "none")
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match=r"--mlr-record .* cannot be written"):
        Cassette.record(tmp_path / "file" / "in")


def test_a_replay_imports_no_sdk(tmp_path: Path) -> None:
    asked = _asked(prompt=Prompt.of("Hello"))
    Cassette.record(tmp_path).keep(asked, Outcome(answer=_answer("Yes.")))
    done = subprocess.run(
        [sys.executable, "-c", REPLAY, str(tmp_path)], capture_output=True, text=True, check=True
    )
    assert done.stdout == "Yes. []\n"


REPLAY = """
import asyncio, sys
from pathlib import Path
from pytest_mlrbench.models.calls import Calls, Meter
from pytest_mlrbench.models.cassettes import Cassette
from pytest_mlrbench.models.config import parse_model
from pytest_mlrbench.models.exchange import Prompt, Request

calls = Calls(cassette=Cassette.replay(Path(sys.argv[1])))
answer = asyncio.run(
    calls.ask(
        parse_model("openai:m"),
        Prompt.of("Hello"),
        Request(max_tokens=5),
        meter=Meter("mini/idea/some_task/r1", "judge", "strict"),
        purpose="review",
    )
)
print(answer.text, [n for n in ("openai", "genai_prices") if n in sys.modules])
"""


def _answer(text: str, **more: Any) -> Completion:
    return Completion(
        text=text, stop="end", raw_stop="stop", latency=0.1 + 0.2, request_id="", attempts=1, **more
    )


def _asked(**changes: Any) -> Asked:
    given = {
        "config": parse_model("openai:m", base_url="https://example.org/v1"),
        "prompt": Prompt.of("Hello", PNG, system="Be."),
        "wanted": Request(max_tokens=5),
        "meter": Meter("mini/idea/some_task/r1", "judge", "strict"),
        "purpose": "review",
    }
    return Asked(**{**given, **changes})


TEXT = st.text(st.characters(), max_size=30)
PROMPTS = st.builds(
    Prompt,
    messages=st.lists(
        st.builds(
            Message,
            parts=st.lists(TEXT | st.builds(Image, st.binary(), st.just("image/png"))).map(tuple),
            role=st.sampled_from(["user", "assistant"]),
        ),
        max_size=3,
    ).map(tuple),
    system=TEXT,
)


@given(PROMPTS, PROMPTS)
def test_two_calls_have_one_key_only_if_they_are_one(one: Prompt, other: Prompt) -> None:
    assert (_asked(prompt=one).key == _asked(prompt=other).key) == (one == other)


def test_whatever_differs_makes_another_call() -> None:
    config = parse_model("openai:m", base_url="https://example.org/v1")
    others: list[dict[str, Any]] = [
        {},
        {"config": parse_model("openai:m2")},
        {"config": parse_model("google:m")},
        {"prompt": Prompt.of("Hello", PNG)},
        {"prompt": Prompt.of("HelloBe.", PNG)},
        {"prompt": Prompt.of("Hello", Image(PNG.data, "image/gif"), system="Be.")},
        {"wanted": Request(max_tokens=6)},
        {"wanted": Request(max_tokens=5, json_schema={})},
        {"meter": Meter("mini/idea/some_task/r2", "judge", "strict")},
        {"meter": Meter("mini/idea/some_task/r1", "agent", "strict")},
        {"meter": Meter("mini/idea/some_task/r1", "judge", "mild")},
        {"purpose": "review-2"},
    ]
    assert len({_asked(**other).key for other in others}) == len(others)
    # How it is reached, what it costs and how long it may take is no part of the call.
    changes: list[dict[str, Any]] = [{"base_url": ""}, {"price_in": 1.0}, {"timeout": 5.0}]
    for change in changes:
        assert _asked(config=config.model_copy(update=change)).key == _asked().key


@given(PROMPTS, TEXT, st.none() | st.floats(0, 1e6))
def test_whatever_is_recorded_is_replayed(prompt: Prompt, text: str, cost: float | None) -> None:
    asked = _asked(prompt=prompt)
    outcome = Outcome(answer=_answer(text), cost_usd=cost)
    with tempfile.TemporaryDirectory() as folder:
        assert Cassette.record(Path(folder)).keep(asked, outcome) == outcome
        assert Cassette.replay(Path(folder)).find(asked) == outcome


@pytest.mark.parametrize("key", ["EMPTY", NO_KEY])
def test_a_key_that_is_none_is_not_taken_out_of_answers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, key: str
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", key)
    outcome = Outcome(answer=_answer(f"The list is {key}."))
    assert Cassette.record(tmp_path).keep(_asked(), outcome) == outcome


@pytest.mark.parametrize("case", ["../../etc", "a/../b", ".hidden", "x" * 400, "ü/ö", ""])
def test_no_name_leads_out_of_the_folder(tmp_path: Path, case: str) -> None:
    cassette = Cassette.record(tmp_path)
    asked = _asked(meter=Meter(case, "agent", "me"), purpose=f"../{case}")
    cassette.keep(asked, Outcome(answer=_answer("Yes.")))
    assert cassette.file(asked).resolve().parent.parent == tmp_path.resolve()
    assert len(files(tmp_path)) == 1


def test_a_disk_that_is_full_is_a_fault_of_the_system(tmp_path: Path) -> None:
    cassette = Cassette.record(tmp_path)
    (tmp_path / "mini__idea__some_task__r1").write_text("in the way")
    with pytest.raises(SystemFault, match="cannot be written") as caught:
        cassette.keep(_asked(), Outcome(answer=_answer("Yes.")))
    assert caught.value.cause == "disk"


def test_the_recording_of_another_call_is_none(tmp_path: Path) -> None:
    cassette = Cassette.record(tmp_path / "calls")
    cassette.keep(_asked(), Outcome(answer=_answer("yes")))
    path = cassette.file(_asked())
    path.write_text(path.read_text().replace(_asked().key, "0" * 64))
    fault = Cassette.replay(tmp_path / "calls").find(_asked()).fault
    assert fault is not None
    assert fault.cause == "no_recording"
