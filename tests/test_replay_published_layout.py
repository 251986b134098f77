"""Replaying: stored outputs and reviews, in the published layout or in a run folder of ours.

With the environment variable MLRBENCH_DATA naming a folder that holds ``mlrbench/``, a copy of (a
part of) the published repository, what is stored there is read too.
"""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections import Counter
from pathlib import Path

import pytest
from builders import (
    NO_OUTPUT,
    lay,
    make_answer,
    make_result,
    make_review,
    make_run,
    make_suite,
    one_sentence,
)

from pytest_mlrbench.agents.base import Assignment
from pytest_mlrbench.agents.specs import make_agent
from pytest_mlrbench.errors import AgentFault, SystemFault
from pytest_mlrbench.judges.base import Judge, Reviewable
from pytest_mlrbench.judges.review import Answer, parse_answer, read_json
from pytest_mlrbench.judges.specs import make_judges
from pytest_mlrbench.layout import PublishedLayout
from pytest_mlrbench.published import Published
from pytest_mlrbench.run import digests
from pytest_mlrbench.run.folder import RunFolder, write_json
from pytest_mlrbench.run.submission import SubmissionRecord
from pytest_mlrbench.suites.loading import load_suite
from pytest_mlrbench.suites.rubrics import rubric
from pytest_mlrbench.suites.select import Case
from pytest_mlrbench.suites.stages import STAGES

CLAUDE, GEMINI = "claude-3-7-sonnet-20250219", "gemini-2.5-pro-preview"
DATED = "gemini-2.5-pro-preview-03-25"
O4 = "o4-mini-2025-04-16"
WSL = "iclr2025_wsl"

#: The same outputs in the spelling of the published repository, and in the shortened one.
RUN = {
    "task.md": "task",
    "claude_code/run.py": "print(1)",
    "results/results.md": "results",
    "results/figures/one.png": "figure",
    f"results/paper_{O4}.md": "a paper by o4-mini",
    f"results/paper_{CLAUDE}.md": "a paper by Claude",
}
END2END = {
    "results/paper.md": "an end-to-end paper",
    "results/results.md": "results",
    f"review_hallucination_{CLAUDE}.json": "{}",
}


def outputs(ideas: str, runs: str, end2end: str) -> dict[str, str]:
    files = {
        f"{ideas}/{WSL}/idea/idea_{O4}.md": "an idea",
        f"{ideas}/{WSL}/idea/idea_{DATED}.md": "another idea",
        f"{ideas}/{WSL}/proposal/proposal_{O4}.md": "a proposal",
        f"{ideas}/{WSL}/idea.md": "the sampled idea",
    }
    files |= {f"{runs}/claude/{WSL}/{name}": text for name, text in RUN.items()}
    return files | {f"{end2end}/{WSL}/{name}": text for name, text in END2END.items()}


SPELLINGS = {
    "repository": outputs(
        "agent_results/ideas_and_proposals",
        "agent_results/experiments_and_writeups",
        "agent_results/end2end_o4-mini",
    ),
    "short": outputs("ideas_and_proposals", "experiments", "end2end/o4-mini"),
}


def raw_review(stage: str, score: int = 7) -> str:
    """A review as it is published."""
    names = [name.title() for name in rubric(stage).names(stage)]
    raw: dict[str, object] = {name: {"score": score, "justification": "why"} for name in names}
    raw["Overall" if stage == "end_to_end" else "OverallAssessment"] = {"score": score}
    raw["Hallucination"] = {"has_hallucination": False, "details": ""}
    raw["Confidence"] = 5
    return json.dumps(raw)


REVIEWS = {
    f"agent_reviews/idea_proposal_reviews_{CLAUDE}/{WSL}/idea/idea_{O4}.json": ("idea", 9),
    f"agent_reviews/idea_proposal_reviews_{DATED}/{WSL}/idea/idea_{O4}.json": ("idea", 8),
    f"agent_reviews/idea_proposal_reviews_{CLAUDE}/{WSL}/proposal/proposal_{O4}.json": (
        "proposal",
        7,
    ),
    f"agent_reviews/subset_reviews_{CLAUDE}/{WSL}/experiments/claude.json": ("experiment", 6),
    f"agent_reviews/subset_reviews_{CLAUDE}/{WSL}/paper/{O4}.json": ("paper", 5),
    f"agent_reviews/subset_reviews_{CLAUDE}/{WSL}/review_o4-mini.json": ("end_to_end", 4),
    f"agent_reviews/subset_reviews_{GEMINI}/{WSL}/review_o4-mini.json": ("end_to_end", 3),
}
SCIENTIST = f"ai_scientist_v2_papers/o4-mini/{WSL}"


