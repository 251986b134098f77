"""A model of any provider is asked in one way, and what it says comes back in one form."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any

import jsonschema
import pytest

from pytest_mlrbench.errors import InputError
from pytest_mlrbench.models.client import complete
from pytest_mlrbench.models.config import ModelConfig, parse_model
from pytest_mlrbench.models.exchange import Completion, Image, Prompt, Request
from pytest_mlrbench.models.registry import Models, check
from pytest_mlrbench.models.retrying import Retries
from pytest_mlrbench.stub import replies
from pytest_mlrbench.stub.replies import Reply, Stop, Tokens
from pytest_mlrbench.stub.server import StubProvider

KEY = "sk-test-0123456789"
QUICK = Retries(attempts=3, first=0.001, longest=0.002)
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "score": {"type": "integer", "minimum": 1, "maximum": 10},
        "why": {"type": "string", "maxLength": 40},
    },
    "required": ["score", "why"],
    "additionalProperties": False,
}
PNG = Image(b"\x89PNG\r\n\x1a\n\xff\xfe", "image/png")


def _models() -> list[Any]:
    """Each provider and interface; skipped where its SDK is not installed."""
    kinds = {"anthropic": "anthropic", "openai": "openai", "responses": "openai"}
    there = {name: find_spec(module) is not None for name, module in kinds.items()}
    there["google"] = find_spec("google") is not None and find_spec("google.genai") is not None
    return [
        pytest.param(
            name, marks=pytest.mark.skipif(not here, reason=f"the SDK for {name} is not installed")
        )
        for name, here in there.items()
    ]


every_model = pytest.mark.parametrize("kind", _models())


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for provider in ("ANTHROPIC", "OPENAI", "GOOGLE", "GEMINI"):
        monkeypatch.setenv(f"{provider}_API_KEY", KEY)


def configure(stub: StubProvider, kind: str, **settings: Any) -> ModelConfig:
    provider = "openai" if kind == "responses" else kind
    return parse_model(
        f"{provider}:some-model",
        base_url=settings.pop("base_url", stub.base_url(provider)),
        api="responses" if kind == "responses" else "chat",
        **settings,
    )


Ask = Callable[..., Completion]


@contextmanager
def asking(config: ModelConfig, retries: Retries = QUICK) -> Iterator[Ask]:
    """One client for several questions: to make one takes longer than to ask one."""
    models = Models(retries)

    async def question(request: Request | None, prompt: Prompt | None) -> Completion:
        return await complete(models.client(config), prompt or Prompt.of("Hello"), request)

    with asyncio.Runner() as runner:
        try:
            yield lambda request=None, prompt=None: runner.run(question(request, prompt))
        finally:
            runner.run(models.close())


def ask(
    config: ModelConfig,
    request: Request | None = None,
    prompt: Prompt | None = None,
    retries: Retries = QUICK,
) -> Completion:
    with asking(config, retries) as question:
        return question(request, prompt)


@every_model
def test_an_answer_comes_back_with_all_that_is_known_of_it(
    mlr_stub_provider: StubProvider, kind: str
) -> None:
    answer = ask(configure(mlr_stub_provider, kind))
    assert answer.text == replies.TEXT
    assert (answer.stop, answer.attempts, answer.dropped) == ("end", 1, ())
    assert answer.model == "some-model"
    assert answer.request_id == "req_1"
    assert 0 < answer.latency < 60
    used = answer.usage
    assert (used.input, used.output, used.cached_input, used.reasoning) == (11, 7, 3, 2)
    assert Completion.model_validate_json(answer.model_dump_json()) == answer


@every_model
def test_tokens_that_the_provider_does_not_count_are_unknown_and_not_zero(
    mlr_stub_provider: StubProvider, kind: str
) -> None:
    mlr_stub_provider.script = Reply(tokens=None)
    used = ask(configure(mlr_stub_provider, kind)).usage
    assert (used.input, used.output, used.cached_input, used.reasoning) == (None,) * 4


@every_model
def test_the_schema_reaches_the_model(mlr_stub_provider: StubProvider, kind: str) -> None:
    answer = ask(configure(mlr_stub_provider, kind), Request(json_schema=SCHEMA))
    jsonschema.validate(json.loads(answer.text), SCHEMA)


@every_model
def test_system_text_image_and_an_earlier_exchange_reach_the_model(
    mlr_stub_provider: StubProvider, kind: str
) -> None:
    prompt = Prompt.of("Look at", PNG, system="You are a judge.").then("A plot.", "Of what?")
    ask(configure(mlr_stub_provider, kind), prompt=prompt)
    (asked,) = mlr_stub_provider.requests
    assert asked.text.split("\n") == ["You are a judge.", "Look at", "A plot.", "Of what?"]
    assert asked.images == [PNG.data]


@every_model
def test_parameters_reach_the_model_and_those_of_the_request_win(
    mlr_stub_provider: StubProvider, kind: str
) -> None:
    config = configure(mlr_stub_provider, kind, max_tokens=100, temperature=0.5)
    ask(config, Request(max_tokens=50))
    text = json.dumps(mlr_stub_provider.requests[0].body)
    assert "50" in text
    assert "100" not in text
    assert ('"temperature": 0.5' in text) == (kind != "anthropic")


@every_model
def test_what_the_provider_does_not_take_is_left_out_and_said(
    mlr_stub_provider: StubProvider, kind: str
) -> None:
    answer = ask(configure(mlr_stub_provider, kind, temperature=0, seed=7, effort="minimal"))
    left_out = {dropped.name: dropped.why for dropped in answer.dropped}
    expected = {
        "anthropic": {"temperature", "seed", "effort"},
        "openai": {"temperature"},
        "responses": {"temperature", "seed"},
        "google": set(),
    }
    assert set(left_out) == expected[kind]
    assert all(left_out.values())
    sent = json.dumps(mlr_stub_provider.requests[0].body).lower()
    for name in ("temperature", "seed"):
        assert (f'"{name}"' in sent) == (name not in left_out)
    assert ("minimal" in sent) == ("effort" not in left_out)


def test_limits_that_anthropic_does_not_enforce_are_said() -> None:
    pytest.importorskip("anthropic", reason="the SDK anthropic is not installed")
    with StubProvider() as stub:
        answer = ask(configure(stub, "anthropic"), Request(json_schema=SCHEMA))
    names = {dropped.name for dropped in answer.dropped}
    assert names == {"json_schema.minimum", "json_schema.maximum", "json_schema.maxLength"}


def test_a_schema_that_openai_cannot_enforce_is_said() -> None:
    pytest.importorskip("openai", reason="the SDK openai is not installed")
    loose = {"type": "object", "properties": {"score": {"type": "integer"}}}
    with StubProvider() as stub:
        answer = ask(configure(stub, "openai"), Request(json_schema=loose))
        assert stub.requests[0].body["response_format"]["json_schema"]["strict"] is False
    assert [dropped.name for dropped in answer.dropped] == ["json_schema.strict"]


@pytest.mark.parametrize(
    ("model", "reasons"),
    [("gpt-4o", False), ("gpt-5", True), ("gpt-5-chat-latest", False), ("openai/o3-mini", True)],
)
def test_models_of_openai_that_reason_get_no_temperature(model: str, reasons: bool) -> None:
    pytest.importorskip("openai", reason="the SDK openai is not installed")
    with StubProvider() as stub:
        config = parse_model(f"openai:{model}", base_url=stub.base_url("openai"), temperature=0)
        answer = ask(config, Request(max_tokens=9))
        body = stub.requests[0].body
    assert [dropped.name for dropped in answer.dropped] == ["temperature"] * reasons
    assert ("temperature" in body) != reasons
    # They refuse the old name, and others do not know the new one.
    assert body["max_completion_tokens" if reasons else "max_tokens"] == 9


STOPS: dict[Stop, tuple[str, ...]] = {
    "length": ("max_tokens", "length", "max_output_tokens", "MAX_TOKENS"),
    "refusal": ("refusal", "refusal", "refusal", "SAFETY"),
    "filter": ("refusal", "content_filter", "content_filter", "RECITATION"),
    "other": ("pause_turn", "tool_calls", "scripted", "OTHER"),
}


@every_model
def test_why_an_answer_ends_is_said_in_our_words_and_in_the_providers(
    mlr_stub_provider: StubProvider, kind: str
) -> None:
    place = ("anthropic", "openai", "responses", "google").index(kind)
    # Anthropic's filter is called a refusal, and what Google refuses is filtered.
    ours = {("anthropic", "filter"): "refusal", ("google", "refusal"): "filter"}
    with asking(configure(mlr_stub_provider, kind)) as question:
        for stop, theirs in STOPS.items():
            mlr_stub_provider.reset(Reply(stop=stop, text="Well …"))
            answer = question()
            assert answer.stop == ours.get((kind, stop), stop)
            assert answer.raw_stop == theirs[place]
            assert answer.attempts == len(mlr_stub_provider.requests) == 1
            if stop == "length":
                assert answer.text == "Well …"
                assert answer.usage.output == 7


def test_a_refusal_of_openai_keeps_its_words(mlr_stub_provider: StubProvider) -> None:
    pytest.importorskip("openai", reason="the SDK openai is not installed")
    mlr_stub_provider.script = replies.refusing()
    for kind in ("openai", "responses"):
        assert ask(configure(mlr_stub_provider, kind)).text == "I cannot help with that."


def test_a_prompt_that_google_blocks_is_filtered(mlr_stub_provider: StubProvider) -> None:
    pytest.importorskip("google.genai", reason="the SDK google-genai is not installed")
    body = {"promptFeedback": {"blockReason": "SAFETY"}, "usageMetadata": {"promptTokenCount": 5}}
    mlr_stub_provider.script = Reply(body=json.dumps(body).encode())
    answer = ask(configure(mlr_stub_provider, "google"))
    assert (answer.stop, answer.raw_stop, answer.text) == ("filter", "SAFETY", "")
    assert (answer.usage.input, answer.usage.output) == (5, None)


def test_thoughts_are_no_part_of_the_text(mlr_stub_provider: StubProvider) -> None:
    pytest.importorskip("google.genai", reason="the SDK google-genai is not installed")
    parts = [{"text": "Hm.", "thought": True}, {"text": "Yes."}]
    candidate = {"finishReason": "STOP", "content": {"parts": parts}}
    mlr_stub_provider.script = Reply(body=json.dumps({"candidates": [candidate]}).encode())
    assert ask(configure(mlr_stub_provider, "google")).text == "Yes."


def test_tokens_of_anthropics_cache_are_counted_into_the_input(
    mlr_stub_provider: StubProvider,
) -> None:
    pytest.importorskip("anthropic", reason="the SDK anthropic is not installed")
    mlr_stub_provider.script = Reply(tokens=Tokens(input=1000, cached=900))
    used = ask(configure(mlr_stub_provider, "anthropic")).usage
    assert (used.input, used.cached_input) == (1000, 900)


@every_model
def test_a_long_answer_may_be_asked_for_without_streaming(
    mlr_stub_provider: StubProvider, kind: str
) -> None:
    assert ask(configure(mlr_stub_provider, kind), Request(max_tokens=100_000)).stop == "end"


@every_model
def test_a_client_is_made_once_for_each_loop(mlr_stub_provider: StubProvider, kind: str) -> None:
    config = configure(mlr_stub_provider, kind)
    models = Models(QUICK)

    async def once() -> Any:
        client = models.client(config)
        assert models.client(config.model_copy()) is client
        await complete(client, Prompt.of("Hello"))
        return client

    async def then_close() -> Any:
        client = await once()
        await models.close()
        return client

    first, second = asyncio.run(then_close()), asyncio.run(then_close())
    assert first is not second
    assert first.limit is second.limit
    with pytest.raises(RuntimeError, match="belongs to another event loop"):
        asyncio.run(complete(first, Prompt.of("Hello")))


def test_a_model_is_named_in_a_word() -> None:
    config = parse_model(" openai:meta-llama/Llama-3:free ", max_tokens=5)
    assert (config.provider, config.model) == ("openai", "meta-llama/Llama-3:free")
    assert str(config) == "openai:meta-llama/Llama-3:free"
    assert hash(config) == hash(parse_model("openai:meta-llama/Llama-3:free", max_tokens=5))


@pytest.mark.parametrize("text", ["gpt-5", "openai:", ":gpt-5", "mistral:large", "", "openai: x"])
def test_what_names_no_model_is_one_sentence(text: str) -> None:
    with pytest.raises(InputError, match=r"model") as caught:
        parse_model(text)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"base_url": "localhost:80"}, "base_url.*must be an address"),
        ({"base_url": "http://me:secret@h/v1"}, "base_url.*no name, password"),
        ({"base_url": "http://h/v1?key=secret"}, "base_url.*no name, password"),
        ({"base_url": "http://h:port/v1"}, "base_url.*number of a port"),
        ({"base_url": "http://h:99999/v1"}, "base_url.*number of a port"),
        ({"timeout": 0}, "timeout.*greater than 0"),
        ({"temperature": 3}, "temperature.*less than"),
        ({"effort": "huge"}, "effort"),
        ({"colour": "red"}, "colour"),
    ],
)
def test_a_setting_that_is_not_usable_is_one_sentence(settings: Any, words: str) -> None:
    with pytest.raises(InputError, match=words) as caught:
        parse_model("openai:m", **settings)
    assert "\n" not in str(caught.value)
    assert "secret" not in str(caught.value)


def test_only_openai_has_two_interfaces() -> None:
    with pytest.raises(InputError, match="for models of openai only"):
        check(parse_model("google:m", api="responses"))


def test_an_sdk_that_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pytest_mlrbench.models.registry.find_spec", lambda name: None)
    with pytest.raises(
        InputError, match=r"google:m needs google-genai: pip install 'pytest-mlrbench\[models\]'"
    ):
        check(parse_model("google:m"))


def test_no_sdk_is_imported_before_a_model_is_asked() -> None:
    code = (
        "import sys, pkgutil, importlib, pytest_mlrbench.models as package\n"
        "for found in pkgutil.iter_modules(package.__path__, 'pytest_mlrbench.models.'):\n"
        "    importlib.import_module(found.name)\n"
        "from pytest_mlrbench.models.registry import check\n"
        "from pytest_mlrbench.models.config import parse_model\n"
        "from pytest_mlrbench.errors import InputError\n"
        "for name in ('anthropic:m', 'openai:m', 'google:m'):\n"
        "    try: check(parse_model(name))\n"
        "    except InputError: pass\n"
        "print([n for n in ('anthropic', 'openai', 'google.genai') if n in sys.modules])\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
