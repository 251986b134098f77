"""Resuming: what is finished is neither run nor judged again, and the reports are complete."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree as ET

import pytest
from builders import lay
from files import outside_variables

from pytest_mlrbench.run.folder import RunFolder
from pytest_mlrbench.run.result import CaseResult
from pytest_mlrbench.suites.loading import load_suite

if TYPE_CHECKING:
    from conftest import Repository

TASKS = tuple(task.id for task in load_suite("mini").tasks)
#: Plugins that child sessions need not load, or that would shuffle them.
WITHOUT = ("-p", "no:randomly", "-p", "no:hypothesispytest", "-p", "no:asyncio")
#: What differs between two sessions that measured the same.
VOLATILE = {"mlr.seconds.agent", "mlr.seconds.judge", "mlr.resumed", "mlr.artifacts"}

#: Each call leaves a line; the first two tasks are answered badly, one way and another.
AGENT = """
echo "agent $MLR_TASK_ID $MLR_REPEAT" >> "$CALLS"
case $MLR_TASK_ID in
calibration_digits) ;;
conformal_diabetes) echo 'bad' > idea.md ;;
*) echo '# A good idea' > idea.md ;;
esac
"""
#: A judge that gives 3 to what is bad and else 7, leaves a line for each call, and does what the
#: file ``judge`` says: ``die``, or ``down``.
CONFTEST = """
import os, signal
from pathlib import Path
import pytest
from pytest_mlrbench.errors import SystemFault
from pytest_mlrbench.judges.review import Answer, OverallScored, Scored
from pytest_mlrbench.suites.rubrics import rubric

HERE = Path(__file__).parent

class Judge:
    id = "stub"
    spec = "fixture:stub"
    digest = os.environ.get("JUDGE_DIGEST", "1")

    def rubric(self, stage):
        folder = os.environ.get("RUBRICS")
        return rubric(stage, Path(folder) if folder else None)

    def prepare(self, agent, cases):
        pass

    async def review(self, work):
        with open(os.environ["CALLS"], "a") as file:
            file.write(f"judge {work.case.task.id} {work.case.repeat}\\n")
        told = (HERE / "judge").read_text() if (HERE / "judge").exists() else ""
        if told == "die":
            (HERE / "judge").unlink()
            os.kill(os.getpid(), signal.SIGKILL)
        if told.startswith("down") and work.case.task.id in told:
            raise SystemFault("judge_down", "the judge is down.")
        score = 3 if "bad" in (work.workspace / "idea.md").read_text() else 7
        names = self.rubric(work.case.stage).names(work.case.stage)
        return Answer(dimensions={n: Scored(score=score) for n in names},
                      overall=OverallScored(score=score))

@pytest.fixture(scope="session")
def mlr_judges():
    return [Judge()]
