"""``replay:``: stored output, of a run of ours or as it was published, is judged offline."""

from __future__ import annotations

import os
import re
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from builders import lay

from pytest_mlrbench.layout import PublishedLayout
from pytest_mlrbench.resources import shipped
from pytest_mlrbench.run.folder import RunFolder
from pytest_mlrbench.run.result import CaseResult
from pytest_mlrbench.suites.loading import load_suite

TASKS = tuple(task.id for task in load_suite("mini").tasks)
#: Plugins that child sessions need not load, or that would shuffle them.
WITHOUT = ("-p", "no:randomly", "-p", "no:hypothesispytest", "-p", "no:asyncio")
#: One task each: nothing, a crash, no text, a bare idea, a fuller one, and files around it.
AGENT = """
echo "$MLR_TASK_ID" >> "$CALLS"
case $MLR_TASK_ID in
calibration_digits) ;;
conformal_diabetes) echo '# Left before the crash' > idea.md; echo my last words; exit 3 ;;
curriculum_digits) printf 'a\\0b' > idea.md ;;
feature_stability_cancer) echo 'An idea' > idea.md ;;
label_noise_wine) cat "$IDEA" > idea.md ;;
*) mkdir -p a/b; echo x > "a/b/two
lines"; : > a/empty; ln -s idea.md link; ln -s /etc/passwd out; echo '# An idea' > idea.md ;;
esac
"""


