"""Lines of ``--mlr-model``: what they set, for which models, and what is wrong with them."""

from __future__ import annotations

import pytest
from builders import one_sentence
from hypothesis import assume, given
from hypothesis import strategies as st

from pytest_mlrbench.errors import InputError
from pytest_mlrbench.models.settings import Settings, without_headers


def test_a_line_sets_what_it_names() -> None:
    line = "openai:my/model base_url=http://127.0.0.1:8000/v1 temperature=0 max_tokens=8000 seed=3"
    config = Settings([f"{line} timeout=90 effort=low api=responses images=no"]).config(
        "openai:my/model"
    )
    assert (config.provider, config.model) == ("openai", "my/model")
    assert config.base_url == "http://127.0.0.1:8000/v1"
    assert (config.temperature, config.max_tokens, config.seed) == (0.0, 8000, 3)
    assert (config.timeout, config.effort, config.api) == (90.0, "low", "responses")
    assert config.images is False


def test_a_pattern_is_for_several_and_a_later_line_wins_key_by_key() -> None:
    settings = Settings(
        ["openai:* timeout=10 max_tokens=100", "anthropic:* timeout=20", "openai:b* timeout=30"]
    )
    found = {name: settings.config(name) for name in ("openai:a", "openai:b1", "anthropic:c")}
    assert [config.timeout for config in found.values()] == [10, 30, 20]
    assert [config.max_tokens for config in found.values()] == [100, 100, None]


def test_a_model_without_a_line_is_as_it_is() -> None:
    assert Settings(["openai:a timeout=3"]).config("google:a").timeout == 600


def test_headers_are_filled_from_the_environment_and_never_shown(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TEAM", "s3cret-team")
    config = Settings(['openai:a header.X-Team="team $TEAM" header.X-B=b']).config("openai:a")
    sent = {name: value.get_secret_value() for name, value in config.headers}
    assert sent == {"X-Team": "team s3cret-team", "X-B": "b"}
    assert "s3cret" not in repr(config)
    monkeypatch.delenv("TEAM")
    with one_sentence("X-Team", "TEAM"):
        Settings(["openai:a header.X-Team=$TEAM"]).config("openai:a")


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("", ("begins with no model",)),
        ("gpt-5 timeout=3", ("begins with no model", "provider:model")),
        ("openai: timeout=3", ("begins with no model",)),
        ("openai:a timeout", ("'timeout' is no setting", "key=value")),
        ("openai:a colour=red", ("'colour=red' is no setting", "temperature")),
        ("openai:a 'timeout=3", ("cannot be read",)),
        ("openai:a timeout=soon", ("timeout",)),
        ("openai:a temperature=9", ("temperature",)),
        ("openai:a images=perhaps", ("images",)),
        ("openai:a base_url=ftp://x", ("base_url", "https://")),
        ("openai:a price_in=3", ("price",)),
    ],
)
def test_what_is_wrong_is_said_in_one_sentence(line: str, words: tuple[str, ...]) -> None:
    with one_sentence(*words):
        Settings([line]).config("openai:a")


SECRET = "tok1 s3cret"
HIDDEN = (
    f"openai:* 'header.X-Api={SECRET}' timeout=9",
    f'openai:* header.X-Api="{SECRET}"',
    'openai:* header.X-Api="tok1 "s3cret',
    f'openai:* "header".X-B="{SECRET}"',
    r"openai:* header.X-C\=tok1\ s3cret",
    f'openai:* "hea"der.X-Api="{SECRET}"',
    f"openai:* header.X-Api='{SECRET}",  # the quote has no end
    f"openai:* header.X-Api='{SECRET}' no_such=1",
    f"openai:* header.X/Y='{SECRET}'",
)


@pytest.mark.parametrize("line", HIDDEN)
@pytest.mark.parametrize("word", ["{}", "--mlr-model={}", "mlr_model = {}"])
def test_values_of_headers_are_left_out_however_they_are_quoted(line: str, word: str) -> None:
    shown = without_headers(word.format(line))
    assert "s3cret" not in shown
    assert "tok1" not in shown
    assert shown.startswith(word.format("openai:*"))


@pytest.mark.parametrize("line", HIDDEN)
def test_no_error_has_the_value_of_a_header(line: str) -> None:
    told = ""
    try:
        Settings([line])
    except InputError as error:
        told = str(error)
    assert "s3cret" not in told


@given(st.text())
def test_a_word_without_headers_is_as_it_is(word: str) -> None:
    assume("header" not in word)
    assert without_headers(word) == word
