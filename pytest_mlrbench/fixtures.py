"""The fixtures of an active run; each can be overridden in a ``conftest.py`` or a test module."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import pytest

from pytest_mlrbench.agents.function import as_agent
from pytest_mlrbench.agents.needs import needs_of
from pytest_mlrbench.errors import InputError
from pytest_mlrbench.judges.base import Judge, as_judges
from pytest_mlrbench.report.properties import properties
from pytest_mlrbench.run.ahead import Ahead
from pytest_mlrbench.run.engine import Engine
from pytest_mlrbench.run.folder import RunFolder
from pytest_mlrbench.run.plan import FIXTURE, prepare
from pytest_mlrbench.run.result import CaseResult
from pytest_mlrbench.sandbox.rooms import Rooms
from pytest_mlrbench.sandbox.together import check_replay
from pytest_mlrbench.suites.select import Case
from pytest_mlrbench.verdict import NotMeasured

if TYPE_CHECKING:
    from pytest_mlrbench.sandbox.docker import DockerSandbox
    from pytest_mlrbench.session import ActiveRun

#: Where the run's object is kept.
ACTIVE: pytest.StashKey[ActiveRun] = pytest.StashKey()


_NO_FIXTURE = (
    "--mlr-{0}=fixture needs a fixture mlr_{1} of your own, in a conftest.py that pytest reads for"
    " these tests: name the path of a module that imports pytest_mlrbench.stage_tests."
)
_NOT_SAID = "your fixture mlr_{1} takes the place of --mlr-{0}={2}: say --mlr-{0}=fixture."


@pytest.fixture(scope="session")
def mlr_run(request: pytest.FixtureRequest) -> RunFolder:
    """The run folder."""
    folder = request.config.stash[ACTIVE].folder
    if folder is None:
        raise pytest.UsageError("there is no run folder: this session only collects.")
    return folder


@pytest.fixture(scope="session")
def mlr_agent(request: pytest.FixtureRequest) -> object:
    """Who answers. Override it with an agent, or a function (async or not) of one assignment."""
    active = request.config.stash[ACTIVE]
    active.wrapped.add("agent")
    if active.plan.agent is None:
        raise pytest.UsageError(_NO_FIXTURE.format("agent", "agent"))
    return active.plan.agent


@pytest.fixture(scope="session")
def mlr_judges(request: pytest.FixtureRequest) -> Sequence[Judge]:
    """The panel. Override it with judges of your own."""
    active = request.config.stash[ACTIVE]
    active.wrapped.add("judge")
    if not active.plan.judges:
        raise pytest.UsageError(_NO_FIXTURE.format("judge", "judges"))
    return active.plan.judges


@pytest.fixture(scope="session")
def mlr_runner(request: pytest.FixtureRequest) -> Iterator[asyncio.Runner]:
    """The event loop of this process: agents and judges run on it, so clients can be kept open."""
    with asyncio.Runner() as runner:
        yield runner
        # Where a session ends between two tests, as by Ctrl-C, cases begun early would go on now.
        _cancel_all(runner)
        runner.run(request.config.stash[ACTIVE].plan.live.close())


@pytest.fixture(scope="session")
def mlr_container(request: pytest.FixtureRequest) -> DockerSandbox:
    """The sandbox of containers. Override it with one of your own, whose every step is a method."""
    return request.config.stash[ACTIVE].plan.rooms.container


@pytest.fixture(scope="session")
def mlr_engine(request: pytest.FixtureRequest) -> Engine:
    """What measures a case, with ``mlr_run``, ``mlr_agent`` and ``mlr_judges``."""
    # Asked for here, not as arguments: pytest goes through those again for every test.
    mlr_run, mlr_agent, mlr_judges = map(
        request.getfixturevalue, ("mlr_run", "mlr_agent", "mlr_judges")
    )
    active = request.config.stash[ACTIVE]
    plan, options = active.plan, active.plan.options
    rooms = plan.rooms
    try:
        agent = as_agent(mlr_agent)
        if agent is not plan.agent:
            if options.agent != FIXTURE and "agent" not in active.wrapped:
                raise InputError(_NOT_SAID.format("agent", "agent", options.agent))
            rooms = Rooms(
                options.sandbox,
                agent.spec,
                needs_of(agent),
                plan.stages,
                plan.live,
                resuming=bool(options.resume),
            )
            if options.evidence.replays:
                check_replay(rooms, agent.spec)
            prepare(agent, rooms, plan.cases)
            if plan.live.gated:
                workers = getattr(request.config, "workerinput", {}).get("workercount", 1)
                plan.live.share(mlr_run.path, int(workers))
        judges = as_judges(mlr_judges)
        for judge in judges:
            if judge not in plan.judges:
                if options.judge != (FIXTURE,) and "judge" not in active.wrapped:
                    raise InputError(_NOT_SAID.format("judge", "judges", options.judge[0]))
                plan.check_rubrics(judge)
                judge.prepare(agent, plan.cases)
    except InputError as error:
        raise pytest.UsageError(str(error)) from None
    if rooms.uses("docker"):
        rooms.replace(request.getfixturevalue("mlr_container"))
    engine = Engine(
        suite=plan.suite,
        agent=agent,
        judges=judges,
        thresholds=plan.thresholds,
        folder=mlr_run,
        agent_version=options.agent_version,
        timeout=options.timeout,
        resuming=bool(options.resume),
        rerun=options.rerun,
        stopped=plan.live.stopped,
        rooms=rooms,
        evidence=options.evidence,
    )
    if options.resume and not hasattr(request.config, "workerinput"):
        # A worker does not know which of the cases it will be given.
        engine.look_back(active.cases)
    return engine


def _run(runner: asyncio.Runner, ahead: Ahead, case: Case) -> CaseResult:
    try:
        return runner.run(ahead.measure(case))
    except BaseException:
        # As from a plugin's time limit: what was begun must not go on beside the next case.
        _cancel_all(runner)
        raise


def _cancel_all(runner: asyncio.Runner) -> None:
    loop = runner.get_loop()
    tasks = asyncio.all_tasks(loop)
    for task in tasks:
        task.cancel()
    if tasks:
        loop.run_until_complete(asyncio.wait(tasks, timeout=10))


@pytest.fixture
def mlr_result(
    request: pytest.FixtureRequest,
    mlr_case: Case,
    mlr_engine: Engine,
) -> CaseResult:
    """The result of the case: the agent has run and the judges have scored, or it is an error."""
    ahead = request.config.stash[ACTIVE].ahead(mlr_engine)
    result = ahead.recall(mlr_case) or _run(request.getfixturevalue("mlr_runner"), ahead, mlr_case)
    folder, node = mlr_engine.folder, request.node
    resumed = mlr_case.name in folder.reused
    # In place of those of an earlier try, where a plugin has run the test again.
    node.user_properties[:] = [
        *(found for found in node.user_properties if not found[0].startswith("mlr.")),
        *properties(
            result,
            resumed=resumed,
            artifacts=folder.shown(result),
            replayed=request.config.stash[ACTIVE].plan.live.replays,
        ),
    ]
    if result.verdict == "not_measured":
        raise NotMeasured(result)
    return result
