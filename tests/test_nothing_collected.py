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

OURS = "the shipped benchmarks"
OTHER = "The tests there are for --mlr-stage=idea: write that, or name test_mlr_experiment.py."
REMEDY = "These paths, perhaps from addopts, have none of our tests: add test_mlr_experiment.py."


def refused(repo: Repository, result: pytest.RunResult, where: str, remedy: str) -> None:
    """The session has collected none of the ten cases from *where*, and left nothing behind."""
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(
        [f"ERROR: --mlr-stage=experiment has collected none of its 10 cases from {where}. {remedy}"]
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
    refused(repo, repo.measure(*workers, "-k", "nothing_like_this"), OURS, "Check -k.")


def test_a_marker_may_match_nothing(repo: Repository) -> None:
    refused(repo, repo.measure("-m", "idea"), OURS, "Check -m.")


def test_the_options_that_were_used_are_named_and_no_others(repo: Repository) -> None:
    words = ("-k", "nothing", "--deselect=test_mlr_experiment.py")
    refused(repo, repo.measure(*words), OURS, "Check -k and --deselect.")
    repo.lay({"pytest.ini": "[pytest]\naddopts = -m paper\n"})
    refused(repo, repo.measure(*words), OURS, "Check -k, -m and --deselect.")


def test_files_may_be_left_out_by_an_option_too(repo: Repository) -> None:
    repo.lay({"test_research.py": "from pytest_mlrbench.stage_tests import *\n"})
    words = ("-k", "of_no_use_here", "--ignore-glob=*_research.py", "--ignore=elsewhere", ".")
    refused(repo, repo.measure(*words), ".", f"Check --ignore and --ignore-glob. {REMEDY}")


def test_where_no_option_was_used_it_was_a_hook(repo: Repository) -> None:
    hook = "def pytest_collection_modifyitems(items):\n    items.clear()\n"
    repo.lay({"conftest.py": hook, "test_own.py": "from pytest_mlrbench.stage_tests import *\n"})
    refused(repo, repo.measure("test_own.py"), "test_own.py", "A hook of a conftest.py or *")


@workers
def test_own_tests_do_not_make_up_for_it(repo: Repository, workers: tuple[str, ...]) -> None:
    repo.lay({"test_own.py": OWN})
    paths = ("test_own.py", "test_mlr_experiment.py")
    where = "test_own.py, test_mlr_experiment.py"
    refused(repo, repo.measure(*workers, "-k", "test_own", *paths), where, "Check -k.")


def test_it_is_refused_when_only_collecting_too(repo: Repository) -> None:
    result = repo.measure("--collect-only", "-k", "nothing_like_this")
    refused(repo, result, OURS, "Check -k.")


@workers
def test_a_module_of_another_stage_is_none_of_the_cases(
    repo: Repository, workers: tuple[str, ...]
) -> None:
    module = "from pytest_mlrbench.stage_tests import test_idea\n"
    repo.lay({"test_research.py": module})
    refused(repo, repo.measure(*workers, "test_research.py"), "test_research.py", OTHER)


def test_shipped_tests_of_another_stage_are_none_of_the_cases(repo: Repository) -> None:
    refused(repo, repo.measure("test_mlr_idea.py"), "test_mlr_idea.py", OTHER)
    pasted = "test_mlr_idea.py::test_idea[[]iclr2025_scope]"
    refused(repo, repo.measure(pasted.replace("[[]", "[")), pasted, OTHER)


@workers
@pytest.mark.parametrize("also", ["", "test_own.py", "test_mlr_experiment.py"])
def test_a_path_that_does_not_exist_is_said_as_pytest_says_it(
    repo: Repository, workers: tuple[str, ...], also: str
) -> None:
    repo.lay({"test_own.py": OWN})
    result = repo.measure(*workers, *filter(None, [also]), "nowhere", "-k", "not this")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    errors = [line for line in result.errlines if line]
    assert errors == ["ERROR: file or directory not found: nowhere"]
    assert repo.runs == []


@pytest.mark.slow
def test_a_broken_module_is_not_said_to_have_no_tests_of_ours(repo: Repository) -> None:
    module = "from pytest_mlrbench.stage_tests import *\nimport nothing_like_this\n"
    repo.lay({"test_research.py": module})
    result = repo.measure("-n2", "test_research.py")
    result.stderr.fnmatch_lines(["ERROR: no case was collected, as a test module cannot be read*"])
    assert "No module named 'nothing_like_this'" in result.stdout.str()


def test_a_test_that_does_not_exist_is_said_as_pytest_says_it(repo: Repository) -> None:
    repo.lay({"test_own.py": OWN})
    result = repo.measure("test_own.py::test_other[3]")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: not found: *test_own.py::test_other*"])


def test_ctrl_c_while_collecting_is_no_other_fault(repo: Repository) -> None:
    repo.lay({"test_own.py": "raise KeyboardInterrupt\n"})
    result = repo.spawn("--mlr-stage=experiment", "--mlr-agent=null", "test_own.py")
    assert result.ret == pytest.ExitCode.INTERRUPTED
    assert "none of its" not in result.stderr.str()


def test_a_session_may_be_started_where_an_error_is_handled(repo: Repository) -> None:
    try:
        raise LookupError
    except LookupError:
        repo.measure("--mlr-limit=1").assert_outcomes(failed=1)


def test_a_pasted_id_with_a_typing_error_is_told_the_right_one(repo: Repository) -> None:
    result = repo.measure("test_mlr_experiment.py::test_experiment[iclr2025_scop]")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*no case 'iclr2025_scop': did you mean 'iclr2025_scope'?"])


def test_of_several_pasted_ids_the_one_with_the_typing_error_is_told(repo: Repository) -> None:
    ids = [f"test_mlr_experiment.py::test_experiment[{name}]" for name in ("iclr2025_scope", "x")]
    repo.measure(*ids).stderr.fnmatch_lines(["*test_experiment[[]x]. There is no case 'x'."])