class Bench:
    """A repository, and its runs in the order they were made."""

    def __init__(self, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
        self._pytester = pytester
        self.path = pytester.path
        self.calls = self.path / "calls"
        lay(self.path, {"agent.sh": AGENT, "calls": "", "pytest.ini": "[pytest]\n"})
        monkeypatch.setenv("CALLS", str(self.calls))
        inputs = shipped("benchmarks") / "suites" / "mini" / "inputs"
        monkeypatch.setenv("IDEA", str(inputs / "label_noise_wine" / "idea.md"))

    def run(self, *options: str, code: int = 1) -> str:
        """Run pytest; *code* is the exit code it must have. Return what it printed."""
        given = {option.partition("=")[0] for option in options}
        default = {"--mlr-stage": "idea", "--mlr-threshold": "overall>=3"}
        self.calls.write_text("")
        found, out = self.start(
            *(f"{name}={value}" for name, value in default.items() if name not in given),
            "--junitxml=junit.xml",
            *options,
        )
        assert found == code, out
        assert "INTERNALERROR" not in out
        assert "Traceback" not in out
        return out

    def start(self, *options: str) -> tuple[int, str]:
        """Run pytest with *options* only; return its exit code and what it printed."""
        done = self._pytester.runpytest_inprocess(*WITHOUT, *options)
        return int(done.ret), done.stdout.str() + done.stderr.str()

    @property
    def runs(self) -> list[Path]:
        return sorted(path.parent for path in self.path.glob(".mlrbench/runs/*/run.json"))

    @property
    def results(self) -> dict[str, CaseResult]:
        """Case → result, of the last run."""
        return RunFolder(self.runs[-1]).results()

    @property
    def properties(self) -> dict[str, dict[str, str]]:
        """Case → properties in the JUnit report."""
        found = [
            {p.attrib["name"]: p.attrib["value"] for p in case.iter("property")}
            for case in ET.parse(self.path / "junit.xml").iter("testcase")
        ]
        return {properties["mlr.case"]: properties for properties in found}

    def original(self, *options: str) -> Path:
        """Run the agent; return the run's folder."""
        self.run("--mlr-agent=cmd:sh agent.sh", *options)
        return self.runs[-1]


@pytest.fixture
def bench(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Bench:
    return Bench(pytester, monkeypatch)


def measured(properties: dict[str, dict[str, str]]) -> dict[str, dict[str, str]]:
    """What was measured: verdicts, faults and scores, not by whom, when and where."""
    other = (
        "mlr.agent",
        "mlr.author",
        "mlr.sandbox",
        "mlr.seconds",
        "mlr.artifacts",
        "mlr.judge.checklist.spec",
    )
    return {
        case: {name: value for name, value in found.items() if not name.startswith(other)}
        for case, found in properties.items()
    }


# Runs of ours


def test_the_original_has_faults_and_scores_of_several_kinds(bench: Bench) -> None:
    bench.original()
    causes = [result.fault and result.fault.cause for result in bench.results.values()]
    assert causes == ["no_output", "crash", "unusable_output", None, None, None]
    scores = {result.overall for result in bench.results.values() if result.overall}
    assert len(scores) > 1
    assert {result.verdict for result in bench.results.values()} == {"pass", "fail"}


@pytest.mark.parametrize("judge", ["checklist", "replay"])
def test_a_replay_gives_the_same_scores_without_the_agent(bench: Bench, judge: str) -> None:
    run = bench.original()
    first, before = bench.properties, bench.results
    judged = f"replay:{run}" if judge == "replay" else judge
    bench.run(f"--mlr-agent=replay:{run}", f"--mlr-judge={judged}")
    assert bench.calls.read_text() == ""
    assert len(bench.runs) == 2
    if judge == "checklist":
        assert measured(bench.properties) == measured(first)
        # What differs is said: who made the work, and that no command has run.
        told = [case.keys() - first[name].keys() for name, case in bench.properties.items()]
        assert told == [{"mlr.author"}] * 6
        assert {case["mlr.author"] for case in bench.properties.values()} == {"cmd:sh agent.sh"}
    again = bench.results
    assert {name: result.fault for name, result in again.items()} == {
        name: result.fault for name, result in before.items()
    }
    if judge == "replay":
        scored = {name for name, result in before.items() if result.overall is not None}
        assert {n for n, result in again.items() if result.overall is not None} == scored
    for name, result in again.items():
        assert result.overall == before[name].overall
        assert result.scores == before[name].scores
        assert result.agent == f"replay:{run}"


def test_a_replay_of_a_replay_gives_the_same_scores(bench: Bench) -> None:
    run = bench.original()
    first = measured(bench.properties)
    for _ in range(2):
        bench.run(f"--mlr-agent=replay:{run}")
        run = bench.runs[-1]
    assert measured(bench.properties) == first


def test_a_recorded_fault_is_the_same_fault_again(bench: Bench) -> None:
    """Also where there are files that could be judged: the agent left them and crashed."""
    run = bench.original()
    bench.run(f"--mlr-agent=replay:{run}", f"--mlr-tasks={TASKS[1]}")
    (result,) = bench.results.values()
    assert result.verdict == "fail"
    assert result.fault is not None
    assert (result.fault.blame, result.fault.cause) == ("agent", "crash")
    assert "my last words" in result.fault.message


def test_a_replay_needs_no_agent_and_not_even_its_program(bench: Bench) -> None:
    run = bench.original()
    (bench.path / "agent.sh").unlink()
    bench.run(f"--mlr-agent=replay:{run}")


def test_a_replay_is_judged_by_other_thresholds(bench: Bench) -> None:
    run = bench.original()
    bench.run(f"--mlr-agent=replay:{run}", "--mlr-threshold=overall<=1")
    assert {result.verdict for result in bench.results.values()} == {"fail"}
    chosen = f"--mlr-tasks={','.join(TASKS[3:])}"
    bench.run(f"--mlr-agent=replay:{run}", chosen, "--mlr-threshold=overall>=1", code=0)


def test_a_replay_leaves_its_source_as_it_was(bench: Bench) -> None:
    run = bench.original()
    before = {path: path.stat().st_mtime_ns for path in run.rglob("*")}
    bench.run(f"--mlr-agent=replay:{run}", f"--mlr-judge=replay:{run}")
    assert {path: path.stat().st_mtime_ns for path in run.rglob("*")} == before


def test_a_case_that_is_not_in_it_is_not_measured(bench: Bench) -> None:
    run = bench.original(f"--mlr-tasks={TASKS[3]},{TASKS[4]}")
    out = bench.run(f"--mlr-agent=replay:{run}")
    missing = {
        result.task
        for result in bench.results.values()
        if result.fault and result.fault.cause == "not_in_replay"
    }
    assert missing == {*TASKS[:3], TASKS[5]}
    assert {bench.results[f"mini/idea/{task}/r1"].verdict for task in missing} == {"not_measured"}
    assert "4 not in replay" in out
    assert "2/6" in out


def test_repeats_are_replayed_each_by_its_own(bench: Bench) -> None:
    lay(bench.path, {"agent.sh": 'echo "# Idea $MLR_REPEAT" > idea.md\n'})
    run = bench.original("--mlr-repeats=2", "--mlr-limit=1", "--mlr-threshold=overall>=10")
    bench.run(f"--mlr-agent=replay:{run}", "--mlr-repeats=3", "--mlr-limit=1")
    ideas = sorted(bench.runs[-1].glob("cases/*/*/r*/submission/idea.md"))
    assert [path.read_text() for path in ideas] == ["# Idea 1\n", "# Idea 2\n"]
    assert [result.verdict for result in bench.results.values()][2] == "not_measured"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--mlr-agent=replay:{run}", f"--mlr-tasks={TASKS[0]}"), "has none of the selected cases"),
        (("--mlr-agent=replay:{run}", "--mlr-stage=proposal"), "has none of the selected cases"),
        (("--mlr-agent=replay:{run}#codex",), "holds one agent"),
        (("--mlr-agent=replay:{run}/nothing",), "there is no folder"),
        (("--mlr-agent=replay:{run}/cases",), "neither a run folder nor"),
    ],
    ids=["tasks", "stage", "system", "no folder", "another folder"],
)
def test_a_replay_of_nothing_is_refused(bench: Bench, options: tuple[str, ...], words: str) -> None:
    run = bench.original(f"--mlr-tasks={TASKS[1]},{TASKS[3]}")
    out = bench.run(*(option.replace("{run}", str(run)) for option in options), code=4)
    assert words in out
    assert bench.runs == [run]


