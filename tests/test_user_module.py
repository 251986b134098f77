"""A user's own module and fixtures: who answers and who judges can be code of theirs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from builders import one_sentence

from pytest_mlrbench.judges.base import as_judges

if TYPE_CHECKING:
    from conftest import Repository

MODULE = "from pytest_mlrbench.stage_tests import *\n"
#: Two cases, and a threshold that any score reaches.
IDEA = ("--mlr-stage=idea", "--mlr-limit=2", "--mlr-threshold=overall>=1")
OURS = (*IDEA, "--mlr-agent=fixture")
TASKS = ("calibration_digits", "conformal_diabetes")

HEAD = """
import asyncio
import pytest
from pytest_mlrbench.judges.review import Answer, OverallScored, Scored
from pytest_mlrbench.suites.rubrics import rubric

def write(case, who):
    (case.workspace / "idea.md").write_text(f"{case.task_id} by {who}")
"""
FUNCTION = """
def answer(case):
    write(case, "a function")

@pytest.fixture(scope="session")
def mlr_agent():
    return answer
"""
ASYNC_FUNCTION = """
async def answer(case):
    await asyncio.sleep(0)
    write(case, "an async function")

@pytest.fixture(scope="session")
def mlr_agent():
    return answer
"""
CALLABLE = """
class Answerer:
    async def __call__(self, case):
        write(case, "a callable object")

@pytest.fixture(scope="session")
def mlr_agent():
    return Answerer()
"""
AGENT = """
class Agent:
    spec = "mine"
    needs_inputs = True
    has_files = True
    system = None
    prepared = 0

    def prepare(self, cases):
        self.prepared = len(cases)

    def digest(self, case):
        return "1"

    async def run(self, case, work):
        write(work, f"an agent prepared for {self.prepared}")

@pytest.fixture(scope="session")
def mlr_agent():
    return Agent()
"""
# An async fixture whose agent needs what it set up, and is used before it is torn down.
ASYNC_FIXTURE = """
import pytest_asyncio

@{fixture}(scope="session")
async def mlr_agent():
    clients = ["an async fixture"]

    async def answer(case):
        write(case, clients[0])

    yield answer
    clients.clear()
    print("closed")
"""
JUDGES = """
class Judge:
    digest = "1"

    def __init__(self, id, score):
        self.id, self.score, self.spec = id, score, f"mine:{score}"

    def rubric(self, stage):
        return rubric(stage)

    def prepare(self, agent, cases):
        pass

    async def review(self, work):
        assert (work.workspace / "idea.md").is_file()
        names = rubric(work.case.stage).names(work.case.stage)
        return Answer(
            dimensions={name: Scored(score=self.score) for name in names},
            overall=OverallScored(score=self.score),
        )

@pytest.fixture(scope="session")
def mlr_judges():
    return [Judge("anna", 9), Judge("ben", 4)]
"""


def lay(repo: Repository, *parts: str, module: str = MODULE) -> None:
    repo.lay({"test_research.py": module, "conftest.py": HEAD + "".join(parts)})


def answered_by(repo: Repository, who: str) -> bool:
    return repo.texts("idea.md") == {task: f"{task} by {who}" for task in TASKS}


# The module


def test_a_module_of_one_line_has_the_tests_of_all_stages(repo: Repository) -> None:
    repo.lay({"test_research.py": MODULE})
    result = repo.run("--mlr-stage=all", "--mlr-limit=1", "--collect-only", "-q", ".")
    result.stdout.fnmatch_lines(
        [
            f"test_research.py::test_{stage}?calibration_digits?"
            for stage in ("idea", "proposal", "experiment", "paper", "end_to_end")
        ]
    )


def test_one_test_can_be_imported_by_its_name(repo: Repository) -> None:
    repo.lay({"test_research.py": "from pytest_mlrbench.stage_tests import test_experiment\n"})
    repo.measure("test_research.py").assert_outcomes(passed=4, failed=6)


def test_a_case_collected_twice_is_refused_with_both_ids(repo: Repository) -> None:
    repo.lay({"test_research.py": MODULE})
    result = repo.measure("test_research.py", "test_mlr_experiment.py")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(
        ["ERROR: case mlrbench-10/experiment/iclr2025_bi_align/r1 is collected twice, as *.py::*"]
    )
    said = result.stderr.str()
    assert "test_research.py::test_experiment[iclr2025_bi_align]" in said
    assert "test_mlr_experiment.py::test_experiment[iclr2025_bi_align]" in said
    assert repo.runs == []


def test_a_test_function_of_ones_own_asserts_what_it_likes(repo: Repository) -> None:
    own = """
import pytest

@pytest.mark.idea
def test_mine(mlr_result):
    assert mlr_result.verdict == "pass"
    assert mlr_result.task != "conformal_diabetes", "not that one"
