"""A run that cannot work is told so in one sentence, before anything has been paid for."""

from __future__ import annotations

import asyncio
import json
import re
import struct
import zlib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from test_calls import ONCE
from test_models import configure, every_model

from pytest_mlrbench.errors import InputError
from pytest_mlrbench.models import preflight as module
from pytest_mlrbench.models.budget import Budget
from pytest_mlrbench.models.calls import Calls, Meter
from pytest_mlrbench.models.cassettes import Cassette
from pytest_mlrbench.models.config import ModelConfig
from pytest_mlrbench.models.preflight import picture, preflight
from pytest_mlrbench.models.registry import Models
from pytest_mlrbench.models.shared import SharedState
from pytest_mlrbench.stub import replies
from pytest_mlrbench.stub.replies import Reply
from pytest_mlrbench.stub.server import StubProvider
from pytest_mlrbench.stub.wire import Received


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for provider in ("ANTHROPIC", "OPENAI", "GOOGLE"):
        monkeypatch.setenv(f"{provider}_API_KEY", "sk-test-0123456789")
    quick = replace(module.RETRIES, first=0.001, longest=0.002, asked=0.001)
    monkeypatch.setattr(module, "RETRIES", quick)


def fly(
    *configs: ModelConfig | tuple[ModelConfig, bool], meter: Meter | None = None, **settings: Any
) -> list[str]:
    pairs: Sequence[Any] = [one if isinstance(one, tuple) else (one, False) for one in configs]

    async def story() -> list[str]:
        calls = Calls(Models(ONCE), **settings)
        try:
            return await preflight(calls, pairs, meter)
        finally:
            await calls.close()

    return asyncio.run(story())


def crash(*configs: ModelConfig | tuple[ModelConfig, bool], **settings: Any) -> str:
    with pytest.raises(InputError) as caught:
        fly(*configs, **settings)
    assert caught.value.__cause__ is None
    message = str(caught.value)
    assert "\n" not in message
    assert message.endswith(".")
    return message


@every_model
def test_every_model_is_asked_once_and_shown_a_picture_only_if_it_needs_one(
    mlr_stub_provider: StubProvider, kind: str
) -> None:
    one = configure(mlr_stub_provider, kind)
    other = one.model_copy(update={"model": "other-model"})
    meter = Meter("preflight", "judge", "preflight")
    assert fly(one, (one, True), other, one, meter=meter) == []
    pictures = {asked.model: asked.images for asked in mlr_stub_provider.requests}
    assert pictures == {"some-model": [picture().data], "other-model": []}
    assert len(mlr_stub_provider.requests) == 2
    assert all(asked.schema for asked in mlr_stub_provider.requests)
    assert [record.purpose for record in meter.records] == ["preflight"] * 2
    assert meter.spent().output == 14


@pytest.mark.parametrize(
    ("reply", "words"),
    [
        (replies.failing(401), r"does not accept the key in .*: set a key that may use this model"),
        (replies.failing(404), r"refuses the request: 404 Not Found.*: check the name of the mod"),
        (replies.failing(400), r"refuses the request: 400 .*: check its settings in --mlr-model"),
        (replies.failing(500), r"failed: 500 .*\(tried 3 times\): try again later, or leave this"),
        (replies.not_json(), r"sent no usable answer: .*: check that base_url is the address of"),
        (replies.resetting(), r"cannot be reached: .*: check base_url and that its server is up"),
    ],
)
def test_what_is_wrong_and_what_to_do_is_said(
    mlr_stub_provider: StubProvider, reply: Reply, words: str
) -> None:
    pytest.importorskip("openai", reason="the SDK openai is not installed")
    mlr_stub_provider.script = reply
    config = configure(mlr_stub_provider, "openai")
    message = crash(config)
    assert message.startswith(f"{config} ")
    assert re.search(words, message), message


