"""The stages: which files each one leaves, and how ``end_to_end`` chains them."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from pytest_mlrbench.agents.reference.paper import PLANS, compose
from pytest_mlrbench.agents.reference.request import AgentError, Request

EXPERIMENTS = Path(__file__).parent / "experiments"
#: What every experiment needs beside its own script.
MACHINERY = ("__init__", "harness", "learn", "findings", "report", "figures")
#: One thread each: the same numbers on every machine, and no fight when cases run side by side.
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")


def known_tasks() -> tuple[str, ...]:
    """Return the ids of the tasks there is a plan for."""
    return tuple(sorted(path.name for path in PLANS.iterdir() if path.is_dir()))


def write_plan(request: Request, name: str) -> None:
    """Write one file of the plan the agent has for the task."""
    request.write(name, (PLANS / request.task / name).read_text("utf-8"))


def idea(request: Request) -> None:
    """Leave ``idea.md``."""
    write_plan(request, "idea.md")


def proposal(request: Request) -> None:
    """Leave ``proposal.md``."""
    write_plan(request, "proposal.md")


def experiment(request: Request) -> None:
    """Copy the experiment's code into the workspace and run that copy, in a process of its own.

    So the code a reader finds in ``code/`` is what ran, not a likeness of it.

    :raises AgentError: a package is missing, time is up, or the run failed.
    """
    if not all(importlib.util.find_spec(name) for name in ("sklearn", "matplotlib")):
        raise AgentError(
            3,
            "the reference agent needs scikit-learn and matplotlib:"
            " pip install 'pytest-mlrbench[reference]'",
        )
    copied = request.workspace / "code" / "experiments"
    copied.mkdir(parents=True, exist_ok=True)
    for name in (*MACHINERY, request.task):
        shutil.copy(EXPERIMENTS / f"{name}.py", copied)
    command = [sys.executable, "-m", f"experiments.{request.task}", "--repeat", str(request.repeat)]
    left = None if request.deadline is None else max(request.deadline - time.time(), 0)
    try:
        done = subprocess.run(
            command,
            cwd=request.workspace,
            env=_environment(copied.parent),
            timeout=left,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise AgentError(4, "the experiment was stopped: its time was up.") from None
    if done.returncode:
        raise AgentError(1, f"the experiment failed with exit code {done.returncode}.")


def _environment(code: Path) -> Mapping[str, str]:
    paths = [str(code.resolve()), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {
        **os.environ,
        **dict.fromkeys(THREADS, "1"),
        "PYTHONPATH": os.pathsep.join(paths),
        "PYTHONDONTWRITEBYTECODE": "1",
    }


def paper(request: Request) -> None:
    """Leave ``results/paper.md``, made from the other files of the workspace."""
    request.write("results/paper.md", compose(request))


def end_to_end(request: Request) -> None:
    """Leave everything: each stage reads what the ones before it wrote."""
    idea(request)
    write_plan(request, "related_work.md")
    proposal(request)
    experiment(request)
    paper(request)


STAGES: Mapping[str, Callable[[Request], None]] = {
    stage.__name__: stage for stage in (idea, proposal, experiment, paper, end_to_end)
}
