"""What cannot be honoured stops the run before its first case, in one sentence, with exit 4."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from builders import write_suite

if TYPE_CHECKING:
    from conftest import Repository

IDEA = ("--mlr-stage=idea",)
PUBLISHED = ("--mlr-stage=experiment", "--mlr-suite=mlrbench-10", "--mlr-judge=published")


def refused(repo: Repository, *args: str) -> str:
    """Run pytest, which must end with exit 4 before there is a run; return what it says."""
    result = repo.run(*args)
    assert result.ret == pytest.ExitCode.USAGE_ERROR, result.stdout.str()
    assert not (repo.path / ".mlrbench").exists()
    lines = [line for line in result.errlines if line]
    assert len(lines) == 1
    assert lines[0].startswith("ERROR: ")
    return lines[0].removeprefix("ERROR: ")


# Options


@pytest.mark.parametrize(
    ("option", "words"),
    [
        ("--mlr-stage=idee", ["'idee'", "end_to_end, or all", "Did you mean 'idea'?"]),
        ("--mlr-stage=idea,nothing", ["'nothing'"]),
        ("--mlr-stage=,", ["--mlr-stage", "end_to_end, or all"]),
        ("--mlr-suite=minni", ["'minni'", "mini, mlrbench, mlrbench-10", "path:DIR"]),
        ("--mlr-suite=path:nowhere", ["there is no folder", "nowhere"]),
        ("--mlr-tasks=calibration", ["'calibration'", "calibration_digits"]),
        ("--mlr-rubrics=notes.txt", ["--mlr-rubrics", "notes.txt is a file: name a folder."]),
        ("--mlr-data=nowhere:a/b", ["--mlr-data nowhere:a/b: there is no folder"]),
        ("--mlr-data=own:a/b", ["--mlr-data own:a/b: the name 'a/b' must be letters"]),
        ("--mlr-data=own:..", ["--mlr-data own:..: the name '..' must be letters"]),
        ("--mlr-data=own:a b", ["--mlr-data own:a b: the name 'a b' must be letters"]),
        ("--mlr-data=/", ["--mlr-data /: that folder has no name: write /:NAME."]),
        ("--mlr-limit=0", ["--mlr-limit must be at least 1"]),
        ("--mlr-sample=7", ["--mlr-sample 7", "6 tasks"]),
        ("--mlr-repeats=0", ["--mlr-repeats must be at least 1"]),
        ("--mlr-repeats=1000000", ["--mlr-repeats must be at most 1000"]),
        ("--mlr-timeout=1e300", ["--mlr-timeout '1e300'", "at most a year"]),
        ("--mlr-timeout=soon", ["--mlr-timeout 'soon'", "15m"]),
        ("--mlr-timeout=0", ["--mlr-timeout '0'"]),
        ("--mlr-timeout=-5m", ["--mlr-timeout '-5m'"]),
        ("--mlr-timeout=nan", ["--mlr-timeout 'nan'"]),
        ("--mlr-threshold=overall=>5", ["'overall=>5'", "NAME OP NUMBER"]),
        ("--mlr-threshold=overall>=eleven", ["'overall>=eleven'"]),
        ("--mlr-threshold=overall>=11", ["from 1 to 10"]),
        ("--mlr-threshold=clarty>=5", ["'clarty'", "scored there: overall"]),
        ("--mlr-threshold=ideo:overall>=4", ["'ideo'"]),
        ("--mlr-threshold=evidence>=proved", ["levels of evidence are", "traced"]),
        ("--mlr-rubrics=nowhere", ["--mlr-rubrics", "nowhere"]),
        ("--mlr-out=notes.txt", ["--mlr-out", "notes.txt", "cannot be written"]),
        ("--mlr-rerun=errors", ["add --mlr-resume"]),
        ("--mlr-resume", ["--mlr-resume", "no run", "leave the option out"]),
        ("--mlr-resume=yesterday", ["'yesterday' is no run"]),
    ],
)
def test_an_option_is_refused(repo: Repository, option: str, words: list[str]) -> None:
    repo.lay({"notes.txt": "", "own/x": ""})
    said = refused(repo, *IDEA, "--mlr-agent=cmd:true", option)
    for word in words:
        assert word in said


@pytest.mark.parametrize("name", ["stage", "suite", "agent", "timeout", "out"])
def test_an_empty_value_is_no_value(repo: Repository, name: str) -> None:
    """As from ``--mlr-agent=$AGENT`` where the variable is not set."""
    assert f"--mlr-{name}" in refused(repo, *IDEA, f"--mlr-{name}=")


@pytest.mark.parametrize("option", ["--mlr-limit=two", "--mlr-rerun=everything"])
def test_a_value_of_another_type_is_refused_by_pytest(repo: Repository, option: str) -> None:
    result = repo.run(*IDEA, option)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    name, value = option.split("=")
    result.stderr.fnmatch_lines([f"*error: argument {name}: *'{value}'*"])


@pytest.mark.parametrize("option", ["--mlr-json=x.json", "--mlr-resume", "--mlr-rerun=failed"])
def test_without_a_stage_an_option_that_would_do_nothing_is_refused(
    repo: Repository, option: str
) -> None:
    name = option.partition("=")[0]
    assert refused(repo, option) == f"{name} does nothing without --mlr-stage: add it."


def test_a_rubric_that_cannot_be_read_is_named(repo: Repository) -> None:
    repo.lay({"rubrics/idea.yaml": "name: ["})
    said = refused(repo, *IDEA, "--mlr-rubrics=rubrics")
    assert said.startswith(f"rubric {repo.path / 'rubrics/idea.yaml'} cannot be read")


def test_a_bad_option_is_refused_once_under_workers(repo: Repository) -> None:
    result = repo.spawn(*IDEA, "--mlr-suite=minni", "-n2")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert result.stderr.str().count("there is no suite 'minni'") == 1
    assert repo.runs == []


# Agents


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ("nobody", ["'nobody'", "cmd:COMMAND", "py:module:callable"]),
        ("cmd:", ["'cmd:'"]),
        ("cmd:nothing_like_this", ["no program 'nothing_like_this'", "PATH"]),
        ("cmd:./nothing.sh", ["no program './nothing.sh'"]),
        ("cmd:./notes.txt", ["no program './notes.txt'", "executed: chmod +x"]),
        ("cmd:empty", ["no program 'empty'"]),
        ("cmd:echo 'open", ["split into words", "quotation"]),
        ("py:answers", ["py:module:callable"]),
        ("py:nothing_like_this:answer", ["No module named 'nothing_like_this'"]),
        ("py:answers:answer", ["module 'answers' has no attribute 'answer'"]),
        ("py:answers:number", ["not callable"]),
        ("replay:nowhere", ["no folder", "nowhere"]),
        ("replay:empty", ["neither a run folder nor a folder in the published layout"]),
        ("replay:published", ["say which system", "replay:published#SYSTEM", "kim"]),
        ("replay:published#kim", ["none of the selected cases", "mini/idea/", "3 more"]),
        ("published:nobody", ["no such published system", "claude-code, codex"]),
        ("published:codex", ["no published results in stage 'idea'", "experiment, end_to_end"]),
    ],
)
def test_an_agent_is_refused(repo: Repository, spec: str, words: list[str]) -> None:
    repo.lay(
        {
            "notes.txt": "not a program",
            "answers.py": "number = 7",
            "empty/readme": "",
            "published/ideas_and_proposals/a_task/idea/idea_kim.md": "# An idea",
        }
    )
    said = refused(repo, *IDEA, f"--mlr-agent={spec}")
    assert said.startswith((f"agent {spec!r}", f"there is no agent {spec!r}"))
    for word in words:
        assert word in said


def test_a_published_system_is_refused_in_a_stage_it_did_not_take_part_in(
    repo: Repository,
) -> None:
    said = refused(repo, *PUBLISHED, "--mlr-agent=published:gemini-cli")
    assert "no published results in stage 'experiment'; it has them in end_to_end" in said


def test_an_agent_is_refused_where_the_suite_lacks_its_inputs(repo: Repository) -> None:
    write_suite(repo.path / "own")
    said = refused(repo, *IDEA, "--mlr-suite=path:own", "--mlr-agent=cmd:true")
    assert "no task.md for small/idea/alpha/r1" in said
    assert "1 of 1 cases" in said
    assert "needs them: add /" in said


# Judges


@pytest.mark.parametrize(
    ("specs", "words"),
    [
        (["nobody"], ["'nobody'", "checklist, published, replay:DIR"]),
        (["Anna=checklist"], ["'Anna=checklist'", "small letters"]),
        (["a b=checklist"], ["judge 'a b=checklist': the name must be small", "not 'a b'"]),
        (["a.b=openai:m"], ["judge 'a.b=openai:m': the name must be small", "not 'a.b'"]),
        (["a:b=checklist"], ["judge 'a:b=checklist': the name must be small", "not 'a:b'"]),
        (["=checklist"], ["judge '=checklist': the name must be small", "not ''"]),
        (["anna="], ["there is no judge ''", "checklist, published, replay:DIR"]),
        (["replay:a=b"], ["judge 'replay:a=b': there is no folder"]),
        (["a=replay:b=c"], ["judge 'replay:b=c': there is no folder"]),
        (["checklist", "fixture"], ["--mlr-judge=fixture goes with no other judge"]),
        (["checklist", "checklist"], ["two judges have the id 'checklist'", "give one"]),
        (["checklist", "published"], ["different rubrics", "run them apart"]),
        (["replay:nowhere"], ["no folder", "nowhere"]),
        (["replay:empty"], ["no reviews of idea"]),
        (["published"], ["published systems only", "'cmd:true'"]),
    ],
    ids=lambda value: "+".join(value) if isinstance(value, list) else None,
)
def test_a_panel_is_refused(repo: Repository, specs: list[str], words: list[str]) -> None:
    repo.lay({"empty/readme": ""})
    judges = [f"--mlr-judge={spec}" for spec in specs]
    said = refused(repo, *IDEA, "--mlr-agent=cmd:true", *judges)
    for word in words:
        assert word in said


def test_a_judge_that_reads_files_is_refused_where_there_are_none(repo: Repository) -> None:
    options = (*PUBLISHED[:2], "--mlr-judge=checklist", "--mlr-agent=published:codex")
    said = refused(repo, *options)
    assert "judge 'checklist' reads files, and agent 'published:codex' has none" in said


# Ini keys

LINES = """
mlr_suite = mlrbench-10
mlr_agent = published:codex
mlr_limit = 2
mlr_judge =
    a=published
    b=published
