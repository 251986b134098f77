"""A benchmark that measured nothing is never green: exit 4, with the paths and the remedy."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from conftest import Repository

OWN = "def test_own():\n    pass\n"
OPTION = "def pytest_addoption(parser):\n    parser.addoption('--flavour')\n"
workers = pytest.mark.parametrize(
    "workers", [(), pytest.param(("-n2",), marks=pytest.mark.slow)], ids=["serial", "workers"]
)


REMEDY = " These paths, perhaps from addopts, have none of our tests: add test_mlr_experiment.py."


def refused(repo: Repository, result: pytest.RunResult, where: str, remedy: str = "") -> None:
    """The session has collected none of the ten cases from *where*, and left nothing behind."""
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(
        [
            f"ERROR: --mlr-stage=experiment has collected none of its 10 cases from {where}."
            f" Check -k, -m and --deselect.{remedy}"
        ]
    )
    assert repo.runs == []
    assert "passed" not in result.stdout.str()


@workers
def test_a_path_in_addopts_leaves_no_room_for_the_shipped_tests(
    repo: Repository, workers: tuple[str, ...]
) -> None:
    repo.lay({"pytest.ini": "[pytest]\naddopts = tests\n", "tests/test_own.py": OWN})
    refused(repo, repo.measure(*workers), "tests", REMEDY)


def test_the_remedy_for_a_path_in_addopts_works(repo: Repository) -> None:
    repo.lay({"pytest.ini": "[pytest]\naddopts = tests\n", "tests/test_own.py": OWN})
    repo.measure("test_mlr_experiment.py").assert_outcomes(passed=5, failed=6)


@workers
def test_the_value_of_an_option_of_ones_own_may_look_like_a_path(
    repo: Repository, workers: tuple[str, ...]
) -> None:
    repo.lay({"conftest.py": OPTION, "test_own.py": OWN, "sweet/readme.txt": ""})
    refused(repo, repo.measure(*workers, "--flavour", "sweet"), str(repo.path), REMEDY)


@workers
def test_the_value_of_an_option_of_ones_own_may_be_no_path(
    repo: Repository, workers: tuple[str, ...]
) -> None:
    repo.lay({"conftest.py": OPTION, "test_own.py": OWN})
    repo.measure(*workers, "--flavour", "sweet").assert_outcomes(passed=4, failed=6)


def test_the_value_of_an_option_of_ones_own_may_be_a_folder_if_it_is_joined(
    repo: Repository,
) -> None:
    repo.lay({"conftest.py": OPTION, "test_own.py": OWN, "sweet/readme.txt": ""})
    repo.measure("--flavour=sweet").assert_outcomes(passed=4, failed=6)


@workers
def test_a_keyword_may_match_nothing(repo: Repository, workers: tuple[str, ...]) -> None:
    refused(repo, repo.measure(*workers, "-k", "nothing_like_this"), "*benchmarks")


def test_a_marker_may_match_nothing(repo: Repository) -> None:
    refused(repo, repo.measure("-m", "idea"), "*benchmarks")


@workers
def test_own_tests_do_not_make_up_for_it(repo: Repository, workers: tuple[str, ...]) -> None:
    repo.lay({"test_own.py": OWN})
    paths = ("test_own.py", "test_mlr_experiment.py")
    refused(repo, repo.measure(*workers, "-k", "test_own", *paths), "*test_mlr_experiment.py")


def test_it_is_refused_when_only_collecting_too(repo: Repository) -> None:
    refused(repo, repo.measure("--collect-only", "-k", "nothing_like_this"), "*benchmarks")


def test_a_module_of_another_stage_is_none_of_the_cases(repo: Repository) -> None:
    module = "from pytest_mlrbench.stage_tests import test_idea\n"
    repo.lay({"test_research.py": module})
    refused(repo, repo.measure("test_research.py"), "test_research.py", REMEDY)


def test_a_pasted_id_with_a_typing_error_is_told_the_right_one(repo: Repository) -> None:
    result = repo.measure("test_mlr_experiment.py::test_experiment[iclr2025_scop]")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*no case 'iclr2025_scop': did you mean 'iclr2025_scope'?"])
