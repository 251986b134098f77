"""``mlrbench status RUN_DIR``: how far a run is, and what its cases are doing now."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any, get_args

from pytest_mlrbench.errors import InputError


def add_parser(commands: Any) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "status",
        help="say how far a run is, and what its cases are doing now",
        description="Reads the run folder only: the run may go on, or have been killed.",
    )
    parser.add_argument("folder", type=Path, metavar="RUN_DIR")
    parser.set_defaults(run=_status)


def _status(arguments: argparse.Namespace) -> int:
    print("\n".join(status_lines(arguments.folder)))
    return 0


def status_lines(folder: Path) -> list[str]:
    """Return what to tell people of the run in *folder*.

    :raises InputError: it is no run.
    """
    from pytest_mlrbench.report.running import table
    from pytest_mlrbench.run.folder import RunFolder
    from pytest_mlrbench.sandbox.heartbeat import running

    if not (folder / "run.json").is_file():
        raise InputError(f"{folder} is not a run folder: name one below .mlrbench/runs.")
    run = RunFolder(folder.resolve())
    beats = running(run.path)
    # The newest line of a case counts: it may have been run again.
    verdicts = {line.case: line.verdict for line in run.journal()}
    selected = run.selection() or dict.fromkeys(verdicts, "")
    gone = {beat.case: why for beat in beats if (why := beat.gone)}
    alive = [beat for beat in beats if beat.case not in gone]
    lines = [f"run {run.run_id}: {_counts(selected, verdicts, {beat.case for beat in alive})}"]
    if alive:
        lines += ["", *table(alive)]
    lines += [f"  {case}: {why}" for case, why in gone.items()]
    if gone:
        lines.append("  `--mlr-resume` runs what has not come to its end")
    return lines


def _counts(selected: Mapping[str, str], verdicts: Mapping[str, str], now: set[str]) -> str:
    from pytest_mlrbench.run.result import Verdict

    counted = Counter(verdicts[name] for name in selected if name in verdicts and name not in now)
    by_verdict = [f"{counted[v]} {v.replace('_', ' ')}" for v in get_args(Verdict) if counted[v]]
    how = f" ({', '.join(by_verdict)})" if by_verdict else ""
    return f"{counted.total()} of {len(selected)} cases are finished{how}, {len(now)} under way"