"""


class Bench:
    """A repository with an agent and a judge that count their calls."""

    def __init__(self, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
        self._pytester = pytester
        self._monkeypatch = monkeypatch
        self.path = path = pytester.path
        self.calls_file = path / "calls"
        lay(
            path,
            {
                "pytest.ini": "[pytest]\n",
                "conftest.py": CONFTEST,
                "test_mlr.py": "from pytest_mlrbench.stage_tests import *\n",
                "agent.sh": AGENT,
                "calls": "",
            },
        )

    def command(self, *options: str) -> list[str]:
        given = {option.partition("=")[0] for option in options}
        default = {"--mlr-agent": "cmd:sh agent.sh", "--mlr-judge": "fixture"}
        return [
            *(sys.executable, "-m", "pytest", *WITHOUT, "test_mlr.py", "--mlr-stage=idea"),
            *(f"{name}={value}" for name, value in default.items() if name not in given),
            *options,
        ]

    def environment(self, variables: Mapping[str, str]) -> dict[str, str]:
        inherited = outside_variables(self.path, "MLR")
        return inherited | {"CALLS": str(self.calls_file)} | dict(variables)

    def run(self, *options: str, code: int = 1, **variables: str) -> str:
        """Run pytest; *code* is the exit code it must have. Return what it printed."""
        self.calls_file.write_text("")
        # A process of its own is needed for workers, for what is to be killed, and where suites and
        # rubrics have changed, which a process reads once. The rest is faster in this one.
        spawn = code < 0 or {"-n", "-p", "--mlr-rubrics=rubrics", OWN_SUITE} & {*options}
        start = self._spawned if spawn else self._here
        found, out = start(self.command(*options), self.environment(variables))
        assert found == code, out
        return out

    def _spawned(self, command: list[str], environment: dict[str, str]) -> tuple[int, str]:
        done = subprocess.run(
            command,
            cwd=self.path,
            env=environment,
            capture_output=True,
            text=True,
            timeout=90,
            check=False,
        )
        return done.returncode, done.stdout + done.stderr

    def _here(self, command: list[str], environment: dict[str, str]) -> tuple[int, str]:
        with self._monkeypatch.context() as patch:
            for name in set(os.environ) - set(environment):
                patch.delenv(name)
            for name, value in environment.items():
                patch.setenv(name, value)
            done = self._pytester.runpytest_inprocess(*command[3:])
        return int(done.ret), done.stdout.str() + done.stderr.str()

    @property
    def calls(self) -> list[str]:
        """The calls of the last session, as ``agent <task> <repeat>``, sorted."""
        return sorted(self.calls_file.read_text().splitlines())

    def called(self, who: str) -> list[str]:
        """Ids of the tasks of the last session that *who* was called for, sorted."""
        return [call.split()[1] for call in self.calls if call.startswith(who)]

    @property
    def runs(self) -> list[Path]:
        return sorted(path.parent for path in self.path.glob(".mlrbench/runs/*/run.json"))

    @property
    def run_path(self) -> Path:
        (path,) = self.runs
        return path

    def case(self, task: str, repeat: int = 1) -> Path:
        return self.run_path / "cases" / "idea" / task / f"r{repeat}"

    @property
    def results(self) -> dict[str, CaseResult]:
        """Task → result, of the newest session."""
        found = RunFolder(self.run_path).results()
        return {f"{result.task}": result for result in found.values()}

    def superseded(self, task: str) -> list[str]:
        folder = self.run_path / "superseded" / "idea" / task / "r1"
        return sorted(path.name for path in folder.iterdir()) if folder.exists() else []


@pytest.fixture
def bench(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Bench:
    return Bench(pytester, monkeypatch)


def verdicts(bench: Bench) -> dict[str, str]:
    return {task: result.verdict for task, result in bench.results.items()}


OWN_SUITE = "--mlr-suite=path:suite"
#: The verdicts of the agent and the judge.
FIRST = dict(zip(TASKS, ["fail", "fail", *["pass"] * 4], strict=True))


def reused(out: str) -> tuple[int, int]:
    """How many cases of how many were on disk already, by the words of the summary."""
    found = re.search(r"(\d+) of (?:the )?(\d+) cases (?:of|were)", out)
    assert found is not None, out
    return int(found[1]), int(found[2])


def junit(path: Path) -> tuple[dict[str, str], dict[str, Any]]:
    """The counts of a JUnit file, and test → (kind, message, properties), without what varies."""
    suite = ET.parse(path).find("testsuite")
    assert suite is not None
    cases = {}
    for case in suite.iter("testcase"):
        told = [(c.tag, c.attrib["message"]) for c in case if c.tag in ("failure", "error")]
        found = {p.attrib["name"]: p.attrib["value"] for p in case.iter("property")}
        kept = {name: value for name, value in found.items() if name not in VOLATILE}
        cases[f"{case.attrib['classname']}::{case.attrib['name']}"] = (told, kept)
    counts = {key: suite.attrib[key] for key in ("tests", "failures", "errors", "skipped")}
    return counts, cases


# What is finished is reused


@pytest.mark.parametrize(
    "again", [(), pytest.param(("-n", "2"), marks=pytest.mark.slow)], ids=["serial", "workers"]
)
def test_finished_cases_are_reused_and_reported_again(bench: Bench, again: tuple[str, ...]) -> None:
    bench.run("--junitxml=first.xml", "--mlr-json=first.json")
    assert bench.called("agent") == sorted(TASKS)
    assert bench.called("judge") == sorted(TASKS[1:])
    out = bench.run("--mlr-resume", "--junitxml=second.xml", "--mlr-json=second.json", *again)
    assert bench.calls == []
    assert reused(out) == (6, 6)
    assert "run again" not in out
    assert verdicts(bench) == FIRST
    assert junit(bench.path / "first.xml") == junit(bench.path / "second.xml")
    first, second = (
        json.loads((bench.path / f"{n}.json").read_text()) for n in ("first", "second")
    )
    assert first["cases"] == second["cases"]
    assert first["summary"] == second["summary"]
    assert len(second["run"]["sessions"]) == 2
    text = (bench.path / "second.xml").read_text()
    assert text.count('name="mlr.resumed" value="True"') == 6


def test_every_run_without_resume_is_a_new_one(bench: Bench) -> None:
    bench.run("--mlr-limit=1")
    bench.run("--mlr-limit=1")
    assert bench.called("agent") == [TASKS[0]]
    assert len(bench.runs) == 2


def test_what_failed_stays_failed_without_a_call(bench: Bench) -> None:
    bench.run("--mlr-limit=2")
    for _ in range(2):
        bench.run("--mlr-limit=2", "--mlr-resume")
        assert bench.calls == []
    assert verdicts(bench) == {TASKS[0]: "fail", TASKS[1]: "fail"}
    fault = bench.results[TASKS[0]].fault
    assert fault is not None
    assert fault.cause == "no_output"


def test_other_thresholds_give_other_verdicts_without_a_call(bench: Bench) -> None:
    bench.run()
    bench.run("--mlr-resume", "--mlr-threshold=overall>=3")
    assert bench.calls == []
    assert verdicts(bench) == FIRST | {TASKS[1]: "pass"}
    bench.run("--mlr-resume", "--mlr-threshold=overall>=8", "--junitxml=junit.xml")
    assert bench.calls == []
    assert set(verdicts(bench).values()) == {"fail"}
    assert junit(bench.path / "junit.xml")[0]["failures"] == "6"
    bench.run("--mlr-resume")
    assert bench.calls == []
    assert verdicts(bench) == FIRST


def test_more_cases_are_added_to_those_on_disk(bench: Bench) -> None:
    bench.run("--mlr-limit=2")
    out = bench.run("--mlr-resume")
    assert bench.called("agent") == sorted(TASKS[2:])
    assert reused(out) == (2, 6)
    assert verdicts(bench) == FIRST


def test_fewer_cases_are_reused_and_the_rest_is_not_lost(bench: Bench) -> None:
    bench.run()
    some = f"--mlr-tasks={TASKS[5]}"
    out = bench.run("--mlr-resume", some, "--junitxml=junit.xml", code=0)
    assert bench.calls == []
    assert reused(out) == (1, 1)
    assert junit(bench.path / "junit.xml")[0]["tests"] == "1"
    assert bench.results[TASKS[5]].verdict == "pass"
    bench.run("--mlr-resume")
    assert bench.calls == []
    assert verdicts(bench) == FIRST


def test_repeats_are_cases_of_their_own(bench: Bench) -> None:
    bench.run("--mlr-limit=2", "--mlr-repeats=2")
    assert len(bench.calls) == 4 + 2
    bench.run("--mlr-limit=2", "--mlr-repeats=3", "--mlr-resume", "--junitxml=junit.xml")
    calls = [f"agent {TASKS[0]} 3", f"agent {TASKS[1]} 3", f"judge {TASKS[1]} 3"]
    assert bench.calls == calls
    assert junit(bench.path / "junit.xml")[0]["tests"] == "6"


# What has changed is named and run again


def changed(bench: Bench, why: str, *options: str, **variables: str) -> None:
    """Resume after a change: all of the first three cases are run again, *why* is said."""
    out = bench.run("--mlr-limit=3", "--mlr-resume", *options, **variables)
    assert f"3 run again since {why}" in out
    assert reused(out) == (0, 3)
    assert {result.rerun_because for result in bench.results.values()} == {why}


def assert_agent_again(bench: Bench) -> None:
    assert bench.called("agent") == sorted(TASKS[:3])
    for task in TASKS[:3]:
        assert bench.superseded(task) == ["1"]
        assert bench.results[task].attempts == 2
    old = bench.run_path / "superseded" / "idea" / TASKS[1] / "r1" / "1"
    assert (old / "submission" / "idea.md").read_text() == "bad\n"
    assert (old / "reviews" / "stub.json").is_file()
    assert (old / "result.json").is_file()


def assert_judged_again(bench: Bench) -> None:
    assert bench.called("agent") == []
    assert bench.called("judge") == sorted(TASKS[1:3])
    assert [bench.superseded(task) for task in TASKS[:3]] == [[]] * 3


def test_a_changed_agent(bench: Bench) -> None:
    bench.run("--mlr-limit=3")
    lay(bench.path, {"agent.sh": AGENT + "# changed\n"})
    changed(bench, "the agent changed")
    assert_agent_again(bench)


def test_another_version_of_the_agent(bench: Bench) -> None:
    bench.run("--mlr-limit=3", "--mlr-agent-version=1")
    changed(bench, "the agent changed", "--mlr-agent-version=2")
    assert_agent_again(bench)


def test_another_agent(bench: Bench) -> None:
    bench.run("--mlr-limit=3")
    changed(bench, "the agent changed", "--mlr-agent=cmd:sh -e agent.sh")
    assert_agent_again(bench)


@pytest.mark.parametrize(
    ("option", "was", "default"),
    [
        ("agent", "cmd:sh agent.sh", "reference"),
        ("judge", "mine=checklist", "checklist"),
    ],
)
def test_a_run_does_not_go_on_by_a_default_it_did_not_begin_with(
    repo: Repository, option: str, was: str, default: str
) -> None:
    """Whoever forgot the agent would have another's results put aside, and end green."""
    repo.lay({"agent.sh": "echo '# An idea' > idea.md"})
    given = ("--mlr-stage=idea", "--mlr-limit=1", "--mlr-threshold=overall>=1")
    repo.run(*given, f"--mlr-{option}={was}").assert_outcomes(passed=1)
    before = repo.runs[0].path.joinpath("run.json").read_text()
    result = repo.run(*given, "--mlr-resume")
    assert result.ret == 4
    result.stderr.fnmatch_lines(
        [f"ERROR: run * has {option} '{was}', * would have '{default}': say which with *"]
    )
    assert repo.runs[0].path.joinpath("run.json").read_text() == before
    repo.run(*given, "--mlr-resume", f"--mlr-{option}={default}").assert_outcomes(passed=1)