def test_a_missing_key_is_said_without_a_request(
    mlr_stub_provider: StubProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("openai", reason="the SDK openai is not installed")
    monkeypatch.delenv("OPENAI_API_KEY")
    config = configure(mlr_stub_provider, "openai", base_url="https://models.example.org/v1")
    assert crash(config) == "openai:some-model needs a key: set OPENAI_API_KEY."


def test_models_that_fail_together_are_one_sentence(mlr_stub_provider: StubProvider) -> None:
    pytest.importorskip("openai", reason="the SDK openai is not installed")
    mlr_stub_provider.script = replies.failing(401)
    configs = [configure(mlr_stub_provider, "openai", seed=seed) for seed in range(3)]
    assert crash(*configs).endswith("(nor can openai:some-model, openai:some-model be used).")


@pytest.mark.parametrize(
    ("refuses", "words"),
    [
        ("images", "takes no images, which it would be shown"),
        ("schema", "does not take a JSON schema for its answer"),
    ],
)
def test_which_part_is_refused_is_found_out(
    mlr_stub_provider: StubProvider, refuses: str, words: str
) -> None:
    pytest.importorskip("openai", reason="the SDK openai is not installed")

    def script(asked: Received) -> Reply | None:
        return replies.failing(400, f"no {refuses}") if getattr(asked, refuses) else None

    mlr_stub_provider.script = script
    message = crash((configure(mlr_stub_provider, "openai"), True))
    assert message.startswith(f"openai:some-model {words} (openai:some-model refuses the request: ")
    assert f'"no {refuses}"' in message


def test_who_allows_no_more_for_now_passes_and_who_has_no_quota_does_not(
    mlr_stub_provider: StubProvider,
) -> None:
    pytest.importorskip("openai", reason="the SDK openai is not installed")
    config = configure(mlr_stub_provider, "openai")
    mlr_stub_provider.script = replies.rate_limited(30)
    assert fly(config) == []
    body = b'{"error": {"message": "Check your plan.", "code": "insufficient_quota"}}'
    mlr_stub_provider.script = Reply(status=429, body=body)
    assert "has no quota left" in crash(config)


def test_a_server_that_is_silent_does_not_hold_up_the_start(
    mlr_stub_provider: StubProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("openai", reason="the SDK openai is not installed")
    monkeypatch.setattr(module, "PATIENCE", 0.3)
    mlr_stub_provider.script = replies.hanging()
    message = crash(configure(mlr_stub_provider, "openai"))
    assert message.startswith("openai:some-model gave no answer within 0.3 s: check that its")


@pytest.mark.parametrize(
    ("reply", "words"),
    [
        (replies.off_schema(), "does not keep to the JSON schema"),
        (Reply(text="7"), "does not keep to the JSON schema"),
        (Reply(text="Sure! Score: 7"), "does not keep to the JSON schema"),
        (Reply(text='{"score": "7", "colour": "blue"}'), "does not keep to the JSON schema"),
        (Reply(text='{"score": 77, "colour": "blue"}'), "does not keep to the JSON schema"),
        (Reply(text='{"score": true, "colour": "blue"}'), "does not keep to the JSON schema"),
        (replies.cut(), r"gave no full answer to a test question \(it stopped: length\)"),
        (replies.refusing(), "does not keep to the JSON schema|gave no full answer"),
    ],
)
def test_an_answer_that_does_not_fit_is_a_warning(
    mlr_stub_provider: StubProvider, reply: Reply, words: str
) -> None:
    pytest.importorskip("openai", reason="the SDK openai is not installed")
    mlr_stub_provider.script = reply
    (warning,) = fly(configure(mlr_stub_provider, "openai"))
    assert re.match(f"openai:some-model ({words}).*\\.$", warning)


def test_a_budget_that_is_too_small_to_begin_with_is_said(mlr_stub_provider: StubProvider) -> None:
    pytest.importorskip("openai", reason="the SDK openai is not installed")
    config = configure(mlr_stub_provider, "openai", price_in=1, price_out=10)
    message = crash(config, budget=Budget(0.001, None, SharedState()))
    assert "openai:some-model cannot be tried out: $0.00 of the budget of $0.0010" in message


def test_a_replay_needs_no_preflight_and_may_have_one(
    tmp_path: Path, mlr_stub_provider: StubProvider
) -> None:
    pytest.importorskip("openai", reason="the SDK openai is not installed")
    config = configure(mlr_stub_provider, "openai")
    assert fly(config, cassette=Cassette.replay(tmp_path)) == []
    meters = [Meter("preflight", "judge", "preflight") for _ in range(2)]
    fly(config, meter=meters[0], cassette=Cassette.record(tmp_path))
    fly(config, meter=meters[1], cassette=Cassette.replay(tmp_path))
    assert meters[0] == meters[1]
    assert len(mlr_stub_provider.requests) == 1


def test_the_picture_is_one() -> None:
    data = picture().data
    assert data.startswith(b"\x89PNG\r\n\x1a\n")
    place, kinds, pixels = 8, [], b""
    while place < len(data):
        (length,) = struct.unpack(">I", data[place : place + 4])
        kind, body = data[place + 4 : place + 8], data[place + 8 : place + 8 + length]
        (check,) = struct.unpack(">I", data[place + 8 + length : place + 12 + length])
        assert check == zlib.crc32(kind + body)
        kinds.append(kind)
        pixels += body if kind == b"IDAT" else b""
        place += 12 + length
    assert kinds == [b"IHDR", b"IDAT", b"IEND"]
    assert len(zlib.decompress(pixels)) == 16 * (16 * 3 + 1)
    assert len(json.dumps(data.hex())) < 300
