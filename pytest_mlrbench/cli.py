"""The command ``mlrbench``: what needs no pytest."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from pytest_mlrbench import __version__, doctor
from pytest_mlrbench.errors import InputError


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; return the exit code: 0 well, 1 a check failed, 2 unusable input."""
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

    tasks = commands.add_parser("tasks", help="list tasks, or show one").add_subparsers(
        required=True, metavar="list|show"
    )
    listing = tasks.add_parser("list", help="list the tasks of a suite")
    listing.add_argument(
        "--suite", help="one suite, or path:DIR; without it, the suites are listed"
    )
    listing.set_defaults(run=_tasks_list)
    show = tasks.add_parser("show", help="show a task: what is known of it, and its text")
    show.add_argument("task", help="task id")
    show.add_argument("--suite", default="mini", help="suite of the task (default: mini)")
    show.set_defaults(run=_tasks_show)

    report = commands.add_parser("report", help="rebuild the reports of a run from its folder")
    report.add_argument("folder", type=Path, metavar="RUN_DIR")
    report.add_argument("--junit", type=Path, metavar="FILE", help="write JUnit XML")
    report.add_argument("--json", type=Path, metavar="FILE", help="write the JSON report")
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


def _tasks_list(arguments: argparse.Namespace) -> int:
    from pytest_mlrbench.suites.loading import load_suite, suite_names
    from pytest_mlrbench.suites.tasks import share

    if not arguments.suite:
        for name in suite_names():
            suite = load_suite(name)
            part = share(len(suite.tasks), len(suite.tasks), suite.benchmark)
            print(f"{name:14}{part:34}{suite.title}")
        return 0
    suite = load_suite(arguments.suite, Path.cwd())
    width = max(len(task.id) for task in suite.tasks)
    for task in suite.tasks:
        where = f"{task.conference} {task.year}".strip()
        print(f"{task.id:{width}}  {where:13}{task.title}".rstrip())
    print(f"{len(suite.tasks)} tasks in suite {suite.name}")
    return 0


def _tasks_show(arguments: argparse.Namespace) -> int:
    from pytest_mlrbench.suites.loading import load_suite
    from pytest_mlrbench.suites.select import select_tasks
    from pytest_mlrbench.suites.stages import STAGES

    suite = load_suite(arguments.suite, Path.cwd())
    for task in select_tasks(suite, [arguments.task]):
        print(f"{task.id}: {task.title}")
        if task.conference:
            print(f"{task.conference} {task.year}")
        for stage in STAGES.values():
            missing = suite.missing_inputs(task, stage)
            print(
                f"  {stage.name:11}"
                + (f"missing {', '.join(missing)}" if missing else "inputs there")
            )
        text = suite.inputs(task, STAGES["idea"]).get("task.md")
        shown = text.read_text("utf-8", "replace") if text else "The suite does not ship the text."
        print(f"\n{shown.strip()}")
    return 0


def _rubrics(arguments: argparse.Namespace) -> int:
    from pytest_mlrbench.suites.rubrics import rubric
    from pytest_mlrbench.suites.stages import STAGES

    for stage in STAGES:
        for found in (rubric(stage), rubric("checklist")):
            print(f"{stage:11} {found.name:11} {', '.join((*found.names(stage), 'overall'))}")
    return 0


def _report(arguments: argparse.Namespace) -> int:
    from pytest_mlrbench.report.document import Report
    from pytest_mlrbench.report.junit import junit
    from pytest_mlrbench.report.terminal import summary_lines
    from pytest_mlrbench.run.folder import RunFolder, write_json

    folder = RunFolder(arguments.folder.resolve())
    report = Report.of(folder)
    print("\n".join(summary_lines(report)))
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