def test_whose_run_it_is_is_told_before_what_the_default_agent_cannot_do(repo: Repository) -> None:
    """The reference agent has the tasks of mini only."""
    repo.lay({"ours/alpha.md": "# Alpha\n\nText.\n", "agent.sh": "echo '# An idea' > idea.md"})
    given = ("--mlr-stage=idea", "--mlr-suite=path:ours", "--mlr-threshold=overall>=1")
    repo.run(*given, "--mlr-agent=cmd:sh agent.sh").assert_outcomes(passed=1)
    for again, words in (
        (given, "run * has agent 'cmd:sh agent.sh', and this session names none, *"),
        (("--mlr-stage=idea", "--mlr-agent=null"), "run * is of suite 'ours', not 'mini': *"),
    ):
        result = repo.run(*again, "--mlr-resume")
        assert result.ret == 4
        result.stderr.fnmatch_lines([f"ERROR: {words}"])
    result = repo.run(*given, "--mlr-resume", "--mlr-agent=reference")
    result.stderr.no_fnmatch_line("*names none*")


def test_another_judge(bench: Bench) -> None:
    bench.run("--mlr-limit=3")
    changed(bench, "the judges changed", JUDGE_DIGEST="2")
    assert_judged_again(bench)


def test_another_rubric(bench: Bench) -> None:
    shutil.copytree(Path(__file__).parents[1] / "rubrics", bench.path / "rubrics")
    options, variables = ("--mlr-rubrics=rubrics",), {"RUBRICS": str(bench.path / "rubrics")}
    bench.run("--mlr-limit=3", *options, **variables)
    path = bench.path / "rubrics" / "idea.yaml"
    text = path.read_text("utf-8")
    path.write_text(text.replace("Read the task", "Do read the task", 1), "utf-8")
    assert path.read_text("utf-8") != text
    changed(bench, "the rubric changed", *options, **variables)
    assert_judged_again(bench)


