"""The run folder: what was finished stays, whatever happens, and reports follow from it."""

from __future__ import annotations

import gc
import json
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any
from xml.etree import ElementTree as ET

import pytest
from builders import NO_OUTPUT, NO_REVIEW, lay, make_result, make_run, one_sentence
from hypothesis import given
from hypothesis import strategies as st

from pytest_mlrbench.report.document import Report
from pytest_mlrbench.report.junit import junit
from pytest_mlrbench.run import folder as folder_module
from pytest_mlrbench.run.folder import RunFolder, read_model, write_json
from pytest_mlrbench.run.result import CaseResult, FaultRecord

HOSTILE = "\0 \x1b[31mred\x07 ]]> <x/> & \" ' \ufffe \U0001f600 \r\n\t é"
#: Takes the lock of the folder in argv[1] and keeps it until its input ends.
HOLDER = """
import sys
from pathlib import Path
from pytest_mlrbench.run.folder import RunFolder
folder = RunFolder(Path(sys.argv[1]))
folder.acquire(alone=True)
print("held", flush=True)
sys.stdin.read()
"""


def journal_of(folder: RunFolder) -> list[str]:
    return [line.case for line in folder.journal()]


def xml(folder: RunFolder) -> ET.Element:
    suite = ET.fromstring(junit(folder, Report.of(folder)).encode()).find("testsuite")
    assert suite is not None
    return suite


def counts(suite: ET.Element) -> dict[str, int]:
    return {key: int(suite.attrib[key]) for key in ("tests", "failures", "errors", "skipped")}


