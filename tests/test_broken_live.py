"""What a breaker found: each kind stays mended."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from conftest import Repository
from pytest_mlrbench.agents.scaffold_steps import Steps
from pytest_mlrbench.errors import AgentFault, InputError
from pytest_mlrbench.models.amounts import book_of
from pytest_mlrbench.run.folder import RunFolder
from pytest_mlrbench.run.submission import check_contract
from pytest_mlrbench.suites.stages import STAGES

CONFTEST = """
import pytest

@pytest.fixture(scope="session")
def mlr_agent():
    def answer(case):
        with open("calls", "a") as calls:
            print(case.task_id, file=calls)
        (case.workspace / "idea.md").write_text("# An idea")
    return answer
"""
SKIP = """
def pytest_runtest_setup(item):
    if "wine" in item.nodeid:
        pytest.skip("not today")
"""
AUTOUSE = """
@pytest.fixture(autouse=True)
def choosy(request):
    if "wine" in request.node.nodeid:
        pytest.skip("not today")
"""
XFAIL = """
def pytest_collection_modifyitems(items):
    for item in items:
        item.add_marker(pytest.mark.xfail)
"""
IDEA = ("--mlr-stage=idea", "--mlr-agent=fixture", "test_mlr.py")
EASY = "--mlr-threshold=overall>=1"


def lay(repo: Repository, more: str = "") -> None:
    repo.lay(
        {
            "conftest.py": CONFTEST + more,
            "test_mlr.py": "from pytest_mlrbench.stage_tests import *\n",
        }
    )


@pytest.mark.parametrize("more", [SKIP, AUTOUSE], ids=["hook", "fixture"])
@pytest.mark.parametrize("options", [(), ("--mlr-concurrency=4",)], ids=["alone", "at once"])
def test_a_test_that_is_skipped_while_it_runs_is_never_green(
    repo: Repository, more: str, options: tuple[str, ...]
) -> None:
    lay(repo, more)
    result = repo.run(*IDEA, EASY, *options)
    result.assert_outcomes(passed=5, skipped=1)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["exit 1: 1 of the 6 cases of this session are *"])


def test_a_case_that_a_fixture_may_skip_is_not_begun_early(repo: Repository) -> None:
    lay(repo, AUTOUSE)
    repo.run(*IDEA, EASY, "--mlr-concurrency=4")
    assert "label_noise_wine" not in (repo.path / "calls").read_text()


@pytest.mark.parametrize("more", [SKIP, XFAIL], ids=["skip", "xfail"])
def test_a_failed_case_is_not_green_on_resume_either(repo: Repository, more: str) -> None:
    lay(repo)
    assert repo.run(*IDEA, EASY, "-k", "wine").ret == 0
    lay(repo, more)
    result = repo.run(*IDEA, "-k", "wine", "--mlr-resume")  # now it misses overall>=6.0
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["exit 1: 1 of the 1 cases *tests have not passed"])


def test_links_inside_a_submission_are_replayed_as_what_they_show(repo: Repository) -> None:
    repo.lay({"agent.sh": "echo '# An idea' > draft.md; ln -s draft.md idea.md\n"})
    run = ("--mlr-stage=idea", EASY, "--mlr-limit=1")
    assert repo.run(*run, "--mlr-agent=cmd:sh agent.sh").ret == 0
    assert repo.run(*run, f"--mlr-agent=replay:{repo.runs[0].path}").ret == 0
    assert set(repo.texts("idea.md").values()) == {"# An idea\n"}


def test_a_step_keeps_what_its_links_show(tmp_path: Path) -> None:
    before, after = tmp_path / "before", tmp_path / "after"
    (before / "real").mkdir(parents=True)
    (before / "results").mkdir()
    (before / "real/results.md").write_text("0.5")
    (before / "results/results.md").symlink_to("../real/results.md")
    (before / "out").symlink_to("/etc/hostname")
    steps = Steps(tmp_path / "steps")
    steps.keep_files("experiment", "key", before)
    assert steps.lay_files("experiment", "key", after)
    assert (after / "results/results.md").read_text() == "0.5"
    assert not (after / "out").exists()


def test_a_key_in_an_agents_last_words_is_hidden(
    repo: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-0123456789abcdef")
    repo.lay({"agent.sh": 'echo "key: $OPENAI_API_KEY"; exit 3\n'})
    result = repo.run(
        "--mlr-stage=idea", "--mlr-agent=cmd:sh agent.sh", "--mlr-limit=1", "--junitxml=j.xml"
    )
    assert "sk-0123456789abcdef" not in result.stdout.str() + (repo.path / "j.xml").read_text()
    result.stdout.fnmatch_lines(["*its last words: key: *key*"])


def test_a_header_on_the_command_line_is_not_recorded(
    repo: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    lay(repo)
    line = "--mlr-model=openai:j header.X-T=s3cret temperature=0"
    monkeypatch.setattr("sys.argv", ["pytest", line])
    repo.run(*IDEA, EASY, "--mlr-limit=1", line)
    command = repo.report.run.sessions[-1].command
    assert command[1] == "--mlr-model=openai:j header.X-T=… temperature=0"


@pytest.mark.parametrize("kind", ["file", "link"])
def test_reviews_that_an_agent_has_planted_are_taken_away(repo: Repository, kind: str) -> None:
    plant = {"file": "echo x > ../reviews", "link": "mkdir ../mine; ln -s mine ../reviews"}[kind]
    repo.lay({"agent.sh": f"echo '# An idea' > idea.md; {plant}\n"})
    result = repo.run("--mlr-stage=idea", "--mlr-agent=cmd:sh agent.sh", "--mlr-limit=1", EASY)
    result.assert_outcomes(passed=1)
    (reviews,) = repo.runs[-1].path.glob("cases/*/*/*/reviews")
    assert reviews.is_dir()
    assert not reviews.is_symlink()


def test_random_bytes_are_no_paper(tmp_path: Path) -> None:
    (tmp_path / "results").mkdir()
    paper = tmp_path / "results/paper.pdf"
    paper.write_bytes(b"%PDF-1.7\n" + os.urandom(2000).replace(b"startxref", b""))
    with pytest.raises(AgentFault, match=r"paper\.md"):
        check_contract(tmp_path, STAGES["paper"])
    paper.write_bytes(b"%PDF-1.7\n...\nstartxref\n9\n%%EOF\n")
    check_contract(tmp_path, STAGES["paper"])


@pytest.mark.parametrize(
    "budget", [5, {"nano": "x"}, {"nano": -1}, {"tokens": -5}, {"held": 3}, {"cut": {"calls": -1}}]
)
def test_a_damaged_account_is_said(budget: object) -> None:
    with pytest.raises(InputError, match="delete it to begin at 0"):
        book_of({"budget": budget})


@pytest.mark.parametrize("text", ["[1]", '{"weird": "x"}', '{"a/b/c/d": "x"}', "5", "null"])
def test_a_damaged_selection_is_said(tmp_path: Path, text: str) -> None:
    (tmp_path / "selection.json").write_text(text)
    with pytest.raises(InputError, match="damaged"):
        RunFolder(tmp_path).selection()


@pytest.mark.parametrize("text", ["[]", "not json", '{"agent": 3}'])
def test_a_run_that_cannot_be_read_is_no_agent(repo: Repository, text: str) -> None:
    repo.lay({"run/run.json": text})
    result = repo.run("--mlr-stage=idea", "--mlr-agent=replay:run")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*cannot read the run's run.json*"])