def own_suite(bench: Bench) -> str:
    rows = "".join(f"{task},{task}\n" for task in TASKS[:3])
    lay(bench.path / "suite", {"suite.yaml": "name: own\n", "tasks.csv": f"id,title\n{rows}"})
    lay(bench.path / "suite", {f"tasks/{task}.md": f"# {task}\n" for task in TASKS[:3]})
    return OWN_SUITE


def test_other_inputs(bench: Bench) -> None:
    suite = own_suite(bench)
    bench.run("--mlr-limit=3", suite)
    lay(bench.path, {f"suite/tasks/{task}.md": "# Something else\n" for task in TASKS[:3]})
    changed(bench, "the inputs changed", suite)
    assert_agent_again(bench)
    assert (bench.case(TASKS[2]) / "inputs" / "task.md").read_text() == "# Something else\n"


def test_one_task_of_a_suite_that_changed(bench: Bench) -> None:
    suite = own_suite(bench)
    bench.run("--mlr-limit=3", suite)
    lay(bench.path, {f"suite/tasks/{TASKS[1]}.md": "# Something else\n"})
    out = bench.run("--mlr-limit=3", "--mlr-resume", suite)
    assert bench.called("agent") == [TASKS[1]]
    assert reused(out) == (2, 3)
    assert "1 run again since the inputs changed" in out


