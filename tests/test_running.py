"""Running it: wherever pytest is started and whatever it is asked to select, cases are tests."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pytest_mlrbench.resources import shipped
from pytest_mlrbench.run import folder as folder_module

if TYPE_CHECKING:
    from conftest import Repository

MODULE = "from pytest_mlrbench.stage_tests import *\n"
OWN = "def test_own():\n    pass\n"
FAILING = "def test_own():\n    assert 0\n"
SHIPPED = "test_mlr_experiment.py"
SHORT = SHIPPED + "::test_experiment[iclr2025_{}]"
TASKS = ["bi_align", "buildingtrust", "data_problems", "dl4c", "mldpr"]
TASKS += ["question", "scope", "scsl", "verifai", "wsl"]
EVERY = [SHORT.format(task) for task in TASKS]


def ids(result: pytest.RunResult) -> list[str]:
    """The ids of the tests a ``-v`` run reports, or ``--collect-only -q`` lists, in that order."""
    found = (re.search(r"\S+\.py::[^\s\]]+\]?", line) for line in result.outlines)
    return list(dict.fromkeys(match[0] for match in found if match))


# Where it runs


def test_an_empty_folder_is_enough_to_run_the_demonstration(repo: Repository) -> None:
    result = repo.spawn("--mlr-stage=idea", "--mlr-limit=1")
    result.assert_outcomes(passed=1)
    assert repo.report.summary[0].passed == 1


def test_tests_and_options_of_the_repository_do_not_get_in_the_way(repo: Repository) -> None:
    repo.lay(
        {
            "pytest.ini": "[pytest]\ntestpaths = tests\naddopts = --flavour sweet\nspice = hot\n",
            "conftest.py": "def pytest_addoption(parser):\n"
            "    parser.addoption('--flavour', required=True)\n    parser.addini('spice', '')\n",
            "tests/test_own.py": FAILING,
        }
    )
    repo.measure().assert_outcomes(passed=4, failed=6)


def test_a_path_of_ones_own_is_collected_beside_the_named_shipped_tests(repo: Repository) -> None:
    repo.lay({"test_own.py": OWN})
    repo.measure("test_own.py", SHIPPED).assert_outcomes(passed=5, failed=6)
    assert repo.report.summary[0].selected == 10


def test_a_broken_test_module_is_reported_as_pytest_does(repo: Repository) -> None:
    repo.lay({"test_own.py": "import nothing_like_this\n"})
    result = repo.measure("test_own.py", SHIPPED)
    assert result.ret == pytest.ExitCode.INTERRUPTED
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*ERROR collecting test_own.py*", "*No module named*"])


def test_a_second_session_in_the_same_process_can_go_on_with_the_run(
    repo: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(folder_module, "LOCK_PATIENCE", 0.1)
    repo.measure("-k", "wsl")
    result = repo.measure("--mlr-resume", "-k", "wsl")
    result.stdout.fnmatch_lines(["1 of the 1 cases of this session were reused"])
    assert len(repo.runs) == 1


# Without --mlr-stage


def test_without_a_stage_only_the_own_tests_run_and_nothing_is_left_behind(
    repo: Repository,
) -> None:
    repo.lay({"test_own.py": OWN, "pytest.ini": "[pytest]\nmlr_suite = mlrbench-10\n"})
    repo.run().assert_outcomes(passed=1)
    assert not (repo.path / ".mlrbench").exists()


def test_without_a_stage_nothing_heavy_is_imported(repo: Repository) -> None:
    repo.lay(
        {
            "test_own.py": "import sys\n\ndef test_own():\n"
            "    assert 'pytest_mlrbench.plugin' in sys.modules\n"
            "    assert not {'pydantic', 'yaml', 'asyncio.runners', 'pytest_mlrbench.session',\n"
            "        'pytest_mlrbench.controller'} & set(sys.modules)\n"
        }
    )
    # Other plugins may import what they like.
    others = ("asyncio", "xdist", "hypothesispytest", "anyio", "platformdirs")
    plain = [word for name in others for word in ("-p", f"no:{name}")]
    repo.set_addopts("-p no:randomly -p no:asyncio")
    repo.spawn(*plain).assert_outcomes(passed=1)


def test_an_offline_run_imports_no_sdk(repo: Repository) -> None:
    repo.lay(
        {
            "conftest.py": "import sys\n\n"
            "def pytest_unconfigure():\n"
            "    sdks = {'anthropic', 'openai', 'google.genai', 'genai_prices', 'tenacity'}\n"
            "    print('imported:', sorted(sdks & set(sys.modules)))\n"
        }
    )
    repo.set_addopts("-p no:randomly -p no:asyncio -p no:anyio")
    result = repo.spawn("--mlr-stage=idea", "--mlr-agent=parrot", "--mlr-limit=1")
    result.stdout.fnmatch_lines(["imported: []"])


@pytest.mark.parametrize("options", [(), ("--strict-markers",), ("-W", "error")])
def test_without_a_stage_a_module_with_our_tests_is_left_out(
    repo: Repository, options: tuple[str, ...]
) -> None:
    own = OWN + "\ndef test_more(mlr_result):\n    raise AssertionError\n"
    repo.lay({"test_research.py": MODULE + own})
    result = repo.run(*options)
    result.assert_outcomes(passed=1, deselected=6, warnings=0)
    assert result.ret == pytest.ExitCode.OK


def test_the_markers_of_the_stages_are_listed(repo: Repository) -> None:
    result = repo.run("--markers")
    for stage in ("idea", "proposal", "experiment", "paper", "end_to_end"):
        result.stdout.fnmatch_lines([f"@pytest.mark.{stage}: *"])


# What is selected


@pytest.mark.parametrize("option", ["--mlr-out", "--mlr-json", "--mlr-tasks-dir", "--mlr-data"])
def test_the_value_of_an_option_does_not_lead_pytest_elsewhere(
    repo: Repository, option: str, tmp_path: Path
) -> None:
    """Its ini file would not be read, with the thresholds in it."""
    repo.lay({"pytest.ini": "[pytest]\nmlr_threshold = overall>=9.9\n"})
    (tmp_path / "there").touch()
    value = os.path.relpath(tmp_path / "there", repo.path)
    told = f"ERROR: write {option}={value}: behind a space, pytest takes {value} for a path*"
    result = repo.measure(option, value)
    result.stderr.fnmatch_lines([told])
    assert result.ret == 4
    assert not repo.runs
    assert not (tmp_path / ".mlrbench").exists()


def test_a_variable_with_options_does_not_lead_pytest_elsewhere_either(
    repo: Repository, tmp_path: Path
) -> None:
    repo.set_addopts(f"-p no:randomly --mlr-out {tmp_path}")
    result = repo.measure()
    result.stderr.fnmatch_lines([f"ERROR: write --mlr-out={tmp_path}: behind a space*"])
    assert result.ret == 4


@pytest.mark.parametrize(
    "lead",
    [[], ["-cpytest.ini"], ["-qc", "pytest.ini"], ["--config-file", "pytest.ini"]],
    ids=["below", "said", "said with a flag", "said at length"],
)
def test_values_that_do_not_lead_elsewhere_may_stand_behind_a_space(
    repo: Repository, lead: list[str], tmp_path: Path
) -> None:
    repo.lay({"pytest.ini": "[pytest]\nmlr_threshold = overall>=9.9\n"})
    out = tmp_path if lead else repo.path / "runs"
    out.mkdir(exist_ok=True)
    repo.measure(*lead, "--mlr-estimate", "--mlr-out", str(out)).assert_outcomes()
    repo.measure(*lead, "--mlr-out", str(out)).assert_outcomes(failed=10)
    assert len(list(out.glob("*/run.json"))) == 1


@pytest.mark.parametrize("value", ["data", "data/below", "data::x"])
def test_a_folder_with_an_ini_file_of_its_own_is_not_taken_for_the_root(
    repo: Repository, value: str
) -> None:
    repo.lay({"data/pytest.ini": "[pytest]\n", "data/below/x": "", "pytest.ini": "[pytest]\n"})
    result = repo.measure("--mlr-data", value)
    result.stderr.fnmatch_lines([f"ERROR: write --mlr-data={value}: *"])


def test_what_looks_like_the_id_of_a_test_does_not_lead_pytest_elsewhere(
    repo: Repository, tmp_path: Path
) -> None:
    """It cuts an argument at the colons, and the folder before them is one that is there."""
    repo.lay({"pytest.ini": "[pytest]\nmlr_threshold = overall>=9.9\n"})
    result = repo.measure("--mlr-agent-version", f"{tmp_path}::two")
    result.stderr.fnmatch_lines([f"ERROR: write --mlr-agent-version={tmp_path}::two: *"])
    assert result.ret == 4


THRESHOLD = "mlr_threshold = overall>=9.9\n"


@pytest.mark.parametrize(
    ("files", "is_lost"),
    [
        ({"pytest.ini": "[pytest]\n" + THRESHOLD}, False),
        ({"pyproject.toml": "[tool.pytest.ini_options]\nmlr_threshold = ['overall>=9.9']"}, False),
        ({"pytest.ini": "[pytest]\n" + THRESHOLD, "sub/pyproject.toml": "# pytest\n"}, False),
        ({"pytest.ini": "[pytest]\n", "sub/tox.ini": "[pytest]\n" + THRESHOLD}, True),
        ({"pytest.ini": "[pytest]\n", "sub/setup.cfg": "[tool:pytest]\n" + THRESHOLD}, True),
        ({"sub/pytest.ini": "[pytest]\n" + THRESHOLD}, True),
        ({"runs/pytest.ini": "[pytest]\n", "pytest.ini": "[pytest]\n" + THRESHOLD}, True),
    ],
)
def test_from_a_folder_below_that_of_the_ini_file_a_value_is_refused_only_if_it_misleads(
    repo: Repository, monkeypatch: pytest.MonkeyPatch, files: dict[str, str], is_lost: bool
) -> None:
    repo.lay({"runs/x": "", "sub/x": "", **files})
    monkeypatch.chdir(repo.path / "sub")
    result = repo.measure("--mlr-out", "../runs")
    if is_lost:
        result.stderr.fnmatch_lines(["ERROR: write --mlr-out=../runs: *"])
        assert result.ret == 4
    else:
        result.assert_outcomes(failed=10)
    assert bool(list(repo.path.glob("runs/*/run.json"))) is not is_lost


def test_a_keyword_selects_cases_by_their_task(repo: Repository) -> None:
    result = repo.measure("-v", "-k", "wsl or scope")
    assert ids(result) == [SHORT.format("scope"), SHORT.format("wsl")]
    assert repo.report.summary[0].selected == 2


def test_a_marker_selects_the_cases_of_a_stage(repo: Repository) -> None:
    result = repo.measure("--mlr-stage=experiment,end_to_end", "-m", "end_to_end")
    result.assert_outcomes(failed=10, deselected=10)
    assert [(stage.stage, stage.selected) for stage in repo.report.summary] == [("end_to_end", 10)]


def test_only_the_selected_stages_are_collected_and_none_is_deselected(repo: Repository) -> None:
    result = repo.measure("--mlr-stage=end_to_end", "--collect-only", "-q")
    assert len(ids(result)) == 10
    assert all(name.startswith("test_mlr_end_to_end.py::") for name in ids(result))
    assert "deselected" not in result.stdout.str()


def test_repeats_are_cases_of_their_own(repo: Repository) -> None:
    result = repo.measure("--mlr-repeats=2", "--mlr-tasks=*wsl", "-v")
    assert ids(result) == [SHORT.format("wsl"), SHORT.format("wsl-r2")]


def test_a_deselected_test_is_not_part_of_the_denominator(repo: Repository) -> None:
    repo.measure("--deselect", SHORT.format("wsl")).assert_outcomes(
        passed=4, failed=5, deselected=1
    )
    assert repo.report.summary[0].selected == 9


@pytest.mark.parametrize(
    "workers", [(), pytest.param(("-n2",), marks=pytest.mark.slow)], ids=["serial", "workers"]
)
def test_stopping_at_the_first_failure_counts_the_rest_as_not_run(
    repo: Repository, workers: tuple[str, ...]
) -> None:
    result = repo.measure("-x", *workers)
    (summary,) = repo.report.summary
    done = 10 - summary.not_measured
    assert 1 <= done < 10
    assert summary.not_measured_causes == {"not_run": 10 - done}
    result.stdout.fnmatch_lines([f"experiment  {done}/10 *", f"*not measured: {10 - done} not run"])


def test_what_failed_last_can_be_run_alone(repo: Repository) -> None:
    repo.measure()
    repo.measure("--lf").assert_outcomes(failed=6)
    assert repo.report.summary[0].selected == 6


def test_what_failed_last_can_be_run_first(repo: Repository) -> None:
    failed = {case.task for case in (repo.measure(), repo.report)[1].cases if case.missed}
    order = [name[name.index("[") + 1 : -1] for name in ids(repo.measure("--ff", "-v"))]
    assert set(order[:6]) == failed
    assert len(order) == 10


def test_what_failed_last_includes_the_shipped_tests_where_an_own_test_failed_too(
    repo: Repository,
) -> None:
    repo.lay({"test_own.py": FAILING})
    paths = ("test_own.py", SHIPPED)
    repo.measure(*paths).assert_outcomes(passed=4, failed=7)
    repo.measure(*paths, "--lf").assert_outcomes(failed=7)


# Ids


def test_an_id_is_the_same_whatever_was_named(repo: Repository) -> None:
    folder = shipped("benchmarks")
    repo.lay({"pytest.ini": "[pytest]\n"})  # or else a checkout's settings would be found
    for path in ([], [str(folder)], [str(folder / SHIPPED)], [SHIPPED]):
        assert ids(repo.measure("-c", "pytest.ini", "--collect-only", "-q", *path)) == EVERY


@pytest.mark.parametrize(
    "workers", [(), pytest.param(("-n2",), marks=pytest.mark.slow)], ids=["serial", "workers"]
)
def test_an_id_can_be_pasted_back(repo: Repository, workers: tuple[str, ...]) -> None:
    pasted = [SHORT.format("wsl"), SHORT.format("scsl")]
    result = repo.measure("-v", *workers, *pasted)
    result.assert_outcomes(passed=1, failed=1)
    assert set(ids(result)) == set(pasted)


def test_an_id_of_the_demonstration_can_be_pasted_back(repo: Repository) -> None:
    name = "test_mlr_idea.py::test_idea[calibration_digits]"
    assert ids(repo.spawn("--mlr-stage=idea", "-v", name)) == [name]


def test_an_id_of_a_module_of_ones_own_can_be_pasted_back(repo: Repository) -> None:
    repo.lay({"tests/test_research.py": MODULE})
    name = "tests/test_research.py::test_experiment[iclr2025_wsl]"
    assert ids(repo.measure("-v", name)) == [name]


# Order


@pytest.mark.parametrize(
    "workers", [(), pytest.param(("-n2",), marks=pytest.mark.slow)], ids=["serial", "workers"]
)
def test_shuffled_tests_run_once_each(repo: Repository, workers: tuple[str, ...]) -> None:
    repo.set_addopts("")
    result = repo.measure("-v", "--randomly-seed=1", *workers)
    result.assert_outcomes(passed=4, failed=6)
    assert ids(result) != EVERY
    journal = sorted(line.case for line in repo.runs[-1].journal())
    assert journal == [f"mlrbench-10/experiment/iclr2025_{task}/r1" for task in TASKS]


# Other options of pytest


@pytest.mark.parametrize("plugin", ["xdist", "asyncio", "cacheprovider", "junitxml"])
def test_another_plugin_may_be_absent(repo: Repository, plugin: str) -> None:
    repo.set_addopts(f"-p no:randomly -p no:{plugin}")
    result = repo.measure("-p", f"no:{plugin}")
    result.assert_outcomes(passed=4, failed=6)


@pytest.mark.parametrize("option", ["--collect-only", "--setup-plan", "--markers", "--help"])
def test_what_measures_nothing_leaves_no_run_behind(repo: Repository, option: str) -> None:
    assert repo.measure(option).ret == pytest.ExitCode.OK
    assert repo.runs == []


def test_setting_up_only_is_refused(repo: Repository) -> None:
    result = repo.measure("--setup-only")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: --setup-only would run agents and judge nothing*"])
    assert repo.runs == []


def test_strict_markers_know_the_stages(repo: Repository) -> None:
    repo.measure("--strict-markers").assert_outcomes(passed=4, failed=6)


def test_the_settings_of_this_repository_need_no_other_plugin(repo: Repository) -> None:
    """The first command of the README installs no plugin but ours."""
    shutil.copy(Path(__file__).parents[1] / "pyproject.toml", repo.path)
    others = ("randomly", "asyncio", "hypothesispytest")
    repo.set_addopts(" ".join(f"-p no:{name}" for name in others))
    result = repo.measure()
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.assert_outcomes(passed=4, failed=6)
