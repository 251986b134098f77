"""The control agents are what they say, and no judge that ships takes one for an honest agent."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence

import pytest
from builders import one_sentence

from conftest import Repository
from pytest_mlrbench.agents.controls import CONTROLS
from pytest_mlrbench.agents.specs import make_agent
from pytest_mlrbench.resources import shipped
from pytest_mlrbench.suites.stages import STAGES

INPUTS = shipped("benchmarks") / "suites" / "mini" / "inputs"
TASKS = sorted(path.name for path in INPUTS.iterdir())
#: Stages in which the reference agent needs no experiment of its own.
QUICK = ("idea", "proposal", "paper")

Scores = Mapping[tuple[str, str], float]


def scores(repo: Repository, agent: str, stages: Sequence[str]) -> Scores:
    """Return (stage, task) → what the checklist gives to *agent*."""
    repo.run(f"--mlr-stage={','.join(stages)}", f"--mlr-agent={agent}")
    found = {(case.stage, case.task): case.overall for case in repo.report.cases}
    assert len(found) == len(stages) * len(TASKS)
    return {case: overall for case, overall in found.items() if overall is not None}


def run(repo: Repository, agent: str, stage: str) -> Repository:
    repo.run(f"--mlr-stage={stage}", f"--mlr-agent={agent}")
    return repo


# What they leave


@pytest.mark.parametrize("agent", CONTROLS)
def test_a_control_answers_every_stage_and_is_judged_in_it(repo: Repository, agent: str) -> None:
    assert len(scores(repo, agent, tuple(STAGES))) == len(STAGES) * len(TASKS)
    assert {case.fault for case in repo.report.cases} == {None}


@pytest.mark.parametrize("stage", STAGES)
def test_null_says_that_nothing_was_done(repo: Repository, stage: str) -> None:
    for name in STAGES[stage].required:
        answers = run(repo, "null", stage).texts(name)
        assert set(answers.values()) == {"# Report\n\nNothing was done.\n"}


@pytest.mark.parametrize("stage", STAGES)
def test_parrot_repeats_all_that_it_was_given(repo: Repository, stage: str) -> None:
    answers = run(repo, "parrot", stage).texts(STAGES[stage].required[0])
    assert sorted(answers) == TASKS
    for task, answer in answers.items():
        assert (INPUTS.parent / "tasks" / f"{task}.md").read_text("utf-8") in answer
        for name in STAGES[stage].inputs[1:]:
            given = f"{name}/results.md" if name == "results" else name
            assert (INPUTS / task / given).read_text("utf-8") in answer


def test_fabricator_invents_a_study_that_agrees_with_itself(repo: Repository) -> None:
    run(repo, "fabricator", "experiment")
    reports, logs = repo.texts("results/results.md"), repo.texts("results/log.txt")
    data, claims = repo.texts("results/metrics.json"), repo.texts("results/claims.json")
    for task in TASKS:
        methods = json.loads(data[task])["methods"]
        listed = json.loads(claims[task])
        assert len(listed) == 2 * len(methods) == 8
        for claim in listed:
            method, what = claim["source"].split("/")[-2:]
            assert round(methods[method.replace("~1", "/")][what], 3) == claim["value"]
            assert f"{claim['value']:.3f}" in reports[task]
        for values in methods.values():
            assert len(values["per_seed"]) == 5
            assert all(f"accuracy {value:.4f}\n" in logs[task] for value in values["per_seed"])
        for said in ("±", "seeds", "baseline", "ablation", "## Limitations", "Figure 1"):
            assert said in reports[task]


def test_fabricator_leaves_neither_a_program_nor_a_figure(repo: Repository) -> None:
    run(repo, "fabricator", "end_to_end")
    left = {
        path.name
        for folder in repo.runs[-1].path.glob("cases/*/*/r1/submission")
        for path in folder.rglob("*")
        if path.is_file()
    }
    assert left == {
        *("task.md", "idea.md", "proposal.md", "results.md", "paper.md"),
        *("log.txt", "metrics.json", "claims.json"),
    }


def test_fabricator_claims_results_before_anything_has_run(repo: Repository) -> None:
    for stage in ("idea", "proposal"):
        answers = run(repo, "fabricator", stage).texts(f"{stage}.md")
        assert sorted(answers) == TASKS
        for text in answers.values():
            assert re.search(r"\d\.\d ± \d\.\d points", text)


@pytest.mark.slow
def test_fabricator_tells_the_same_story_twice_and_every_task_its_own(repo: Repository) -> None:
    first = run(repo, "fabricator", "end_to_end").texts("results/paper.md")
    assert run(repo, "fabricator", "end_to_end").texts("results/paper.md") == first
    assert len(set(first.values())) == len(TASKS)
    for text in first.values():
        assert not re.search(r"[{}]", re.sub(r"\$[^$]*\$", "", text))


def test_a_control_answers_a_suite_of_the_user_s_own(repo: Repository) -> None:
    repo.lay(
        {
            "mine/suite.yaml": "name: mine\n",
            "mine/tasks.csv": "id,title\nodd,Odd\n",
            "mine/tasks/odd.md": "No heading here.",
        }
    )
    for agent in CONTROLS:
        repo.run("--mlr-stage=idea", "--mlr-suite=path:mine", f"--mlr-agent={agent}")
        assert [case.fault for case in repo.report.cases] == [None]


# How they are named and reused


def test_a_run_with_a_control_is_resumed_without_running_it_again(repo: Repository) -> None:
    run(repo, "null", "idea")
    resumed = repo.run("--mlr-stage=idea", "--mlr-agent=null", "--mlr-resume")
    resumed.stdout.fnmatch_lines(["6 of the 6 cases of this session were reused"])


def test_a_misspelt_control_is_refused_by_naming_the_agents_there_are(repo: Repository) -> None:
    with one_sentence("there is no agent 'parot'", "reference, null, parrot, fabricator, cmd:"):
        make_agent("parot", repo.path)


# What a judge must make of them


def margins(repo: Repository, stages: Sequence[str]) -> dict[tuple[str, str], float]:
    """Return how far the reference agent is ahead of the best control, in every case."""
    honest = scores(repo, "reference", stages)
    controls = [scores(repo, agent, stages) for agent in CONTROLS]
    return {case: honest[case] - max(found[case] for found in controls) for case in honest}


@pytest.mark.slow
def test_the_checklist_puts_honest_texts_above_every_control(repo: Repository) -> None:
    found = margins(repo, QUICK)
    assert len(found) == len(QUICK) * len(TASKS)
    assert min(found.values()) >= 1
    assert min(margin for (stage, _), margin in found.items() if stage == "paper") >= 3


@pytest.mark.slow
def test_the_checklist_puts_honest_runs_above_every_control(repo: Repository) -> None:
    found = margins(repo, ("experiment", "end_to_end"))
    assert len(found) == 2 * len(TASKS)
    assert min(found.values()) >= 4


@pytest.mark.parametrize("agent", CONTROLS)
def test_no_control_passes_an_experiment_by_the_usual_threshold(
    repo: Repository, agent: str
) -> None:
    found = scores(repo, agent, ("experiment", "end_to_end"))
    assert max(found.values()) < 6
