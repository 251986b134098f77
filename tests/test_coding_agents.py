"""Coding CLIs as agents: what they are told, and how they are started. None is started here."""

from __future__ import annotations

import json
import re
import time
import tomllib
from collections.abc import Mapping
from pathlib import Path

import pytest
from files import lay

from pytest_mlrbench.agents.coding import ADAPTERS, make_coding_agent, prompt
from pytest_mlrbench.agents.coding.events import Usage
from pytest_mlrbench.agents.coding.prompt import Surroundings
from pytest_mlrbench.errors import InputError
from pytest_mlrbench.judges.kinship import kinship
from pytest_mlrbench.suites.loading import load_suite
from pytest_mlrbench.suites.select import make_cases
from pytest_mlrbench.suites.stages import STAGES

KINDS = pytest.mark.parametrize("kind", ADAPTERS)
TOKEN = "token-of-this-case"
GATE: Mapping[str, str] = {
    "ANTHROPIC_BASE_URL": "http://127.0.0.1:8080/anthropic",
    "OPENAI_BASE_URL": "http://127.0.0.1:8080/openai/v1",
    "GOOGLE_GEMINI_BASE_URL": "http://127.0.0.1:8080/google",
    "ANTHROPIC_API_KEY": TOKEN,
    "OPENAI_API_KEY": TOKEN,
    "GEMINI_API_KEY": TOKEN,
}
(CASE,) = make_cases(MINI := load_suite("mini"), ["experiment"], MINI.tasks[:1])


@KINDS
def test_a_model_is_named_or_left_to_the_cli(kind: str) -> None:
    plain, named = make_coding_agent(kind), make_coding_agent(f"{kind}:some/model-4.5")

    assert not [word for word in plain.command("/p") if "model" in word]
    assert "--model=some/model-4.5" in named.command("/p")
    assert plain.models == ("*",)
    assert named.models[0] == "some/model-4.5"
    assert named.spec == f"{kind}:some/model-4.5"


@pytest.mark.parametrize("spec", ["codex:", "codex: gpt", "codex:--help", "claude-code:a\nb"])
def test_a_name_that_is_none_is_refused(spec: str) -> None:
    with pytest.raises(InputError, match=f"write {spec.partition(':')[0]}:MODEL"):
        make_coding_agent(spec)


def test_an_unknown_cli_is_refused() -> None:
    with pytest.raises(InputError, match="claude-code, codex, gemini-cli"):
        make_coding_agent("cursor")


@KINDS
def test_it_runs_contained_in_every_stage_and_reaches_its_own_provider(kind: str) -> None:
    agent = make_coding_agent(kind)
    assert agent.needs.network == "models"
    assert list(agent.needs.providers) == [agent.provider]
    assert {agent.needs.place(stage) for stage in STAGES} == {"docker"}


@KINDS
def test_the_prompt_is_read_from_a_file_and_no_key_is_in_command_or_files(kind: str) -> None:
    agent = make_coding_agent(kind)
    command = agent.command("/agent/prompt.md")

    assert command[:2] == ["/bin/sh", "-c"]
    assert command[3] == "/agent/prompt.md"
    assert command[5] == agent.program
    assert TOKEN not in json.dumps([command, agent.files(GATE)])
    environment = agent.environment(GATE)
    assert {name: environment[name] for name in GATE} == GATE


def test_codex_is_given_the_address_in_its_configuration() -> None:
    agent = make_coding_agent("codex")
    ((path, text),) = agent.files(GATE).items()
    config = tomllib.loads(text)

    assert path == ".codex/config.toml"
    provider = config["model_providers"][config["model_provider"]]
    assert provider["base_url"] == "http://127.0.0.1:8080/openai/v1"
    assert (provider["env_key"], provider["wire_api"]) == ("OPENAI_API_KEY", "responses")
    assert config["web_search"] == "disabled"
    assert "https://api.openai.com/v1" in agent.files({})[path]


def test_gemini_is_told_to_use_a_key_and_no_search() -> None:
    ((path, text),) = make_coding_agent("gemini-cli").files(GATE).items()
    settings = json.loads(text)

    assert path == ".gemini/settings.json"
    assert settings["security"]["auth"]["selectedType"] == "gemini-api-key"
    assert settings["tools"]["exclude"] == ["google_web_search", "web_fetch"]


