"""What an agent that runs commands needs of the place it runs them in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from pytest_mlrbench.suites.stages import STAGES

if TYPE_CHECKING:
    from pytest_mlrbench.agents.base import Agent
    from pytest_mlrbench.sandbox.base import Network

Where = Literal["docker", "local"]


@dataclass(frozen=True, slots=True)
class Needs:
    """Where it may run, and whom it must reach.

    :param where: where commands run in a stage that runs code, unless the user says otherwise.
    :param otherwise: where they run in stages of texts only; null if none are run in them.
    :param only: the one place possible, and why; for agents that cannot do with another.
    :param network: what the agent must reach.
    :param providers: whose models it asks; empty if it does not say.
    :param models: patterns of the models, as their provider calls them; null for all.
    """

    where: Where
    otherwise: Where | None = "local"
    only: tuple[Where, str] | None = None
    network: Network = "none"
    providers: Sequence[str] = ()
    models: Sequence[str] | None = None

    def place(self, stage: str) -> Where | None:
        """Where commands run in *stage* if the user has not said; null if none are run."""
        return self.where if STAGES[stage].runs_code else self.otherwise


def needs_of(agent: Agent) -> Needs | None:
    """Return what *agent* needs; null if it runs no commands, or does so by itself."""
    found: Needs | None = getattr(agent, "needs", None)
    return found
