"""What was not measured is never green, whoever tries to get past a verdict, and how."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from test_user_module import FUNCTION, HEAD, JUDGES, MODULE, OURS

from pytest_mlrbench.report.junit import junit

if TYPE_CHECKING:
    from conftest import Repository

JUDGED = (*OURS, "--mlr-judge=fixture", ".")
HOOK = """
def pytest_collection_modifyitems(items):
    for item in items:
        item.add_marker(pytest.mark.{mark})
"""


AGAIN = """
@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item, nextitem):
    from _pytest.runner import runtestprotocol
    for _ in range(2):
        if hasattr(item, "_initrequest"):
            item._initrequest()
        runtestprotocol(item, nextitem=nextitem)
    return True
"""


def lay(repo: Repository, *parts: str) -> None:
    repo.lay({"test_research.py": MODULE, "conftest.py": HEAD + "".join(parts)})


def judge_that(does: str) -> str:
    return JUDGES.replace("assert (work", f"{does}\n        assert (work")


@pytest.mark.parametrize(
    ("does", "cause"),
    [
        ("pytest.skip('no key')", "internal"),
        ("pytest.xfail('known')", "internal"),
        ("pytest.exit('enough', returncode=0)", "internal"),
        ("raise SystemExit(0)", "internal"),
        ("raise asyncio.CancelledError", "internal"),
        ("return Answer.model_construct(dimensions={}, overall=None)", "internal"),
        ("await asyncio.sleep(60)", "timeout"),
    ],
)
def test_a_judge_that_backs_out_leaves_the_case_unmeasured(
    repo: Repository, monkeypatch: pytest.MonkeyPatch, does: str, cause: str
) -> None:
    monkeypatch.setattr("pytest_mlrbench.run.judging.PATIENCE", 0.3)
    lay(repo, FUNCTION, judge_that(does))
    result = repo.run(*JUDGED)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.assert_outcomes(errors=2)
    assert repo.report.summary[0].not_measured_causes == {cause: 2}


@pytest.mark.parametrize(
    "workers", [(), pytest.param(("-n2",), marks=pytest.mark.slow)], ids=["serial", "workers"]
)
@pytest.mark.parametrize("mark", ["skip", "xfail(run=False)"])
def test_a_mark_does_not_make_unmeasured_cases_green(
    repo: Repository, mark: str, workers: tuple[str, ...]
) -> None:
    lay(repo, FUNCTION, HOOK.format(mark=mark))
    result = repo.spawn(*OURS, *workers, ".")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["exit 1: 2 of the 2 cases of this session are not measured"])


def test_a_fixture_that_skips_is_not_green(repo: Repository) -> None:
    lay(repo, FUNCTION.replace("return answer", "pytest.importorskip('nothing_like_this')"))
    assert repo.run(*OURS, ".").ret == pytest.ExitCode.TESTS_FAILED


@pytest.mark.parametrize("name", ["anna", "../../anna", "A", ""])
def test_two_judges_of_one_id_or_an_odd_one_are_refused(repo: Repository, name: str) -> None:
    lay(repo, FUNCTION, JUDGES.replace('"ben"', repr(name)))
    result = repo.run(*JUDGED)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines([f"*a judge with the id {name!r}: ids are small letters,*"])
    assert repo.report.cases == ()


@pytest.mark.slow
def test_a_case_collected_twice_is_refused_by_workers_too(repo: Repository) -> None:
    repo.lay({"test_research.py": MODULE})
    result = repo.measure("test_research.py", "test_mlr_experiment.py", "-n2")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: case mlrbench-10/experiment/* is collected twice, as *"])
    assert repo.runs == []


def test_a_test_that_is_run_again_does_not_roll_the_dice_again(repo: Repository) -> None:
    """As by a plugin for flaky tests."""
    counting = FUNCTION.replace("write(case", "print('answering'); write(case")
    lay(repo, counting, AGAIN)
    result = repo.run(*OURS, "-s", ".")
    assert result.stdout.str().count("answering") == 2
    assert {case.attempts for case in repo.report.cases} == {1}


def test_all_reports_judge_by_the_thresholds_of_the_last_session(repo: Repository) -> None:
    repo.measure("--mlr-threshold=overall>=1")
    repo.measure("--mlr-threshold=overall>=9", "--mlr-resume", "-k", "wsl", "--mlr-json=r.json")
    assert repo.report.summary[0].failed == 10
    assert junit(repo.runs[-1], repo.report).count("<failure") == 10


def test_scores_of_two_panels_are_told(repo: Repository) -> None:
    lay(repo, FUNCTION, JUDGES)
    repo.run(*JUDGED)
    lay(repo, FUNCTION, JUDGES.replace('digest = "1"', 'digest = "2"'))
    result = repo.run(*JUDGED, "--mlr-resume", "-k", "calibration")
    result.stdout.fnmatch_lines(["  MIXED: scores by 2 different panels; *"])


@pytest.mark.parametrize("place", [".", "test_research.py/r.json"])
def test_a_json_report_that_cannot_be_written_is_refused_before_the_run(
    repo: Repository, place: str
) -> None:
    lay(repo, FUNCTION)
    result = repo.run(*OURS, f"--mlr-json={place}", ".")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert repo.runs == []


@pytest.mark.parametrize("option", ["--fixtures", "--fixtures-per-test"])
def test_looking_at_fixtures_is_no_run(repo: Repository, option: str) -> None:
    repo.measure(option)
    assert repo.runs == []


def test_output_that_was_changed_is_not_replayed(repo: Repository) -> None:
    lay(repo, FUNCTION)
    repo.run(*OURS, ".")
    stored = repo.runs[-1].path
    path = next(stored.glob("cases/idea/calibration_digits/r1/submission/idea.md"))
    path.write_text("# A better idea\n")
    repo.lay({"conftest.py": ""})
    repo.run("--mlr-stage=idea", "--mlr-limit=2", f"--mlr-agent=replay:{stored}")
    assert repo.report.summary[0].not_measured_causes == {"not_in_replay": 1}


def test_a_run_that_cannot_be_read_is_not_resumed(repo: Repository) -> None:
    repo.measure("-k", "wsl")
    (repo.runs[-1].path / "run.json").write_text("{}")
    result = repo.measure("--mlr-resume")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*was not written by this version: leave out --mlr-resume."])


def test_a_damaged_selection_is_said_and_not_taken_for_an_empty_one(repo: Repository) -> None:
    repo.measure("-k", "wsl")
    (repo.runs[-1].path / "selection.json").write_text("")
    result = repo.measure("--mlr-resume")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*selection.json is damaged: start a new run."])


def test_a_changed_submission_is_noticed_whatever_version_wrote_the_record(
    repo: Repository,
) -> None:
    lay(repo, FUNCTION)
    repo.run(*OURS, ".")
    case = next(repo.runs[-1].path.glob("cases/idea/*/r1"))
    record = json.loads((case / "result.json").read_text())
    del record["submission_digest"], record["submission_stamp"]
    (case / "result.json").write_text(json.dumps(record))
    (case / "submission/idea.md").write_text("# Another idea\n")
    repo.run(*OURS, ".", "--mlr-resume").stdout.fnmatch_lines(["1 of the 2 cases * were reused"])


def test_only_the_cases_of_the_session_are_judged_anew(repo: Repository) -> None:
    repo.measure()
    records = list(repo.runs[-1].path.glob("cases/*/*/r1/result.json"))
    stamps = {path: path.stat().st_mtime_ns for path in records}
    repo.measure("--mlr-resume", "-k", "wsl", "--mlr-threshold=overall>=1")
    changed = {path.parts[-3] for path, stamp in stamps.items() if path.stat().st_mtime_ns != stamp}
    assert len(stamps) == 10
    assert changed == {"iclr2025_wsl"}


def test_a_test_that_is_run_again_has_each_property_once(repo: Repository) -> None:
    lay(repo, FUNCTION, AGAIN)
    repo.run(*OURS, ".", "--junitxml=out.xml")
    text = (repo.path / "out.xml").read_text()
    assert text.count('name="mlr.case"') == text.count("<testcase") > 0
    assert 'name="mlr.resumed" value="True"' not in text


def test_the_agents_of_a_mixed_run_are_told(repo: Repository) -> None:
    common = ("--mlr-stage=idea", "--mlr-limit=2")
    repo.run(*common, "--mlr-agent=null")
    result = repo.run(*common, "--mlr-agent=parrot", "--mlr-resume", "-k", "calibration")
    result.stdout.fnmatch_lines(["  MIXED: cases of 2 agents; *"])


def test_the_id_of_a_run_may_stand_behind_a_space(repo: Repository) -> None:
    repo.measure()
    first = repo.runs[-1].run_id
    repo.measure()
    result = repo.measure("--mlr-resume", first)
    result.stdout.fnmatch_lines([f"mlrbench: run folder *{first}, resumed", "10 of the 10 cases *"])
