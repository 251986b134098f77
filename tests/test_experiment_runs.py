"""Runs of experiments as users start them: in containers, on four GPUs, and ended in every way."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import psutil
import pytest
from coding_stub import SESSION, CodingStub

# Sessions inside this process would load it again and again, and find parts of two loadings.
import pytest_mlrbench.sandbox.recorder  # noqa: F401
from pytest_mlrbench.cli import main
from pytest_mlrbench.sandbox import ledger
from pytest_mlrbench.sandbox.labels import RUN

if TYPE_CHECKING:
    from conftest import Repository

pytestmark = [pytest.mark.docker, pytest.mark.slow]
pytest_plugins = ["docker_engine"]

IMAGE = "mlrbench-agents:ci"
GPUS = [f"GPU-{number}0000000-0000-0000-0000-000000000000" for number in range(1, 5)]
LIMITS = "--mlr-limits=memory=2g shm=64m tmp=256m"
EXPERIMENT = ("--mlr-stage=experiment", LIMITS, f"--mlr-image={IMAGE}", "--junitxml=junit.xml")


@pytest.fixture(autouse=True)
def agents_image(
    engine: Any, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The image with the coding CLIs, and locks of GPUs that nobody else has."""
    if not engine.images.list(IMAGE):
        pytest.skip(f"the engine has no image {IMAGE}: ci/docker/build.sh builds one")
    monkeypatch.setenv("MLR_GPU_LOCKS", str(tmp_path_factory.mktemp("locks")))


def properties(repo: Repository) -> list[dict[str, str]]:
    """Test properties of the last session, a mapping for each test."""
    cases = ET.parse(repo.path / "junit.xml").iter("testcase")
    return [{p.attrib["name"]: p.attrib["value"] for p in case.iter("property")} for case in cases]


def ledgers(repo: Repository) -> list[list[dict[str, Any]]]:
    """Events of each case of the last run; reading checks that no line was changed."""
    found = sorted(repo.runs[-1].path.glob("cases/*/*/*/ledger.jsonl"))
    return [list(ledger.read(path)) for path in found]


def ours(repo: Repository, engine: Any) -> list[str]:
    """Names of the containers and networks of the last run in the engine."""
    kept = {"filters": {"label": f"{RUN}={repo.runs[-1].run_id}"}} if repo.runs else None
    if kept is None:
        return []
    containers = engine.containers.list(all=True, **kept)
    return [c.name for c in containers] + [n.name for n in engine.networks.list(**kept)]


# Runs that come to their end


def test_four_workers_share_four_gpus(repo: Repository, engine: Any) -> None:
    result = repo.spawn(*EXPERIMENT, "--mlr-sandbox=docker", f"--mlr-gpus={','.join(GPUS)}", "-n4")
    result.assert_outcomes(passed=6)
    result.stdout.fnmatch_lines(
        [f"mlrbench: commands run in containers of image {IMAGE}, network none, 4 GPUs*"]
    )
    found = properties(repo)
    assert {case["mlr.sandbox"] for case in found} == {"docker"}
    assert {case["mlr.gpu"] for case in found} == set(GPUS)
    spans: dict[str, list[tuple[float, float]]] = {}
    for events in ledgers(repo):
        kinds = {event["e"]: event for event in events}
        (gpu,) = kinds["gpus"]["gpus"]
        spans.setdefault(gpu, []).append((kinds["begin"]["t"], kinds["end"]["t"]))
        assert kinds["end"]["unrecorded"] == []
        assert any(event["e"] == "read" and event["class"] == "package" for event in events)
    for used in spans.values():
        assert all(before[1] <= after[0] for before, after in pairwise(sorted(used)))
    assert ours(repo, engine) == []