def lay_reviews(folder: Path) -> Path:
    return lay(folder, {name: raw_review(*about) for name, about in REVIEWS.items()})


@pytest.fixture(params=SPELLINGS)
def published_folder(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A small folder in the published layout, in either spelling."""
    return lay_reviews(lay(tmp_path, SPELLINGS[request.param]))


def case_of(stage: str = "idea", task: str = WSL) -> Case:
    return Case("small", stage, make_suite(task).tasks[0])


def judges_of(folder: Path, stage: str, name: str = "") -> list[Judge]:
    return make_judges([f"{name}replay:{folder}"], folder, [stage])


def review_by(judge: Judge, work: Reviewable) -> Answer:
    return asyncio.run(judge.review(work))


def published_work(stage: str, system: str, task: str = WSL) -> Reviewable:
    return Reviewable(case_of(stage, task), Path("nowhere"), "files", system)


def run_agent(spec: str, case: Case, folder: Path) -> dict[str, str]:
    """Let the agent answer; return what lies in the workspace then."""
    workspace = folder / "workspace"
    workspace.mkdir(parents=True)
    work = Assignment(
        stage=case.stage,
        task_id=case.task.id,
        repeat=case.repeat,
        workspace=workspace,
        deadline=time.time() + 60,
        log=folder / "agent.log",
    )
    asyncio.run(make_agent(spec, folder).run(case, work))
    return {name: path.read_text("utf-8") for name, path in digests.walk(workspace)}


# Outputs in the published layout


@pytest.mark.parametrize(
    ("system", "stage", "expected"),
    [
        (O4, "idea", {"idea.md": "an idea"}),
        ("gemini-2.5-pro-preview", "idea", {"idea.md": "another idea"}),
        (DATED, "idea", {"idea.md": "another idea"}),
        (O4, "proposal", {"proposal.md": "a proposal"}),
        ("gemini-2.5-pro-preview", "proposal", {}),
        ("codex", "experiment", {}),
        ("claude-code", "end_to_end", {}),
        ("nobody", "paper", {}),
        ("nobody", "end_to_end", {}),
    ],
)
def test_the_output_of_a_system(
    published_folder: Path, system: str, stage: str, expected: dict[str, str]
) -> None:
    found = PublishedLayout(published_folder).submission(system, stage, WSL)
    assert {name: path.read_text("utf-8") for name, path in found.items()} == expected


@pytest.mark.parametrize("system", ["claude", "claude-code"])
def test_an_experiment_is_the_whole_run(published_folder: Path, system: str) -> None:
    found = PublishedLayout(published_folder).submission(system, "experiment", WSL)
    wanted = {"task.md", "claude_code/run.py", "results/results.md", "results/figures/one.png"}
    assert wanted <= set(found)


def test_a_paper_is_one_authors_beside_the_run_it_is_about(published_folder: Path) -> None:
    found = PublishedLayout(published_folder).submission(O4, "paper", WSL)
    assert found["results/paper.md"].read_text("utf-8") == "a paper by o4-mini"
    assert {"results/results.md", "results/figures/one.png"} <= set(found)
    assert not [name for name in found if name.startswith("results/paper_")]


@pytest.mark.parametrize("system", ["o4-mini", "o4-mini+claude-code"])
def test_an_end_to_end_run_comes_without_the_reviews_beside_it(
    published_folder: Path, system: str
) -> None:
    found = PublishedLayout(published_folder).submission(system, "end_to_end", WSL)
    assert set(found) == {"results/paper.md", "results/results.md"}


def test_another_task_has_no_output(published_folder: Path) -> None:
    layout = PublishedLayout(published_folder)
    assert [layout.submission("claude", stage, "iclr2025_dl4c") for stage in STAGES] == [{}] * 5


def test_the_systems_are_listed_as_stored(published_folder: Path) -> None:
    layout = PublishedLayout(published_folder)
    assert layout.recognised
    assert set(layout.systems()) == {O4, DATED, "claude", "o4-mini"}


def test_a_folder_of_something_else_is_not_recognised(tmp_path: Path) -> None:
    lay(tmp_path, {"agent_results/readme.md": "", "results/idea.md": ""})
    assert not PublishedLayout(tmp_path).recognised


# The agent replay:DIR#SYSTEM


def test_a_replayed_system_leaves_what_is_stored(published_folder: Path, tmp_path: Path) -> None:
    spec = f"replay:{published_folder}#o4-mini+claude-code"
    assert run_agent(spec, case_of("end_to_end"), tmp_path / "work") == {
        "results/paper.md": "an end-to-end paper",
        "results/results.md": "results",
    }


def test_what_is_not_stored_is_not_measured(published_folder: Path, tmp_path: Path) -> None:
    case = case_of("idea", "iclr2025_dl4c")
    with pytest.raises(SystemFault) as caught:
        run_agent(f"replay:{published_folder}#{O4}", case, tmp_path / "work")
    assert caught.value.cause == "not_in_replay"


def test_a_replay_without_any_of_the_cases_is_refused(published_folder: Path) -> None:
    agent = make_agent(f"replay:{published_folder}#{O4}", published_folder)
    agent.prepare([case_of("idea"), case_of("idea", "other")])
    with one_sentence("none of the selected cases", "small/idea/other/r1"):
        agent.prepare([case_of("idea", "other")])


def test_the_digest_follows_the_stored_files(published_folder: Path) -> None:
    spec = f"replay:{published_folder}#{O4}"
    before = make_agent(spec, published_folder).digest(case_of())
    assert before == make_agent(spec, published_folder).digest(case_of())
    for path in published_folder.rglob(f"idea_{O4}.md"):
        path.write_text("an idea, changed", "utf-8")
    assert make_agent(spec, published_folder).digest(case_of()) != before


def test_a_replay_of_the_layout_needs_a_system(published_folder: Path) -> None:
    with one_sentence("say which system", f"{published_folder}#SYSTEM", "claude", O4):
        make_agent(f"replay:{published_folder}", published_folder)


@pytest.mark.parametrize("spec", ["replay:nowhere#x", "replay:nowhere"])
def test_a_replay_of_a_folder_that_is_not_there_is_refused(tmp_path: Path, spec: str) -> None:
    with one_sentence("there is no folder", "nowhere"):
        make_agent(spec, tmp_path)
    with one_sentence("there is no folder", "nowhere"):
        make_judges([spec], tmp_path, ["idea"])


def test_a_replay_of_a_folder_of_something_else_is_refused(tmp_path: Path) -> None:
    with one_sentence("neither a run folder nor"):
        make_agent(f"replay:{tmp_path}#x", tmp_path)
    with one_sentence("there are no reviews of idea"):
        make_judges([f"replay:{tmp_path}"], tmp_path, ["idea"])


@pytest.mark.parametrize("spec", ["replay:", "replay", "replay: ", "published:", "repaly:x", ""])
def test_a_malformed_agent_is_told_the_forms(tmp_path: Path, spec: str) -> None:
    with one_sentence(f"no agent {spec!r}", "replay:DIR[#SYSTEM]"):
        make_agent(spec, tmp_path)


# Reviews in the published layout


@pytest.mark.parametrize(
    ("judge", "stage", "system", "score"),
    [
        (CLAUDE, "idea", O4, 9),
        (DATED, "idea", O4, 8),
        (CLAUDE, "proposal", O4, 7),
        (CLAUDE, "experiment", "claude-code", 6),
        (CLAUDE, "paper", O4, 5),
        (CLAUDE, "end_to_end", "o4-mini+claude-code", 4),
        (GEMINI, "end_to_end", "o4-mini", 3),
    ],
)
def test_the_review_of_a_system(
    published_folder: Path, judge: str, stage: str, system: str, score: int
) -> None:
    path = PublishedLayout(published_folder).review(judge, system, stage, WSL)
    assert path is not None
    assert parse_answer(read_json(path), rubric(stage), stage).overall.score == score


@pytest.mark.parametrize(
    ("judge", "stage", "system", "task"),
    [
        (GEMINI, "idea", O4, WSL),
        (CLAUDE, "experiment", "codex", WSL),
        (CLAUDE, "end_to_end", "codex", WSL),
        (CLAUDE, "idea", O4, "iclr2025_dl4c"),
    ],
)
def test_no_review_is_none(
    published_folder: Path, judge: str, stage: str, system: str, task: str
) -> None:
    assert PublishedLayout(published_folder).review(judge, system, stage, task) is None


@pytest.mark.parametrize(
    ("stage", "stored"),
    [("idea", (CLAUDE, DATED)), ("experiment", (CLAUDE, GEMINI)), ("end_to_end", (CLAUDE, GEMINI))],
)
def test_the_judges_of_a_stage(published_folder: Path, stage: str, stored: tuple[str, ...]) -> None:
    assert PublishedLayout(published_folder).judges(stage) == stored


def test_one_judge_keeps_one_id_though_its_stored_name_changes(published_folder: Path) -> None:
    judges = make_judges([f"replay:{published_folder}"], published_folder, ["idea", "end_to_end"])
    assert [judge.id for judge in judges] == ["claude-3-7-sonnet", "gemini-2-5-pro"]
    gemini = judges[1]
    assert review_by(gemini, published_work("idea", O4)).overall.score == 8
    assert review_by(gemini, published_work("end_to_end", "o4-mini")).overall.score == 3


def test_a_name_given_to_a_replayed_panel_stands_before_its_ids(published_folder: Path) -> None:
    judges = judges_of(published_folder, "idea", "paper=")
    assert [judge.id for judge in judges] == ["paper-claude-3-7-sonnet", "paper-gemini-2-5-pro"]


def test_a_case_nobody_reviewed_is_not_measured(published_folder: Path) -> None:
    judge = judges_of(published_folder, "experiment")[1]
    with pytest.raises(SystemFault) as caught:
        review_by(judge, published_work("experiment", "claude"))
    assert caught.value.cause == "no_review"


def test_an_unusable_review_is_named_and_not_measured(published_folder: Path) -> None:
    path = PublishedLayout(published_folder).review(CLAUDE, O4, "idea", WSL)
    assert path is not None
    path.write_text(raw_review("idea", 11), "utf-8")
    with pytest.raises(SystemFault, match=r"not usable: .* must be a whole number") as caught:
        review_by(judges_of(published_folder, "idea")[0], published_work("idea", O4))
    assert caught.value.cause == "review"
    assert str(path) in caught.value.message


def test_stored_reviews_are_of_published_systems_only(published_folder: Path) -> None:
    for judge in judges_of(published_folder, "idea"):
        with one_sentence("published systems only", "'cmd:true'"):
            judge.prepare(make_agent("cmd:true", published_folder), [case_of()])


def test_a_panel_with_no_review_of_any_case_is_refused(published_folder: Path) -> None:
    agent = make_agent(f"replay:{published_folder}#{O4}", published_folder)
    judge = judges_of(published_folder, "idea")[0]
    judge.prepare(agent, [case_of("idea"), case_of("idea", "other")])
    with one_sentence("no review by claude-3-7-sonnet"):
        judge.prepare(agent, [case_of("idea", "other")])


def test_the_review_of_the_ai_scientist_lies_beside_its_paper(tmp_path: Path) -> None:
    lay(lay_reviews(tmp_path), {f"{SCIENTIST}/review_{CLAUDE}.json": raw_review("end_to_end", 10)})
    claude = judges_of(tmp_path, "end_to_end")[0]
    work = published_work("end_to_end", "ai-scientist-v2")
    assert review_by(claude, work).overall.score == 10


def test_the_ai_scientist_is_found_under_geminis_other_name(tmp_path: Path) -> None:
    name = f"{SCIENTIST}/review_gemini-2.5-pro-preview-05-06.json"
    lay(lay_reviews(tmp_path), {name: raw_review("end_to_end", 10)})
    judges = judges_of(tmp_path, "end_to_end")
    assert [judge.id for judge in judges] == ["claude-3-7-sonnet", "gemini-2-5-pro"]
    work = published_work("end_to_end", "ai-scientist-v2")
    assert review_by(judges[1], work).overall.score == 10
    assert review_by(judges[1], published_work("end_to_end", "o4-mini")).overall.score == 3


@pytest.mark.parametrize("system", ["codex", "claude-code", "nobody"])
def test_the_review_of_the_ai_scientist_is_nobody_elses(tmp_path: Path, system: str) -> None:
    lay(lay_reviews(tmp_path), {f"{SCIENTIST}/review_{CLAUDE}.json": raw_review("end_to_end", 10)})
    layout = PublishedLayout(tmp_path)
    assert layout.review(CLAUDE, system, "end_to_end", WSL) is None


# The judge "published"


def test_published_scores_are_not_told_as_scores_by_another_rubric(tmp_path: Path) -> None:
    """With ``--mlr-rubrics``, whose dimensions the published judges never saw."""
    shipped = rubric("idea").model_dump(mode="json")
    shipped["dimensions"][0]["name"] = "elegance"
    lay(tmp_path, {"idea.yaml": json.dumps(shipped)})  # JSON is YAML
    with one_sentence("published"):
        for judge in make_judges(["published"], tmp_path, ["idea"], tmp_path):
            judge.prepare(make_agent(f"published:{O4}", tmp_path), [case_of()])


# A run folder of ours


def stored_run(out: Path, **changes: object) -> RunFolder:
    """A run in which the agent left an idea and the judge *anna* gave it a 9."""
    result = make_result(WSL, judges={"anna": 9})
    run = make_run(out, result)
    case = run.path / result.artifacts
    lay(case, {"submission/idea.md": "an idea", "submission/notes/a.txt": "notes"})
    digest = digests.of_files(digests.walk(case / "submission"))
    record = SubmissionRecord(digest=digest, files=2, seconds=1.0, fault=None, key={})
    write_json(case / "submission.json", record)
    values = {"submission_digest": digest, "answer": make_answer(9)} | changes
    write_json(case / "reviews" / "anna.json", make_review(**values))
    return run


def own_work(run: RunFolder, digest: str | None = None) -> Reviewable:
    folder = run.case_folder("idea", WSL, 1) / "submission"
    stored = digests.of_files(digests.walk(folder))
    return Reviewable(case_of(), folder, digest or stored, None)


def test_a_replayed_run_leaves_the_same_files(tmp_path: Path) -> None:
    run = stored_run(tmp_path / "runs")
    found = run_agent(f"replay:{run.path}", case_of(), tmp_path / "work")
    assert found == {"idea.md": "an idea", "notes/a.txt": "notes"}
    assert digests.of_files(digests.walk(tmp_path / "work/workspace")) == own_work(run).digest


def test_a_replayed_run_is_scored_by_its_own_reviews(tmp_path: Path) -> None:
    run = stored_run(tmp_path)
    (anna,) = judges_of(run.path, "idea")
    assert anna.id == "anna"
    anna.prepare(make_agent(f"replay:{run.path}", tmp_path), [case_of()])
    assert review_by(anna, own_work(run)) == make_answer(9)


def test_a_replayed_judge_can_be_given_a_name(tmp_path: Path) -> None:
    (judge,) = judges_of(stored_run(tmp_path).path, "idea", "second=")
    assert judge.id == "second"


def test_a_review_of_another_submission_is_refused(tmp_path: Path) -> None:
    run = stored_run(tmp_path)
    (anna,) = judges_of(run.path, "idea")
    with pytest.raises(SystemFault, match="is of another submission") as caught:
        review_by(anna, own_work(run, digest="another"))
    assert caught.value.cause == "review"


def test_a_review_by_another_rubric_is_refused(tmp_path: Path) -> None:
    run = stored_run(tmp_path, rubric_digest="another")
    (anna,) = judges_of(run.path, "idea")
    with pytest.raises(SystemFault, match="is of another rubric"):
        review_by(anna, own_work(run))


def test_a_review_of_published_numbers_is_not_one_of_another_systems_numbers(
    tmp_path: Path,
) -> None:
    """Neither has files, so that equal digests prove nothing."""
    run = stored_run(tmp_path, submission_digest=None)
    (anna,) = judges_of(run.path, "idea")
    work = Reviewable(case_of(), tmp_path, None, "codex")
    with pytest.raises(SystemFault):
        review_by(anna, work)


def test_a_stored_review_that_cannot_be_read_is_a_fault(tmp_path: Path) -> None:
    run = stored_run(tmp_path)
    (anna,) = judges_of(run.path, "idea")
    next(run.path.rglob("anna.json")).write_text("{", "utf-8")
    with pytest.raises(SystemFault, match="not one this version has written"):
        review_by(anna, own_work(run))


def test_a_case_that_is_not_in_the_run_is_not_measured(tmp_path: Path) -> None:
    run = stored_run(tmp_path / "runs")
    other = case_of("idea", "other")
    (anna,) = judges_of(run.path, "idea")
    with pytest.raises(SystemFault) as caught:
        review_by(anna, Reviewable(other, tmp_path, "files", None))
    assert caught.value.cause == "no_review"
    with pytest.raises(SystemFault) as caught:
        run_agent(f"replay:{run.path}", other, tmp_path / "work")
    assert caught.value.cause == "not_in_replay"
    with one_sentence("none of the selected cases"):
        make_agent(f"replay:{run.path}", tmp_path).prepare([other])
    with one_sentence("no review by anna"):
        anna.prepare(make_agent(f"replay:{run.path}", tmp_path), [other])


def test_an_agents_stored_fault_happens_again(tmp_path: Path) -> None:
    run = stored_run(tmp_path / "runs")
    record = SubmissionRecord(digest="x", files=2, seconds=1.0, fault=NO_OUTPUT, key={})
    write_json(run.case_folder("idea", WSL, 1) / "submission.json", record)
    with pytest.raises(AgentFault) as caught:
        run_agent(f"replay:{run.path}", case_of(), tmp_path / "work")
    assert (caught.value.cause, caught.value.message) == (NO_OUTPUT.cause, NO_OUTPUT.message)


@pytest.mark.parametrize("left", ["task.md", "idea.md"])
def test_a_case_whose_agent_never_ended_is_not_measured_when_replayed(
    tmp_path: Path, left: str
) -> None:
    """Killed, or stopped by a fault of the system: what lies there is no submission."""
    run = make_run(tmp_path / "runs")
    lay(run.case_folder("idea", WSL, 1), {f"submission/{left}": "a beginning"})
    with pytest.raises(SystemFault):
        run_agent(f"replay:{run.path}", case_of(), tmp_path / "work")


def test_an_agent_that_left_nothing_at_all_fails_again(tmp_path: Path) -> None:
    """It is one of the cases of the run, though it has no file to replay."""
    run = make_run(tmp_path / "runs", make_result(WSL, fault=NO_OUTPUT))
    record = SubmissionRecord(digest="x", files=0, seconds=1.0, fault=NO_OUTPUT, key={})
    write_json(run.case_folder("idea", WSL, 1) / "submission.json", record)
    make_agent(f"replay:{run.path}", tmp_path).prepare([case_of()])
    with pytest.raises(AgentFault, match=NO_OUTPUT.message):
        run_agent(f"replay:{run.path}", case_of(), tmp_path / "work")


def test_a_run_holds_one_agent(tmp_path: Path) -> None:
    run = stored_run(tmp_path)
    with one_sentence("a run folder holds one agent", "#codex"):
        make_agent(f"replay:{run.path}#codex", tmp_path)


# The published data itself

DATA = Path(os.environ.get("MLRBENCH_DATA", "")) / "mlrbench"
needs_data = pytest.mark.skipif(
    not os.environ.get("MLRBENCH_DATA"), reason="MLRBENCH_DATA names no folder with mlrbench/"
)


@needs_data
def test_the_ideas_of_103_tasks_are_there_with_both_reviews() -> None:
    layout = PublishedLayout(DATA)
    tasks = [task.id for task in load_suite("mlrbench").tasks]
    assert sum(bool(layout.submission(O4, "idea", task)) for task in tasks) == 103
    for judge in (CLAUDE, DATED):
        assert sum(bool(layout.review(judge, O4, "idea", task)) for task in tasks) == 103


@needs_data
def test_every_published_review_is_read_and_gives_the_published_scores() -> None:
    layout, data, read = PublishedLayout(DATA), Published.load(), Counter[str]()
    for stage in STAGES:
        for system in (system for system in data.systems.values() if stage in system.raw):
            for task in data.tasks(stage, system.name):
                for stored, scores in data.scores(stage, system.name, task).values():
                    path = layout.review(stored, system.name, stage, task)
                    if path is None:
                        continue
                    answer = parse_answer(read_json(path), rubric(stage), stage)
                    found = {name: part.score for name, part in answer.dimensions.items()}
                    found["overall"] = answer.overall.score
                    if answer.confidence is not None:
                        found["confidence"] = answer.confidence
                    assert found == scores, path
                    assert answer.ignored == (), path
                    read[stage] += 1
    files = sum(1 for path in (DATA / "agent_reviews").rglob("*.json"))
    assert read.total() == files == 2576
    assert read == {
        "idea": 1236,
        "proposal": 1236,
        "experiment": 20,
        "paper": 30,
        "end_to_end": 54,
    }
