"""``mlrbench collect``: scores of several jobs and runs, read back into one table."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.sax.saxutils import quoteattr

import pytest
from builders import NO_OUTPUT, NO_REVIEW, make_result, make_run, one_sentence
from hypothesis import given
from hypothesis import strategies as st

import pytest_mlrbench
from pytest_mlrbench import CaseRow, ConflictError, collect, to_frame
from pytest_mlrbench.cli import main
from pytest_mlrbench.evidence.base import LEVELS
from pytest_mlrbench.report.collected import xml
from pytest_mlrbench.report.collected.merging import ABOUT_SOURCE
from pytest_mlrbench.report.collected.rows import type_of
from pytest_mlrbench.report.document import Report
from pytest_mlrbench.report.junit import junit, not_run_properties
from pytest_mlrbench.report.properties import properties
from pytest_mlrbench.run.folder import RunFolder, read_model, write_json
from pytest_mlrbench.run.record import RunRecord, Session
from pytest_mlrbench.run.result import CaseResult, CheckpointRecord, EvidenceRecord, JudgeRecord
from pytest_mlrbench.run.thresholds import Threshold
from pytest_mlrbench.spent import Spent

if TYPE_CHECKING:
    from conftest import Repository

Capture = pytest.CaptureFixture[str]

EARLY, LATE = "2026-01-01T10:00:00+00:00", "2026-01-01T11:30:00+01:00"  # half an hour later

# What is in a file


def element(pairs: Sequence[tuple[str, object]], name: str = "test_idea[alpha]") -> str:
    listed = "".join(
        f"<property name={quoteattr(key)} value={quoteattr(str(value))}/>" for key, value in pairs
    )
    return f"<testcase name={quoteattr(name)}><properties>{listed}</properties></testcase>"


def told(result: CaseResult, run: str = "R1", **changes: object) -> list[tuple[str, object]]:
    """The properties of a case, some of them changed; null takes one out."""
    pairs = properties(result, resumed=False, artifacts=f".mlrbench/runs/{run}/{result.artifacts}")
    found: dict[str, object] = dict(pairs) | {f"mlr.{k}": v for k, v in changes.items()}
    return [(name, value) for name, value in found.items() if value is not None]


def suite(*elements: str, time: str = EARLY) -> str:
    return f'<testsuite name="pytest" timestamp="{time}">{"".join(elements)}</testsuite>'


def write(path: Path, *elements: str, time: str = EARLY) -> Path:
    path.write_text(f"<testsuites>{suite(*elements, time=time)}</testsuites>", "utf-8")
    return path


def of(result: CaseResult, run: str = "R1", **changes: Any) -> str:
    return element(told(result, run, **changes))


def command(capsys: Capture, *args: object) -> tuple[int, str]:
    code = main(["collect", *map(str, args)])
    out, err = capsys.readouterr()
    return code, out + err


def content(row: CaseRow) -> dict[str, Any]:
    return {name: value for name, value in row.cells.items() if name not in ABOUT_SOURCE}


# A round trip loses nothing

#: Text that pytest writes to XML as it is.
texts = st.text(
    st.characters(exclude_categories=["Cs", "Cc", "Cn"]) | st.sampled_from("\t\n<>&\"'"), max_size=9
)
names = st.from_regex(r"[a-z][a-z0-9_]{0,8}", fullmatch=True)
ids = st.from_regex(r"[a-z0-9_.-]{1,9}", fullmatch=True).filter(lambda name: set(name) - {"."})
numbers = st.floats(0, 1e9)
counts = st.integers(0, 10**12)
truths = st.none() | st.booleans()
dimensions = names.filter(
    lambda name: name not in ("spec", "overall", "kin", "confidence", "hallucination")
)
judges = st.builds(
    JudgeRecord,
    spec=texts,
    overall=st.none() | st.integers(1, 10),
    scores=st.dictionaries(dimensions, st.integers(1, 10), max_size=3),
    kin=st.sampled_from([None, "model", "family"]),
    confidence=st.none() | st.integers(1, 5),
    hallucination=truths,
    hallucinations=st.none() | st.dictionaries(names, st.integers(0, 9), max_size=2),
)
evidence = st.builds(
    EvidenceRecord,
    level=st.sampled_from(LEVELS),
    examined=st.lists(names, max_size=3).map(tuple),
    fabricated=truths,
    undisclosed_synthetic=truths,
    paper_untraced=truths,
    findings=st.dictionaries(names, st.integers(1, 99), max_size=3),
    reported=counts,
    traced=counts,
    replay=st.sampled_from([None, "", "same", "same moved changed"]),
)
spent = st.builds(
    Spent,
    calls=counts,
    attempts=counts,
    input=st.none() | counts,
    output=st.none() | counts,
    cost_usd=st.none() | numbers,
)


@st.composite
def results(draw: st.DrawFn) -> CaseResult:
    """Any case that may be in a run."""
    stage = draw(st.sampled_from(["idea", "experiment", "end_to_end"]))
    fault = draw(st.sampled_from([None, NO_OUTPUT, NO_REVIEW]))
    optional: Mapping[str, st.SearchStrategy[Any]] = {
        "agent": texts,
        "agent_digest": st.none() | texts,
        "author": st.none() | texts,
        "overall": st.none() | numbers,
        "scores": st.dictionaries(names, numbers, max_size=3),
        "spread": st.none() | numbers,
        "judges": st.dictionaries(
            st.from_regex(r"[a-z0-9_-]{1,8}", fullmatch=True), judges, max_size=3
        ),
        "evidence": st.none() | evidence,
        "checkpoints": st.dictionaries(
            st.sampled_from(["idea", "paper"]),
            st.builds(CheckpointRecord, rubric=names, overall=st.none() | numbers),
        ),
        "reached": st.sampled_from([None, "none", "idea"]),
        "stopped_by": st.none() | names,
        "seconds_agent": st.none() | numbers,
        "seconds_judge": st.none() | numbers,
        "spent_agent": st.none() | spent,
        "spent_judge": st.none() | spent,
        "sandbox": st.sampled_from([None, "local"]),
        "gpus": st.lists(names, max_size=2).map(tuple),
    }
    changes = {name: draw(strategy) for name, strategy in optional.items()}
    made = make_result(draw(ids), stage, repeat=draw(st.integers(1, 12)), fault=fault)
    result = made.model_copy(update={**changes, "verdict": "not_measured", "key": {}})
    return result.judged_by([Threshold.parse("overall>=6.0")], tuple(result.scores))


def says(row: CaseRow, result: CaseResult) -> None:
    """The row must say what the result says, in the same types."""
    for name in ("case", "suite", "stage", "task", "repeat", "verdict", "cause", "overall"):
        found, wanted = getattr(row, name), getattr(result, name)
        assert (found, type(found)) == (wanted, type(wanted)), name
    for name in ("agent", "agent_digest", "suite_digest", "rubric", "spread", "scores"):
        assert getattr(row, name) == getattr(result, name), name
    assert row.blame == (result.fault.blame if result.fault else None)
    assert row.judges.keys() == result.judges.keys()
    for judge, wanted in result.judges.items():
        found = row.judges[judge]
        for name in ("spec", "overall", "scores", "kin", "confidence", "hallucination"):
            assert getattr(found, name) == getattr(wanted, name), name
        assert found.hallucination is wanted.hallucination
        assert found.hallucinations == (wanted.hallucinations or {})
    group = row.group("evidence")
    assert bool(group) == (result.evidence is not None)
    if result.evidence:
        for name in ("fabricated", "undisclosed_synthetic", "paper_untraced"):
            assert group.get(name) is getattr(result.evidence, name)
        assert (group["level"], group["reported"]) == (row.level, result.evidence.reported)
        assert row.group("evidence.findings") == result.evidence.findings
    for role in ("agent", "judge"):
        used = getattr(result, f"spent_{role}") or Spent(calls=0, attempts=0)
        assert row.cells.get(f"tokens.{role}.input") == used.input
        assert row.cells.get(f"tokens.{role}.output") == used.output
        assert row.cells.get(f"cost_usd.{role}") == used.cost_usd
    overalls = {stage: part.overall for stage, part in result.checkpoints.items()}
    assert {s: row.cells.get(f"checkpoint.{s}.overall") for s in overalls} == overalls


@given(result=results())
@pytest.mark.slow
def test_a_row_is_the_result_whether_from_the_run_its_report_or_its_junit(
    tmp_path_factory: pytest.TempPathFactory, result: CaseResult
) -> None:
    place = tmp_path_factory.mktemp("run")
    run = make_run(place, result, not_run=["small/idea/later/r1"])
    report = Report.of(run)
    (place / "a.xml").write_text(junit(run, report), "utf-8")
    write_json(place / "a.json", report)
    (from_run, absent), *others = (
        sorted((collect([path])), key=lambda row: row.not_run)
        for path in (run.path, place / "a.xml", place / "a.json")
    )
    says(from_run, result)
    unsaid = not_run_properties("small/idea/later/r1")
    assert absent.cells == {name.removeprefix("mlr."): value for name, value in unsaid}
    assert from_run.run == run.run_id
    for row, other in others:
        assert content(row) == content(from_run)
        assert other.cells == absent.cells
        assert (row.run, row.written) == (from_run.run, from_run.written)
    assert len(collect([run.path, place / "a.xml", place / "a.json"])) == 2


def test_what_xml_cannot_carry_makes_no_two_rows_of_a_case(tmp_path: Path) -> None:
    run = make_run(
        tmp_path / "runs", make_result(agent="cmd:\x07\x1b[31m\x7f\ufffe\r\n\t é \U0001f600")
    )
    (tmp_path / "a.xml").write_text(junit(run, Report.of(run)), "utf-8")
    (row,) = collect([run.path, tmp_path / "a.xml"])
    assert row.agent == "cmd:#x07#x1B[31m#x7F#xFFFE\r\n\t é \U0001f600"


@pytest.mark.slow
def test_what_pytest_writes_is_read_back_also_from_workers(repo: Repository) -> None:
    drawn: list[CaseResult] = []

    @given(result=results())
    def draw(result: CaseResult) -> None:
        drawn.append(result)

    draw()
    known = {result.case: result for result in drawn}
    pairs = [told(result) for result in known.values()]
    repo.lay(
        {
            "pairs.json": json.dumps(pairs),
            "test_any.py": """\