"""
    lay(repo, FUNCTION, module=own)
    result = repo.run(*OURS, ".")
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["E*AssertionError: not that one"])


def test_a_test_function_of_ones_own_is_left_out_in_other_stages(repo: Repository) -> None:
    own = "import pytest\n\n@pytest.mark.idea\ndef test_mine(mlr_result):\n    assert 0\n"
    repo.lay({"test_research.py": MODULE, "test_mine.py": own})
    repo.measure(".").assert_outcomes(passed=4, failed=6)


# Agents


@pytest.mark.parametrize(
    ("fixture", "who"),
    [
        (FUNCTION, "a function"),
        (ASYNC_FUNCTION, "an async function"),
        (CALLABLE, "a callable object"),
        (AGENT, "an agent prepared for 2"),
    ],
    ids=["function", "async function", "callable", "agent"],
)
def test_a_fixture_gives_the_agent(repo: Repository, fixture: str, who: str) -> None:
    lay(repo, fixture)
    repo.run(*OURS, ".").assert_outcomes(passed=2)
    assert answered_by(repo, who)


@pytest.mark.slow
def test_a_fixture_gives_the_agent_to_every_worker(repo: Repository) -> None:
    lay(repo, ASYNC_FUNCTION)
    repo.spawn(*OURS, "-n2", ".").assert_outcomes(passed=2)
    assert answered_by(repo, "an async function")


@pytest.mark.parametrize(
    ("fixture", "options"),
    [("pytest_asyncio.fixture", ()), ("pytest.fixture", ("-o", "asyncio_mode=auto"))],
    ids=["strict", "auto"],
)
def test_an_async_fixture_gives_the_agent_and_is_closed_at_the_end(
    repo: Repository, fixture: str, options: tuple[str, ...]
) -> None:
    lay(repo, ASYNC_FIXTURE.format(fixture=fixture))
    scope = "asyncio_default_fixture_loop_scope=session"
    result = repo.spawn(*OURS, *options, "-o", scope, "-s", "-W", "error", ".")
    result.assert_outcomes(passed=2)
    result.stdout.fnmatch_lines(["*closed*"])
    assert answered_by(repo, "an async fixture")


def test_the_configured_agent_can_be_wrapped(repo: Repository) -> None:
    wrapper = """
@pytest.fixture(scope="session")
def mlr_agent(mlr_agent):
    async def answer(case):
        write(case, mlr_agent.spec)
    return answer