mlr_threshold =
    overall>=4
    soundness>=2
"""
TABLE = """
mlr_suite = "mlrbench-10"
mlr_agent = "published:codex"
mlr_limit = {limit}
mlr_judge = ["a=published", "b=published"]
mlr_threshold = ["overall>=4", "soundness>=2"]
"""
FILES = {
    "pytest.ini": "[pytest]" + LINES,
    "pyproject.toml [ini_options]": "[tool.pytest.ini_options]" + TABLE.format(limit="'2'"),
    "pyproject.toml [pytest]": "[tool.pytest]" + TABLE.format(limit=2),
}


@pytest.fixture(params=FILES)
def ini(request: pytest.FixtureRequest, repo: Repository) -> None:
    """The settings of the repository, in each of the files that pytest reads."""
    if request.param.endswith("[pytest]") and pytest.version_tuple < (9,):
        pytest.skip("pytest 9 is the first to read [tool.pytest]")
    repo.lay({request.param.split()[0]: FILES[request.param]})


@pytest.mark.usefixtures("ini")
def test_settings_can_be_kept_in_a_file(repo: Repository) -> None:
    repo.run("--mlr-stage=experiment").assert_outcomes(passed=2)
    run = repo.report.run
    assert (run.suite.name, run.selection.limit, run.agent) == ("mlrbench-10", 2, "published:codex")
    assert run.thresholds == ("overall>=4.0", "soundness>=2.0")
    assert [name.partition("-")[0] for name in run.judges] == ["a", "a", "b", "b"]


@pytest.mark.usefixtures("ini")
def test_the_command_line_wins_over_the_file(repo: Repository) -> None:
    repo.run(
        "--mlr-stage=idea",
        "--mlr-suite=mini",
        "--mlr-agent=cmd:cp task.md idea.md",
        "--mlr-limit=1",
        "--mlr-judge=checklist",
        "--mlr-threshold=overall>=1",
    ).assert_outcomes(passed=1)
    run = repo.report.run
    assert (run.suite.name, run.selection.limit) == ("mini", 1)
    assert (run.agent, run.judges) == ("cmd:cp task.md idea.md", {"checklist": "checklist"})
    assert run.thresholds == ("overall>=1.0",)


def test_paths_in_the_file_are_relative_to_it(
    repo: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent = "mlr_agent = cmd:./agent.sh\nmlr_out = measured\nmlr_limit = 1\n"
    repo.lay({"pytest.ini": f"[pytest]\n{agent}", "agent.sh": "#!/bin/sh\ncp task.md idea.md\n"})
    os.chmod(repo.path / "agent.sh", 0o755)
    (repo.path / "deeper").mkdir()
    monkeypatch.chdir(repo.path / "deeper")
    repo.run(*IDEA, "--mlr-threshold=overall>=1").assert_outcomes(passed=1)
    assert len(list(repo.path.glob("measured/*/run.json"))) == 1
    assert list(Path("deeper").glob("*")) == []


def test_a_wrong_value_in_the_file_names_the_key(repo: Repository) -> None:
    repo.lay({"pytest.ini": "[pytest]\nmlr_limit = two\n"})
    said = refused(repo, *IDEA)
    assert "mlr_limit" in said
    assert "pytest.ini" in said


@pytest.mark.parametrize("key", ["mlr_stage = idea", "mlr_resume = last", "mlr_json = x.json"])
def test_what_starts_a_run_is_no_key_of_the_file(repo: Repository, key: str) -> None:
    """Plain ``pytest`` never becomes a paid run."""
    repo.lay({"pytest.ini": f"[pytest]\n{key}\n", "test_own.py": "def test_own():\n    pass\n"})
    result = repo.run()
    result.assert_outcomes(passed=1, warnings=1)
    result.stdout.fnmatch_lines([f"*Unknown config option: {key.split()[0]}*"])
    assert not (repo.path / ".mlrbench").exists()
