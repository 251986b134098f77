"""The published scores, the means that follow from them, and the list of the 201 tasks."""

from __future__ import annotations

import csv
import os
import shutil
import subprocess
import sys
import unicodedata
from collections import Counter
from pathlib import Path

import pytest

from pytest_mlrbench.errors import InputError
from pytest_mlrbench.published import FIGURE, PANEL, TABLES, Published, UnknownSystem, check_means
from pytest_mlrbench.resources import shipped
from pytest_mlrbench.suites.loading import load_suite

BENCHMARKS = shipped("benchmarks")
CLAUDE, GEMINI = "claude-3-7-sonnet", "gemini-2-5-pro"
BUILD = Path(__file__).parents[1] / "ci" / "published" / "build.py"
PER_YEAR = {
    ("iclr", "2023"): 14,
    ("iclr", "2024"): 17,
    ("iclr", "2025"): 37,
    ("icml", "2023"): 18,
    ("icml", "2024"): 24,
    ("neurips", "2023"): 41,
    ("neurips", "2024"): 50,
}
#: stage, system -> mean Overall of (the Gemini judge, the Claude judge), to two decimals; the
#: two-judge means published in the paper's averaged tables are the means of these.
OVERALL = {
    ("idea", "deepseek-r1"): (8.29, 7.93),
    ("idea", "o4-mini-2025-04-16"): (8.29, 7.92),
    ("idea", "gemini-2.5-pro-preview"): (8.21, 7.95),
    ("idea", "qwen3-235b-a22b"): (8.12, 7.93),
    ("idea", "claude-3-7-sonnet-20250219"): (8.00, 7.91),
    ("idea", "ministral-8b"): (7.75, 7.61),
    ("proposal", "o4-mini-2025-04-16"): (8.34, 8.00),
    ("proposal", "gemini-2.5-pro-preview"): (8.32, 7.99),
    ("proposal", "claude-3-7-sonnet-20250219"): (8.08, 8.00),
    ("proposal", "qwen3-235b-a22b"): (8.08, 7.99),
    ("proposal", "deepseek-r1"): (8.04, 7.99),
    ("proposal", "ministral-8b"): (7.21, 7.78),
    ("experiment", "claude-code"): (3.00, 6.90),
    ("experiment", "codex"): (4.70, 5.20),
    ("paper", "gemini-2.5-pro-preview"): (5.90, 7.30),
    ("paper", "claude-3-7-sonnet-20250219"): (5.40, 7.60),
    ("end_to_end", "claude-code"): (3.50, 5.90),
    ("end_to_end", "gemini-cli"): (3.40, 5.80),
    ("end_to_end", "ai-scientist-v2"): (5.00, 3.50),
    ("end_to_end", "o4-mini+claude-code"): (2.20, 5.70),
    ("end_to_end", "gemini+claude-code"): (2.30, 5.20),
    ("end_to_end", "codex"): (1.70, 4.50),
}
#: stage, system -> mean Overall over both judges.
PANEL_OVERALL = {
    ("idea", "deepseek-r1"): 8.107,
    ("idea", "o4-mini-2025-04-16"): 8.107,
    ("idea", "gemini-2.5-pro-preview"): 8.077,
    ("idea", "qwen3-235b-a22b"): 8.025,
    ("idea", "claude-3-7-sonnet-20250219"): 7.953,
    ("idea", "ministral-8b"): 7.677,
    ("proposal", "o4-mini-2025-04-16"): 8.169,
    ("proposal", "gemini-2.5-pro-preview"): 8.157,
    ("proposal", "claude-3-7-sonnet-20250219"): 8.042,
    ("proposal", "qwen3-235b-a22b"): 8.035,
    ("proposal", "deepseek-r1"): 8.015,
    ("proposal", "ministral-8b"): 7.493,
    ("experiment", "claude-code"): 4.95,
    ("experiment", "codex"): 4.95,
    ("paper", "gemini-2.5-pro-preview"): 6.60,
    ("paper", "claude-3-7-sonnet-20250219"): 6.50,
    ("paper", "o4-mini-2025-04-16"): 5.90,
    ("end_to_end", "claude-code"): 4.70,
    ("end_to_end", "gemini-cli"): 4.60,
    ("end_to_end", "ai-scientist-v2"): 4.25,
    ("end_to_end", "o4-mini+claude-code"): 3.95,
    ("end_to_end", "gemini+claude-code"): 3.75,
    ("end_to_end", "codex"): 3.10,
}


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def overall(stage: str, system: str, judge: str) -> list[int]:
    data = Published.load()
    return [data.scores(stage, system, t)[judge][1]["overall"] for t in data.tasks(stage, system)]


