"""The stages of MLR-Bench, each declared once: its inputs, its output contract, what judges see."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Stage:
    """One stage of research.

    The name is also the name of its rubric, of its pytest marker and, after ``test_``, of its test.
    """

    name: str
    #: Files laid into the workspace before the agent starts.
    inputs: tuple[str, ...]
    #: Files the agent must leave: regular, readable, not blank.
    required: tuple[str, ...]
    #: Required file → another one that will do in its place.
    instead: Mapping[str, str]
    #: Files that are looked for beside the required ones; their absence costs score, not validity.
    expected: tuple[str, ...]
    #: Text files shown to a judge, in this order, where they exist.
    shown: tuple[str, ...]
    #: Whether something is run, so that code and logs say what was done.
    runs_code: bool
    #: Whether the work has figures.
    has_figures: bool
    #: Expected share of a run's time, relative to ``idea``: only the order of work depends on it.
    weight: float
    #: Seconds an agent may take when the user has not said otherwise.
    timeout: float


#: The stages that an end-to-end case goes through, in their order.
CHAIN = ("idea", "proposal", "experiment", "paper")

STAGES: Mapping[str, Stage] = {
    stage.name: stage
    for stage in (
        Stage(
            name="idea",
            inputs=("task.md",),
            required=("idea.md",),
            instead={},
            expected=(),
            shown=("task.md", "idea.md"),
            runs_code=False,
            has_figures=False,
            weight=1,
            timeout=3600,
        ),
        Stage(
            name="proposal",
            inputs=("task.md", "idea.md", "related_work.md"),
            required=("proposal.md",),
            instead={},
            expected=(),
            shown=("task.md", "idea.md", "related_work.md", "proposal.md"),
            runs_code=False,
            has_figures=False,
            weight=3,
            timeout=3600,
        ),
        Stage(
            name="experiment",
            inputs=("task.md", "idea.md", "related_work.md", "proposal.md"),
            required=("results/results.md",),
            instead={},
            expected=("results/log.txt", "results/claims.json"),
            shown=("task.md", "idea.md", "proposal.md", "results/results.md", "results/log.txt"),
            runs_code=True,
            has_figures=True,
            weight=100,
            timeout=8 * 3600,
        ),
        Stage(
            name="paper",
            inputs=("task.md", "idea.md", "related_work.md", "proposal.md", "results"),
            required=("results/paper.md",),
            instead={"results/paper.md": "results/paper.pdf"},
            expected=(),
            shown=(
                "task.md",
                "idea.md",
                "related_work.md",
                "proposal.md",
                "results/results.md",
                "results/paper.md",
            ),
            runs_code=False,
            has_figures=True,
            weight=5,
            timeout=3600,
        ),
        Stage(
            name="end_to_end",
            inputs=("task.md",),
            required=("results/paper.md",),
            instead={"results/paper.md": "results/paper.pdf"},
            expected=("idea.md", "proposal.md", "results/results.md", "results/log.txt"),
            shown=("task.md", "results/results.md", "results/paper.md"),
            runs_code=True,
            has_figures=True,
            weight=120,
            timeout=8 * 3600,
        ),
    )
}