def test_claude_is_told_of_its_model_for_small_jobs_too() -> None:
    agent = make_coding_agent("claude-code:claude-opus-4-5")
    given = agent.environment(GATE)
    assert given["ANTHROPIC_DEFAULT_HAIKU_MODEL"] == "claude-opus-4-5"
    assert "CLAUDE_CODE_SUBAGENT_MODEL" not in make_coding_agent("claude-code").environment(GATE)
    assert "--disallowedTools=WebSearch,WebFetch" in agent.command("/p")


@KINDS
def test_the_digest_tells_the_model_and_the_installed_cli(
    kind: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def digest(spec: str) -> str:
        return make_coding_agent(spec).digest(CASE)

    monkeypatch.setenv("PATH", str(tmp_path))
    absent = digest(kind)
    assert digest(kind) == absent != digest(f"{kind}:other")

    package = lay(
        tmp_path / "package", {"bin/cli.js": "#!/bin/sh\n", "package.json": '{"version": "1"}'}
    )
    (package / "bin" / "cli.js").chmod(0o755)
    (tmp_path / make_coding_agent(kind).program).symlink_to(package / "bin" / "cli.js")
    first = digest(kind)
    (package / "package.json").write_text('{"version": "2"}')
    assert len({absent, first, digest(kind)}) == 3


@KINDS
def test_its_absence_on_this_machine_is_one_sentence(
    kind: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    agent = make_coding_agent(kind)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(InputError, match=f"npm install -g {agent.package}"):
        agent.check_here()


@KINDS
def test_costs_are_the_clis_own_or_those_of_the_table_or_not_known(kind: str) -> None:
    pytest.importorskip("genai_prices")
    agent = make_coding_agent(kind)
    model = {"anthropic": "claude-opus-4-5", "openai": "gpt-5", "google": "gemini-2.5-pro"}
    known = Usage(model[agent.provider], 2, 1000, 100, 0, 0)
    reckoned = Usage("whatever", 1, 1000, 100, 0, 0, cost_usd=0.5)
    unknown = Usage("no-such-model", 1, 1000, 100, 0, 0)

    spent = agent.spent_by([known, reckoned])
    assert spent is not None
    assert (spent.calls, spent.input, spent.output) == (3, 2000, 200)
    assert spent.cost_usd is not None
    assert spent.cost_usd > 0.5
    lost = agent.spent_by([known, unknown])
    assert lost is not None
    assert lost.cost_usd is None


@pytest.mark.parametrize("stage", STAGES)
def test_every_stage_is_told_what_to_leave_and_where_it_is(stage: str) -> None:
    agent = make_coding_agent("codex")
    agent.prepare(make_cases(MINI, [stage], MINI.tasks))
    told = prompt.prompt(stage, Surroundings(deadline=time.time() + 3600))

    assert "{{" not in told
    for name in (*STAGES[stage].required, *STAGES[stage].inputs):
        assert name in told
    if STAGES[stage].runs_code:
        assert "results/claims.json" in told
        assert "A failure is a result." in told
        example = re.search(r'\{"text".*?\}', told)
        assert example is not None
        assert json.loads(example[0])["source"] == "results/metrics.json#/ours/accuracy/mean"


def test_the_place_is_described_as_it_is() -> None:
    bare = prompt.prompt("experiment", Surroundings(deadline=time.time() + 5400))
    assert "about 1 h 30 min, until 20" in bare
    assert "There is no GPU" in bare
    assert "nothing can be downloaded" in bare
    assert "No data were given" in bare

    rich = prompt.prompt(
        "experiment",
        Surroundings(
            deadline=time.time() + 600,
            gpus=1,
            data=("imagenet", "squad"),
            hosts=("pypi.org",),
        ),
    )
    assert "about 10 min, until 20" in rich
    assert "one GPU to yourself" in rich
    assert "`/data/imagenet`, `/data/squad`" in rich
    assert "reached besides: pypi.org" in rich


@pytest.mark.parametrize(
    ("agent", "judge", "related"),
    [
        ("codex:gpt-5", "openai:gpt-5", "model"),
        ("codex", "openai:gpt-5", "family"),
        ("claude-code:claude-opus-4-5", "anthropic:claude-opus-4-5", "model"),
        ("gemini-cli:gemini-2.5-pro", "google:gemini-2.5-flash", "family"),
        ("gemini-cli", "anthropic:claude-opus-4-5", None),
    ],
)
def test_judges_of_the_same_family_are_known_by_the_spec(
    agent: str, judge: str, related: str | None
) -> None:
    assert kinship(make_coding_agent(agent).spec, judge) == related