@contextmanager
def another_session_holds(folder: RunFolder) -> Iterator[IO[bytes]]:
    """Yield the input of that session: it ends when this is closed."""
    command = [sys.executable, "-c", HOLDER, str(folder.path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdin
        assert holder.stdout
        assert holder.stdout.readline() == b"held\n"
        yield holder.stdin


# Making and finding runs


def test_run_ids_sort_by_time_and_are_names_of_folders(tmp_path: Path) -> None:
    first, second = RunFolder.create(tmp_path), RunFolder.create(tmp_path)
    for folder in (first, second):
        assert re.fullmatch(r"\d{8}T\d{9}Z-[0-9a-f]{4}", folder.run_id)
        assert (folder.path / "cases").is_dir()
    assert first.run_id[:19] <= second.run_id[:19]
    assert first.path != second.path


def test_a_run_is_hidden_from_git(tmp_path: Path) -> None:
    RunFolder.create(tmp_path / "new" / "runs")
    assert "*" in (tmp_path / "new" / "runs" / ".gitignore").read_text("utf-8").splitlines()


def test_what_lay_in_the_folder_before_is_not_hidden_from_git(tmp_path: Path) -> None:
    """With ``--mlr-out=.`` git would else ignore the user's whole repository."""
    lay(tmp_path, {"paper.tex": "mine"})
    RunFolder.create(tmp_path)
    assert not (tmp_path / ".gitignore").exists()


def test_a_gitignore_that_is_there_is_kept(tmp_path: Path) -> None:
    lay(tmp_path, {".gitignore": "mine\n"})
    RunFolder.create(tmp_path)
    assert (tmp_path / ".gitignore").read_text("utf-8") == "mine\n"


def test_a_folder_that_cannot_be_made_is_one_sentence(tmp_path: Path) -> None:
    lay(tmp_path, {"file": ""})
    with one_sentence("--mlr-out", "cannot be written"):
        RunFolder.create(tmp_path / "file" / "runs")


def test_last_is_the_newest_run_that_has_begun(tmp_path: Path) -> None:
    for name in ("20250101T000000000Z-ffff", "20250301T000000000Z-0000"):
        lay(tmp_path / name, {"run.json": "{}"})
    lay(tmp_path / "20250401T000000000Z-0000", {"cases/.keep": ""})
    assert RunFolder.find(tmp_path, "last").run_id == "20250301T000000000Z-0000"


def test_a_run_is_found_by_its_id_and_by_its_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = make_run(tmp_path / "runs")
    monkeypatch.chdir(tmp_path)
    for name in (run.run_id, str(run.path), f"runs/{run.run_id}"):
        assert RunFolder.find(tmp_path / "runs", name).path == run.path


def test_last_without_any_run_says_to_leave_it_out(tmp_path: Path) -> None:
    with one_sentence("--mlr-resume", "no run in", "leave the option out"):
        RunFolder.find(tmp_path, "last")


@pytest.mark.parametrize("name", ["nope", "", "..", "tests/test_mlr.py"])
def test_an_unknown_run_is_refused(tmp_path: Path, name: str) -> None:
    make_run(tmp_path)
    with one_sentence("--mlr-resume", repr(name), "is no run in"):
        RunFolder.find(tmp_path, name)


# The journal


def test_the_journal_has_a_line_for_each_finished_case_in_their_order(tmp_path: Path) -> None:
    run = make_run(tmp_path, make_result("b"), make_result("a", fault=NO_REVIEW))
    lines = list(run.journal())
    assert [(line.case, line.verdict, line.overall) for line in lines] == [
        ("small/idea/b/r1", "pass", 7.0),
        ("small/idea/a/r1", "not_measured", None),
    ]


def test_a_run_that_has_just_begun_has_an_empty_journal(tmp_path: Path) -> None:
    assert list(RunFolder.create(tmp_path).journal()) == []


def test_a_journal_torn_anywhere_keeps_every_whole_line(tmp_path: Path) -> None:
    run = make_run(tmp_path, *(make_result(name) for name in "abc"))
    path = run.path / "journal.jsonl"
    whole = path.read_bytes()
    ends = [whole.index(line) + len(line) for line in whole.splitlines() if line]
    for size in range(0, len(whole), 7):
        path.write_bytes(whole[:size])
        assert len(journal_of(run)) == sum(end <= size for end in ends)


def test_a_case_finished_after_a_torn_line_is_in_the_journal(tmp_path: Path) -> None:
    run = make_run(tmp_path, make_result("a"))
    with (run.path / "journal.jsonl").open("a") as file:
        file.write('{"time": "2025-01-01T00:0')
    run.record(make_result("b"))
    assert journal_of(run) == ["small/idea/a/r1", "small/idea/b/r1"]


# Results


def test_a_session_adds_its_selection_to_that_of_the_run(tmp_path: Path) -> None:
    run = make_run(tmp_path, *(make_result(name) for name in "ab"))
    run.select({"small/idea/x/r1": "test", "small/idea/a/r1": "moved"})
    assert list(run.selection()) == ["small/idea/a/r1", "small/idea/b/r1", "small/idea/x/r1"]
    assert run.selection()["small/idea/a/r1"] == "moved"
    assert list(run.results()) == ["small/idea/a/r1", "small/idea/b/r1"]


def test_before_anything_is_selected_there_are_no_results(tmp_path: Path) -> None:
    run = RunFolder.create(tmp_path)
    run.record(make_result())
    assert run.selection() == {}
    assert run.results() == {}


def test_a_result_is_read_back_the_same(tmp_path: Path) -> None:
    result = make_result(judges={"anna": 7, "ben": 4})
    assert make_run(tmp_path, result).results() == {result.case: result}


@pytest.mark.parametrize(
    "content", ["", "{", "[]", '{"case": "x"}', "\x00"], ids=["empty", "cut", "list", "old", "nul"]
)
def test_a_result_this_version_cannot_read_is_no_result(tmp_path: Path, content: str) -> None:
    result = make_result()
    run = make_run(tmp_path, result)
    lay(run.path, {f"{result.artifacts}/result.json": content})
    assert run.results() == {}
    assert Report.of(run).not_run == (result.case,)


def test_every_repeat_has_a_result_of_its_own(tmp_path: Path) -> None:
    results = [make_result(repeat=n, judges={"anna": n}) for n in (1, 2, 3)]
    assert [r.overall for r in make_run(tmp_path, *results).results().values()] == [1, 2, 3]


def test_a_result_of_another_suite_is_not_taken_for_one_of_this(tmp_path: Path) -> None:
    """Resumed with another suite that has a task of the same id, and killed at once."""
    run = make_run(tmp_path, make_result())
    run.select({"other/idea/alpha/r1": "test"})
    assert list(run.results()) == ["small/idea/alpha/r1"]


def test_text_that_is_no_text_can_be_recorded(tmp_path: Path) -> None:
    """A message may hold half a character: a file name or output that is not UTF-8."""
    fault = FaultRecord(blame="agent", cause="crash", message="cannot open caf\udce9.csv")
    (result,) = make_run(tmp_path, make_result(fault=fault)).results().values()
    assert result.fault is not None
    assert result.fault.message.startswith("cannot open caf")


# Writing


def test_a_file_is_the_old_one_until_the_new_one_is_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, write = tmp_path / "result.json", Path.write_text
    write_json(path, make_result(judges={"anna": 3}))

    def full_disk(self: Path, text: str, *rest: Any) -> int:
        write(self, text[:40], *rest)
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_text", full_disk)
    with pytest.raises(OSError, match="No space left"):
        write_json(path, make_result(judges={"anna": 9}))
    kept = read_model(path, CaseResult)
    assert kept is not None
    assert kept.overall == 3


def test_nothing_is_left_beside_a_written_file(tmp_path: Path) -> None:
    write_json(tmp_path / "new" / "result.json", make_result())
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["result.json"]


def test_a_case_that_is_run_again_keeps_all_its_earlier_attempts(tmp_path: Path) -> None:
    run = RunFolder.create(tmp_path)
    case = run.case_folder("idea", "alpha", 1)
    for attempt in ("first", "second", "third"):
        lay(case, {"submission/idea.md": attempt})
        run.supersede(case)
        assert not case.exists()
    aside = run.path / "superseded/idea/alpha/r1"
    kept = {p.name: (p / "submission/idea.md").read_text("utf-8") for p in aside.iterdir()}
    assert kept == {"1": "first", "2": "second", "3": "third"}
    assert run.attempts(case) == 4
    assert run.attempts(run.case_folder("idea", "alpha", 2)) == 1


# One session at a time


@pytest.mark.filterwarnings("ignore:unclosed file:ResourceWarning")
def test_a_second_session_is_refused_while_the_first_has_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = RunFolder.create(tmp_path)
    monkeypatch.setattr(folder_module, "LOCK_PATIENCE", 0.2)
    with another_session_holds(run), one_sentence(run.run_id, "in use by another session"):
        RunFolder(run.path).acquire(alone=True)
    gc.collect()


@pytest.mark.filterwarnings("ignore:unclosed file:ResourceWarning")
def test_workers_share_the_run_with_their_controller(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And have it as long as they live, though the controller ends before them."""
    run = RunFolder.create(tmp_path)
    monkeypatch.setattr(folder_module, "LOCK_PATIENCE", 0.2)
    with another_session_holds(run):
        worker = RunFolder(run.path)
        worker.acquire(alone=False)
    with one_sentence("in use by another session"):
        RunFolder(run.path).acquire(alone=True)
    worker.release()
    RunFolder(run.path).acquire(alone=True)
    gc.collect()


@pytest.mark.filterwarnings("ignore:unclosed file:ResourceWarning")
def test_a_session_waits_for_an_earlier_one_that_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = RunFolder.create(tmp_path)
    monkeypatch.setattr(folder_module, "LOCK_PATIENCE", 20.0)
    with another_session_holds(run) as session:
        threading.Timer(0.5, session.close).start()
        RunFolder(run.path).acquire(alone=True)
        assert session.closed
    gc.collect()


# Reports


def test_the_report_holds_all_of_the_newest_session(tmp_path: Path) -> None:
    b, a = make_result("b"), make_result("a", fault=NO_REVIEW)
    report = Report.of(make_run(tmp_path, b, a, not_run=["small/idea/c/r1"]))
    assert report.cases == (a, b)
    assert report.not_run == ("small/idea/c/r1",)
    (idea,) = report.summary
    assert (idea.selected, idea.passed, idea.not_measured) == (3, 1, 2)
    assert Report.model_validate_json(report.model_dump_json()) == report


@pytest.mark.parametrize("content", [None, "", "{}", '{"run": 1}'])
def test_a_folder_that_is_no_run_has_no_report(tmp_path: Path, content: str | None) -> None:
    if content is not None:
        lay(tmp_path, {"run.json": content})
    with one_sentence("is not a run folder this version can read"):
        Report.of(RunFolder(tmp_path))


def test_junit_tells_failures_from_errors(tmp_path: Path) -> None:
    run = make_run(
        tmp_path,
        make_result("a"),
        make_result("b", judges={"anna": 2}),
        make_result("c", fault=NO_OUTPUT),
        make_result("d", fault=NO_REVIEW),
        not_run=["small/idea/e/r1"],
    )
    suite = xml(run)
    assert counts(suite) == {"tests": 5, "failures": 2, "errors": 2, "skipped": 0}
    kinds = {
        case.attrib["name"]: [child.tag for child in case if child.tag != "properties"]
        for case in suite.iter("testcase")
    }
    assert kinds == {
        "test_idea[a]": [],
        "test_idea[b]": ["failure"],
        "test_idea[c]": ["failure"],
        "test_idea[d]": ["error"],
        "test_idea[e]": ["error"],
    }
    assert {case.attrib["classname"] for case in suite.iter("testcase")} == {
        "benchmarks.test_mlr_idea"
    }


def test_junit_carries_properties_times_and_the_reason(tmp_path: Path) -> None:
    result = make_result(judges={"anna": 2, "ben": 5})
    suite = xml(make_run(tmp_path, result))
    case = suite.find("testcase")
    assert case is not None
    properties = {p.attrib["name"]: p.attrib["value"] for p in case.iter("property")}
    assert properties["mlr.case"] == "small/idea/alpha/r1"
    assert properties["mlr.overall"] == "3.5"
    assert properties["mlr.judges.spread"] == "3.0"
    assert properties["mlr.artifacts"].endswith(f"/{result.artifacts}")
    assert case.attrib["time"] == suite.attrib["time"] == "2.500"
    failure = case.find("failure")
    assert failure is not None
    assert failure.attrib["message"] == "3.5/10, missed overall>=6.0"
    assert "clarity" in (failure.text or "")


@pytest.mark.parametrize("fault", [NO_OUTPUT, NO_REVIEW], ids=["agent", "system"])
def test_hostile_characters_in_a_message_survive(tmp_path: Path, fault: FaultRecord) -> None:
    result = make_result(
        fault=fault.model_copy(update={"message": HOSTILE}), agent=f"cmd:{HOSTILE}"
    )
    run = make_run(tmp_path, result)
    assert run.results() == {result.case: result}
    case = xml(run).find("testcase")
    assert case is not None
    (told,) = (child for child in case if child.tag != "properties")
    assert told.text is not None
    for kept in ("]]> <x/> & \" ' ", "\U0001f600", "é", "[31mred"):
        assert kept in told.text
    agent = next(p for p in case.iter("property") if p.attrib["name"] == "mlr.agent")
    assert agent.attrib["value"].endswith("\r\n\t é")


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_any_message_gives_a_document_that_parses(
    tmp_path_factory: pytest.TempPathFactory, message: str
) -> None:
    fault = FaultRecord(blame="agent", cause="crash", message=message)
    run = make_run(tmp_path_factory.mktemp("runs"), make_result(fault=fault))
    assert counts(xml(run)) == {"tests": 1, "failures": 1, "errors": 0, "skipped": 0}


@given(
    st.lists(st.sampled_from([None, NO_OUTPUT, NO_REVIEW, {"anna": 2}, {"anna": 9}]), max_size=8)
)
def test_junit_and_the_summary_count_the_same(
    tmp_path_factory: pytest.TempPathFactory, mix: list[Any]
) -> None:
    results, missing = [], []
    for number, outcome in enumerate(mix):
        task = f"task{number}"
        if outcome is None:
            missing.append(f"small/idea/{task}/r1")
        elif isinstance(outcome, FaultRecord):
            results.append(make_result(task, fault=outcome))
        else:
            results.append(make_result(task, judges=outcome))
    run = make_run(tmp_path_factory.mktemp("runs"), *results, not_run=missing)
    report = Report.of(run)
    assert counts(xml(run)) == {
        "tests": len(mix),
        "failures": sum(stage.failed for stage in report.summary),
        "errors": sum(stage.not_measured for stage in report.summary),
        "skipped": 0,
    }
    assert len(report.cases) + len(report.not_run) == len(mix)


def test_a_report_is_plain_json(tmp_path: Path) -> None:
    text = Report.of(make_run(tmp_path, make_result("a"), make_result("b"))).model_dump_json()
    document = json.loads(text, parse_constant=pytest.fail)
    assert document["schema_version"] == 1
    assert [case["task"] for case in document["cases"]] == ["a", "b"]


def test_scores_of_different_rubrics_are_not_averaged(tmp_path: Path) -> None:
    """A run that is judged anew on resume and killed half way holds results of both rubrics."""
    other = make_result("b", judges={"anna": 2}, key={"rubric": "another"})
    report = Report.of(make_run(tmp_path, make_result("a"), other))
    assert report.summary[0].overall_mean == 7
    assert report.not_run == (other.case,)
