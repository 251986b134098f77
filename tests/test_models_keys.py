"""Keys are taken from the environment, go to the provider, and are seen nowhere else."""

from __future__ import annotations

import asyncio
import base64
import json
import logging
import pickle
import traceback
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_models import QUICK, ask, asking, configure, every_model

from pytest_mlrbench.errors import InputError
from pytest_mlrbench.models.client import complete
from pytest_mlrbench.models.config import parse_model
from pytest_mlrbench.models.exchange import Prompt
from pytest_mlrbench.models.faults import ModelFault
from pytest_mlrbench.models.redaction import HIDDEN, Redaction
from pytest_mlrbench.models.registry import Models, check
from pytest_mlrbench.stub.replies import Reply
from pytest_mlrbench.stub.server import StubProvider

ODD = [
    "sk-plain-0123456789abcdef",
    "k.*+?[a-z](b|c)^$",
    "quo\"te\\back/slash's",
    "a b%20c&d=e<f>",
    "{curly}%s\\n",
    "xy",
    "k" * 2000,
]
VARIABLES = ("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GOOGLE_API_KEY")


@pytest.fixture(params=ODD, ids=lambda key: key[:8])
def key(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    for name in VARIABLES:
        monkeypatch.setenv(name, request.param)
    return str(request.param)


@every_model
def test_a_provider_that_repeats_the_key_gives_nothing_away(
    mlr_stub_provider: StubProvider,
    kind: str,
    key: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG)
    secret = "Bearer gateway-0123456789"
    # Anywhere, and where the message is cut: half a key is one as well.
    said = (
        f"Q{key}Q key={quote(key)} {base64.b64encode(key.encode()).decode()} {secret} {secret[7:]}"
    )
    message = said + "x" * max(0, 290 - len(said)) + key
    config = configure(mlr_stub_provider, kind, headers={"x-gateway": secret})
    bad = [Reply(body=json.dumps({"error": message}).encode())]
    for status in (400, 401, 429, 500):
        bad += [
            Reply(status=status, message=message),
            Reply(status=status, body=message.encode()),
            Reply(status=status, headers={"x-echo": key[:50]}, message=json.dumps({"a": message})),
        ]
    with asking(config) as question:
        for reply in bad:
            mlr_stub_provider.reset(reply)
            with pytest.raises(ModelFault) as caught:
                question()
            fault = caught.value
            seen = [str(fault), repr(fault), repr(vars(fault)), repr(pickle.dumps(fault))]
            seen += ["".join(traceback.format_exception(fault)), repr(config)]
            seen += [config.model_dump_json()]
            for text in seen:
                for part in _parts(key) | _parts(secret):
                    assert part not in text, text
    assert mlr_stub_provider.requests[0].key_sent
    for part in _parts(key) | {secret}:
        # The stub's answers are in the logs of the HTTP library; what we sent is not.
        assert part not in "\n".join(r.getMessage() for r in caplog.records if _ours(r)), part


def _ours(record: logging.LogRecord) -> bool:
    return "x-echo" not in record.getMessage()


def _parts(key: str) -> set[str]:
    """The key and, of one that is long enough not to be there by chance, its beginning."""
    return {key} if len(key) < 8 else {key, key[:8]}


@every_model
def test_a_missing_key_is_one_sentence_that_names_its_variable(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in (*VARIABLES, "GEMINI_API_KEY"):
        monkeypatch.setenv(name, " ")
    provider = "openai" if kind == "responses" else kind
    names = {"google": "GOOGLE_API_KEY or GEMINI_API_KEY"}
    name = names.get(provider, f"{provider.upper()}_API_KEY")
    with pytest.raises(InputError) as caught:
        check(parse_model(f"{provider}:m"))
    assert str(caught.value) == f"{provider}:m needs a key: set {name}."
    with pytest.raises(InputError, match=r"needs a key: set MY_KEY\.$"):
        check(parse_model(f"{provider}:m", key_env="MY_KEY"))


@every_model
def test_a_server_of_this_machine_needs_no_key(
    mlr_stub_provider: StubProvider, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in (*VARIABLES, "GEMINI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    assert ask(configure(mlr_stub_provider, kind)).stop == "end"
    provider = "openai" if kind == "responses" else kind
    with pytest.raises(InputError, match="needs a key"):
        check(parse_model(f"{provider}:m", base_url="https://localhost.example.org/v1"))


@every_model
def test_a_key_that_cannot_be_sent_is_refused_without_showing_it(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    provider = "openai" if kind == "responses" else kind
    for key in ("sk-ab\ncd", "schlüssel", "sk\x00ab"[:2] + "\x7f"):
        monkeypatch.setenv("ODD_KEY", key)
        with pytest.raises(InputError, match="ODD_KEY holds a character that no key has") as caught:
            check(parse_model(f"{provider}:m", key_env="ODD_KEY"))
        assert key not in str(caught.value)


@every_model
def test_the_address_of_the_sdks_own_variable_is_used(
    mlr_stub_provider: StubProvider, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    provider = "openai" if kind == "responses" else kind
    variables = {"google": "GOOGLE_GEMINI_BASE_URL"}
    name = variables.get(provider, f"{provider.upper()}_BASE_URL")
    monkeypatch.setenv(name, mlr_stub_provider.base_url(provider))
    assert ask(configure(mlr_stub_provider, kind, base_url="")).stop == "end"
    monkeypatch.setenv(name, "http://me:secret@example.org")
    with pytest.raises(InputError, match=f"{name} is not usable") as caught:
        check(configure(mlr_stub_provider, kind, base_url=""))
    assert "secret" not in str(caught.value)


@every_model
def test_headers_are_sent_and_not_shown(
    mlr_stub_provider: StubProvider, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in VARIABLES:
        monkeypatch.setenv(name, "sk-test")
    config = configure(mlr_stub_provider, kind, headers={"X-Team": "judges-of-mlr"})

    async def story() -> Any:
        async with Models(QUICK) as models:
            client = models.client(config)
            await complete(client, Prompt.of("Hello"))
            return repr(client) + str(client) + repr(models) + repr(vars(client))

    shown = asyncio.run(story())
    assert mlr_stub_provider.requests[0].headers["x-team"] == "judges-of-mlr"
    assert "judges-of-mlr" not in shown
    assert "sk-test" not in shown


@given(st.text(st.characters(min_codepoint=32, max_codepoint=126), min_size=1), st.text())
def test_no_key_is_left_in_any_text(key: str, around: str) -> None:
    if not key.strip():
        return
    hide = Redaction([key])
    # "[key]" itself may be, or may make up, a very short key.
    if len(key) > len(HIDDEN):
        assert key not in hide(f"{around}{key}{around}{json.dumps(key)}{key!r}{quote(key)}")
    assert repr(hide) == "Redaction()"


@every_model
def test_a_key_spelled_with_escapes_is_hidden_too(
    mlr_stub_provider: StubProvider, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = "sk-plain-0123456789abcdef"
    for name in VARIABLES:
        monkeypatch.setenv(name, secret)
    spelled = "".join(f"\\u{ord(letter):04x}" for letter in secret)
    mlr_stub_provider.script = Reply(status=400, body=f'{{"detail": "{spelled}"}}'.encode())
    with pytest.raises(ModelFault) as caught:
        ask(configure(mlr_stub_provider, kind))
    assert secret not in str(caught.value)
    assert spelled not in str(caught.value)


def test_clients_of_closed_loops_are_let_go_and_a_new_key_makes_a_new_client(
    mlr_stub_provider: StubProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("openai")
    config = configure(mlr_stub_provider, "openai")
    models = Models(QUICK)

    async def make() -> object:
        return models.client(config)

    for _ in range(3):
        asyncio.run(make())
    assert len(models._clients) == 1
    with asyncio.Runner() as runner:
        monkeypatch.setenv("OPENAI_API_KEY", "one-0123456789")
        first = runner.run(make())
        assert runner.run(make()) is first
        monkeypatch.setenv("OPENAI_API_KEY", "two-0123456789")
        assert runner.run(make()) is not first
        runner.run(models.close())
