"""What an image lacks is no fault of the agent's: it is said before the first case."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any

import pytest
from docker_bench import IMAGE, Bench
from test_bad_input import refused

from pytest_mlrbench.errors import InputError
from pytest_mlrbench.sandbox.contents import Content

if TYPE_CHECKING:
    from conftest import Repository

pytestmark = [pytest.mark.docker, pytest.mark.slow]
pytest_plugins = ["docker_engine"]

HERE = ("--mlr-stage=experiment", f"--mlr-image={IMAGE}", "--mlr-limits=memory=1g", "--mlr-limit=1")
HAS_NO = f"image '{IMAGE}' has no "


@pytest.mark.parametrize(
    ("agent", "words"),
    [
        ("cmd:no-such-program agent.py", "program 'no-such-program' on its PATH"),
        ("cmd:./by_python", "program 'no-such-python' on its PATH"),
        ("cmd:python3 /app/nope.py", "file '/app/nope.py'"),
        ("cmd:/opt/nope", "program '/opt/nope' that can be executed"),
        ("reference", "package 'pytest_mlrbench' for its python3"),
    ],
)
@pytest.mark.usefixtures("engine")
def test_what_the_image_lacks(repo: Repository, agent: str, words: str) -> None:
    repo.lay({"by_python": "#!/usr/bin/env no-such-python\n"})
    (repo.path / "by_python").chmod(0o755)
    said = refused(repo, *HERE, f"--mlr-agent={agent}", "--mlr-sandbox=docker")
    assert said.startswith(f"{HAS_NO}{words}: name one that has it with --mlr-image"), said
    assert "docker build" in said


@pytest.mark.usefixtures("engine")
def test_a_coding_cli_that_the_image_lacks(
    repo: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-0123456789")
    said = refused(repo, *HERE, "--mlr-agent=claude-code", "--mlr-no-preflight")
    assert said.startswith(f"{HAS_NO}program 'claude' on its PATH"), said
    assert "-f ci/docker/Dockerfile" in said


def test_what_is_there_runs(repo: Repository, engine: Any) -> None:
    """A script of its own, by a program of the image's."""
    repo.lay(
        {"agent.sh": "#!/usr/bin/env sh\nmkdir results; echo '# Results' > results/results.md"}
    )
    (repo.path / "agent.sh").chmod(0o755)
    repo.run(*HERE, "--mlr-agent=cmd:./agent.sh", "--mlr-threshold=overall>=1")
    (case,) = repo.report.cases
    assert (case.verdict, case.sandbox) == ("pass", "docker")


@pytest.mark.parametrize(
    "content",
    [
        Content("program", "strace"),
        Content("program", "/bin/sh"),
        Content("file", "/etc/passwd"),
        Content("package", "json"),
    ],
)
def test_one_container_answers_for_all_of_it(boxes: Bench, content: Content) -> None:
    sandbox = boxes.sandbox()
    sandbox.wanted = [content]
    sandbox.prepare()
    assert sandbox.examined.tools == {"tracer", "doorway"}
    made = boxes.sandbox()
    made.wanted = [content, Content("program", "nope")]
    with pytest.raises(InputError, match="no program 'nope' on its PATH"):
        made.prepare()


@pytest.mark.parametrize("place", ["/home/agent/tool", "/tmp/tool", "/workspace/tool"])
def test_what_a_case_will_not_see_of_an_image_is_not_there(
    boxes: Bench, engine: Any, place: str
) -> None:
    """The image has it, but a folder of the case's own is put over it."""
    script = f"mkdir -p /workspace; cp /bin/true {place}"
    made = engine.containers.create(IMAGE, ["/bin/sh", "-c", script], network_mode="none")
    tag = f"mlrbench-hidden:{uuid.uuid4().hex[:12]}"
    try:
        made.start()
        assert made.wait()["StatusCode"] == 0
        built = made.commit(*tag.split(":"))
    finally:
        made.remove(force=True)
    try:
        sandbox = boxes.sandbox(image=tag)
        sandbox.wanted = [Content("program", place)]
        with pytest.raises(InputError, match=f"no program '{place}'"):
            sandbox.prepare()
    finally:
        engine.images.remove(built.id, noprune=True)