import json, pathlib, pytest
PAIRS = json.loads(pathlib.Path(__file__).with_name("pairs.json").read_text("utf-8"))
@pytest.mark.parametrize("n", range(len(PAIRS)))
def test_any(n, request):
    request.node.user_properties += map(tuple, PAIRS[n])
""",
        }
    )
    for workers in ((), ("-n2",)):
        repo.spawn("--junitxml=a.xml", *workers)
        rows = collect([repo.path / "a.xml"])
        assert {row.case for row in rows} == set(known)
        for row in rows:
            says(row, known[row.case])
            assert row.run == "R1"
            assert row.written


@pytest.mark.parametrize("options", [("-o", "junit_family=xunit1"), (), ("-n2",)])
def test_a_run_and_the_reports_of_its_session_say_the_same(
    repo: Repository, options: tuple[str, ...], capsys: Capture
) -> None:
    repo.lay({"test_own.py": "def test_own(): pass\ndef test_more(): pass\n"})
    repo.measure(
        *("--junitxml=a.xml", "--mlr-json=a.json", "test_own.py", "test_mlr_experiment.py"),
        *options,
    )
    capsys.readouterr()
    code, out = command(capsys, "a.xml", "a.json", repo.runs[-1].path)
    assert code == 0
    assert "10 cases in 10 rows from 3 sources: 10/10 scored, 4 passed, 6 failed" in out
    assert "10 cases the same in a.xml, a.json," in out
    assert "2 other test cases in a.xml left out" in out


def test_types_are_those_of_the_column_and_not_of_what_a_value_looks_like(tmp_path: Path) -> None:
    result = make_result("1.10", agent="7", agent_digest="True", overall=7.0)
    (row,) = collect([write(tmp_path / "a.xml", of(result, resumed="True"))])
    assert (row.task, row.agent, row.agent_digest) == ("1.10", "7", "True")
    assert (row.resumed, row.repeat, type(row.overall)) == (True, 1, float)


def test_what_a_later_version_adds_is_kept_as_text(tmp_path: Path) -> None:
    path = write(tmp_path / "a.xml", of(make_result(), **{"metric.accuracy": "0.5"}))
    assert collect([path])[0].cells["metric.accuracy"] == "0.5"


# Other people's files


def test_suites_within_suites_and_namespaces_are_read(tmp_path: Path) -> None:
    alpha, beta = of(make_result("alpha")), of(make_result("beta"))
    (tmp_path / "a.xml").write_text(
        '<testsuites xmlns="urn:x"><testsuite><properties><property name="mlr.case" value="no"/>'
        f"</properties>{suite(suite(alpha, time=LATE))}</testsuite>{suite(beta)}</testsuites>",
        "utf-8",
    )
    rows = collect([tmp_path / "a.xml"])
    assert [(row.task, row.written) for row in rows] == [("alpha", LATE), ("beta", EARLY)]


def test_tests_that_are_called_like_ours_and_say_nothing_are_named(
    tmp_path: Path, capsys: Capture
) -> None:
    path = write(
        tmp_path / "a.xml",
        of(make_result()),
        '<testcase name="test_idea[beta]"><error message="a worker died"/></testcase>',
        '<testcase name="test_ideas"/>',
    )
    code, out = command(capsys, path)
    assert code == 0
    assert "1 test case called like ours without scores, not in the table: test_idea[beta]" in out
    assert "1 other test case in" in out


BOMB = "".join(f'<!ENTITY a{n} "{f"&a{n - 1};" * 10}">' for n in range(1, 12))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "a.xml is empty"),
        (" \n", "a.xml is empty"),
        ("all is well", "is neither XML nor JSON"),
        ("<testsuite><testcase name='x'>", "ends in the middle, at line 1"),
        ("<testsuite><testcase name='", "ends in the middle"),
        ("<testsuite/><testsuite/>", "neither XML nor JSON: junk"),
        ("<?xml version='1.0' encoding='klingon'?><a/>", "encoding"),
        ("<testsuite/>", "none of its 0 test cases"),
        ("<testsuite><testcase name='test_own'/></testsuite>", "none of its 1 test cases"),
        ("<testsuite><testcase name='test_idea[x]'/></testsuite>", "1 of its test cases are"),
        (f'<!DOCTYPE a [<!ENTITY a0 "x">{BOMB}]><a>&a11;</a>', "has a document type"),
        ('<!DOCTYPE a SYSTEM "file:///etc/passwd"><a/>', "has a document type"),
        ('<!DOCTYPE a [<!ENTITY b SYSTEM "file:///etc/passwd">]><a>&b;</a>', "document type"),
        ("<testsuite>&b;</testsuite>", "undefined entity"),
        ('{"schema_version": 1', "is damaged"),
        ('{"schema_version": 1}', "is not a JSON report of this version"),
    ],
)
def test_a_file_that_cannot_be_used_says_which_and_why(
    tmp_path: Path, capsys: Capture, text: str, words: str
) -> None:
    (tmp_path / "a.xml").write_text(text, "utf-8")
    begun = time.monotonic()
    code, out = command(capsys, tmp_path / "a.xml")
    assert time.monotonic() - begun < 5
    assert code == 2
    assert out.startswith("mlrbench: ")
    assert str(tmp_path / "a.xml") in out
    assert words in out
    assert out.count("\n") == 1


def test_wherever_a_file_is_cut_off_it_is_said(tmp_path: Path) -> None:
    whole = write(tmp_path / "a.xml", of(make_result())).read_bytes()
    for end in range(1, len(whole), 41):
        (tmp_path / "a.xml").write_bytes(whole[:end])
        with one_sentence("a.xml", "ends in the middle" if end > 12 else ""):
            collect([tmp_path / "a.xml"])


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"overall": "abc"}, "'mlr.overall' is 'abc', which is no number"),
        ({"overall": "nan"}, "'mlr.overall' is 'nan'"),
        ({"repeat": "1_0"}, "no whole number"),
        ({"judge.anna.overall": "7.5"}, "no whole number"),
        ({"resumed": "yes"}, "neither True nor False"),
        ({"verdict": "great"}, "mlr.verdict is 'great'"),
        ({"task": "beta"}, "its parts say 'small/idea/beta/r1'"),
        ({"verdict": None}, "no mlr.verdict"),
        ({"score.\x9b31m\n": "x"}, r"'mlr.score.\x9b31m\n' is 'x'"),
    ],
)
def test_a_case_that_is_not_what_we_write_is_refused(
    tmp_path: Path, changes: Mapping[str, Any], words: str
) -> None:
    path = write(tmp_path / "a.xml", of(make_result(), **changes))
    with one_sentence(str(path), "small/idea/alpha/r1", words):
        collect([path])


def test_properties_that_contradict_each_other_are_refused(tmp_path: Path) -> None:
    pairs = told(make_result())
    assert len(collect([write(tmp_path / "a.xml", element([*pairs, *pairs]))])) == 1
    path = write(tmp_path / "a.xml", element([*pairs, ("mlr.overall", 9.0)]))
    with one_sentence("'mlr.overall' twice"):
        collect([path])


def test_what_is_not_there_or_too_large_or_no_run_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with one_sentence("nowhere cannot be read: No such file"):
        collect([tmp_path / "nowhere"])
    with one_sentence("is not a run folder"):
        collect([tmp_path])
    with one_sentence("name at least one"):
        collect([])
    path = write(tmp_path / "a.xml", of(make_result()))
    monkeypatch.setattr(xml, "LARGEST", 10)
    with one_sentence("is larger than"):
        collect([path])


def test_nothing_in_a_file_steers_the_terminal(tmp_path: Path, capsys: Capture) -> None:
    path = write(tmp_path / "a.xml", of(make_result(agent="\x9b31m \u202e\nx")))
    assert "?31m ??x" in command(capsys, path)[1]


# A case in several sources


def test_shards_are_put_together_in_the_order_of_research(tmp_path: Path, capsys: Capture) -> None:
    one = write(tmp_path / "1.xml", of(make_result("beta", repeat=10)), of(make_result("beta")))
    two = write(
        tmp_path / "2.xml",
        of(make_result(stage="experiment"), "R2"),
        of(make_result("beta", repeat=2, fault=NO_REVIEW), "R2"),
    )
    code, out = command(capsys, two, one)
    assert code == 0
    assert [line.split()[0] for line in out.splitlines()[1:5]] == [
        *(f"small/idea/beta/r{n}" for n in (1, 2, 10)),
        "small/experiment/alpha/r1",
    ]
    assert "not measured (no review)" in out
    assert "4 cases in 4 rows from 2 sources: 3/4 scored, 3 passed, 0 failed, 1 not" in out


def test_a_copy_is_one_row_and_said(tmp_path: Path, capsys: Capture) -> None:
    one, two = (write(tmp_path / f"{n}.xml", of(make_result())) for n in "12")
    code, out = command(capsys, one, two)
    assert code == 0
    assert f"1 case the same in {one}, {two}: one row each" in out
    assert "1 case in 1 row" in out
    assert f"1 case the same in {one}, {one}" in command(capsys, one, one)[1]
    (row,) = collect([two, one])
    assert row.sources == (str(two), str(one))


@pytest.mark.parametrize("order", [1, -1])
def test_a_later_session_of_the_same_run_counts(
    tmp_path: Path, capsys: Capture, order: int
) -> None:
    """The clocks of the two say it in different zones."""
    old = write(tmp_path / "1.xml", of(make_result(fault=NO_REVIEW)), time=EARLY)
    new = write(tmp_path / "2.xml", of(make_result()), time=LATE)
    sources = (old, new)[::order]
    code, out = command(capsys, *sources)
    assert code == 0
    assert f"1 case of {old} replaced by {new}, a later session of the same run" in out
    assert [row.verdict for row in collect(sources)] == ["pass"]


def test_the_run_folder_counts_when_the_run_went_on(tmp_path: Path) -> None:
    run = make_run(tmp_path / "runs", make_result("alpha", fault=NO_REVIEW))
    (tmp_path / "a.xml").write_text(junit(run, Report.of(run)), "utf-8")
    record = read_model(run.path / "run.json", RunRecord)
    assert record
    again = Session(started=LATE, command=("pytest",))
    write_json(
        run.path / "run.json", record.model_copy(update={"sessions": (*record.sessions, again)})
    )
    RunFolder(run.path).record(make_result("alpha"))
    (row,) = collect([tmp_path / "a.xml", run.path])
    assert (row.verdict, row.sources) == ("pass", (str(run.path),))


@pytest.mark.parametrize(
    ("run", "time"), [("R2", LATE), ("R1", EARLY), ("R1", "2027-01-01T00:00:00"), ("R1", "soon")]
)
def test_two_measurements_of_which_none_is_known_to_count_are_a_conflict(
    tmp_path: Path, capsys: Capture, run: str, time: str
) -> None:
    """Another run is another throw of the dice; in the same one, it is not known which is later."""
    one = write(tmp_path / "1.xml", of(make_result(judges={"anna": 3})), of(make_result("beta")))
    two = write(tmp_path / "2.xml", of(make_result(), run), time=time)
    code, out = command(capsys, one, two, "--json", tmp_path / "a.json")
    assert code == 1
    assert f"CONFLICT: small/idea/alpha/r1 in {one} and {two}: verdict fail / pass, overall" in out
    assert "2 cases in 3 rows" in out
    (conflict,) = json.loads((tmp_path / "a.json").read_text("utf-8"))["conflicts"]
    assert conflict["differs"]["overall"] == [3.0, 7.0]
    with pytest.raises(ConflictError, match=r"alpha.*1\.xml and .*2\.xml"):
        collect([one, two])
    rows = collect([one, two], conflicts="keep")
    assert [(row.task, row.conflict) for row in rows] == [
        *[("alpha", True)] * 2,
        ("beta", False),
    ]


def test_an_error_is_not_chosen_away_in_favour_of_another_run(tmp_path: Path) -> None:
    """The agent's digest is not known where a worker died, so it may be the same agent."""
    lost = make_result(fault=NO_REVIEW, agent_digest=None)
    one, two = (
        write(tmp_path / "1.xml", of(lost)),
        write(tmp_path / "2.xml", of(make_result(), "R2")),
    )
    with pytest.raises(ConflictError):
        collect([one, two])


