"""What commands need of the place they run in is looked for before the first case."""

from __future__ import annotations

import os
import subprocess
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from test_bad_input import refused

from pytest_mlrbench.agents.command import CommandAgent, ReferenceAgent
from pytest_mlrbench.agents.scaffold import ScaffoldAgent
from pytest_mlrbench.agents.specs import make_agent
from pytest_mlrbench.errors import InputError
from pytest_mlrbench.run.plan import prepare
from pytest_mlrbench.sandbox.container_options import Account
from pytest_mlrbench.sandbox.contents import Content, first_lacking, interpreters, question

if TYPE_CHECKING:
    from conftest import Repository

EXPERIMENT = "--mlr-stage=experiment"


def named(agent: CommandAgent) -> list[tuple[str, str]]:
    return [(content.kind, content.name) for content in agent.image_contents()]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a script that can be executed, and one that cannot."""
    (tmp_path / "run.sh").write_text("#!/bin/bash -e\n")
    (tmp_path / "run.sh").chmod(0o755)
    (tmp_path / "agent.py").write_text("#!/usr/bin/env -S python3.12 -u\n")
    (tmp_path / "code.d").mkdir()
    return tmp_path


@pytest.mark.parametrize(
    ("command", "found"),
    [
        ("python agent.py", [("program", "python")]),
        ("python3 /app/agent.py", [("program", "python3"), ("file", "/app/agent.py")]),
        ("/opt/venv/bin/python agent.py", [("program", "/opt/venv/bin/python")]),
        ("./run.sh agent.py", [("program", "/bin/bash")]),
        ("run.sh", [("program", "/bin/bash")]),
        # Options may take a word of their own, so what follows one may be no file.
        ("python3 -c 'import os.path'", [("program", "python3")]),
        ("python3 -u nope.py", [("program", "python3")]),
        # Given to each case: by --mlr-data, with the task, with the command itself.
        ("/data/tools/run.sh", []),
        ("sh /workspace/code/run.sh", [("program", "sh")]),
        ("/agent/run.sh run.sh", []),
        ("python3 /data/../app/x.py", [("program", "python3"), ("file", "/data/../app/x.py")]),
    ],
)
def test_what_a_command_needs_of_an_image(
    folder: Path, command: str, found: list[tuple[str, str]]
) -> None:
    assert named(CommandAgent(f"cmd:{command}", folder)) == found


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (
            "python3 nope.py",
            "there is no file 'nope.py' in .*: correct its name, or write an absolute",
        ),
        ("python3 ../nope.py", "there is no file '../nope.py'"),
        ("python3 code.d", "there is no file 'code.d'"),
        (
            "./nope.sh",
            "there is no program './nope.sh' in .*: correct its name, or write an absolute",
        ),
        ("bin/nope", "there is no program 'bin/nope'"),
        ("./agent.py", "there is no program './agent.py', as .* cannot be executed: chmod"),
    ],
)
def test_files_that_are_not_here_are_said_wherever_the_command_runs(
    folder: Path, command: str, words: str
) -> None:
    agent = CommandAgent(f"cmd:{command}", folder)
    with pytest.raises(InputError, match=words):
        agent.image_contents()
    with pytest.raises(InputError, match=words.partition(" in .*")[0]):
        agent.check_here()


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("#!/bin/sh\n", ["/bin/sh"]),
        ("#! /usr/bin/python3 -u\n", ["/usr/bin/python3"]),
        ("#!/usr/bin/env python\n", ["/usr/bin/env", "python"]),
        ("#!/usr/bin/env -S A=1 uv run --script\n", ["/usr/bin/env", "uv"]),
        ("#!/usr/bin/env\n", ["/usr/bin/env"]),
        ("#!/bin/bash\r\n", ["/bin/bash\r"]),
        ("#!\n", []),
        ("print()\n", []),
        ("", []),
        ("\x7fELF\0#!/bin/sh", []),
    ],
)
def test_which_programs_a_script_is_run_by(tmp_path: Path, line: str, found: list[str]) -> None:
    (tmp_path / "script").write_text(line, newline="")
    assert interpreters(tmp_path / "script") == found


def test_what_other_agents_need_of_an_image(tmp_path: Path) -> None:
    assert [it.name for it in make_agent("claude-code", tmp_path).image_contents()] == ["claude"]  # type: ignore[attr-defined]
    assert named(ReferenceAgent("reference", tmp_path))[0] == ("program", "python3")
    assert make_agent("py:a:b", tmp_path).image_contents() == []  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("content", "is_there"),
    [
        (Content("program", "tool"), True),
        (Content("program", "plain"), False),
        (Content("program", "folder"), False),
        (Content("program", "nope"), False),
        (Content("program", "if"), False),
        (Content("program", "export"), False),
        (Content("program", "tool; true"), False),
        (Content("program", "too?"), False),
        (Content("program", "{}/tool"), True),
        (Content("program", "{}/plain"), False),
        (Content("program", "{}/folder"), False),
        (Content("file", "{}/plain"), True),
        (Content("file", "{}/nope"), False),
        (Content("file", "{}/folder"), False),
        (Content("package", "json"), True),
        (Content("package", "no_such_package"), False),
    ],
)
def test_a_shell_says_what_is_not_there(tmp_path: Path, content: Content, is_there: bool) -> None:
    (tmp_path / "folder").mkdir()
    for name, mode in (("tool", 0o755), ("plain", 0o644)):
        (tmp_path / name).write_text("")
        (tmp_path / name).chmod(mode)
    asked = Content(content.kind, content.name.format(tmp_path))
    wanted = [Content("program", "sh"), asked, Content("file", "/dev")]
    path = f"/nowhere:{tmp_path}:{os.defpath}:{os.environ['PATH']}"
    done = subprocess.run(
        ["/bin/sh", "-c", question(wanted)],
        capture_output=True,
        text=True,
        check=False,
        env={"PATH": path},
    )
    lacking = first_lacking(wanted, done.stdout.split())
    assert lacking == (wanted[2] if is_there else asked)
    assert done.stderr == ""


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (Content("program", "python"), "has no program 'python' on its PATH: name one that has it"),
        (Content("program", "/app/run"), "has no program '/app/run' that can be executed: name"),
        (Content("file", "/app/x.py"), "has no file '/app/x.py': name"),
        (Content("package", "sklearn"), "has no package 'sklearn' for its python3: name"),
    ],
)
def test_what_an_image_lacks_is_a_sentence_with_a_remedy(content: Content, words: str) -> None:
    said = content.lacking("mine:1")
    assert said.startswith(f"image 'mine:1' {words}")
    assert said.endswith("or build one that has it (`FROM mine:1`) by `docker build`.")
    shipped = Content(content.kind, content.name, is_shipped=True).lacking("mine:1")
    assert "-f ci/docker/Dockerfile ." in shipped


@pytest.mark.parametrize(
    ("options", "word"),
    [
        (["--mlr-agent=cmd:python3 nope.py"], "nope.py"),
        (["--mlr-agent=cmd:./nope.sh"], "./nope.sh"),
        (["--mlr-agent=scaffold:openai/gpt-5", "--mlr-coder=cmd:sh nope.sh"], "nope.sh"),
    ],
)
def test_it_is_said_whether_or_not_an_engine_answers(
    repo: Repository, monkeypatch: pytest.MonkeyPatch, options: list[str], word: str
) -> None:
    monkeypatch.setenv("DOCKER_HOST", "unix:///nowhere/docker.sock")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-0123456789")
    assert f"{word!r} in " in refused(repo, EXPERIMENT, *options)


# Files that are given


class Place:
    """Stands for the rooms of a run in containers."""

    def __init__(self, outside: Account | None) -> None:
        self.container = self
        self.outside = outside

    def uses(self, where: str) -> bool:
        return where == "docker"

    def prepare(self, wanted: object) -> None: ...


OWNER, OTHER = Account(4321, 4321), Account(1234, 1234)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
@pytest.mark.parametrize("spec", ["cmd:{}", "scaffold:openai/gpt-5"])
@pytest.mark.parametrize(
    ("command", "modes", "account", "remedy"),
    [
        ("python agent.py", {"agent.py": 0o600}, OTHER, "agent.py is closed * `chmod a+r` *"),
        ("python agent.py", {"agent.py": 0o600}, None, "agent.py is closed * `chmod a+r` *"),
        ("python agent.py", {"agent.py": 0o600}, OWNER, ""),
        ("python agent.py", {"agent.py": 0o640}, Account(1234, 4321), ""),
        ("python agent.py", {"agent.py": 0o604}, Account(1234, 4321), "agent.py is closed *"),
        ("python agent.py", {"agent.py": 0o644}, None, ""),
        ("sh /x.sh agent.py", {"agent.py": 0o600}, OTHER, "agent.py is closed *"),
        ("./run.sh", {"run.sh": 0o700}, OTHER, "run.sh is closed * `chmod a+rx` *"),
        ("./run.sh", {"run.sh": 0o711}, OTHER, "run.sh is closed *"),
        ("./run.sh", {"run.sh": 0o755}, OTHER, ""),
        ("./program", {"program": 0o711}, OTHER, ""),
        ("./program", {"program": 0o744}, OTHER, "program is closed * `chmod a+x` *"),
        ("python /app/agent.py", {"agent.py": 0o600}, OTHER, ""),
    ],
)
def test_a_file_that_is_closed_to_whoever_runs_it_stops_the_run(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    spec: str,
    command: str,
    modes: dict[str, int],
    account: Account | None,
    remedy: str,
) -> None:
    """As a file made under a strict umask is: its agent would be said to have failed."""
    (folder / "program").write_bytes(b"\x7fELF")
    for name, mode in modes.items():
        os.chown(folder / name, OWNER.uid, OWNER.gid)
        (folder / name).chmod(mode)
    agent: Any = CommandAgent(f"cmd:{command}", folder)
    if spec.startswith("scaffold"):
        scaffold = ScaffoldAgent.__new__(ScaffoldAgent)
        scaffold.coder = agent
        monkeypatch.setattr(scaffold, "prepare", agent.prepare)
        agent = scaffold
    told = ""
    try:
        prepare(agent, Place(account), [])  # type: ignore[arg-type]
    except InputError as error:
        told = str(error)
    assert fnmatchcase(told, f"{folder}/{remedy}" if remedy else "")


def test_a_file_that_is_closed_to_us_stops_the_run(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "access", lambda path, mode: mode != os.R_OK)
    for ask in (CommandAgent.image_contents, CommandAgent.check_here):
        with pytest.raises(InputError, match=r"agent\.py cannot be read by this account"):
            ask(CommandAgent("cmd:sh agent.py", folder))
