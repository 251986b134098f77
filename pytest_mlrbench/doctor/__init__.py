"""``mlrbench doctor``: what is there of all that a run may need, and what can be run with it.

The command line imports this module whatever command is typed, so the rooms behind it are imported
when they are used.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pytest_mlrbench.doctor.probe import Finding, Probe


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command ``doctor`` to those of the command line."""
    parser = commands.add_parser(
        "doctor",
        help="say what is there and what can be run",
        description="Say what is there of all that a run may need, and what can be run with it."
        " Exits with 0 if the embedded default can run, and with 1 if it cannot.",
    )
    parser.add_argument("--json", action="store_true", help="say it as JSON, and nothing else")
    parser.set_defaults(run=_run)


def examine(folder: Path | None = None) -> list[Finding]:
    """Look at everything, and return what was found; raises nothing.

    :param folder: where pytest would be started; without it, the current folder.
    """
    return [probe.find() for probe in probes(folder)]


def probes(folder: Path | None = None) -> list[Probe]:
    """Return the looks that :func:`examine` takes, before any is taken."""
    from pytest_mlrbench.doctor import engine, keys, machine, python, suites

    return [
        *python.probes(),
        *keys.probes(),
        *engine.probes(),
        *machine.probes(folder),
        *suites.probes(),
    ]


def can_run_default(findings: Iterable[Finding]) -> bool:
    """Whether suite ``mini``, agent ``reference`` and judge ``checklist`` have all they need."""
    return all(finding.state == "ok" for finding in findings if finding.needed)


def _run(arguments: argparse.Namespace) -> int:
    from pytest_mlrbench.doctor.output import document, report

    findings = examine()
    print(document(findings) if arguments.json else report(findings))
    return 0 if can_run_default(findings) else 1
