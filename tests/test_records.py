"""What a run leaves: JUnit, JSON, the terminal; the same by every road, and all of it true."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

import pytest

from pytest_mlrbench.report.document import Report

if TYPE_CHECKING:
    from conftest import Repository

MODULE = "from pytest_mlrbench.stage_tests import *\n"
#: Of three ideas one is scored, one finds the judge out, and one is never written.
MIXED = """
import pytest
from pytest_mlrbench.errors import SystemFault
from pytest_mlrbench.judges.review import Answer, OverallScored, Scored
from pytest_mlrbench.suites.rubrics import rubric

def answer(case):
    if case.task_id != "curriculum_digits":
        (case.workspace / "idea.md").write_text("An idea.")

class Judge:
    id, spec, digest = "anna", "mine", "1"

    def rubric(self, stage):
        return rubric(stage)

    def prepare(self, agent, cases):
        pass

    async def review(self, work):
        if work.case.task.id == "conformal_diabetes":
            raise SystemFault("no_answer", "anna is out.")
        names = rubric(work.case.stage).names(work.case.stage)
        return Answer(
            dimensions={name: Scored(score=3) for name in names}, overall=OverallScored(score=3)
        )

@pytest.fixture(scope="session")
def mlr_agent():
    return answer

@pytest.fixture(scope="session")
def mlr_judges():
    return [Judge()]
