"""Call a Python agent: ``python -m pytest_mlrbench.agents.call MODULE CALLABLE [--check]``."""

from __future__ import annotations

import asyncio
import importlib
import inspect
import os
import sys
from functools import reduce
from pathlib import Path
from typing import Any

from pytest_mlrbench.agents.base import Assignment


def load(module: str, name: str) -> Any:
    """Return the callable, or raise what the import raised."""
    found = reduce(getattr, name.split("."), importlib.import_module(module))
    if not callable(found):
        raise TypeError(f"{module}:{name} is not callable")
    return found


def main() -> None:
    """Call the agent with the assignment the environment describes; await it if it is async."""
    agent = load(sys.argv[1], sys.argv[2])
    if sys.argv[3:] == ["--check"]:
        return
    workspace = Path(os.environ["MLR_WORKSPACE"])
    answer = agent(
        Assignment(
            stage=os.environ["MLR_STAGE"],
            task_id=os.environ["MLR_TASK_ID"],
            repeat=int(os.environ["MLR_REPEAT"]),
            workspace=workspace,
            deadline=float(os.environ["MLR_DEADLINE"]),
            log=workspace.with_name("agent.log"),
        )
    )
    if inspect.isawaitable(answer):
        asyncio.run(_wait(answer))


async def _wait(answer: Any) -> None:
    await answer


if __name__ == "__main__":
    main()
