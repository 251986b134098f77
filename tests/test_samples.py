"""The data that ships: what the README and other texts say about it holds."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from conftest import Repository
from pytest_mlrbench.agents import reference
from pytest_mlrbench.resources import shipped
from pytest_mlrbench.suites.loading import load_suite
from pytest_mlrbench.suites.stages import STAGES

MINI = load_suite("mini")


def test_the_sample_replay_scores_two_of_six_and_says_so(repo: Repository) -> None:
    folder = shipped("fixtures") / "replay"
    done = repo.run(
        "--mlr-stage=idea", f"--mlr-agent=replay:{folder}#demo", f"--mlr-judge=replay:{folder}"
    )
    done.assert_outcomes(passed=1, failed=1, errors=4)
    done.stdout.fnmatch_lines(
        [
            "idea   2/6     1       1       4             5.50          2.00",
            "  idea judges' overall means: anna 6.50 (n=2), bert 4.50 (n=2)",
            "  idea not measured: 4 not in replay",
        ]
    )


@pytest.mark.parametrize("task", [task.id for task in MINI.tasks])
def test_the_inputs_of_mini_are_what_the_reference_agent_wrote(task: str) -> None:
    plans = Path(reference.__file__).parent / "plans" / task
    for name in ("idea.md", "related_work.md", "proposal.md"):
        given = MINI.folder / "inputs" / task / name
        assert given.read_text("utf-8") == (plans / name).read_text("utf-8")


@pytest.mark.parametrize("task", MINI.tasks, ids=lambda task: task.id)
def test_the_results_given_to_the_paper_stage_bear_their_claims(task: Any) -> None:
    inputs = MINI.inputs(task, STAGES["paper"])
    claims = json.loads(inputs["results/claims.json"].read_text("utf-8"))
    assert len(claims) >= 10
    for claim in claims:
        file, _, pointer = claim["source"].partition("#")
        value: Any = json.loads(inputs[file].read_text("utf-8"))
        for step in pointer.strip("/").split("/"):
            value = value[int(step)] if isinstance(value, list) else value[step]
        decimals = len(str(claim["value"]).partition(".")[2])
        assert round(value, decimals) == pytest.approx(claim["value"], abs=10**-decimals / 2 + 1e-9)


def test_the_terminal_run_in_the_readme_is_a_real_one(repo: Repository) -> None:
    text = (Path(__file__).parents[1] / "README.md").read_text("utf-8")
    block = text.partition("```console\n$ pytest ")[2].partition("\n```")[0]
    command, *lines = block.splitlines()
    shown = [
        line for line in lines if "runs/2" not in line and line != "…" and " in 0." not in line
    ]
    assert len(shown) >= 20
    repo.run(*command.split()).stdout.fnmatch_lines([line.replace("[", "[[]") for line in shown])


def snippet(words: str) -> str:
    """The piece of Python in the README that holds *words*."""
    text = (Path(__file__).parents[1] / "README.md").read_text("utf-8")
    (found,) = [
        piece for piece in re.findall(r"```python\n(.*?)```", text, re.DOTALL) if words in piece
    ]
    return str(found)


def test_the_test_in_the_readme_is_one(repo: Repository) -> None:
    repo.lay({"test_mine.py": snippet("mlr_stub_provider")})
    repo.run("test_mine.py").assert_outcomes(passed=1)


def test_the_agents_in_the_readme_are_real_ones(repo: Repository) -> None:
    """They answer every task of ``mini``, with 3 or 4 of 10, as the README says."""
    command, function, reader = map(snippet, ("# agent.py", "# my_agent.py", "import collect"))
    repo.lay({"agent.py": command, "my_agent.py": function})
    for agent in (f"cmd:{sys.executable} agent.py", "py:my_agent:answer"):
        done = repo.run("--mlr-stage=idea", f"--mlr-agent={agent}", "--junitxml=scores.xml")
        done.assert_outcomes(failed=6)
        assert {result.overall for result in repo.report.cases} == {3.0, 4.0}
    pytest.importorskip("pandas")
    for shard in (1, 2):
        shutil.copy(repo.path / "scores.xml", repo.path / f"shard-{shard}.xml")
    told = subprocess.run(
        [sys.executable, "-c", reader], cwd=repo.path, capture_output=True, text=True, check=True
    )
    assert "('mini/idea/calibration_digits/r1', 3.0," in told.stdout
