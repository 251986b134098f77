"""Running the published tasks: chosen by what is known of them, from texts that are checked."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from conftest import Repository

PUBLISHED = (
    "--mlr-stage=idea",
    "--mlr-suite=mlrbench",
    "--mlr-agent=published:o4-mini-2025-04-16",
    "--mlr-judge=published",
)
COLLECT = (*PUBLISHED, "--collect-only", "-q")
AGENT = """
import os, pathlib
workspace = pathlib.Path(os.environ["MLR_WORKSPACE"])
given = {path.name: path.read_text()[:60] for path in workspace.iterdir()}
(workspace / "proposal.md").write_text(f"# Proposal\\n\\n{given}\\n")
"""
PROPOSE = ("--mlr-stage=proposal", "--mlr-suite=mlrbench", "--mlr-agent=cmd:python agent.py")


@pytest.fixture
def checkout() -> Path:
    if not (data := os.environ.get("MLRBENCH_DATA")):
        pytest.skip("MLRBENCH_DATA is not set: the published texts are not here")
    return Path(data) / "mlrbench"


@pytest.mark.parametrize(
    ("options", "number"),
    [
        (["--mlr-category=multimodality,others"], 5),
        (["--mlr-category", "trustworthy_ai", "--mlr-conference=iclr", "--mlr-year=2025"], 11),
        (["--mlr-year=2023,2024"], 164),
        (["--mlr-distinct"], 188),
        (["--mlr-sample=9", "--mlr-stratify=category", "--mlr-distinct"], 9),
    ],
)
def test_tasks_are_chosen_by_what_is_known_of_them(
    repo: Repository, options: list[str], number: int
) -> None:
    result = repo.run(*COLLECT, *options)
    result.stdout.fnmatch_lines([f"{number} tests collected*"])


def test_the_header_says_how_tasks_were_chosen_and_the_record_too(repo: Repository) -> None:
    result = repo.run(*PUBLISHED, "--mlr-sample=12", "--mlr-stratify=category", "--mlr-distinct")
    chosen = "no near-duplicates, drawn with seed 0, stratified by category"
    result.stdout.fnmatch_lines([f"*12 of the 201 tasks of MLR-Bench, {chosen}*"])
    choice = repo.report.run.selection
    assert (choice.sample, choice.stratify, choice.distinct) == (12, "category", True)


def test_settings_may_stand_in_the_ini_file(repo: Repository) -> None:
    ini = "[pytest]\nmlr_category = multimodality others\nmlr_distinct = true\nmlr_year = 2024\n"
    repo.lay({"pytest.ini": ini})
    repo.run(*COLLECT).stdout.fnmatch_lines(["4 tests collected*"])


@pytest.mark.parametrize(
    ("options", "number"),
    [
        (["--mlr-category=ML_Theory"], 50),
        (["--mlr-category=Trustworthy_AI", "--mlr-conference=ICLR", "--mlr-year=2025"], 11),
    ],
)
def test_categories_and_conferences_are_known_in_any_case(
    repo: Repository, options: list[str], number: int
) -> None:
    repo.run(*COLLECT, *options).stdout.fnmatch_lines([f"{number} tests collected*"])


def test_an_unknown_category_is_told_those_there_are(repo: Repository) -> None:
    result = repo.run(*COLLECT, "--mlr-category=nlp")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*has the category 'nlp': there is ai_for_science, *"])


# Texts and inputs


def test_without_the_texts_the_run_stops_at_the_start_and_says_the_command(
    repo: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(repo.path / "cache"))
    repo.lay({"agent.py": AGENT})
    result = repo.run(*PROPOSE)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(
        ["*inputs are missing for 201 of 201 cases*: run `mlrbench tasks fetch --stage proposal`*"]
    )
    assert repo.runs == []


PAPERS = ("--mlr-stage=paper", "--mlr-suite=mlrbench", "--mlr-agent=cmd:python agent.py")
ONLY = "published for the ten tasks of mlrbench-10 only: --mlr-suite=mlrbench-10"


@pytest.fixture
def nothing_fetched(repo: Repository, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(repo.path / "cache"))
    repo.lay({"agent.py": AGENT})


@pytest.mark.usefixtures("nothing_fetched")
@pytest.mark.parametrize("where", [(), ("--mlr-tasks-dir=texts",)], ids=["cache", "checkout"])
def test_what_is_not_published_is_not_advised_to_be_fetched(
    repo: Repository, where: tuple[str, ...]
) -> None:
    repo.lay({"texts/tasks/iclr2023_dg.md": "# Another text\n"})
    result = repo.run(*PAPERS, "--mlr-tasks=iclr2023_dg", *where)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"*: the results a paper starts from are {ONLY}."])
    assert "tasks fetch" not in result.stderr.str()


@pytest.mark.usefixtures("nothing_fetched")
def test_where_some_can_be_fetched_the_others_are_counted(repo: Repository) -> None:
    result = repo.run(*PAPERS, "--mlr-tasks=iclr2023_dg,iclr2023_bands,iclr2025_dl4c")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(
        [
            "*for mlrbench/paper/iclr2025_dl4c/r1 (inputs are missing for 3 of 3 cases)*: run"
            " `mlrbench tasks fetch --stage paper`, or give a checkout with --mlr-tasks-dir; 2 of"
            f" them need results, {ONLY}."
        ]
    )


@pytest.mark.usefixtures("nothing_fetched")
def test_a_stage_that_needs_no_results_is_advised_as_ever(repo: Repository) -> None:
    both = ("--mlr-stage=idea,paper", "--mlr-tasks=iclr2023_dg")
    repo.run(*PAPERS, *both).stderr.fnmatch_lines(
        [
            "*no task.md for mlrbench/idea/iclr2023_dg/r1 (*run `mlrbench tasks fetch --stage"
            f" idea,paper`, *; 1 of them need results, {ONLY}."
        ]
    )


def test_the_header_of_a_mixed_selection_says_what_is_not_published(
    repo: Repository, checkout: Path
) -> None:
    repo.lay({"agent.py": AGENT})
    some = ("--mlr-tasks=iclr2023_dg,iclr2025_dl4c", f"--mlr-tasks-dir={checkout}")
    repo.run(*PAPERS, *some).stdout.fnmatch_lines(
        [
            "mlrbench: 1 of 2 cases lack inputs, and will not be measured: the results a paper"
            f" starts from are {ONLY}"
        ]
    )


def test_a_folder_that_is_no_checkout_is_refused(repo: Repository) -> None:
    repo.lay({"agent.py": AGENT})
    result = repo.run(*PROPOSE, "--mlr-tasks-dir=.")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*is no checkout of the published repository*"])


@pytest.mark.parametrize("suite", ["mini", "path:ours"])
def test_a_checkout_is_for_the_published_suites(repo: Repository, suite: str) -> None:
    repo.lay({"ours/a.md": "# A\n", "texts/tasks/a.md": "# A\n"})
    result = repo.run("--mlr-stage=idea", f"--mlr-suite={suite}", "--mlr-tasks-dir=texts")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*--mlr-tasks-dir is for the texts of MLR-Bench*"])


def test_published_inputs_are_laid_out_and_what_lacks_them_is_not_measured(
    repo: Repository, checkout: Path
) -> None:
    repo.lay({"agent.py": AGENT})
    some = "--mlr-tasks=iclr2025_dl4c,iclr2025_bi_align,iclr2025_wsl"
    result = repo.run(*PROPOSE, f"--mlr-tasks-dir={checkout}", some)
    result.stdout.fnmatch_lines(
        [
            "mlrbench: 1 of 3 cases lack inputs, and will not be measured: run `mlrbench tasks *",
            "ERROR not measured (no inputs) *iclr2025_wsl*",
        ]
    )
    assert repo.report.summary[0].not_measured_causes == {"no_inputs": 1}
    given = repo.texts("proposal.md")
    assert set(given) == {"iclr2025_dl4c", "iclr2025_bi_align"}
    for name in ("task.md", "idea.md", "related_work.md"):
        assert f"'{name}':" in given["iclr2025_dl4c"]


def test_inputs_that_came_later_are_used_on_resume(repo: Repository, checkout: Path) -> None:
    repo.lay({"agent.py": AGENT})
    for task in ("iclr2025_dl4c", "iclr2025_bi_align"):
        place = repo.path / "texts/ideas_and_proposals" / task
        shutil.copytree(checkout / "ideas_and_proposals" / task, place)
        (repo.path / "texts/tasks").mkdir(exist_ok=True)
        shutil.copy(checkout / f"tasks/{task}.md", repo.path / "texts/tasks")
    later = repo.path / "texts/ideas_and_proposals/iclr2025_dl4c/related_work.md"
    text = later.read_text("utf-8")
    later.unlink()
    words = (*PROPOSE, "--mlr-tasks-dir=texts", "--mlr-tasks=iclr2025_dl4c,iclr2025_bi_align")
    repo.run(*words)
    assert repo.report.summary[0].not_measured_causes == {"no_inputs": 1}
    later.write_text(text, "utf-8")
    repo.run(*words, "--mlr-resume").stdout.fnmatch_lines(["1 of the 2 cases * were reused"])
    assert repo.report.summary[0].not_measured_causes == {}


def test_a_text_that_is_not_the_published_one_stops_the_run(
    repo: Repository, checkout: Path
) -> None:
    repo.lay({"agent.py": AGENT, "texts/tasks/iclr2025_dl4c.md": "# Something else\n"})
    result = repo.run(
        "--mlr-stage=idea", *PROPOSE[1:], "--mlr-tasks-dir=texts", "--mlr-tasks=iclr2025_dl4c"
    )
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(
        ["*task.md of task iclr2025_dl4c*is not the published content*tasks fetch*"]
    )