def test_a_case_that_was_not_begun_has_no_say(tmp_path: Path, capsys: Capture) -> None:
    absent = write(tmp_path / "1.xml", element(not_run_properties("small/idea/alpha/r1")))
    there = write(tmp_path / "2.xml", of(make_result()))
    assert (
        "0/1 scored, 0 passed, 0 failed, 1 not measured (1 not run)" in command(capsys, absent)[1]
    )
    code, out = command(capsys, absent, there)
    assert code == 0
    assert f"1 case not run in {absent} and measured in {there}" in out


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"agent": "cmd:./b"}, "MIXED: 2 agents: cmd:./agent.sh, cmd:./b"),
        ({"agent_digest": "new"}, "MIXED: 2 states of agent cmd:./agent.sh: agent, new"),
        ({"suite_digest": "new"}, "MIXED: 2 states of suite small: suite, new"),
        ({"rubric": "checklist"}, "MIXED: 2 rubrics in idea: idea, checklist"),
        ({"judges": {"ben": 7}}, "MIXED: 2 panels in idea: anna=stub:anna, ben=stub:ben"),
    ],
)
def test_what_is_not_one_measurement_is_told_apart(
    tmp_path: Path, capsys: Capture, changes: dict[str, Any], words: str
) -> None:
    one = write(tmp_path / "1.xml", of(make_result()))
    two = write(tmp_path / "2.xml", of(make_result(**changes), "R2"))
    code, out = command(capsys, one, two)
    assert code == 0
    assert words in out
    assert "1 case in 2 rows" in out


