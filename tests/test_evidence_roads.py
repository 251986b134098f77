"""Evidence and checkpoints are the same by every road: in one go, resumed, judged again."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from builders import make_result, make_suite
from files import lay
from llm_builders import good
from test_evidence_product import EXPERIMENT, LOCAL, MEASURED, agent

from pytest_mlrbench import cli, cli_evidence
from pytest_mlrbench.agents.scaffold_steps import Steps
from pytest_mlrbench.evidence import examine
from pytest_mlrbench.evidence.base import Evidence, Level, Replay, Rerun
from pytest_mlrbench.evidence.replays import subject
from pytest_mlrbench.judges.base import Reviewable
from pytest_mlrbench.judges.review import Answer, parse_answer
from pytest_mlrbench.run import checkpoints
from pytest_mlrbench.run.folder import write_json
from pytest_mlrbench.run.result import EvidenceRecord
from pytest_mlrbench.run.thresholds import Threshold
from pytest_mlrbench.sandbox.ledger import Ledger, read
from pytest_mlrbench.suites.rubrics import Rubric, rubric
from pytest_mlrbench.suites.select import Case

if TYPE_CHECKING:
    from conftest import Repository

EVIDENCE = Evidence(
    level="traced",
    because="",
    examined=("ledger",),
    fabricated=False,
    undisclosed_synthetic=False,
    paper_untraced=None,
)
AGAIN = Replay(
    because="it repeats",
    same=True,
    runs=(Rerun(kind="seed", command=("x",), seed=0, folder="1", ended="exit 0", seconds=1),),
)
CHAIN = ("--mlr-stage=end_to_end", "--mlr-limit=1", "--mlr-agent=cmd:sh agent.sh", *LOCAL)
TEXTS = "echo '# An idea' > idea.md; echo '# A plan' > proposal.md\n"


class OneJudge:
    """A judge of a user's that knows some stages, and keeps what it was given."""

    id, spec, digest = "one", "one:v1", "v1"

    def __init__(self, *stages: str) -> None:
        self.stages = stages
        self.seen: dict[str, Evidence | None] = {}

    def rubric(self, stage: str) -> Rubric:
        return {name: rubric(name) for name in self.stages}[stage]

    def prepare(self, agent: object, cases: object) -> None: ...

    async def review(self, work: Reviewable) -> Answer:
        stage = work.case.stage
        self.seen[stage] = work.evidence
        return parse_answer(good(stage=stage), rubric(stage), stage)


def parts(tmp_path: Path, judge: OneJudge) -> dict[str, Any]:
    """What *judge* says of the stages within a chain."""
    lay(
        tmp_path / "submission",
        {"idea.md": "idea", "proposal.md": "plan", "results/results.md": "0.5"},
    )
    case = Case("small", "end_to_end", make_suite("alpha").tasks[0])
    work = Reviewable(case, tmp_path / "submission", "d", None, evidence=EVIDENCE)
    return asyncio.run(checkpoints.review([judge], work, tmp_path))


# Checkpoints


def test_ideas_within_chains_are_judged_without_what_is_known_of_results(tmp_path: Path) -> None:
    judge = OneJudge("idea", "proposal", "experiment")
    parts(tmp_path, judge)
    assert judge.seen == {"idea": None, "proposal": None, "experiment": EVIDENCE}


def test_judges_that_do_not_know_the_stages_of_a_chain_score_the_whole_alone(
    tmp_path: Path,
) -> None:
    assert parts(tmp_path, OneJudge("end_to_end")) == {}
    assert list(parts(tmp_path, OneJudge("idea"))) == ["idea"]


def test_reviews_that_an_agent_left_of_its_own_stages_do_not_count(repo: Repository) -> None:
    forged = "mkdir -p ../checkpoints/idea/reviews; echo x > ../checkpoints/idea/reviews/me.json\n"
    repo.lay({"agent.sh": forged + TEXTS})
    repo.run(*CHAIN)
    (case,) = repo.report.cases
    assert case.checkpoints["idea"].overall is not None
    assert not list(repo.runs[-1].path.glob("cases/*/*/*/checkpoints/*/reviews/me.json"))


@pytest.mark.parametrize(
    ("cause", "options"), [("provider", ["--mlr-rerun=errors"]), ("budget", [])]
)
def test_a_checkpoint_that_was_not_measured_is_measured_on_resume(
    repo: Repository, cause: str, options: list[str]
) -> None:
    repo.lay({"agent.sh": TEXTS})
    repo.run(*CHAIN)
    (before,) = repo.report.cases
    folder = repo.runs[-1].path / before.artifacts
    lost = json.loads((folder / "result.json").read_text("utf-8"))
    lost["checkpoints"]["idea"] |= {
        "overall": None,
        "fault": {"blame": "system", "cause": cause, "message": "no answer."},
    }
    (folder / "result.json").write_text(json.dumps(lost), "utf-8")
    repo.run("--mlr-resume", *options, *CHAIN)
    (after,) = repo.report.cases
    assert after.checkpoints == before.checkpoints
    assert after.attempts == 1


# Chains that go on