@pytest.mark.parametrize("kind", ["codex", "gemini-cli", "claude-code"])
def test_a_coding_agent_does_an_experiment(
    repo: Repository, engine: Any, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = "sk-real-0123456789abcdef0123456789abcdef"
    with CodingStub() as stub:
        stub.steps = SESSION
        for provider, name in (
            ("openai", "OPENAI"),
            ("anthropic", "ANTHROPIC"),
            ("google", "GOOGLE_GEMINI"),
        ):
            monkeypatch.setenv(f"{name}_BASE_URL", stub.base_url(provider))
            monkeypatch.setenv(f"{name.replace('GOOGLE_GEMINI', 'GOOGLE')}_API_KEY", key)
        result = repo.run(
            *EXPERIMENT, f"--mlr-agent={kind}", "--mlr-limit=1", "--mlr-threshold=overall>=1"
        )
        result.assert_outcomes(passed=1)
        result.stdout.fnmatch_lines(
            [f"mlrbench: commands run in containers of *{IMAGE}, network models*"]
        )
        (case,) = properties(repo)
        assert case["mlr.tokens.agent.input"] == str(stub.total.input)
        assert case["mlr.tokens.agent.output"] == str(stub.total.output)
    for path in repo.path.rglob("*"):
        if path.is_file():
            assert key.encode() not in path.read_bytes(), path
    (events,) = ledgers(repo)
    assert [e["status"] for e in events if e["e"] == "api" and e["usage"]["output"]]
    assert ours(repo, engine) == []


# Runs that do not

SLOW = """
case $MLR_TASK_ID in
calibration_digits) mkdir -p results; echo '# Results' > results/results.md ;;
*) sh -c 'trap "" TERM INT; setsid sleep 600 & sleep 600' ;;
esac
"""
RUN_SLOW = (*EXPERIMENT, "--mlr-agent=cmd:sh agent.sh", "--mlr-threshold=overall>=1")


@pytest.mark.parametrize(
    ("ending", "options", "cause"),
    [
        ("sleep 600", ["--mlr-timeout=10"], "timeout"),
        ("python3 -c 'x = bytearray(2**32)'", [], "memory"),
        ("head -c 99000000 /dev/zero > big; sleep 600", [f"{LIMITS} disk=20m"], "disk"),
        ("exit 3", [], "crash"),
    ],
    ids=["timeout", "memory", "disk", "crash"],
)
def test_what_an_agent_left_is_judged_though_it_did_not_end_well(
    repo: Repository, engine: Any, ending: str, options: list[str], cause: str
) -> None:
    script = f"mkdir -p results\necho '# Results' > results/results.md\n{ending}\n"
    (repo.path / "agent.sh").write_text(script)
    agent = ("--mlr-agent=cmd:sh agent.sh", "--mlr-limit=1")
    result = repo.run(*EXPERIMENT, *agent, *options, "--mlr-threshold=overall>=1")
    result.assert_outcomes(failed=1)
    (case,) = properties(repo)
    told = [case[f"mlr.{name}"] for name in ("verdict", "blame", "cause")]
    assert told == ["fail", "agent", cause]
    assert 1 <= float(case["mlr.overall"]) < 6
    result.stdout.fnmatch_lines(
        [f"{cause}, {float(case['mlr.overall']):.1f}/10 evidence *: the agent *"]
    )
    assert ours(repo, engine) == []


@contextlib.contextmanager
def session(repo: Repository, *options: str) -> Iterator[subprocess.Popen[bytes]]:
    """A session in which the first case has ended and others are under way."""
    repo.lay({"agent.sh": SLOW})
    command = [sys.executable, "-m", "pytest", *RUN_SLOW, *options]
    process = subprocess.Popen(command, cwd=repo.path, stdout=subprocess.DEVNULL)
    try:
        wait(lambda: bool(repo.runs) and any(repo.runs[-1].journal()), 90)
        yield process
    finally:
        for one in (
            [*psutil.Process(process.pid).children(recursive=True)] if is_up(process) else []
        ):
            with contextlib.suppress(psutil.Error):
                one.kill()
        process.kill()
        process.wait()


def is_up(process: subprocess.Popen[bytes]) -> bool:
    return process.poll() is None


def wait(condition: Any, seconds: float) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it does not come to that"
        time.sleep(0.2)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=lambda n: n.name)
@pytest.mark.parametrize("workers", [[], ["-n2"]], ids=["alone", "-n2"])
def test_an_interrupted_session_leaves_nothing(
    repo: Repository, engine: Any, number: signal.Signals, workers: list[str]
) -> None:
    with session(repo, *workers) as process:
        wait(lambda: ours(repo, engine), 60)
        # A terminal sends Ctrl-C to all processes of the group; this one is sent to the first.
        process.send_signal(number)
        assert process.wait(60) == 2
        wait(lambda: ours(repo, engine) == [], 30)
    assert [line.verdict for line in repo.runs[-1].journal()][:1] == ["pass"]