"""
    lay(repo, wrapper)
    repo.run(*IDEA, "--mlr-agent=cmd:true", ".").assert_outcomes(passed=2)
    assert answered_by(repo, "cmd:true")


def test_an_agent_that_raises_has_failed_by_its_own_fault(repo: Repository) -> None:
    lay(repo, FUNCTION.replace('write(case, "a function")', "raise RuntimeError('out of ideas')"))
    result = repo.run(*OURS, "-v", ".")
    result.assert_outcomes(failed=2)
    result.stdout.fnmatch_lines(
        ["*FAILED crash *", "crash: the agent raised RuntimeError: out of ideas"]
    )


def test_a_fixture_that_gives_no_agent_is_said(repo: Repository) -> None:
    lay(repo, FUNCTION.replace("return answer", "return 7"))
    result = repo.run(*OURS, ".")
    result.assert_outcomes(errors=2)
    result.stdout.fnmatch_lines(["*the fixture mlr_agent gave 7: give an agent, or a function*"])


@pytest.mark.parametrize("kind", ["agent", "judge"])
def test_a_fixture_that_is_asked_for_and_absent_is_said(repo: Repository, kind: str) -> None:
    fixture = {"agent": "mlr_agent", "judge": "mlr_judges"}[kind]
    repo.lay({"test_research.py": MODULE})
    result = repo.run(*IDEA, f"--mlr-{kind}=fixture", ".")
    result.assert_outcomes(errors=2)
    result.stdout.fnmatch_lines([f"--mlr-{kind}=fixture needs a fixture {fixture} of your own, *"])


def test_a_fixture_does_not_take_an_agents_place_unsaid(repo: Repository) -> None:
    """Or the header would name one agent, and the scores be those of another."""
    lay(repo, FUNCTION)
    result = repo.run(*IDEA, "--mlr-agent=cmd:true", ".")
    result.assert_outcomes(errors=2)
    result.stdout.fnmatch_lines(
        ["your fixture mlr_agent takes the place of --mlr-agent=cmd:true: say --mlr-agent=fixture."]
    )


# Judges


@pytest.mark.parametrize(
    "workers", [(), pytest.param(("-n2",), marks=pytest.mark.slow)], ids=["serial", "workers"]
)
def test_a_fixture_gives_the_judges(repo: Repository, workers: tuple[str, ...]) -> None:
    lay(repo, FUNCTION, JUDGES)
    result = repo.spawn(*OURS, "--mlr-judge=fixture", *workers, ".")
    result.assert_outcomes(passed=2)
    result.stdout.fnmatch_lines(["*judges' overall means: anna 9.00 (n=2), ben 4.00 (n=2)"])
    (summary,) = repo.report.summary
    assert (summary.overall_mean, summary.spread_mean) == (6.5, 5)


def test_a_judge_that_raises_leaves_the_case_unmeasured(repo: Repository) -> None:
    lay(repo, FUNCTION, JUDGES.replace('Judge("ben", 4)', 'Judge("ben", "four")'))
    result = repo.run(*OURS, "--mlr-judge=fixture", ".")
    result.assert_outcomes(errors=2)
    (summary,) = repo.report.summary
    assert (summary.scored, summary.not_measured_causes) == (0, {"internal": 2})
    assert {case.overall for case in repo.report.cases} == {None}


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ('Judge("anna", 9)', "<*Judge object*>, which is no list: give a list of judges, as [[]<*"),
        ("[]", "an empty list: give at least one judge, see pytest_mlrbench.judges.base.Judge."),
    ],
)
def test_a_fixture_that_gives_no_list_of_judges_is_said(
    repo: Repository, given: str, said: str
) -> None:
    lay(repo, FUNCTION, JUDGES.replace('[Judge("anna", 9), Judge("ben", 4)]', given))
    result = repo.run(*OURS, "--mlr-judge=fixture", ".")
    result.assert_outcomes(errors=2)
    result.stdout.fnmatch_lines([f"the fixture mlr_judges gave {said}"])
    result.stdout.no_fnmatch_line("*Error: *")


class Own:
    """A judge of the user's, of which *changes* are made."""

    id, spec, digest = "mine", "mine:v1", "v1"
    rubric = prepare = review = "no method"

    def __init__(self, **changes: object) -> None:
        vars(self).update(dict.fromkeys(("rubric", "prepare", "review"), print) | changes)

    def __repr__(self) -> str:
        return "<mine>"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (Own(), "<mine>, which is no list: give a list of judges, as [<mine>]."),
        (None, "None, which is no list: give a list of judges, as [MyJudge()]."),
        ("mine", "'mine', which is no list: give a list of judges, as [MyJudge()]."),
        (Own, "which is no list: give a list of judges, as [MyJudge()]."),
        ({"mine": Own()}, "{'mine': <mine>}, which is no list: give a list of judges,"),
        ((), "an empty list: give at least one judge, see pytest_mlrbench.judges.base.Judge."),
        ([7], "7, which has no id, spec, digest, rubric, prepare, review: give a list of judges,"),
        ([Own], "Own'>, which is a class: give an object of it, Own()."),
        ([Own(id=7)], "<mine>, whose id is 7 and no text: see "),
        ([Own(spec=None)], "<mine>, whose spec is None and no text: see "),
        ([Own(digest=b"x")], "<mine>, whose digest is b'x' and no text: see "),
        ([Own(rubric="idea")], "<mine>, whose rubric is no method: see "),
        ([Own(), Own(review=None)], "<mine>, whose review is no method: see "),
        ([Own(id="Mine")], "a judge with the id 'Mine': ids are small letters, "),
        ([Own(), Own()], "a judge with the id 'mine': ids are small letters, "),
    ],
    ids=str,
)
def test_what_is_no_list_of_judges_is_one_sentence(given: object, said: str) -> None:
    with one_sentence("the fixture mlr_judges gave ", said):
        as_judges(given)


def test_a_test_of_ones_own_may_bear_a_mark_of_that_name(repo: Repository) -> None:
    """``paper`` is a word other people use as well."""
    own = "import pytest\n\n@pytest.mark.paper\ndef test_own():\n    pass\n"
    lay(repo, FUNCTION)
    repo.lay({"test_own.py": own})
    repo.run(*OURS, ".").assert_outcomes(passed=3)


def test_a_test_of_no_stage_is_refused(repo: Repository) -> None:
    lay(repo, FUNCTION)
    repo.lay({"test_own.py": "def test_own(mlr_result):\n    pass\n"})
    result = repo.run(*OURS, ".")
    result.stdout.fnmatch_lines(["*test_own.py::test_own is of no stage: mark it, e.g. @*idea."])


def test_properties_are_recorded_whatever_step_is_replaced(repo: Repository) -> None:
    own = """
from pytest_mlrbench.run.folder import RunFolder

@pytest.fixture(scope="session")
def mlr_run(mlr_run):
    return RunFolder(mlr_run.path)
"""
    repo.lay({"test_research.py": MODULE, "conftest.py": HEAD + FUNCTION + own})
    repo.run(*OURS, ".", "--junitxml=out.xml")
    assert (repo.path / "out.xml").read_text().count('name="mlr.case"') == 2


def test_a_result_asked_for_in_the_body_of_a_test_is_recorded_too(repo: Repository) -> None:
    own = """
import pytest

@pytest.mark.idea
def test_mine(mlr_case, request):
    assert request.getfixturevalue("mlr_result").verdict
"""
    repo.lay({"test_research.py": own, "conftest.py": HEAD + FUNCTION})
    repo.run(*OURS, "test_research.py", "--junitxml=out.xml")
    assert (repo.path / "out.xml").read_text().count('name="mlr.verdict"') == 2