def mean(values: list[int]) -> float:
    return sum(values) / len(values)


def copy_of_data(folder: Path) -> Path:
    return Path(shutil.copytree(BENCHMARKS / "published", folder / "published"))


# --- the suites ---------------------------------------------------------------------------------


def test_the_201_tasks() -> None:
    tasks = rows(BENCHMARKS / "suites" / "mlrbench" / "tasks.csv")
    ids = [task["id"] for task in tasks]
    assert len(set(ids)) == len(ids) == 201
    assert ids == sorted(ids)
    assert Counter((task["conference"], task["year"]) for task in tasks) == PER_YEAR
    assert all(task["id"].startswith(f"{task['conference']}{task['year']}_") for task in tasks)


def test_titles_are_plain_text() -> None:
    for task in rows(BENCHMARKS / "suites" / "mlrbench" / "tasks.csv"):
        title = task["title"]
        assert title == " ".join(title.split()), task
        assert len(title) > 5, task
        assert title[-1] not in ".,:;-*#", task
        assert not set(title) & set("#*`[]|\u00a0"), task
        assert not any(unicodedata.category(character).startswith("C") for character in title), task
        generic = ("overview", "about", "call for", "summary", "introduction", "topics")
        assert not title.lower().startswith(generic), task


def test_the_ten_tasks_are_those_with_experiments() -> None:
    ten = load_suite("mlrbench-10").tasks
    assert [task.id for task in ten] == list(Published.load().tasks("experiment", "codex"))
    assert len(ten) == 10
    assert set(ten) < set(load_suite("mlrbench").tasks)


# --- the scores ---------------------------------------------------------------------------------


def test_every_value_is_on_its_scale_and_none_is_missing() -> None:
    data, counts = Published.load(), Counter[str]()
    for stage in data.stages:
        for system in (s for s in data.systems.values() if stage in s.raw):
            for task in data.tasks(stage, system.name):
                reviews = data.scores(stage, system.name, task)
                assert set(reviews) == {CLAUDE, GEMINI}, (stage, system.name, task)
                for judge, scores in reviews.values():
                    assert tuple(scores) == data.dimensions(stage)
                    counts[stage] += len(scores)
                    for dimension, score in scores.items():
                        highest = 5 if dimension == "confidence" else 10
                        assert 1 <= score <= highest, (stage, system.name, task, judge, dimension)
    assert counts == {
        "idea": 14472,
        "proposal": 16884,
        "experiment": 280,
        "paper": 300,
        "end_to_end": 780,
    }
    assert counts.total() == 32716


def test_the_files_hold_nothing_that_is_not_declared() -> None:
    """Every cell of the files is reachable: 32,716 values whatever the names."""
    values = 0
    for stage in Published.load().stages:
        for row in rows(BENCHMARKS / "published" / f"{stage}.csv"):
            assert next(iter(row)) == "task"
            values += sum(len(cell.split()) for column, cell in row.items() if column != "task")
    assert values == 32716


def test_tasks_of_each_system() -> None:
    data = Published.load()
    for system in data.systems.values():
        for stage in system.raw:
            expected = 201 if stage in ("idea", "proposal") else 10
            if system.name.endswith("no-code"):
                expected = 5
            assert len(data.tasks(stage, system.name)) == expected, (stage, system.name)


