"""Where commands of agents run: what the user says of it, and local processes within limits."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from test_bad_input import refused

from pytest_mlrbench.agents.command import CommandAgent
from pytest_mlrbench.cli import main
from pytest_mlrbench.errors import InputError, SystemFault
from pytest_mlrbench.run import digests
from pytest_mlrbench.sandbox import engine
from pytest_mlrbench.sandbox.ledger import read
from pytest_mlrbench.sandbox.limits import words_of
from pytest_mlrbench.sandbox.local import run_process

if TYPE_CHECKING:
    from conftest import Repository

#: An engine that is not there.
NOWHERE = "unix:///nowhere/docker.sock"
EXPERIMENT = "--mlr-stage=experiment"
CMD = "--mlr-agent=cmd:sh agent.sh"
LOCAL = "--mlr-sandbox=local"


@pytest.fixture(autouse=True)
def no_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    """None answers, and no provider's key is set."""
    monkeypatch.setenv("DOCKER_HOST", NOWHERE)
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GOOGLE_API_KEY", "GEMINI_API_KEY"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--mlr-sandbox=vm"], ["--mlr-sandbox=vm", "auto, docker, local"]),
        (["--mlr-network=some"], ["--mlr-network=some", "none, models, full"]),
        ([LOCAL, "--mlr-network=full"], ["--mlr-network", "add --mlr-sandbox=docker"]),
        ([LOCAL, "--mlr-data=."], ["--mlr-data", "add --mlr-sandbox=docker"]),
        ([LOCAL, "--mlr-allow-host=a.org"], ["--mlr-allow-host", "add --mlr-sandbox=docker"]),
        ([LOCAL, "--mlr-limits=cpus=2"], ["--mlr-limits cpus=", "add --mlr-sandbox=docker"]),
        (["--mlr-limits=memory=lots"], ["'memory=lots'", "16g"]),
        (["--mlr-data=nowhere"], ["--mlr-data nowhere", "there is no folder"]),
        (["--mlr-data=.:a", "--mlr-data=.:a"], ["is called a too"]),
        (["--mlr-network=none", "--mlr-allow-host=a.org"], ["--mlr-network=none", "leave one out"]),
        (["--mlr-network=full", "--mlr-allow-host=a.org"], ["reaches every host"]),
        (["--mlr-gpus=some"], ["--mlr-gpus=some"]),
        (["--mlr-gpus=2"], ["NVIDIA"]),
        (["--mlr-agent-max-cost=0"], ["--mlr-agent-max-cost must be above 0"]),
        ([], ["no Docker engine answers", "--mlr-sandbox=local"]),
        (["--mlr-network=models"], ["--mlr-network=models", "OPENAI_API_KEY"]),
        (["--mlr-allow-host=http://a.org"], ["'http://a.org' names no host", "write HOST"]),
        (["--mlr-allow-host=a.org,bad host"], ["'bad host' names no host"]),
        (["--mlr-allow-host=a.org:99999"], ["'a.org:99999' names no host"]),
        (["--mlr-agent=null", "--mlr-allow-host=a b"], ["'a b' names no host"]),
        ([LOCAL, "--mlr-image=mine"], ["--mlr-image is for containers", "--mlr-sandbox=docker"]),
        (
            [LOCAL, "--mlr-agent-max-cost=1"],
            ["--mlr-agent-max-cost is for commands that ask models", "--mlr-sandbox=docker"],
        ),
        (["--mlr-agent-max-cost=1"], ["leave it out, or add --mlr-network=models"]),
        (["--mlr-agent-max-cost=1", "--mlr-network=full"], ["leave it out, or set OPENAI_API_KEY"]),
        (
            ["--mlr-agent=scaffold:openai/gpt-5", "--mlr-stage=idea", "--mlr-agent-max-cost=1"],
            ["agent 'scaffold:openai/gpt-5' runs none: use --mlr-max-cost"],
        ),
        (
            ["--mlr-agent=py:agent:answer", "--mlr-image=mine"],
            ["--mlr-image is for containers, and no stage of this run has one: leave it out."],
        ),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) and value else None,
)
def test_what_cannot_be_given_is_said_at_the_start(
    repo: Repository, options: list[str], words: list[str]
) -> None:
    repo.lay({"agent.sh": "exit 1"})
    said = refused(repo, EXPERIMENT, CMD, "--mlr-limit=1", *options)
    assert all(word in said for word in words), said


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--mlr-network=none"], ["codex", "--mlr-network=none leaves it none"]),
        ([], ["openai", "OPENAI_API_KEY"]),
        (["--mlr-max-tokens=9"], ["--mlr-max-tokens does not bound"]),
        (["--mlr-max-cost=9"], ["--mlr-agent-max-cost"]),
        (["--mlr-agent=codex:gpt-99", "--mlr-agent-max-cost=1"], ["gpt-99 has no known price"]),
        ([LOCAL], ["OPENAI_API_KEY"]),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) and value else None,
)
def test_what_a_coding_agent_lacks_is_said_at_the_start(
    repo: Repository, options: list[str], words: list[str]
) -> None:
    said = refused(repo, "--mlr-stage=idea", "--mlr-agent=codex", *options)
    assert all(word in said for word in words), said