@pytest.mark.parametrize("workers", [[], ["-n2"]], ids=["alone", "-n2"])
def test_what_a_killed_session_leaves_is_removed_at_the_next_start(
    repo: Repository, engine: Any, workers: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    foreign = engine.containers.create(IMAGE, ["sleep", "9"], labels={"com.example": "theirs"})
    try:
        with session(repo, *workers) as process:
            wait(lambda: len(ours(repo, engine)) > 0, 60)
            family = [process.pid, *(p.pid for p in psutil.Process(process.pid).children(True))]
            for pid in family:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            process.wait()
        left = ours(repo, engine)
        assert left
        assert main(["clean", "--dry-run"]) == 0
        assert all(name in capsys.readouterr().out for name in left[:1])
        assert ours(repo, engine) == left
        repo.lay({"agent.sh": "mkdir -p results; echo '# Results' > results/results.md"})
        repo.run(*RUN_SLOW, "--mlr-resume", "--mlr-agent-version=1", "--mlr-limit=1")
        assert ours(repo, engine) == []
        foreign.reload()
    finally:
        foreign.remove(force=True)


def test_a_killed_worker_costs_its_case_and_nothing_else(repo: Repository, engine: Any) -> None:
    with session(repo, "-n2", "--mlr-tasks=calibration_digits,conformal_diabetes") as process:
        wait(lambda: len(ours(repo, engine)) == 1, 60)
        (heart,) = repo.runs[-1].path.glob("cases/*/*/*/heartbeat.json")
        pid = int(heart.read_text().split('"pid": ')[1].split(",")[0])
        os.kill(pid, signal.SIGKILL)
        assert process.wait(90) == 1
        wait(lambda: ours(repo, engine) == [], 30)
    found = {line.case.split("/")[2]: line for line in repo.runs[-1].journal()}
    assert found["calibration_digits"].verdict == "pass"
    assert found["conformal_diabetes"].verdict == "not_measured"


def test_status_shows_what_runs(
    repo: Repository, engine: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    with session(repo):
        wait(lambda: ours(repo, engine), 60)
        assert main(["status", str(repo.runs[-1].path)]) == 0
        said = capsys.readouterr().out
        assert "experiment/conformal_diabetes/r1" in said
        assert "docker" in said


OWN = """
import pytest
from pytest_mlrbench.sandbox.docker import DockerSandbox

class Told(DockerSandbox):
    def start(self, stay):
        with open("started", "a") as file:
            print(stay.job.case, file=file)
        super().start(stay)

@pytest.fixture(scope="session")
def mlr_container(mlr_container):
    return Told(mlr_container.image, mlr_container.limits)
"""


def test_a_step_of_the_sandbox_can_be_overridden(repo: Repository, engine: Any) -> None:
    repo.lay(
        {
            "conftest.py": OWN,
            "test_own.py": "from pytest_mlrbench.stage_tests import *",
            "agent.sh": "mkdir -p results; echo '# Results' > results/results.md",
        }
    )
    repo.run(*RUN_SLOW, "--mlr-limit=1", "test_own.py").assert_outcomes(passed=1)
    started = (repo.path / "started").read_text()
    assert started == "mini/experiment/calibration_digits/r1\n"


# Evidence

TYPED = """
mkdir -p results; echo '{"ours": {"accuracy": 0.8713, "f1": 0.8422}}' > results/metrics.json
printf '# Results\\n\\n| Method | Accuracy | F1 |\\n|---|---|---|\\n' > results/results.md
printf '| base | 0.7392 | 0.7127 |\\n| ours | 0.8713 | 0.8422 |\\n' >> results/results.md
"""
MEASURED = """
mkdir -p results; cat > main.py <<'END'
import json
words = open("task.md").read().split()
found = {f"first {n}": {"accuracy": len(set(words[:n])) / n} for n in (37, 83, 131)}
json.dump(found, open("results/metrics.json", "w"))
rows = "".join(f"| {n} | {m['accuracy']:.4f} |\\n" for n, m in found.items())
open("results/results.md", "w").write("# Results\\n\\n| Words | Accuracy |\\n|---|---|\\n" + rows)
END
python3 main.py
"""
FAILING = """
mkdir -p results; echo 'import missing_package' > main.py; python3 main.py
printf '# Results\\n\\nIt did not work: a package is missing.\\n' > results/results.md
"""


@pytest.mark.parametrize(
    ("script", "level", "fabricated"),
    [(TYPED, "claimed", True), (MEASURED, "traced", False), (FAILING, "executed", False)],
    ids=["typed", "measured", "failing"],
)
def test_what_ran_decides_by_default_where_it_is_recorded(
    repo: Repository, script: str, level: str, fabricated: bool
) -> None:
    repo.lay({"agent.sh": script})
    done = repo.run(*EXPERIMENT, "--mlr-agent=cmd:sh agent.sh", "--mlr-limit=1")
    done.stdout.fnmatch_lines(["*thresholds: overall>=6.0, evidence>=executed"])
    (case,) = repo.report.cases
    assert case.evidence is not None
    assert "ledger" in case.evidence.examined
    assert (case.evidence.level, case.evidence.fabricated) == (level, fabricated)
    assert ("experiment:evidence>=executed" in case.missed) is (level == "claimed")
    # Judged again, it stands by the same record under the same line.
    repo.run("--mlr-stage=experiment", f"--mlr-agent=replay:{repo.runs[-1].path}", "--mlr-limit=1")
    (again,) = repo.report.cases
    assert again.evidence == case.evidence
    assert again.missed == case.missed
