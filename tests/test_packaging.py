"""The wheel holds what a run needs, and works where there is nothing else."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    pip = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", str(folder), str(ROOT)]
    subprocess.run(pip, check=True)
    (built,) = folder.glob("*.whl")
    return built


@pytest.mark.slow
def test_the_wheel_holds_the_shipped_folders_and_the_entry_points(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        entry_points = archive.read(next(n for n in names if n.endswith("entry_points.txt")))
    for name in (
        "py.typed",
        "benchmarks/test_mlr_experiment.py",
        "benchmarks/suites/mlrbench/tasks.csv",
        "benchmarks/suites/mini/inputs/calibration_digits/results/metrics.json",
        "benchmarks/published/idea.csv",
        "rubrics/experiment.yaml",
        "fixtures/replay/agent_reviews/idea_proposal_reviews_anna/calibration_digits/idea/idea_demo.json",
        "schemas/result.schema.json",
        "agents/reference/plans/calibration_digits/paper.md",
        "agents/fabricated/paper.md",
        "agents/prompts/paper.md",
        "judges/prompts/review.md",
    ):
        assert f"pytest_mlrbench/{name}" in names
    assert not [name for name in names if "/tests/" in name or name.endswith(".pyc")]
    assert b"mlrbench = pytest_mlrbench.plugin" in entry_points
    assert b"mlrbench = pytest_mlrbench.cli:main" in entry_points


@pytest.mark.slow
def test_an_empty_environment_measures_published_results(wheel: Path, tmp_path: Path) -> None:
    venv = tmp_path / ".venv"
    subprocess.run([sys.executable, "-m", "venv", str(venv)], check=True)
    subprocess.run([venv / "bin/pip", "install", "-q", str(wheel)], check=True)
    words = "--mlr-stage=paper --mlr-suite=mlrbench-10 --mlr-judge=published --tb=no -q"
    done = subprocess.run(
        [venv / "bin/pytest", *words.split(), "--mlr-agent=published:o4-mini-2025-04-16"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "paper  10/10   5       5       0             5.90          2.20" in done.stdout
    # The short form, though the environment lies inside the root folder.
    assert "/10 test_mlr_paper.py::test_paper[iclr2025_" in done.stdout