"""
Record = dict[str, str]


def mixed(repo: Repository, *args: str) -> pytest.RunResult:
    """One case below the threshold, one not measured, one without output."""
    repo.lay({"test_research.py": MODULE, "conftest.py": MIXED})
    who = ("--mlr-agent=fixture", "--mlr-judge=fixture")
    return repo.run("--mlr-stage=idea", "--mlr-limit=3", *who, *args, ".")


def cases_in(repo: Repository, name: str = "report.xml") -> dict[str, ET.Element]:
    """The test cases of a JUnit report by their property ``mlr.case``."""
    return {properties(case)["mlr.case"]: case for case in _root(repo, name).iter("testcase")}


def _root(repo: Repository, name: str) -> ET.Element:
    return ET.parse(repo.path / name).getroot()


def properties(case: ET.Element) -> Record:
    return {p.attrib["name"]: p.attrib["value"] for p in case.iter("property")}


def lasting(case: ET.Element) -> Record:
    """The properties that say what was measured, not where and how fast."""
    varies = ("mlr.seconds.agent", "mlr.seconds.judge", "mlr.artifacts")
    return {name: value for name, value in properties(case).items() if name not in varies}


# The published figures


@pytest.mark.parametrize(
    ("system", "mean", "claude", "gemini"),
    [("claude-code", 4.95, 6.90, 3.00), ("codex", 4.95, 5.20, 4.70)],
)
def test_the_published_means_of_the_experiments(
    repo: Repository, system: str, mean: float, claude: float, gemini: float
) -> None:
    result = repo.measure(f"--mlr-agent=published:{system}", "--tb=no")
    (summary,) = repo.report.summary
    assert summary.overall_mean == pytest.approx(mean)
    judges = {name: judge.overall_mean for name, judge in summary.judges.items()}
    assert judges == pytest.approx({"claude-3-7-sonnet": claude, "gemini-2-5-pro": gemini})
    result.stdout.fnmatch_lines(
        [
            f"experiment  10/10 * {mean:.2f} *",
            f"*claude-3-7-sonnet {claude:.2f} (n=10), gemini-2-5-pro {gemini:.2f} (n=10)",
        ]
    )


@pytest.mark.parametrize(
    ("system", "mean"),
    [("claude-code", 4.70), ("gemini-cli", 4.60), ("codex", 3.10), ("ai-scientist-v2", 4.25)],
)
def test_the_published_means_of_end_to_end(repo: Repository, system: str, mean: float) -> None:
    result = repo.measure("--mlr-stage=end_to_end", f"--mlr-agent=published:{system}", "--tb=no")
    result.stdout.fnmatch_lines([f"end_to_end  10/10 * {mean:.2f} *"])
    assert repo.report.summary[0].overall_mean == pytest.approx(mean)


# JUnit


def test_the_properties_are_the_same_serially_and_under_workers(repo: Repository) -> None:
    repo.measure("--junitxml=serial.xml")
    repo.measure("--junitxml=workers.xml", "-n2")
    serial, workers = cases_in(repo, "serial.xml"), cases_in(repo, "workers.xml")
    assert len(serial) == 10
    assert {name: lasting(case) for name, case in serial.items()} == {
        name: lasting(case) for name, case in workers.items()
    }
    for name, case in serial.items():
        assert case.attrib["name"] == workers[name].attrib["name"]
        assert case.attrib["classname"] == workers[name].attrib["classname"]


def test_a_property_carries_each_score(repo: Repository) -> None:
    repo.measure("--junitxml=report.xml", "-k", "wsl")
    (case,) = cases_in(repo).values()
    found = properties(case)
    assert found["mlr.case"] == "mlrbench-10/experiment/iclr2025_wsl/r1"
    assert (found["mlr.overall"], found["mlr.verdict"]) == ("4.0", "fail")
    assert found["mlr.judge.claude-3-7-sonnet.overall"] == "5"
    assert found["mlr.judge.gemini-2-5-pro.overall"] == "3"
    assert found["mlr.judges.spread"] == "2.0"
    assert found["mlr.score.soundness"] == "5.5"
    assert found["mlr.threshold"] == "overall>=6.0"
    assert "mlr.blame" not in found


def test_not_measured_is_an_error_and_failed_is_a_failure(repo: Repository) -> None:
    mixed(repo, "--junitxml=report.xml").assert_outcomes(failed=2, errors=1)
    tags = {
        properties(case)["mlr.task"]: [child.tag for child in case if child.tag != "properties"]
        for case in cases_in(repo).values()
    }
    assert tags == {
        "calibration_digits": ["failure"],
        "conformal_diabetes": ["error"],
        "curriculum_digits": ["failure"],
    }
    suite = _root(repo, "report.xml").find("testsuite")
    assert suite is not None
    counts = {name: suite.attrib[name] for name in ("tests", "failures", "errors", "skipped")}
    assert counts == {"tests": "3", "failures": "2", "errors": "1", "skipped": "0"}


def test_what_was_not_scored_has_no_number(repo: Repository) -> None:
    mixed(repo, "--junitxml=report.xml")
    for name, blame, cause in (
        ("mini/idea/conformal_diabetes/r1", "system", "no_answer"),
        ("mini/idea/curriculum_digits/r1", "agent", "no_output"),
    ):
        found = properties(cases_in(repo)[name])
        assert (found["mlr.blame"], found["mlr.cause"]) == (blame, cause)
        assert not [key for key in found if "overall" in key or ".score." in key]


@pytest.mark.parametrize("family", ["xunit1", "xunit2"])
def test_the_report_is_written_without_a_warning(repo: Repository, family: str) -> None:
    result = repo.measure("--junitxml=report.xml", "-o", f"junit_family={family}")
    result.assert_outcomes(passed=4, failed=6, warnings=0)
    assert len(cases_in(repo)) == 10


# Terminal


def test_the_status_of_a_test_is_its_score(repo: Repository) -> None:
    result = repo.measure("-v", "-k", "wsl or scsl")
    result.stdout.fnmatch_lines(
        ["*test_experiment?iclr2025_scsl? PASSED 6.5/10 *", "*?iclr2025_wsl? FAILED 4.0/10 *"]
    )


def test_the_status_of_a_test_without_a_score_is_its_cause(repo: Repository) -> None:
    mixed(repo, "-v").stdout.fnmatch_lines(
        [
            "*?calibration_digits? FAILED 3.0/10 *",
            "*?conformal_diabetes? ERROR not measured (no answer) *",
            "*?curriculum_digits? FAILED no output *",
        ]
    )


def test_letters_stand_for_pass_fail_and_error(repo: Repository) -> None:
    mixed(repo).stdout.fnmatch_lines(["test_research.py FEF *"])


@pytest.mark.parametrize("style", ["auto", "long", "short", "native"])
def test_a_failure_is_a_table_and_no_traceback(repo: Repository, style: str) -> None:
    result = repo.measure("-k", "wsl", f"--tb={style}", "-l")
    result.stdout.fnmatch_lines(
        [
            "*test_experiment?iclr2025_wsl?*",
            "4.0/10, missed overall>=6.0",
            "",
            " * claude-3-7-sonnet  gemini-2-5-pro  mean",
            "consistency *",
            "overall * 5 * 3   4.0  < missed overall>=6.0",
            "see .mlrbench/runs/*/cases/experiment/iclr2025_wsl/r1",
        ]
    )
    for word in ("Traceback", "mlr_result =", "CaseFailed", "verdict.py", "assert_passed"):
        result.stdout.no_fnmatch_line(f"*{word}*")


def test_an_unmeasured_case_is_told_in_its_own_words(repo: Repository) -> None:
    result = mixed(repo)
    result.stdout.fnmatch_lines(["not measured (no answer): judge anna: anna is out."])
    for word in ("Traceback", "NotMeasured", "fixtures.py", "SystemFault"):
        result.stdout.no_fnmatch_line(f"*{word}*")


def test_the_header_says_what_is_measured_and_of_how_much(repo: Repository) -> None:
    repo.measure().stdout.fnmatch_lines(
        [
            "mlrbench: suite mlrbench-10 (10 of the 201 tasks of MLR-Bench) · experiment"
            " · agent published:codex · judges claude-3-7-sonnet, gemini-2-5-pro",
            "mlrbench: thresholds: overall>=6.0",
            "mlrbench: run folder .mlrbench/runs/*",
        ]
    )


def test_a_selection_of_the_suite_is_a_smaller_share(repo: Repository) -> None:
    repo.measure("--mlr-limit=3").stdout.fnmatch_lines(
        ["mlrbench: suite mlrbench-10 (3 of the 201 tasks of MLR-Bench) *", "*: 3 of the 201 *"]
    )


def test_the_summary_has_a_denominator_for_every_number(repo: Repository) -> None:
    mixed(repo).stdout.fnmatch_lines(
        [
            "agent fixture:conftest:answer on suite mini: 3 of 6 tasks, not part of MLR-Bench",
            "stage  scored  passed  failed  not measured  overall mean  spread of judges",
            "idea   1/3     0       2       1             3.00          -",
            "  idea failed by how they ended: 1 no output",
            "  idea not measured: 1 no answer",
        ]
    )


def test_thresholds_that_replace_the_default_are_said_aloud(repo: Repository) -> None:
    result = repo.measure("--mlr-threshold=overall>=4.5", "--mlr-threshold=soundness>=7")
    result.stdout.fnmatch_lines(
        ["mlrbench: thresholds (in place of overall>=6.0): overall>=4.5, soundness>=7.0"]
    )


def test_a_threshold_is_listed_where_it_applies(repo: Repository) -> None:
    options = ("--mlr-stage=experiment,end_to_end", "--mlr-threshold=insightfulness>=4")
    repo.measure(*options, "--collect-only").stdout.fnmatch_lines(
        ["mlrbench: thresholds *: insightfulness>=4.0 in experiment; none in end_to_end"]
    )


def test_only_the_demonstration_calls_itself_one(repo: Repository) -> None:
    demo = repo.spawn("--mlr-stage=idea", "--mlr-limit=1")
    demo.stdout.fnmatch_lines(["mlrbench: suite mini * DEMO", "DEMO: * no result on MLR-Bench."])
    assert repo.report.run.demo
    assert "DEMO" not in repo.measure().stdout.str()
    assert not repo.report.run.demo


# JSON


@pytest.mark.parametrize(
    "workers", [(), pytest.param(("-n2",), marks=pytest.mark.slow)], ids=["serial", "workers"]
)
def test_the_json_report_holds_what_the_run_folder_holds(
    repo: Repository, workers: tuple[str, ...]
) -> None:
    result = repo.measure("--mlr-json=reports/mlr.json", *workers)
    result.stdout.fnmatch_lines([f"JSON report: {repo.path}/reports/mlr.json"])
    report = Report.model_validate_json((repo.path / "reports/mlr.json").read_bytes())
    assert report == repo.report
    assert [case.case for case in report.cases] == sorted(case.case for case in report.cases)
    assert (len(report.cases), report.not_run) == (10, ())


def test_the_json_report_names_the_cases_that_were_not_run(repo: Repository) -> None:
    repo.measure("--mlr-json=mlr.json", "-x")
    report = Report.model_validate_json((repo.path / "mlr.json").read_bytes())
    assert (len(report.cases), len(report.not_run)) == (1, 9)


# Warnings


@pytest.mark.parametrize(
    "workers", [(), pytest.param(("-n2",), marks=pytest.mark.slow)], ids=["serial", "workers"]
)
def test_a_run_gives_no_warning(repo: Repository, workers: tuple[str, ...]) -> None:
    result = repo.spawn(
        "-W", "error", "--mlr-stage=idea", "--mlr-limit=2", "--mlr-threshold=overall>=1", *workers
    )
    result.assert_outcomes(passed=2)
    assert "Warning" not in result.stdout.str() + result.stderr.str()


def test_the_run_id_of_the_header_is_that_of_the_folder(repo: Repository) -> None:
    match = re.search(r"run folder \.mlrbench/runs/(\S+)", repo.measure().stdout.str())
    assert match
    assert [match[1]] == [run.run_id for run in repo.runs]
