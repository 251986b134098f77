"""The command ``mlrbench``: what needs no pytest."""

from __future__ import annotations

import argparse
import io
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from pytest_mlrbench import (
    __version__,
    cli_agreement,
    cli_clean,
    cli_collect,
    cli_evidence,
    cli_judge,
    cli_status,
    cli_tasks,
    doctor,
)
from pytest_mlrbench.errors import InputError


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; return the exit code: 0 well, 1 a check failed, 2 unusable input."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # names of files may be of any bytes
    arguments = _parser().parse_args(argv)
    try:
        code: int = arguments.run(arguments)
        sys.stdout.flush()
    except InputError as error:
        print(f"mlrbench: {error}", file=sys.stderr)
        return 2
    except BrokenPipeError:
        # The reader of our output has left; nothing more can be said, not even at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    return code


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="mlrbench", description="Look at MLR-Bench suites and runs."
    )
    parser.add_argument("--version", action="version", version=f"pytest-mlrbench {__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    cli_tasks.add_parser(commands)
    cli_judge.add_parser(commands)
    cli_evidence.add_parser(commands)
    cli_status.add_parser(commands)
    cli_collect.add_parser(commands)
    cli_agreement.add_parser(commands)
    cli_clean.add_parser(commands)

    report = commands.add_parser("report", help="rebuild the reports of a run from its folder")
    report.add_argument("folder", type=Path, metavar="RUN_DIR")
    report.add_argument("--junit", type=Path, metavar="FILE", help="write JUnit XML")
    report.add_argument("--json", type=Path, metavar="FILE", help="write the JSON report")
    report.add_argument(
        "--beside",
        type=Path,
        metavar="RUN_DIR",
        help="another run: stages taken alone in one, and within a chain in the other",
    )
    report.set_defaults(run=_report)

    rubrics = commands.add_parser("rubrics", help="list what is scored in each stage")
    rubrics.set_defaults(run=_rubrics)

    doctor.add_parser(commands)

    published = commands.add_parser("published", help="the published results").add_subparsers(
        required=True, metavar="list|check"
    )
    systems = published.add_parser("list", help="list the systems with published scores")
    systems.set_defaults(run=_published_list)
    check = published.add_parser(
        "check", help="recompute every published mean from the published reviews"
    )
    check.set_defaults(run=_published_check)
    return parser


def _rubrics(arguments: argparse.Namespace) -> int:
    from pytest_mlrbench.suites.rubrics import rubric
    from pytest_mlrbench.suites.stages import STAGES

    for stage in STAGES:
        for found in (rubric(stage), rubric("checklist")):
            print(f"{stage:11} {found.name:11} {', '.join((*found.names(stage), 'overall'))}")
    return 0


def _report(arguments: argparse.Namespace) -> int:
    from pytest_mlrbench.report.chains import beside
    from pytest_mlrbench.report.document import Report
    from pytest_mlrbench.report.junit import junit
    from pytest_mlrbench.report.terminal import summary_lines
    from pytest_mlrbench.run.folder import RunFolder, write_json

    folder = RunFolder(arguments.folder.resolve())
    report = Report.of(folder)
    print("\n".join(summary_lines(report, place=folder.shown_path)))
    if arguments.beside:
        other = Report.of(RunFolder(arguments.beside.resolve()))
        both = beside([*report.summary, *other.summary])
        print("\n".join(["", *(both or ["The two runs have no stage both alone and in a chain."])]))
    try:
        if arguments.json:
            write_json(arguments.json, report)
            print(f"JSON report: {arguments.json}")
        if arguments.junit:
            arguments.junit.parent.mkdir(parents=True, exist_ok=True)
            arguments.junit.write_text(junit(folder, report), "utf-8")
            print(f"JUnit report: {arguments.junit}")
    except OSError as error:
        raise InputError(f"{error.filename} cannot be written: {error.strerror}.") from None
    return 0


def _published_list(arguments: argparse.Namespace) -> int:
    from pytest_mlrbench.published import Published

    data = Published.load()
    for system in data.systems.values():
        stages = ", ".join(
            f"{stage} ({len(data.tasks(stage, system.name))})" for stage in system.raw
        )
        print(f"published:{system.name:32}{system.title}: {stages}")
    print("In brackets: the number of tasks reviewed by both judges of the paper.")
    return 0


def _published_check(arguments: argparse.Namespace) -> int:
    from pytest_mlrbench.published import check_means

    report = check_means()
    print(report.format())
    return 1 if report.mismatches or not report.cells else 0


if __name__ == "__main__":
    sys.exit(main())