def test_what_a_file_says_for_other_runs_too_is_no_mistake_of_this_one(repo: Repository) -> None:
    repo.lay(
        {
            "agent.sh": "mkdir -p results; echo '# Results' > results/results.md",
            "pytest.ini": "[pytest]\nmlr_image = mine\nmlr_agent_max_cost = 5\n",
        }
    )
    repo.run(EXPERIMENT, CMD, LOCAL, "--mlr-limit=1", "--mlr-threshold=overall>=1")
    (case,) = repo.report.cases
    assert (case.verdict, case.sandbox) == ("pass", "local")
    repo.run(EXPERIMENT, "--mlr-agent=null", "--mlr-limit=1", "--mlr-image=mine")
    assert len(repo.report.cases) == 1  # as with --mlr-network: it runs no commands at all


@pytest.mark.parametrize("host", [NOWHERE, ""], ids=["DOCKER_HOST", "usual"])
def test_an_engine_that_does_not_answer_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, host: str
) -> None:
    """What advice there is else depends on who wants it."""
    usual = str(tmp_path / "usual.sock")
    monkeypatch.setattr(engine, "_usual_socket", lambda: usual)
    monkeypatch.setenv("DOCKER_HOST", host)
    where = f"at DOCKER_HOST={host} (" if host else f"at {usual} ("
    for otherwise in ("", engine.LOCALLY, engine.NOT_AGAIN):
        with pytest.raises(InputError) as raised:
            engine.connect(otherwise)
        said = str(raised.value)
        assert where in said
        assert "there is no socket" in said
        assert said.endswith(f"DOCKER_HOST{otherwise}.")


def test_to_clean_up_there_is_no_other_place(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["clean", "--dry-run"]) != 0
    said = capsys.readouterr().err
    assert f"no Docker engine answers at DOCKER_HOST={NOWHERE} " in said
    assert said.endswith("start it, or correct DOCKER_HOST.\n")


def test_a_run_goes_on_in_no_other_place(repo: Repository) -> None:
    """There, all its cases would be run again."""
    repo.lay({"agent.sh": "exit 1"})
    repo.run(EXPERIMENT, CMD, "--mlr-limit=1", "--mlr-sandbox=local")
    result = repo.run(EXPERIMENT, CMD, "--mlr-limit=1", "--mlr-resume")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    said = "\n".join(result.errlines)
    assert "as only the engine knows whether the image of this run is still the same." in said
    assert "local" not in said


def test_a_python_callable_runs_in_no_container(repo: Repository) -> None:
    repo.lay({"my_agent.py": "def answer(case): ..."})
    said = refused(repo, EXPERIMENT, "--mlr-agent=py:my_agent:answer", "--mlr-sandbox=docker")
    assert "--mlr-sandbox=docker: a Python callable is imported on this machine" in said


def test_the_header_says_that_processes_are_in_no_sandbox(repo: Repository) -> None:
    repo.lay({"agent.sh": "mkdir -p results; echo '# Results' > results/results.md"})
    result = repo.run(EXPERIMENT, CMD, LOCAL, "--mlr-limit=1", "--mlr-threshold=overall>=1")
    result.stdout.fnmatch_lines(["mlrbench: commands run as processes of yours, in no sandbox*"])
    (case,) = repo.report.cases
    assert (case.verdict, case.sandbox, case.gpus) == ("pass", "local", ())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("limit", "script"),
    [
        ("memory=60m", "python3 -c 'import time; a = bytearray(200_000_000); time.sleep(60)'"),
        (
            "memory=60m",
            "echo idea > idea.md; trap 'exit 0' TERM;"
            " python3 -c 'import time; a = bytearray(200_000_000); time.sleep(60)' & wait",
        ),
        ("pids=16", "for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17; do sleep 60 & done; wait"),
        ("disk=1m", "head -c 3000000 /dev/urandom > data; sleep 60"),
    ],
    ids=["memory", "memory obliging", "pids", "disk"],
)
def test_a_local_agent_that_passes_a_limit_has_failed(
    repo: Repository, limit: str, script: str
) -> None:
    repo.lay({"agent.sh": script})
    repo.run("--mlr-stage=idea", CMD, "--mlr-limit=1", f"--mlr-limits={limit}", "--mlr-timeout=40")
    (case,) = repo.report.cases
    assert case.fault is not None
    name = limit.partition("=")[0]
    assert (case.fault.blame, case.fault.cause) == ("agent", name)
    assert f"(--mlr-limits {name}=)" in case.fault.message