# The table


@pytest.fixture
def three(tmp_path: Path) -> Path:
    """One scored, one failed by how its agent ended, one not measured."""
    return make_run(
        tmp_path,
        make_result("alpha", judges={"anna": 7, "ben": 8}),
        make_result("beta", fault=NO_OUTPUT),
        make_result("gamma", fault=NO_REVIEW, agent='a "b", c'),
    ).path


def test_csv_has_a_line_for_each_case_and_no_number_for_what_was_not_measured(
    three: Path, tmp_path: Path, capsys: Capture
) -> None:
    code, out = command(capsys, three, "--csv", tmp_path / "new" / "a.csv")
    assert code == 0
    assert "1/3 scored, 1 passed, 1 failed, 1 not measured (1 no review)" in out
    with (tmp_path / "new" / "a.csv").open(encoding="utf-8", newline="") as file:
        alpha, beta, gamma = csv.DictReader(file)
    assert (alpha["overall"], alpha["score.novelty"], alpha["judges.spread"]) == (
        "7.5",
        "7.5",
        "1.0",
    )
    assert (alpha["judge.ben.overall"], alpha["judge.ben.novelty"]) == ("8", "8")
    assert (beta["overall"], beta["blame"], beta["cause"]) == ("", "agent", "no_output")
    assert (gamma["verdict"], gamma["agent"]) == ("not_measured", 'a "b", c')
    assert (gamma["source"], gamma["conflict"]) == (str(three), "False")
    assert list(alpha)[:5] == ["case", "suite", "stage", "task", "repeat"]