@pytest.mark.parametrize(("stage", "system"), OVERALL)
def test_overall_of_each_judge(stage: str, system: str) -> None:
    gemini, claude = OVERALL[stage, system]
    assert mean(overall(stage, system, GEMINI)) == pytest.approx(gemini, abs=0.00501)
    assert mean(overall(stage, system, CLAUDE)) == pytest.approx(claude, abs=0.00501)


@pytest.mark.parametrize(("stage", "system"), PANEL_OVERALL)
def test_overall_of_both_judges(stage: str, system: str) -> None:
    both = overall(stage, system, GEMINI) + overall(stage, system, CLAUDE)
    assert mean(both) == pytest.approx(PANEL_OVERALL[stage, system], abs=0.000501)


def test_judging_without_the_code_raises_the_scores() -> None:
    """The ablation has five tasks; the same five with code are 2.2 and 5.6."""
    data, no_code = Published.load(), "o4-mini+claude-code-no-code"
    tasks = data.tasks("end_to_end", no_code)
    for judge, with_code, without in ((GEMINI, 2.2, 3.8), (CLAUDE, 5.6, 6.8)):
        found = [
            data.scores("end_to_end", "o4-mini+claude-code", task)[judge][1]["overall"]
            for task in tasks
        ]
        assert mean(found) == pytest.approx(with_code)
        assert mean(overall("end_to_end", no_code, judge)) == pytest.approx(without)


# --- asking -------------------------------------------------------------------------------------


def test_a_review_names_the_judge_as_the_source_does() -> None:
    data = Published.load()
    names = {
        system: data.scores("end_to_end", system, "iclr2025_wsl")[GEMINI][0]
        for system in ("claude-code", "ai-scientist-v2")
    }
    assert names == {
        "claude-code": "gemini-2.5-pro-preview",
        "ai-scientist-v2": "gemini-2.5-pro-preview-05-06",
    }


def test_no_review_is_an_empty_answer() -> None:
    data = Published.load()
    no_code = "o4-mini+claude-code-no-code"
    assert data.scores("end_to_end", no_code, "iclr2025_wsl") == {}
    assert data.scores("experiment", "codex", "iclr2023_bands") == {}


@pytest.mark.parametrize(
    ("stage", "raw", "public"),
    [
        ("experiment", "claude", "claude-code"),
        ("end_to_end", "gemini", "gemini+claude-code"),
        ("idea", "gemini-2.5-pro-preview-03-25", "gemini-2.5-pro-preview"),
    ],
)
def test_the_source_name_is_accepted_within_its_stage(stage: str, raw: str, public: str) -> None:
    data = Published.load()
    assert data.system(stage, raw).name == public
    task = data.tasks(stage, public)[0]
    assert data.scores(stage, raw, task) == data.scores(stage, public, task)


def test_source_names_are_unambiguous() -> None:
    data = Published.load()
    for stage in data.stages:
        raw = [system.raw[stage] for system in data.systems.values() if stage in system.raw]
        assert len(raw) == len(set(raw)), stage


def test_an_unknown_system_is_told_the_known_ones_of_the_stage() -> None:
    data = Published.load()
    with pytest.raises(UnknownSystem) as failure:
        data.scores("experiment", "gemini-cli", "iclr2025_wsl")
    assert str(failure.value) == (
        "no published system 'gemini-cli' in stage experiment; known: claude-code, codex"
    )
    assert isinstance(failure.value, ValueError)


def test_an_unknown_stage_is_said_as_such() -> None:
    with pytest.raises(InputError, match="no reviews of stage 'competition', only of idea, "):
        Published.load().tasks("competition", "codex")


# --- the means ----------------------------------------------------------------------------------


def test_every_published_mean_follows_from_the_scores() -> None:
    report = check_means()
    assert report.mismatches == ()
    assert len(report.cells) == 378
    assert report.count(TABLES) == report.count(TABLES, "exact") == (236, 236)
    assert report.count(FIGURE) == report.count(FIGURE, "exact") == (14, 14)
    assert report.count(PANEL) == (128, 128)
    assert report.count(PANEL, "exact") == (105, 128)
    assert report.count(PANEL, "of rounded means") == (23, 128)
    assert report.count("Jul-2025 Table 3", "exact") == (25, 36)
    assert report.count("Jul-2025 Table 3", "of rounded means") == (11, 36)
    assert report.count("Jul-2025 Table 4", "of rounded means") == (12, 42)