def test_a_submission_that_was_changed_by_hand(bench: Bench) -> None:
    """The submission's digest is one of the keys: its review is of something else."""
    bench.run("--mlr-limit=3")
    (bench.case(TASKS[2]) / "submission" / "idea.md").write_text("bad, by another hand\n")
    out = bench.run("--mlr-limit=3", "--mlr-resume")
    assert "the submission changed" in out
    assert bench.called("judge") + bench.called("agent") != []


UNKNOWN = """
import os

def unknown(work):
    with open(os.environ["CALLS"], "a") as file:
        file.write(f"agent {work.task_id} {work.repeat}\\n")
    (work.workspace / "idea.md").write_text("# An idea")

@pytest.fixture(scope="session")
def mlr_agent():
    space = dict(globals(), __name__="nowhere")
    exec(compile(UNKNOWN, "<nowhere>", "exec"), space)
    return space["unknown"]
"""


def test_an_agent_whose_content_is_not_known_is_never_reused(bench: Bench) -> None:
    text = UNKNOWN.partition("@pytest.fixture")[0]
    lay(bench.path, {"conftest.py": f"{CONFTEST}\nUNKNOWN = {text!r}\n{UNKNOWN}"})
    options = ("--mlr-agent=fixture", "--mlr-limit=3")
    bench.run(*options, code=0)
    for attempt in (2, 3):
        out = bench.run(*options, "--mlr-resume", code=0)
        assert "3 run again since the agent has no digest" in out
        assert bench.called("agent") == sorted(TASKS[:3])
        assert {result.attempts for result in bench.results.values()} == {attempt}


# --mlr-rerun


def test_cases_that_were_not_measured_stay_so_until_asked_for(bench: Bench) -> None:
    lay(bench.path, {"judge": f"down {TASKS[2]}"})
    bench.run("--mlr-limit=4")
    expected = {TASKS[0]: "fail", TASKS[1]: "fail", TASKS[2]: "not_measured", TASKS[3]: "pass"}
    assert verdicts(bench) == expected
    (bench.path / "judge").unlink()

    bench.run("--mlr-limit=4", "--mlr-resume", "--junitxml=junit.xml")
    assert bench.calls == []
    assert verdicts(bench) == expected
    assert junit(bench.path / "junit.xml")[0] == {
        "tests": "4",
        "failures": "2",
        "errors": "1",
        "skipped": "0",
    }

    out = bench.run("--mlr-limit=4", "--mlr-resume", "--mlr-rerun=errors")
    assert bench.calls == [f"judge {TASKS[2]} 1"]
    assert "1 run again since it was not measured" in out
    assert verdicts(bench) == expected | {TASKS[2]: "pass"}
    # The submission was kept: no agent was started again.
    assert bench.results[TASKS[2]].attempts == 1
    assert bench.superseded(TASKS[2]) == []

    bench.run("--mlr-limit=4", "--mlr-resume", "--mlr-rerun=errors")
    assert bench.calls == []


