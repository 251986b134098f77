"""What a call costs is known from a table, or said by the user, or not known: never made up."""

from __future__ import annotations

import subprocess
import sys
from datetime import UTC, datetime
from typing import Any

import pytest

from pytest_mlrbench.errors import InputError
from pytest_mlrbench.models import prices
from pytest_mlrbench.models.config import parse_model
from pytest_mlrbench.models.exchange import Usage
from pytest_mlrbench.models.prices import cost_usd, table_version
from pytest_mlrbench.models.settings import Settings

THOUSAND = Usage(input=1000, output=100)
#: Prices change; those of this day do not.
THEN = datetime(2025, 11, 1, tzinfo=UTC)


@pytest.fixture(autouse=True)
def _no_addresses(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ANTHROPIC_BASE_URL", "OPENAI_BASE_URL", "GOOGLE_GEMINI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)


def cost(model: str, usage: Usage = THOUSAND, answered_by: str = "", **settings: Any) -> Any:
    return cost_usd(parse_model(model, **settings), usage, answered_by, at=THEN)


@pytest.mark.parametrize(
    ("model", "usd"),
    [
        ("openai:gpt-4o", 0.0035),
        ("anthropic:claude-sonnet-4-5", 0.0045),
        ("google:gemini-2.5-pro", 0.00225),
        ("openai:no-such-model", None),
        ("openai:tts-1", None),
    ],
)
def test_the_table_knows_the_models_of_the_three_providers(model: str, usd: float | None) -> None:
    pytest.importorskip("genai_prices", reason="genai-prices is not installed")
    assert cost(model) == (usd if usd is None else pytest.approx(usd))


def test_tokens_from_a_cache_cost_less_and_reasoning_is_paid_for_once() -> None:
    pytest.importorskip("genai_prices", reason="genai-prices is not installed")
    cached = Usage(input=1000, output=100, cached_input=800, reasoning=60)
    assert cost("openai:gpt-4o", cached) == pytest.approx((200 * 2.5 + 800 * 1.25 + 1000) / 1e6)
    # What a server counts wrongly is no reason to fail.
    odd = Usage(input=1000, output=100, cached_input=5000, reasoning=500)
    assert cost("openai:gpt-4o", odd) == pytest.approx((1000 * 1.25 + 1000) / 1e6)


def test_who_answered_is_who_is_paid_if_the_table_knows_it() -> None:
    pytest.importorskip("genai_prices", reason="genai-prices is not installed")
    assert cost("openai:gpt-4o", answered_by="gpt-4o-mini-2024-07-18") < cost("openai:gpt-4o")
    assert cost("openai:gpt-4o", answered_by="gpt-4o-of-tomorrow?") == cost("openai:gpt-4o")


def test_a_server_of_ones_own_has_no_price_of_a_provider(monkeypatch: pytest.MonkeyPatch) -> None:
    own = ("http://127.0.0.1:8000/v1", "http://[::1]:1/v1", "http://localhost:1/v1", "http://vllm")
    for address in (*own, "https://models.example.org/v1"):
        assert cost("openai:gpt-4o", base_url=address) is None
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:8000/v1")
    assert cost("openai:gpt-4o") is None


def test_another_provider_behind_the_same_interface_has_its_own_price() -> None:
    pytest.importorskip("genai_prices", reason="genai-prices is not installed")
    router = "https://openrouter.ai/api/v1"
    assert cost("openai:meta-llama/llama-3.3-70b-instruct", base_url=router)
    assert cost("openai:gpt-4o", base_url="https://api.openai.com/v1") == cost("openai:gpt-4o")


def test_what_the_user_says_wins() -> None:
    settings = Settings(["openai:my-* base_url=http://127.0.0.1:1/v1 price_in=2 price_out=8.5"])
    config = settings.config("openai:my-model")
    assert cost_usd(config, THOUSAND) == pytest.approx((2000 + 850) / 1e6)
    free = config.model_copy(update={"price_in": 0.0, "price_out": 0.0})
    assert cost_usd(free, THOUSAND) == 0.0


@pytest.mark.parametrize("line", ["price_in=2", "price_out=2", "price_in=-1 price_out=1"])
def test_a_price_that_is_none_is_one_sentence(line: str) -> None:
    with pytest.raises(InputError, match=r"^model openai:m is not usable: .*price"):
        Settings([f"openai:m {line}"]).config("openai:m")


@pytest.mark.parametrize("usage", [Usage(), Usage(input=5), Usage(output=5)])
def test_tokens_that_nobody_counted_have_no_price(usage: Usage) -> None:
    assert cost("openai:gpt-4o", usage) is None
    assert cost("openai:m", usage, price_in=1, price_out=1) is None


def test_without_the_table_no_price_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "genai_prices", None)
    assert cost("openai:gpt-4o") is None
    monkeypatch.setattr(prices, "_TABLE", "no-such-distribution")
    assert table_version() == ""


def test_the_version_of_the_table_can_be_kept_and_nothing_is_fetched() -> None:
    pytest.importorskip("genai_prices", reason="genai-prices is not installed")
    assert table_version().startswith("genai-prices ")

    code = (
        "import socket, sys\n"
        "def refuse(*_, **__): raise SystemExit('it went to the network')\n"
        "socket.socket.connect = socket.getaddrinfo = refuse\n"
        "from pytest_mlrbench.models import prices, calls\n"
        "from pytest_mlrbench.models.config import parse_model\n"
        "from pytest_mlrbench.models.exchange import Usage\n"
        "used = Usage(input=1, output=1)\n"
        "here = parse_model('openai:gpt-4o', base_url='http://127.0.0.1:1/v1')\n"
        "assert prices.table_version() and prices.cost_usd(here, used) is None\n"
        "assert 'genai_prices' not in sys.modules\n"
        "assert prices.cost_usd(parse_model('openai:gpt-4o'), used) > 0\n"
        "import threading; assert threading.active_count() == 1\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