def test_the_report_states_its_denominators() -> None:
    lines = check_means().format().splitlines()
    assert lines[0] == "Tables 9-18, one judge: 236 of 236 cells (236 exact, 0 of rounded means)"
    assert lines[1].startswith("Figure 3, one judge: 14 of 14 cells")
    assert lines[2] == "mean of both judges: 128 of 128 cells (105 exact, 23 of rounded means)"
    assert not any("differs" in line for line in lines)


def test_a_changed_score_is_found(tmp_path: Path) -> None:
    folder = copy_of_data(tmp_path)
    path = folder / "experiment.csv"
    first, *rest = path.read_text(encoding="utf-8").splitlines()
    task, cell, others = rest[0].split(",", 2)
    values = cell.split()
    values[0] = "1" if values[0] != "1" else "2"
    changed = [first, f"{task},{' '.join(values)},{others}", *rest[1:]]
    path.write_text("\n".join(changed) + "\n", encoding="utf-8")

    report = check_means(Published(folder))
    # Figure 3 has the cell of this judge; only Overall of the panel is published.
    assert [cell.row["dimension"] for cell in report.mismatches] == ["consistency"]
    assert report.count(FIGURE) == (13, 14)
    assert "Figure 3, one judge: 13 of 14 cells" in report.format()
    where = "Jul-2025 Fig 3, experiment, claude-code, claude-3-7-sonnet, consistency, 10, 8.8"
    assert f"differs: {where}; recomputed: " in report.format()


def test_a_missing_review_is_found(tmp_path: Path) -> None:
    folder = copy_of_data(tmp_path)
    path = folder / "paper.csv"
    lines = path.read_text(encoding="utf-8").splitlines()
    path.write_text("\n".join(lines[:-1]) + "\n", encoding="utf-8")
    report = check_means(Published(folder))
    assert {cell.row["stage"] for cell in report.mismatches} == {"paper"}
    assert len(report.mismatches) == 45  # Tables 5, 13 and 14 have 15 cells each
    assert all(cell.recomputed is None for cell in report.mismatches)


# --- generated from the source ------------------------------------------------------------------


def build(script: Path) -> subprocess.CompletedProcess[str]:
    data = os.environ.get("MLRBENCH_DATA")
    if not data:
        pytest.skip("MLRBENCH_DATA does not name a folder with published_scores.csv")
    command = [sys.executable, str(script), data, "--check"]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_the_committed_files_are_those_generated_from_the_source() -> None:
    done = build(BUILD)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "32716 score values" in done.stdout


def test_a_difference_from_the_source_is_shown(tmp_path: Path) -> None:
    script = tmp_path / "ci" / "published" / "build.py"
    script.parent.mkdir(parents=True)
    shutil.copy(BUILD, script)
    shutil.copytree(BENCHMARKS / "published", tmp_path / "benchmarks" / "published")
    for suite in ("mlrbench", "mlrbench-10"):
        folder = Path("benchmarks") / "suites" / suite
        shutil.copytree(BENCHMARKS / "suites" / suite, tmp_path / folder)
    for name, old, new in (
        ("published/means.csv", ",8.99\n", ",9.00\n"),
        ("suites/mlrbench-10/suite.yaml", "iclr2025_wsl", "iclr2025_wls"),
    ):
        path = tmp_path / "benchmarks" / name
        path.write_text(path.read_text("utf-8").replace(old, new, 1), encoding="utf-8")
    done = build(script)
    assert done.returncode == 1
    assert "-Jul-2025 Table 3,idea,ministral-8b,panel,consistency,201,9.00" in done.stdout
    assert "+Jul-2025 Table 3,idea,ministral-8b,panel,consistency,201,8.99" in done.stdout
    assert "missing: ['iclr2025_wsl']; not in the source: ['iclr2025_wls']" in done.stdout
