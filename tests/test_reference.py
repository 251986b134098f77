"""The bundled agent does what it says: real, repeatable little studies, honestly reported."""

from __future__ import annotations

import importlib.util
import json
import re
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from conftest import Repository
from pytest_mlrbench.agents.reference.paper import compose
from pytest_mlrbench.agents.reference.request import AgentError, Request
from pytest_mlrbench.judges.check_texts import Known, printed_numbers
from pytest_mlrbench.resources import shipped

INPUTS = shipped("benchmarks") / "suites" / "mini" / "inputs"
TASKS = sorted(path.name for path in INPUTS.iterdir())


def given(task: str, name: str) -> str:
    """A file that the agent left in an earlier run, and that later stages start from."""
    return (INPUTS / task / name).read_text("utf-8")


def measured(task: str) -> Any:
    return json.loads(given(task, "results/metrics.json"))


# Plans


@pytest.mark.parametrize("task", TASKS)
def test_a_proposal_promises_what_the_experiment_does(task: str) -> None:
    plan, done = " ".join(given(task, "proposal.md").split()), measured(task)
    assert re.search(rf"\b{done['runs']} seeds\b", plan)
    assert f"at least {done['hypothesis']['margin']:g} on average" in plan
    assert f"{done['runs']} random" in given(task, "idea.md")
    for word in ("baseline", "ablation", "refuted", "## Risks"):
        assert word in plan


# Experiments


@pytest.mark.parametrize("task", TASKS)
def test_a_report_has_all_that_a_study_needs(task: str) -> None:
    report, found = given(task, "results/results.md"), measured(task)
    assert {"baseline", "proposed", "ablation"} <= set(found["methods"])
    assert len(found["seeds"]) == len(set(found["seeds"])) >= 3
    for method in ("baseline", "proposed", "ablation"):
        row = next(line for line in report.splitlines() if f"({method}) |" in line)
        assert "±" in row
    assert "95% interval" in report
    assert len(found["limitations"]) >= 3
    assert all(sentence in report for sentence in found["limitations"])
    for link in re.findall(r"!\[[^\]]+\]\((\S+)\)", report):
        assert (INPUTS / task / "results" / link).read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("task", TASKS)
def test_means_and_spreads_are_those_of_the_seeds_in_the_log(task: str) -> None:
    log, found = given(task, "results/log.txt"), measured(task)
    for key, method in found["methods"].items():
        for name in found["metrics"]:
            runs = method[name]["per_seed"]
            assert method[name]["mean"] == pytest.approx(sum(runs) / len(runs))
            lines = re.findall(rf"  {key}: .*\b{name} (\S+?),?(?:\s|$)", log)
            assert lines == [f"{value:.4f}" for value in runs]


@pytest.mark.parametrize("task", TASKS)
def test_a_report_says_held_or_not_as_the_numbers_do(task: str) -> None:
    found = measured(task)
    gain, margin = found["gain_over"]["baseline"], found["hypothesis"]["margin"]
    held = gain["mean"] >= margin and gain["low"] > 0
    said = "**The hypothesis held.**" if held else "**The hypothesis did not hold.**"
    assert said in given(task, "results/results.md")


def test_some_hypotheses_fail_and_some_hold() -> None:
    assert {measured(task)["hypothesis"]["held"] for task in TASKS} == {True, False}


@pytest.mark.slow
@pytest.mark.parametrize("stage", ["experiment", "end_to_end"])
def test_a_run_can_be_repeated_to_the_last_digit(repo: Repository, stage: str) -> None:
    names = ("results/results.md", "results/claims.json", "results/metrics.json")
    runs = []
    for _ in range(2):
        repo.run(f"--mlr-stage={stage}").assert_outcomes(passed=len(TASKS))
        runs.append({name: repo.texts(name) for name in (*names, "results/log.txt")})
    first, second = runs
    for name in names:
        assert sorted(first[name]) == TASKS
        assert first[name] == second[name]
    for task, log in first["results/log.txt"].items():
        assert timeless(log) == timeless(second["results/log.txt"][task])


def timeless(log: str) -> str:
    return re.sub(r"^\S+Z |took \S+ s", "", log, flags=re.MULTILINE)


# Papers


def test_a_paper_prints_what_was_measured_and_no_other_number(repo: Repository) -> None:
    repo.run("--mlr-stage=paper").assert_outcomes(passed=len(TASKS))
    papers = repo.texts("results/paper.md")
    assert sorted(papers) == TASKS
    for task, paper in papers.items():
        claims = json.loads(given(task, "results/claims.json"))
        claimed = Known(claim["value"] for claim in claims)
        sections = re.split(r"^## ", paper, flags=re.MULTILINE)
        told = "\n".join(
            section
            for section in sections
            if section.startswith(("Abstract", "Results", "Analysis", "Conclusion"))
        )
        numbers = [number for number in printed_numbers(told) if not number.percent]
        assert len(numbers) >= 10
        assert [number for number in numbers if number not in claimed] == []
        assert results_table(paper) == results_table(given(task, "results/results.md"))


def results_table(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.startswith("|") and "±" in line]


@pytest.mark.parametrize("task", TASKS)
def test_a_paper_says_of_the_hypothesis_what_the_report_says(task: str, tmp_path: Path) -> None:
    paper = compose(Request(task, shutil.copytree(INPUTS / task, tmp_path / task)))
    held = measured(task)["hypothesis"]["held"]
    assert ("the hypothesis held." in paper) == held
    assert ("the hypothesis did not hold" in paper) == (not held)
    assert ("negative result" in paper) == (not held)


def test_a_paper_stops_at_a_number_that_its_source_contradicts(tmp_path: Path) -> None:
    def change(values: Mapping[str, Any]) -> AgentError:
        work = shutil.copytree(INPUTS / TASKS[0], tmp_path / "work", dirs_exist_ok=True)
        claims = json.loads(given(TASKS[0], "results/claims.json"))
        changed = [{**claim, **values} for claim in claims]
        (work / "results" / "claims.json").write_text(json.dumps(changed), "utf-8")
        with pytest.raises(AgentError) as caught:
            compose(Request(TASKS[0], work))
        return caught.value

    assert "but the source says" in str(change({"value": 0.9999}))
    assert "has no source for" in str(change({"source": "results/metrics.json#/elsewhere"}))


# Without its packages


@pytest.mark.parametrize("absent", ["sklearn", "matplotlib"])
def test_without_its_packages_the_extra_to_install_is_named(
    repo: Repository, monkeypatch: pytest.MonkeyPatch, absent: str
) -> None:
    find = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util,
        "find_spec",
        lambda name, package=None: None if name == absent else find(name, package),
    )
    result = repo.run("--mlr-stage=all")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    said = [line for line in result.errlines if line.strip()]
    assert said == [
        "ERROR: the reference agent needs scikit-learn and matplotlib:"
        " pip install 'pytest-mlrbench[reference]'."
    ]
    assert not repo.runs
