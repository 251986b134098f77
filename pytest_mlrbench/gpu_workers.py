"""``-n auto``: as many workers as there are GPUs, where each case that runs code needs one."""

from __future__ import annotations

import os

import pytest

from pytest_mlrbench.agents.needs import needs_of
from pytest_mlrbench.agents.specs import make_agent
from pytest_mlrbench.errors import InputError
from pytest_mlrbench.options import read_options
from pytest_mlrbench.run.live import Live
from pytest_mlrbench.run.plan import FIXTURE
from pytest_mlrbench.sandbox.rooms import Rooms
from pytest_mlrbench.suites.select import parse_stages


def auto_workers(config: pytest.Config) -> int | None:
    """Return how many workers ``-n auto`` stands for; null to have xdist count the processors.

    xdist asks before any plugin is configured, so there is no plan of the run yet.

    :raises pytest.UsageError: the options cannot be used.
    """
    if config.option.numprocesses != "auto" or os.environ.get("PYTEST_XDIST_AUTO_NUM_WORKERS"):
        return None
    try:
        options = read_options(config)
        if options.agent == FIXTURE:
            return None
        live = Live(options)
        agent = make_agent(options.agent, options.bases["agent"], live)
        stages = parse_stages(options.stage)
        rooms = Rooms(options.sandbox, options.agent, needs_of(agent), stages, live)
        return len(rooms.gpus.uuids) or None
    except InputError as error:
        raise pytest.UsageError(str(error)) from None
