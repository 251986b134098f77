"""A real small model, on a real server of this machine, writes ideas and judges them.

Slow, and left out where its packages are absent: see ``local_model.py``.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
import yaml
from builders import lay
from files import outside_variables
from local_model import LocalModel, Tokens, missing, serving

from pytest_mlrbench.judges.review import Review
from pytest_mlrbench.models.calls import Calls, Meter
from pytest_mlrbench.models.config import parse_model
from pytest_mlrbench.models.exchange import Prompt, Request
from pytest_mlrbench.run.folder import RunFolder, read_model
from pytest_mlrbench.run.result import CaseResult

pytestmark = pytest.mark.slow

AGENT = "--mlr-agent=scaffold:openai/smollm2"
JUDGE = "--mlr-judge=local=openai:smollm2"
#: An idea of so small a model has 300 tokens or no end at all.
PARAMETERS = "max_tokens=600 temperature=0.5"
#: Tried until one leads to an idea that ends: which of them do is another matter with each prompt.
SEEDS = (1, 2, 3)
DIMENSIONS = ("clarity", "novelty")
TASK = "# Better tea\n\nHow can a kettle learn when the tea is ready?\n"
#: More tokens than letters of other texts: a digit is one, and so is a space.
LONG = "# Numbers\n\n" + "7 3 1 " * 6000
SUITE = {
    "suite.yaml": "name: tea\n",
    "tasks/kettle.md": TASK,
    "inputs/kettle/idea.md": "Listen to it.",
    "inputs/kettle/related_work.md": "None.",
    "inputs/kettle/proposal.md": "Measure its sound.",
    "inputs/kettle/results/results.md": "It was ready after 240 s.",
}
#: What differs between two runs that measured the same; the stamp is of the files' times.
TIMES = {"seconds_agent", "seconds_judge", "submission_stamp"}


def short_rubric(stage: str) -> str:
    """A rubric of a few lines: the model reads a hundred tokens a second."""
    bands = {"6-10": "Good.", "1-5": "Weak."}
    about = [{"name": one, "question": f"How is its {one}?", "bands": bands} for one in DIMENSIONS]
    overall = {"question": "How is it as a whole?", "bands": bands}
    rubric = {"name": stage, "title": "Short", "stages": [stage], "dimensions": about}
    return yaml.safe_dump(
        {**rubric, "instructions": "Give short reasons.", "overall": overall}, sort_keys=False
    )


@dataclass(frozen=True)
class Place:
    """A folder with a suite of one task, its rubrics, and the runs that were made there."""

    path: Path

    @classmethod
    def at(cls, path: Path, **files: str) -> Place:
        rubrics = {f"rubrics/{stage}.yaml": short_rubric(stage) for stage in ("idea", "paper")}
        tea = {f"tea/{name}": text for name, text in {**SUITE, **files}.items()}
        lay(path, {"pytest.ini": "[pytest]\n", **rubrics, **tea})
        return cls(path)

    def run(self, model: str, *options: str) -> tuple[int, str]:
        """Run pytest as a user does; return its exit code and what it prints."""
        without = (part for name in ("randomly", "asyncio") for part in ("-p", f"no:{name}"))
        fixed = ("--mlr-suite=path:tea", "--mlr-rubrics=rubrics", "--junitxml=junit.xml")
        command = [sys.executable, "-m", "pytest", *without, *fixed, AGENT, JUDGE]
        inherited = outside_variables(self.path, "OPENAI")
        ended = subprocess.run(
            [*command, f"--mlr-model={model} {PARAMETERS}", *options],
            cwd=self.path,
            env=inherited,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=600,
        )
        return ended.returncode, ended.stdout

    @property
    def runs(self) -> list[RunFolder]:
        """The runs, oldest first."""
        return [RunFolder(path) for path in sorted(self.path.glob(".mlrbench/runs/2*"))]

    def result(self, run: int = -1) -> CaseResult:
        """The result of the one case of a run."""
        (found,) = self.runs[run].results().values()
        return found

    def review(self, run: int = -1) -> Review:
        """The one review of that case, as it lies on disk."""
        folder = self.runs[run].path / self.result(run).artifacts
        found = read_model(folder / "reviews/local.json", Review)
        assert found is not None
        return found

    def properties(self) -> dict[str, str]:
        """The properties of the one case in the last JUnit report."""
        found = ET.parse(self.path / "junit.xml").iter("property")
        return {one.attrib["name"]: one.attrib["value"] for one in found}


@dataclass(frozen=True)
class Measured:
    """A recorded run of one idea, whose server is gone.

    :param counted: by the server, from its start to its end.
    """

    place: Place
    code: int
    output: str
    counted: Tokens
    setting: str

    def calls(self) -> list[dict[str, Any]]:
        """All calls that were recorded, the one before the first case included."""
        files = sorted((self.place.path / "calls").glob("*/*.json"))
        return [json.loads(path.read_text("utf-8")) for path in files]


@pytest.fixture(scope="module")
def local_model(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalModel]:
    """A server that the tests of this module share."""
    if why := missing():
        pytest.skip(why)
    with serving(tmp_path_factory.mktemp("local_model") / "server.log") as model:
        yield model


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Measured:
    if why := missing():
        pytest.skip(why)
    for seed in SEEDS:
        place = Place.at(tmp_path_factory.mktemp("measured"))
        with serving(place.path / "server.log") as model:
            setting = f"{model.setting} seed={seed}"
            code, output = place.run(setting, "--mlr-stage=idea", "--mlr-record=calls")
            counted = model.counted()
        assert place.runs, output
        if place.result().fault is None:
            break
    return Measured(place, code, output, counted, setting)


def test_a_small_model_has_an_idea_and_judges_it(measured: Measured) -> None:
    result, review = measured.place.result(), measured.place.review()
    assert result.verdict in ("pass", "fail"), measured.output
    assert measured.code == (result.verdict == "fail")
    assert result.fault is None
    answer = review.answer
    assert list(answer.dimensions) == list(DIMENSIONS)
    for scored in (*answer.dimensions.values(), answer.overall):
        assert type(scored.score) is int
        assert 1 <= scored.score <= 10
    assert result.overall == answer.overall.score
    folder = measured.place.runs[-1].path / result.artifacts
    assert len((folder / "submission/idea.md").read_text("utf-8").split()) > 20


def test_what_it_read_and_wrote_is_what_the_server_counted(measured: Measured) -> None:
    said = measured.place.properties()
    by_role = {
        role: Tokens(*(int(said[f"mlr.tokens.{role}.{way}"]) for way in Tokens._fields))
        for role in ("agent", "judge")
    }
    assert all(number > 0 for tokens in by_role.values() for number in tokens)
    before = [one["answer"]["usage"] for one in measured.calls() if one["purpose"] == "preflight"]
    assert len(before) == 1
    all_of_it = [*by_role.values(), Tokens(before[0]["input"], before[0]["output"])]
    assert measured.counted == tuple(map(sum, zip(*all_of_it, strict=True)))


def test_a_judge_of_its_own_work_is_told_of(measured: Measured) -> None:
    assert measured.place.properties()["mlr.judge.local.kin"] == "model"
    assert measured.output.count("judge local is the agent's own model") == 2


def test_the_run_replays_though_the_server_is_gone(measured: Measured) -> None:
    place = measured.place
    before = place.review(0)
    replay = (measured.setting, "--mlr-stage=idea", "--mlr-replay-calls=calls")
    code, output = place.run(*replay)
    assert code == measured.code, output
    assert len(place.runs) == 2
    first, second = (place.result(run).model_dump(exclude=TIMES) for run in (0, 1))
    assert first == second
    assert place.review(1).model_dump(exclude={"seconds"}) == before.model_dump(exclude={"seconds"})


def test_a_seed_gives_the_same_answer_again(local_model: LocalModel) -> None:
    async def ask(*seeds: int) -> list[str]:
        calls, meter = Calls(), Meter("none", "agent", "none")
        settings = {"base_url": f"{local_model.address}/v1", "temperature": 1, "max_tokens": 40}
        answers = [
            await calls.ask(
                parse_model("openai:smollm2", seed=seed, **settings),
                Prompt.of("Tell me about tea."),
                Request(),
                meter=meter,
                purpose="none",
            )
            for seed in seeds
        ]
        await calls.close()
        return [answer.text for answer in answers]

    first, again, other = asyncio.run(ask(1, 1, 2))
    assert first == again != other


def test_a_task_longer_than_the_context_is_not_measured(
    local_model: LocalModel, tmp_path: Path
) -> None:
    place = Place.at(tmp_path, **{"tasks/kettle.md": LONG})
    code, output = place.run(local_model.setting, "--mlr-stage=idea", "--mlr-no-preflight")
    assert code == 1
    result = place.result()
    assert result.verdict == "not_measured"
    assert result.fault is not None
    assert (result.fault.blame, result.fault.cause) == ("system", "bad_request")
    assert result.fault.message.startswith(
        'openai:smollm2 refuses the request: 400 Bad Request, "request ('
    )
    assert "exceeds the available context size (8192 tokens)" in result.fault.message
    assert result.spent_agent is not None
    assert result.spent_agent.attempts == 1
    assert result.fault.message in output


def test_a_model_that_takes_no_images_is_told_before_papers_are_written(
    local_model: LocalModel, tmp_path: Path
) -> None:
    place = Place.at(tmp_path)
    code, output = place.run(local_model.setting, "--mlr-stage=paper")
    assert code == 4
    (error,) = (line for line in output.splitlines() if line.startswith("ERROR"))
    assert error == (
        "ERROR: openai:smollm2 takes no images, which it would be shown (openai:smollm2 refuses"
        ' the request: 500 Internal Server Error, "image input is not supported - hint: if this is'
        ' unexpected, you may need to provide the mmproj"): choose a model that does.'
    )
    assert not any(place.runs)
