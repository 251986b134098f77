"""What was found, as text for a person and as JSON for a program."""

from __future__ import annotations

import json
import shutil
import sys
import textwrap
from collections.abc import Sequence
from dataclasses import asdict
from itertools import groupby

from pytest_mlrbench import __version__
from pytest_mlrbench.doctor import can_run_default
from pytest_mlrbench.doctor.probe import Finding

_MARKS = {"ok": "ok", "missing": "--", "broken": "!!"}
_TITLES = {
    "python": "Python",
    "reference": "what the agent 'reference' needs (the extra 'reference')",
    "fetch": "what `mlrbench tasks fetch` needs (the extra 'fetch')",
    "huggingface": "what it needs beside for Hugging Face (the extra 'huggingface')",
    "models": "what live models need (the extras 'models' and 'pdf')",
    "docker": "what agents in containers need (the extra 'docker')",
    "optional": "optional packages",
    "keys": "keys in the environment (never shown)",
    "machine": "this machine",
    "suites": "suites",
}


def document(findings: Sequence[Finding]) -> str:
    """Return the findings as JSON: version, can_run_default, findings."""
    return json.dumps(
        {
            "version": __version__,
            "can_run_default": can_run_default(findings),
            "findings": [asdict(finding) for finding in findings],
        },
        indent=2,
    )


def report(findings: Sequence[Finding]) -> str:
    """Return the findings as text, by area; the last line says what can be run."""
    width = min(max(shutil.get_terminal_size().columns, 72), 100)
    column = max((len(finding.name) for finding in findings), default=0)
    lines = [f"pytest-mlrbench {__version__}"]
    for area, group in groupby(findings, key=lambda finding: finding.area):
        lines += ["", _TITLES.get(area, area)]
        for finding in group:
            lines += _lines(finding, column, width)
    text = "\n".join([*lines, "", "ok there, -- missing, !! broken", _conclusion(findings)])
    # A path may hold a letter that the terminal's encoding does not have.
    encoding = sys.stdout.encoding or "utf-8"
    return text.encode(encoding, "backslashreplace").decode(encoding)


def _lines(finding: Finding, column: int, width: int) -> list[str]:
    start = f"  {_MARKS[finding.state]}  {finding.name.ljust(column)}  "
    said = f"{finding.detail} - {finding.enables}" if finding.enables else finding.detail
    return textwrap.wrap(
        said,
        width,
        initial_indent=start,
        subsequent_indent=" " * len(start),
        break_long_words=False,
        break_on_hyphens=False,
    )


def _conclusion(findings: Sequence[Finding]) -> str:
    if can_run_default(findings):
        return "The embedded default can run: pytest --mlr-stage=experiment"
    lacking = [finding for finding in findings if finding.needed and finding.state != "ok"]
    reasons = "; ".join(f"{finding.name}: {finding.detail.rstrip('.')}" for finding in lacking)
    return f"The embedded default cannot run. {reasons}."
