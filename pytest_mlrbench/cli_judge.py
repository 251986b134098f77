"""``mlrbench judge RUN_DIR …``: score what is there again, with other judges or rubrics."""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path
from typing import Any

from pytest_mlrbench.errors import InputError


def add_parser(commands: Any) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "judge",
        help="judge the submissions of a run again, without running an agent",
        description="Runs pytest on the cases of a run with the agent replay:RUN_DIR; what follows"
        " RUN_DIR are options of pytest, as --mlr-judge=anthropic:MODEL. The result is a new run.",
    )
    parser.add_argument("folder", type=Path, metavar="RUN_DIR")
    parser.add_argument("options", nargs=argparse.REMAINDER, metavar="--mlr-judge=…")
    parser.set_defaults(run=_judge)


def _judge(arguments: argparse.Namespace) -> int:
    # A process of its own: pytest rewrites the asserts of plugins that are not imported yet.
    command = [sys.executable, "-m", "pytest", *words(arguments.folder, arguments.options)]
    process = subprocess.Popen(command)
    while True:
        try:
            return process.wait()
        except KeyboardInterrupt:
            continue  # Ctrl-C is for pytest, which ends in its own time


def words(folder: Path, options: list[str]) -> list[str]:
    """Return the command line of pytest that judges the run in *folder* again.

    :raises InputError: it is no run, or no judge is named.
    """
    from pytest_mlrbench.run.folder import RunFolder, read_model
    from pytest_mlrbench.run.record import RunRecord

    record = read_model(folder / "run.json", RunRecord)
    if record is None:
        raise InputError(f"{folder} is not a run folder this version can read.")
    if not any(option.startswith("--mlr-judge") for option in options):
        raise InputError("name who is to judge, as in: mlrbench judge RUN_DIR --mlr-judge=SPEC.")
    tests = []
    for name in RunFolder(folder).selection():
        _, stage, task, repeat = name.rsplit("/", 3)
        again = "" if repeat == "r1" else f"-{repeat}"
        tests.append(f"test_mlr_{stage}.py::test_{stage}[{task}{again}]")
    if not tests:
        raise InputError(f"run {folder} has no cases.")
    return [
        *options,
        f"--mlr-stage={','.join(record.stages)}",
        f"--mlr-suite={record.suite.spec or record.suite.name}",
        f"--mlr-agent=replay:{folder.resolve()}",
        f"--mlr-repeats={record.repeats}",
        *tests,
    ]