@pytest.mark.slow
def test_it_is_said_how_much_a_local_agent_wrote(repo: Repository) -> None:
    repo.lay({"agent.sh": "head -c 3145728 /dev/urandom > data; sleep 60"})
    repo.run("--mlr-stage=idea", CMD, "--mlr-limit=1", "--mlr-limits=disk=1m", "--mlr-timeout=40")
    (case,) = repo.report.cases
    assert case.fault is not None
    *_, end = read(repo.runs[-1].path / case.artifacts / "ledger.jsonl")
    assert 3 * 2**20 <= end["disk"] < 3.1 * 2**20
    assert end["disk_limit"] == 2**20
    wrote = words_of(end["disk"])
    assert case.fault.message == (
        f"the agent wrote {wrote}, more than its 1 MiB (--mlr-limits disk=)."
    )


def test_a_log_that_cannot_be_written_is_not_the_agents_fault(tmp_path: Path) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("this machine has no /dev/full")
    running = run_process(
        ["sh", "-c", "echo much; echo more"],
        workspace=tmp_path,
        environment=os.environ,
        seconds=30,
        log=Path("/dev/full"),
    )
    with pytest.raises(SystemFault) as told:
        asyncio.run(running)
    assert told.value.cause == "host_disk"


def test_the_ledger_of_a_local_process_says_that_it_is_blind(repo: Repository) -> None:
    repo.lay({"agent.sh": "echo '# An idea' > idea.md"})
    repo.run("--mlr-stage=idea", CMD, "--mlr-limit=1")
    (found,) = repo.runs[-1].path.glob("cases/*/*/*/ledger.jsonl")
    begin, blind, end = read(found)
    assert (begin["e"], blind["e"], end["e"]) == ("begin", "blind", "end")
    assert begin["case"].startswith("mini/idea/")
    assert (end["reason"], end["code"]) == ("exit", 0)
    assert "disk" not in end
    submission = json.loads(found.with_name("submission.json").read_text("utf-8"))
    assert submission["sandbox"] == "local"
    assert not found.with_name("heartbeat.json").exists()


@pytest.mark.parametrize(
    ("spec", "contained"),
    [
        ("cmd:sh agent.sh", ["sh", "/agent/agent.sh"]),
        ("cmd:./agent.sh --x=agent.sh", ["/agent/agent.sh", "--x=agent.sh"]),
        ("cmd:python3 sub/../agent.sh", ["python3", "/agent/agent.sh"]),
        ("cmd:python3 /app/only_in_the_image.py", ["python3", "/app/only_in_the_image.py"]),
        ("cmd:/bin/sh agent.sh", ["/bin/sh", "/agent/agent.sh"]),
    ],
)
def test_a_container_is_given_the_files_that_a_command_names(
    tmp_path: Path, spec: str, contained: list[str]
) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "agent.sh").write_text("")
    assert CommandAgent(spec, tmp_path).contained == contained


def test_a_large_file_of_holes_takes_no_time_and_its_content_counts(tmp_path: Path) -> None:
    def hollow(name: str, *places: int) -> str:
        with (tmp_path / name).open("wb") as file:
            file.truncate(8 * 2**40)
            for place in places:
                file.seek(place)
                file.write(b"content")
        return digests.of_file(tmp_path / name)

    found = [hollow("a"), hollow("b", 5 * 2**40), hollow("c", 3, 5 * 2**40), hollow("d", 4)]
    assert len(set(found)) == 4
    assert hollow("e", 5 * 2**40) == found[1]
    assert digests.of_file(tmp_path / "c") == found[2]


def test_what_an_agent_prints_is_mere_text(repo: Repository) -> None:
    repo.lay({"agent.sh": "printf '\\033[2K\\033[32mfine\\033[0m\\n::error::owned\\n'; exit 3"})
    repo.run("--mlr-stage=idea", CMD, "--mlr-limit=1")
    (case,) = repo.report.cases
    assert case.fault is not None
    assert "\x1b" not in case.fault.message
    assert "fine\n: :error::owned" in case.fault.message


@pytest.mark.parametrize("option", ["--collect-only", "--mlr-estimate"])
def test_gpus_that_are_not_there_are_said_where_nothing_is_run(
    repo: Repository, option: str
) -> None:
    repo.lay({"agent.sh": "exit 1"})
    said = refused(repo, EXPERIMENT, CMD, "--mlr-gpus=5", option)
    assert "--mlr-gpus=5" in said


def test_folders_nested_a_thousand_deep_are_judged_and_replayed(repo: Repository) -> None:
    nest = "import os; [(os.mkdir('d'), os.chdir('d')) for _ in range(1100)]"
    repo.lay({"agent.sh": f"echo '# An idea' > idea.md; python3 -c \"{nest}\""})
    try:
        repo.run("--mlr-stage=idea", CMD, "--mlr-limit=1")
        (case,) = repo.report.cases
        assert case.overall is not None
        repo.run("--mlr-stage=idea", f"--mlr-agent=replay:{repo.runs[-1].path}", "--mlr-limit=1")
        assert repo.report.cases[0].overall == case.overall
    finally:  # Python would remove them by recursion
        subprocess.run(["rm", "-rf", *repo.path.glob(".mlrbench/runs/*/cases")], check=True)
