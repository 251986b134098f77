"""Answer one case: stage and task come from the environment, the inputs from the workspace."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path

from pytest_mlrbench.agents.reference.request import AgentError, Request
from pytest_mlrbench.agents.reference.stages import STAGES, known_tasks


def read_request(environment: Mapping[str, str]) -> tuple[str, Request]:
    """Return the stage and what is asked in it.

    :raises AgentError: something is missing or unknown.
    """
    stage, task = environment.get("MLR_STAGE", ""), environment.get("MLR_TASK_ID", "")
    if stage not in STAGES:
        raise AgentError(
            2, f"MLR_STAGE is {stage!r}: the reference agent knows {', '.join(STAGES)}."
        )
    if task not in known_tasks():
        raise AgentError(
            2,
            f"the reference agent does not know the task {task!r}:"
            f" it can only do {', '.join(known_tasks())}.",
        )
    try:
        deadline = float(environment["MLR_DEADLINE"]) if "MLR_DEADLINE" in environment else None
        repeat = int(environment.get("MLR_REPEAT", "1"))
    except ValueError as error:
        raise AgentError(2, f"MLR_DEADLINE and MLR_REPEAT must be numbers: {error}.") from None
    if repeat < 1:
        raise AgentError(2, f"MLR_REPEAT is {repeat}: repeats count from 1.")
    workspace = Path(environment.get("MLR_WORKSPACE", "."))
    return stage, Request(task, workspace, deadline, repeat)


def main() -> int:
    """Do what is asked and return the exit code; a fault is one sentence on standard error."""
    try:
        stage, request = read_request(os.environ)
        STAGES[stage](request)
    except AgentError as error:
        print(error, file=sys.stderr)
        return error.code
    return 0


if __name__ == "__main__":
    sys.exit(main())
