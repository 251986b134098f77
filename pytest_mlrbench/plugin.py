"""The pytest plugin: options, and the decision whether this run is ours.

This module is imported in every run of pytest, so it imports nothing but pytest and the standard
library; without ``--mlr-stage`` it does nothing.
"""

from __future__ import annotations

import os
import re
import shlex
import sys
from itertools import pairwise
from pathlib import Path

import pytest

from pytest_mlrbench.options import FLAGS, add_options
from pytest_mlrbench.resources import shipped
from pytest_mlrbench.stub.fixture import mlr_stub_provider
from pytest_mlrbench.suites.stages import STAGES

#: Fixtures for everybody's tests, with or without a run of ours.
__all__ = ["mlr_stub_provider"]
#: What the id of a run looks like.
_RUN = re.compile(r"\d{8}T\d{9}Z-[0-9a-f]{4}")

#: Where pytest looks for its settings; in those of others too, for a section of its own.
_INI = (
    *("pytest.toml", ".pytest.toml", "pytest.ini", ".pytest.ini"),
    *("pyproject.toml", "tox.ini", "setup.cfg"),
)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Register the options."""
    add_options(parser)


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(
    early_config: pytest.Config, parser: pytest.Parser, args: list[str]
) -> None:
    """Run the shipped tests where no path says otherwise, and accept their ids in short form."""
    if getattr(early_config.known_args_namespace, "mlr_stage", None) is None:
        return
    _check_values(early_config)
    # argparse would take a path behind the bare option for its value; the id of a run is one.
    while "--mlr-resume" in args:
        at = args.index("--mlr-resume")
        run = args.pop(at + 1) if _RUN.fullmatch("".join(args[at + 1 : at + 2])) else "last"
        args[at] = f"--mlr-resume={run}"
    # Words behind an option are among the unknown ones before pytest 9.
    known, unknown = parser.parse_known_and_unknown_args(args)
    words = [*known.file_or_dir, *(word for word in unknown if not word.startswith("-"))]
    start = early_config.invocation_params.dir
    benchmarks = shipped("benchmarks")
    has_path = False
    for word in words:
        path = word.partition("::")[0]
        if (start / path).exists():
            has_path = True
        elif (benchmarks / Path(path).name).is_file():
            # The id as it is printed: short, or below a root folder that is not the current one.
            args[args.index(word)] = str(benchmarks / Path(path).name) + word[len(path) :]
            has_path = True
    # A word that is no path is the value of an option which a conftest.py is yet to define.
    if not has_path and not getattr(known, "pyargs", False):
        # In front, since an option at the end may take a value that is not required.
        args.insert(0, str(benchmarks))


def _check_values(config: pytest.Config) -> None:
    """Refuse a value by which pytest was misled when it chose its ini file and root folder.

    It does so before it knows our options, and takes what is behind a space for a path of tests.
    """
    if getattr(config.known_args_namespace, "inifilename", None):
        return
    start = config.invocation_params.dir
    typed = [*shlex.split(os.environ.get("PYTEST_ADDOPTS", "")), *config.invocation_params.args]
    for option, value in pairwise(typed):
        if not option.startswith("--mlr-") or "=" in option or option in FLAGS:
            continue
        path = Path(os.path.normpath(start / value.partition("::")[0]))
        if path.exists() and path != start and _is_misled(config, path):
            raise pytest.UsageError(
                f"write {option}={value}: behind a space, pytest takes {value} for a path of tests,"
                " and looks for its ini file and root folder there."
            )


def _is_misled(config: pytest.Config, path: Path) -> bool:
    """Whether pytest may have found another ini file or root folder by *path* than without it."""
    start, ini = config.invocation_params.dir, config.inipath
    if ini is None:
        return not (path.is_relative_to(start) and start.is_relative_to(config.rootpath))
    above = (start, *start.parents)
    return ini.parent not in above or any(map(_has_ini, above[: above.index(ini.parent)]))


def _has_ini(folder: Path) -> bool:
    """Whether pytest would take its settings from a file in *folder*."""
    for path in (folder / name for name in _INI if (folder / name).is_file()):
        text = path.read_text("utf-8", "replace")
        if "pytest" in path.name or re.search(r"^\s*\[(tool[.:])?pytest\b", text, re.MULTILINE):
            return True
    return False


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """With ``--mlr-stage``, register the object that does the work here."""
    # Always, or a module of the user's with our tests could not be read under --strict-markers.
    for stage in STAGES:
        config.addinivalue_line("markers", f"{stage}: cases of MLR-Bench's stage {stage}")
    if config.getoption("mlr_stage") is None:
        # In addopts they are settings that wait for a run; typed, one was meant.
        typed = [word for word in config.invocation_params.args if word.startswith("--mlr-")]
        if typed and not hasattr(config, "workerinput"):
            option = typed[0].partition("=")[0]
            raise pytest.UsageError(f"{option} does nothing without --mlr-stage: add it.")
        return
    if sys.platform == "win32":
        raise pytest.UsageError("pytest-mlrbench needs Linux or macOS; on Windows use WSL.")
    if hasattr(config, "workerinput"):
        from pytest_mlrbench.worker import Worker

        config.pluginmanager.register(Worker(config), "mlrbench-session")
    else:
        from pytest_mlrbench.controller import Controller

        config.pluginmanager.register(Controller(config), "mlrbench-session")


@pytest.hookimpl(optionalhook=True, tryfirst=True)
def pytest_xdist_auto_num_workers(config: pytest.Config) -> int | None:
    """``-n auto`` is as many workers as there are GPUs, where cases need one each."""
    if config.getoption("mlr_stage") is None:
        return None
    from pytest_mlrbench.gpu_workers import auto_workers

    return auto_workers(config)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Without ``--mlr-stage``, leave out our tests that a module of the user's own has imported."""
    if config.getoption("mlr_stage") is not None:
        return
    ours = [item for item in items if "mlr_result" in getattr(item, "fixturenames", ())]
    if ours:
        items[:] = [item for item in items if item not in ours]
        config.hook.pytest_deselected(items=ours)