def test_json_has_null_for_what_was_not_measured(three: Path, tmp_path: Path) -> None:
    assert main(["collect", str(three), "--json", str(tmp_path / "a.json")]) == 0
    found = json.loads((tmp_path / "a.json").read_text("utf-8"))
    assert [row["overall"] for row in found["rows"]] == [7.5, None, None]
    assert all(list(row) == found["columns"] for row in found["rows"])
    assert found["sources"][0]["kind"] == "run"


def test_a_file_that_cannot_be_written_is_said(three: Path, capsys: Capture) -> None:
    code, out = command(capsys, three, "--csv", three / "run.json" / "a.csv")
    assert (code, "cannot be written" in out) == (2, True)


def test_a_frame_needs_pandas(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with one_sentence("pip install pandas"):
        to_frame([])


def test_a_frame_tells_what_is_not_there_from_nothing(three: Path) -> None:
    pandas = pytest.importorskip("pandas")
    frame = to_frame(collect([three]))
    assert list(frame["overall"].isna()) == [False, True, True]
    assert frame["overall"].mean() == 7.5
    kinds = {"overall": "Float64", "repeat": "Int64", "resumed": "boolean", "task": "string"}
    assert {name: str(frame[name].dtype) for name in kinds} == kinds
    assert frame["judge.ben.overall"].dtype == "Int64"
    assert list(frame.columns)[-3:] == ["run", "source", "conflict"]
    assert len(to_frame([])) == 0
    assert pandas.isna(frame["cause"][0])


def test_reading_scores_is_loaded_only_when_it_is_asked_for() -> None:
    code = (
        "import sys, pytest_mlrbench as m;"
        "print([n for n in ('pydantic', 'pytest', 'xml.etree') if n in sys.modules]); m.collect;"
        "print([n for n in ('pandas',) if n in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["[]", "[]"]
    with pytest.raises(AttributeError, match="nothing_such"):
        pytest_mlrbench.nothing_such  # noqa: B018


def test_columns_have_the_types_of_what_they_hold() -> None:
    """Every property of a case with everything in it comes back as it went."""
    result = make_result(judges={"anna": 7, "ben": 8})
    for name, value in properties(result, resumed=False, artifacts="x"):
        assert type_of(name.removeprefix("mlr.")) is type(value), name