def test_rerun_failed_runs_both_again_but_nothing_that_passed(bench: Bench) -> None:
    lay(bench.path, {"judge": f"down {TASKS[2]}"})
    bench.run("--mlr-limit=4")
    (bench.path / "judge").unlink()
    out = bench.run("--mlr-limit=4", "--mlr-resume", "--mlr-rerun=failed")
    assert bench.called("agent") == sorted(TASKS[:2])
    assert bench.called("judge") == sorted(TASKS[1:3])
    assert "2 run again since they failed" in out
    assert "1 run again since it was not measured" in out
    assert [bench.superseded(task) for task in TASKS[:4]] == [["1"], ["1"], [], []]


def test_rerun_without_resume_is_refused(bench: Bench) -> None:
    out = bench.run("--mlr-rerun=errors", code=4)
    assert "add --mlr-resume" in out
    assert bench.calls == []
    assert bench.runs == []


# Half of a case


def killed(bench: Bench, *options: str, **variables: str) -> None:
    """Run a session that is killed by its judge."""
    bench.run(*options, code=-signal.SIGKILL, **variables)


def test_a_submission_without_a_review_is_judged_without_the_agent(bench: Bench) -> None:
    lay(bench.path, {"judge": "die"})
    killed(bench, f"--mlr-tasks={TASKS[1]},{TASKS[2]}")
    assert bench.calls == [f"agent {TASKS[1]} 1", f"judge {TASKS[1]} 1"]
    bench.run(f"--mlr-tasks={TASKS[1]},{TASKS[2]}", "--mlr-resume")
    assert bench.called("agent") == [TASKS[2]]
    assert bench.called("judge") == sorted(TASKS[1:3])
    assert verdicts(bench) == {TASKS[1]: "fail", TASKS[2]: "pass"}
    assert bench.results[TASKS[1]].attempts == 1
    assert bench.superseded(TASKS[1]) == []


def test_a_submission_without_a_review_of_an_agent_that_changed_is_not_judged(
    bench: Bench,
) -> None:
    lay(bench.path, {"judge": "die"})
    killed(bench, f"--mlr-tasks={TASKS[1]}")
    lay(bench.path, {"agent.sh": AGENT + "# changed\n"})
    bench.run(f"--mlr-tasks={TASKS[1]}", "--mlr-resume")
    assert bench.called("agent") == [TASKS[1]]
    assert bench.superseded(TASKS[1]) == ["1"]


def test_a_case_whose_agent_was_cut_off_is_run_again_from_nothing(bench: Bench) -> None:
    kill = 'echo half > half.md; [ -e "$CALLS.go" ] || kill -KILL $(cat "$CALLS.pid"); sleep 0.1\n'
    told = "import os\nPath(os.environ['CALLS'] + '.pid').write_text(str(os.getpid()))\n"
    lay(bench.path, {"agent.sh": f"{kill} echo '# I' > idea.md\n", "conftest.py": CONFTEST + told})
    bench.run("--mlr-limit=2", code=-signal.SIGKILL)
    assert (bench.case(TASKS[0]) / "submission").is_dir()
    lay(bench.path, {"calls.go": ""})
    bench.run("--mlr-limit=2", "--mlr-resume", code=0)
    assert bench.superseded(TASKS[0]) == ["1"]
    assert bench.superseded(TASKS[1]) == []
    assert bench.results[TASKS[0]].attempts == 2


@pytest.mark.parametrize(
    "content", ["", "{", '{"case": 1}', "\x00"], ids=["empty", "torn", "old", "nul"]
)
def test_a_result_that_cannot_be_read_is_made_again_from_the_reviews(
    bench: Bench, content: str
) -> None:
    bench.run("--mlr-limit=3")
    (bench.case(TASKS[2]) / "result.json").write_text(content)
    bench.run("--mlr-limit=3", "--mlr-resume")
    assert bench.calls == []
    assert verdicts(bench) == {TASKS[0]: "fail", TASKS[1]: "fail", TASKS[2]: "pass"}