def test_a_relative_folder(bench: Bench) -> None:
    run = bench.original()
    before = measured(bench.properties)
    bench.run(f"--mlr-agent=replay:{run.relative_to(bench.path)}")
    assert measured(bench.properties) == before


def test_a_resumed_replay_is_not_laid_out_again(bench: Bench) -> None:
    run = bench.original()
    bench.run(f"--mlr-agent=replay:{run}")
    first = bench.properties
    out = bench.run(f"--mlr-agent=replay:{run}", "--mlr-resume")
    assert re.search(r"6 of (the )?6 cases", out)
    assert measured(first) == {
        case: {k: v for k, v in found.items() if k != "mlr.resumed"} | {"mlr.resumed": "False"}
        for case, found in measured(bench.properties).items()
    }


# What was published

DATA = os.environ.get("MLRBENCH_DATA", "")
published = pytest.mark.skipif(
    not DATA, reason="set MLRBENCH_DATA to a folder with mlrbench/, the published data"
)


@published
@pytest.mark.slow
def test_the_published_ideas_by_their_published_judges(bench: Bench) -> None:
    out = bench.run(
        "--mlr-suite=mlrbench",
        f"--mlr-agent=replay:{DATA}/mlrbench#o4-mini-2025-04-16",
        f"--mlr-judge=replay:{DATA}/mlrbench",
    )
    verdicts = [result.verdict for result in bench.results.values()]
    scored = [result for result in bench.results.values() if result.overall is not None]
    assert (len(verdicts), len(scored), verdicts.count("not_measured")) == (201, 103, 98)
    assert "103/201" in out
    assert "98 not in replay" in out
    causes = {r.fault.cause for r in bench.results.values() if r.fault}
    assert causes == {"not_in_replay"}
    suite = ET.parse(bench.path / "junit.xml").find("testsuite")
    assert suite is not None
    assert (suite.attrib["tests"], suite.attrib["errors"]) == ("201", "98")


def _systems() -> list[str]:
    return list(PublishedLayout(Path(DATA, "mlrbench")).systems()) if DATA else ["none"]


@published
@pytest.mark.parametrize("judge", ["replay", "checklist"])
@pytest.mark.parametrize("stage", ["experiment", "paper", "end_to_end"])
@pytest.mark.slow
def test_the_stored_systems(bench: Bench, stage: str, judge: str) -> None:
    """Whatever is stored of them is judged, or named as what is missing."""
    judged = f"replay:{DATA}/mlrbench" if judge == "replay" else judge
    seen = 0
    for system in _systems():
        before = len(bench.runs)
        options = (
            f"--mlr-stage={stage}",
            "--mlr-suite=mlrbench-10",
            f"--mlr-agent=replay:{DATA}/mlrbench#{system}",
            f"--mlr-judge={judged}",
        )
        code, out = bench.start(*options)
        assert code in (0, 1, 4), out
        assert "INTERNALERROR" not in out
        if code == 4:
            assert "has none of the selected cases" in out or "has no review by" in out
            assert len(bench.runs) == before
            continue
        seen += 1
        results = bench.results
        assert len(results) == 10
        causes = {r.fault.cause for r in results.values() if r.fault}
        assert causes <= {"not_in_replay", "no_review", "unusable_output", "no_output"}, out
        assert any(result.overall is not None for result in results.values()), out
    assert seen > 0