def test_what_was_recorded_of_experiments_is_kept_with_them(tmp_path: Path) -> None:
    first, later = tmp_path / "first", tmp_path / "later"
    for folder in (first, later):
        folder.mkdir()
    Ledger(first / "ledger.jsonl").write("begin")
    kept = Steps(tmp_path / "steps")
    kept.keep_copies("records", "key", [first / "ledger.jsonl", first / "coder.log"])
    ledger = Ledger(later / "ledger.jsonl")
    for _ in range(2):  # what is written on does not change what was kept
        kept.lay_copies("records", "key", later)
        ledger.go_on()
        ledger.write("gpu")
        assert [event["e"] for event in read(later / "ledger.jsonl")] == ["begin", "gpu"]
    kept.lay_copies("records", "another key", tmp_path / "none")
    assert not (later / "coder.log").exists()


# Judged again


def test_what_repetitions_gave_is_weighed_where_a_run_is_judged_again(
    repo: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    repo.lay(agent(MEASURED))
    repo.run(*EXPERIMENT, *LOCAL)
    (case,) = repo.report.cases
    path = repo.runs[-1].path / case.artifacts / "evidence.json"
    first = Evidence.model_validate_json(path.read_text("utf-8"))
    write_json(path, first.model_copy(update={"replay": AGAIN}))

    def weigh(folder: Path, before: Evidence) -> Evidence:
        kept = Evidence.model_validate_json((folder / "evidence.json").read_text("utf-8"))
        return before.model_copy(update={"replay": kept.replay})

    monkeypatch.setattr(subject, "with_recorded", weigh)
    replay = f"--mlr-agent=replay:{repo.runs[-1].path}"
    repo.run("--mlr-stage=experiment", "--mlr-limit=1", replay, "--mlr-threshold=overall>=1")
    (again,) = repo.report.cases
    assert again.evidence is not None
    assert again.evidence.replay == "same"


# The command


def test_a_paper_that_is_not_there_has_no_level(tmp_path: Path) -> None:
    lay(tmp_path / "submission", {"results/results.md": "Accuracy 0.912\n"})
    assert examine.examine_case(tmp_path, "paper").level == "none"
    (tmp_path / "submission/results/paper.pdf").write_bytes(b"%PDF-1.7")
    assert examine.examine_case(tmp_path, "paper").level == "executed"


def test_a_fault_of_the_command_accuses_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(folder: Path, **options: bool) -> Evidence:
        raise ZeroDivisionError("a fault of ours")

    monkeypatch.setattr(examine, "examine_folder", broken)
    assert cli.main(["evidence", str(tmp_path)]) == cli_evidence.CANNOT_TELL
    assert "a fault of ours" in capsys.readouterr().err


def test_a_case_is_of_its_stage_wherever_it_lies(repo: Repository, tmp_path: Path) -> None:
    repo.lay(agent(MEASURED))
    repo.run(*EXPERIMENT, *LOCAL)
    (case,) = repo.report.cases
    moved = repo.path / "paper/task/r1"
    moved.parent.mkdir(parents=True)
    (repo.runs[-1].path / case.artifacts).rename(moved)
    (found,) = cli_evidence.examine_all(moved).values()
    assert found.level == "executed"
    assert "its results were given" not in found.because


# What nobody is to blame for


@pytest.mark.parametrize(
    ("level", "rule", "verdict"),
    [
        ("traced", "evidence>=replayed", "not_measured"),
        ("traced", "evidence>=traced", "pass"),
        ("executed", "evidence>=traced", "fail"),
        ("executed", "evidence>=replayed", "fail"),
    ],
)
@pytest.mark.parametrize("is_open", [True, False])
def test_repetitions_that_the_machine_prevented_fail_nobody(
    level: Level, rule: str, verdict: str, is_open: bool
) -> None:
    replay = Replay(because="it was not run again", is_open=is_open)
    evidence = EVIDENCE.model_copy(update={"level": level, "replay": replay})
    result = make_result(case="s/experiment/t/r1", stage="experiment").model_copy(
        update={"evidence": EvidenceRecord.of(evidence), "fault": None}
    )
    found = result.judged_by([Threshold.parse(rule)], ())
    assert found.verdict == (verdict if is_open or verdict == "pass" else "fail")
    assert (found.cause == "not_replayed") is (found.verdict == "not_measured")


def test_evidence_that_cannot_be_written_does_not_end_the_case_unrecorded(
    repo: Repository,
) -> None:
    files = agent(MEASURED)
    files["agent.sh"] += "mkdir ../evidence.json\n"
    repo.lay(files)
    repo.run(*EXPERIMENT, *LOCAL)
    (case,) = repo.report.cases
    assert (case.verdict, case.cause) == ("not_measured", "internal")
    assert case.overall is not None


def test_the_command_gives_no_level_to_work_without_files(
    repo: Repository, capsys: pytest.CaptureFixture[str]
) -> None:
    repo.measure("--mlr-limit=1")
    assert cli.main(["evidence", str(repo.runs[-1].path)]) == cli_evidence.CANNOT_TELL
    said = capsys.readouterr()
    assert "has no case of experiment, paper, end_to_end with files" in said.err
