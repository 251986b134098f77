"""Lines of ``--mlr-model``: what they set, for which models, and what is wrong with them."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest
from builders import one_sentence
from hypothesis import assume, given
from hypothesis import strategies as st

from pytest_mlrbench.errors import InputError
from pytest_mlrbench.models.settings import Settings, command, printable

if TYPE_CHECKING:
    from conftest import Repository


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
        ("openai:a colour=red", ("'colour=…' is no setting", "temperature")),
        ("'openai:a timeout=3'", ("spaces in the name", "quotes around values")),
        ("'openai:a b'", ("spaces in the name",)),
        ("openai:a header.X=Bearer x", ("'…' is no setting", "quotes around a value")),
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
    f'openai:* hea""der.X-Api=\'{SECRET}',
    f"openai:* header.X-Api='{SECRET}' no_such=1",
    f"openai:* header.X/Y='{SECRET}'",
    f"openai:* header.X-Api='timeout=s3cret {SECRET}'",
    # no quotes
    f"openai:* header.Authorization={SECRET}",
    f"openai:* header.X-Api={SECRET}== timeout=9",
    f"openai:* header.X-Api= {SECRET}",
    f"openai:* Header.X-Api={SECRET}",
    f"openai:* header:{SECRET}",
    f"openai:* header {SECRET}",
    f"openai:* Authorization={SECRET}",
    f"openai:* api_key=s3cret {SECRET}==",
    f"openai:* {SECRET}",
    # quotes around all of it
    f"'openai:* header.X-Api={SECRET}'",
    f"\"openai:* base_url=http://tok1:s3cret@host/v1 header.X-Api='{SECRET}'\"",
    # addresses
    "openai:* base_url=http://tok1:s3cret@host/v1 timeout=9",
    "openai:* base_url=https://s3cret@host/v1",
    "openai:* base_url=https://host/v1?key=s3cret",
    "openai:* base_url=https://host/v1#s3cret",
    "openai:* base_url=http://tok1:s3 cret@host/v1",
    "openai:* 'base_url=http://tok1:s3cret@host/v1",
    f"openai:* header.X-Api={SECRET} base_url=http://tok1:s3cret@host/v1",
)


@pytest.mark.parametrize("line", HIDDEN)
@pytest.mark.parametrize(
    "words", [["{}"], ["--mlr-model={}"], ["--mlr-model", "{}"], ["-o", "mlr_model = {}"]]
)
def test_what_may_be_secret_is_left_out_however_it_is_quoted(line: str, words: list[str]) -> None:
    told = [word.format(line) for word in words]
    shown = command(told) if told != [line] else (printable(line),)
    assert "s3cret" not in "".join(shown)
    assert "tok1" not in "".join(shown)
    assert shown[-1].startswith(words[-1].format("openai:*"))


@pytest.mark.parametrize("line", HIDDEN)
def test_no_error_has_what_may_be_secret(line: str) -> None:
    told = ""
    try:
        Settings([line]).config("openai:a")
    except InputError as error:
        told = str(error)
    assert "s3cret" not in told
    assert "tok1" not in told


@pytest.mark.parametrize(
    "line",
    [
        "openai:* base_url=http://127.0.0.1:8000/v1 key_env=VLLM_KEY temperature=0",
        'openai:a timeout="9"',
        "gpt-5 timeout=3",
        "",
    ],
)
def test_a_line_without_secrets_is_as_it_is(line: str) -> None:
    assert printable(line) == line
    assert command([f"--mlr-model={line}"]) == (f"--mlr-model={line}",)


@given(st.lists(st.text()))
def test_other_words_of_a_command_are_as_they_are(words: list[str]) -> None:
    assume(not any("mlr" in word for word in words))
    assert command(words) == tuple(words)


def test_a_line_that_nobody_reads_leaves_no_secret_in_the_run(repo: Repository) -> None:
    """The reference agent asks no model."""
    line = "openai:* base_url=http://me:s3cret@host/v1 header.Authorization=Bearer s3cret"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["pytest", "--mlr-model", line])
        repo.run("--mlr-stage=idea", "--mlr-limit=1", "--mlr-model", line)
    files = [path for path in repo.runs[-1].path.rglob("*") if path.is_file()]
    assert any("header.Authorization=…" in path.read_text("utf-8") for path in files)
    assert not any(b"s3cret" in path.read_bytes() for path in files)


@pytest.mark.parametrize("option", ["--mlr-judge=openai:{}", "--mlr-agent=scaffold:openai/{}"])
def test_settings_behind_the_name_of_a_model_are_not_repeated(
    repo: Repository, option: str
) -> None:
    """They belong into a line of --mlr-model."""
    word = option.format("gpt-5 header.Authorization=Bearer s3cret")
    result = repo.run("--mlr-stage=idea", word)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: model openai:gpt-5 … is not usable: *"])
    result.stderr.no_fnmatch_line("*s3cret*")