@pytest.mark.parametrize("name", ["submission.json", "reviews/stub.json"])
def test_a_record_that_cannot_be_read_is_not_trusted(bench: Bench, name: str) -> None:
    bench.run("--mlr-limit=3")
    (bench.case(TASKS[2]) / "result.json").unlink()
    (bench.case(TASKS[2]) / name).write_text("{")
    bench.run("--mlr-limit=3", "--mlr-resume")
    assert bench.called("agent") == ([TASKS[2]] if name == "submission.json" else [])
    assert bench.called("judge") == [TASKS[2]]


def test_a_torn_journal(bench: Bench) -> None:
    bench.run("--mlr-limit=2")
    path = bench.run_path / "journal.jsonl"
    path.write_bytes(path.read_bytes() + b'{"time":"2026-01-01T00:00:00.000+00:00","case":"mi')
    bench.run("--mlr-limit=3", "--mlr-resume")
    assert bench.called("agent") == [TASKS[2]]
    cases = [line.case for line in RunFolder(bench.run_path).journal()]
    assert cases == [f"mini/idea/{task}/r1" for task in TASKS[:3]]


def test_without_its_journal_a_run_can_still_be_resumed(bench: Bench) -> None:
    bench.run("--mlr-limit=2")
    (bench.run_path / "journal.jsonl").unlink()
    bench.run("--mlr-limit=2", "--mlr-resume")
    assert bench.calls == []


# Which run


def test_a_named_run_is_resumed(bench: Bench) -> None:
    bench.run("--mlr-limit=2")
    first = bench.run_path
    bench.run("--mlr-limit=1")
    for name in (first.name, str(first), f".mlrbench/runs/{first.name}"):
        out = bench.run("--mlr-limit=2", f"--mlr-resume={name}")
        assert bench.calls == []
        assert first.name in out
    assert len(bench.runs) == 2
    bench.run("--mlr-limit=2", "--mlr-resume")
    assert bench.called("agent") == [TASKS[1]]


def test_a_run_that_is_not_there_is_refused(bench: Bench) -> None:
    assert "there is no run" in bench.run("--mlr-resume", code=4)
    bench.run("--mlr-limit=1")
    assert "'nope' is no run in" in bench.run("--mlr-resume=nope", code=4)
    assert bench.calls == []


def test_two_sessions_on_one_run_are_refused(bench: Bench) -> None:
    lay(
        bench.path,
        {
            "agent.sh": 'echo "agent" >> "$CALLS"; echo "# I" > idea.md; '
            'while [ ! -e "$CALLS.go" ]; do sleep 0.05; done\n',
            "impatient.py": "import pytest_mlrbench.run.folder as f\nf.LOCK_PATIENCE = 0.2\n",
        },
    )
    command = bench.command("--mlr-limit=1")
    environment = bench.environment({"CALLS": str(bench.path / "calls")})
    first = subprocess.Popen(
        command, cwd=bench.path, env=environment, stdout=subprocess.PIPE, text=True
    )
    try:
        end = time.monotonic() + 30
        while not bench.calls and time.monotonic() < end:
            time.sleep(0.05)
        out = bench.run("-p", "impatient", "--mlr-limit=1", "--mlr-resume", code=4)
        assert "in use by another session" in out
        assert bench.calls == []
    finally:
        lay(bench.path, {"calls.go": ""})
        told, _ = first.communicate(timeout=60)
    assert first.returncode == 0, told
    assert verdicts(bench) == {TASKS[0]: "pass"}


@pytest.mark.slow
def test_a_run_by_workers_can_be_resumed_without_and_the_other_way_round(bench: Bench) -> None:
    bench.run("--mlr-limit=3", "-n", "2", "--junitxml=first.xml")
    bench.run("--mlr-limit=3", "--mlr-resume", "--junitxml=second.xml")
    assert bench.calls == []
    assert junit(bench.path / "first.xml") == junit(bench.path / "second.xml")
