"""``scaffold:PROVIDER/MODEL``: a model writes ideas, proposals and papers after our prompts."""

from __future__ import annotations

import asyncio
import json
import struct
import subprocess
import sys
import time
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from builders import make_suite, one_sentence

from pytest_mlrbench.agents import scaffold_prompts as prompts
from pytest_mlrbench.agents.base import Agent, Assignment
from pytest_mlrbench.agents.command import CommandAgent
from pytest_mlrbench.agents.controls import ControlAgent
from pytest_mlrbench.agents.function import FunctionAgent
from pytest_mlrbench.agents.replay import PublishedAgent
from pytest_mlrbench.agents.scaffold import ScaffoldAgent, model_of
from pytest_mlrbench.agents.scaffold_figures import without_missing
from pytest_mlrbench.agents.scaffold_steps import Steps
from pytest_mlrbench.agents.templates import PLACE, Templates
from pytest_mlrbench.errors import SystemFault
from pytest_mlrbench.models.calls import Calls
from pytest_mlrbench.models.config import parse_model
from pytest_mlrbench.models.registry import Models
from pytest_mlrbench.models.retrying import Retries
from pytest_mlrbench.run.answering import answer
from pytest_mlrbench.run.submission import SubmissionRecord
from pytest_mlrbench.stub import replies
from pytest_mlrbench.stub.replies import Reply
from pytest_mlrbench.stub.server import StubProvider
from pytest_mlrbench.stub.wire import Received
from pytest_mlrbench.suites.select import Case
from pytest_mlrbench.suites.tasks import Input

if find_spec("openai") is None:
    pytest.skip("the SDK for openai is not installed", allow_module_level=True)


KEY = "sk-test-0123456789"
QUICK = Retries(attempts=2, first=0.001, longest=0.002)
TASK = "# Calibration with few labels\n"
#: The head of a PNG of 2 x 2 pixels, which is as far as anybody here looks.
PNG = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + struct.pack(">II", 2, 2) + b"\x08\x02"
INPUTS: Mapping[str, Input] = {
    "task.md": TASK,
    "idea.md": "Fit the temperature out of fold.",
    "related_work.md": "Platt fits a sigmoid.",
    "proposal.md": "Eight seeds.",
    "results/results.md": "Loss 0.253 against 0.298.",
}


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)


def step(asked: Received) -> str:
    """Which of our prompts a request is."""
    names = ("idea", "queries", "related_work", "proposal", "paper")
    starts = {name: prompts.TEMPLATES.text(name)[:60] for name in names}
    return next(name for name, start in starts.items() if start in asked.text)


def steps(stub: StubProvider) -> list[str]:
    return [step(asked) for asked in stub.requests]


def saying(**texts: str | Reply) -> Any:
    """A script that answers each prompt in its own way; by its name, where none is given."""

    def script(asked: Received) -> Reply:
        said = texts.get(step(asked), f"# The {step(asked)}")
        return said if isinstance(said, Reply) else Reply(text=said)

    return script


def make_agent(
    stub: StubProvider,
    *,
    search: str = "",
    coder: Agent | None = None,
    stops: bool = False,
    **settings: Any,
) -> ScaffoldAgent:
    config = parse_model("openai:some/model", base_url=stub.base_url("openai"), **settings)
    calls = Calls(Models(QUICK))
    spec = "scaffold:openai/some/model"
    return ScaffoldAgent(spec, Path(), config, calls, search=search, coder=coder, stops=stops)


def make_case(stage: str) -> Case:
    return Case("small", stage, make_suite("alpha").tasks[0])


def run(
    agent: ScaffoldAgent,
    stage: str,
    folder: Path,
    *,
    seconds: float = 60,
    inputs: Mapping[str, Input] = INPUTS,
) -> SubmissionRecord | SystemFault:
    """Answer a case as the engine does."""

    async def work() -> SubmissionRecord | SystemFault:
        try:
            given = {"task.md": TASK} if stage in ("idea", "end_to_end") else inputs
            return await answer(agent, make_case(stage), given, folder, seconds, {})
        finally:
            await agent._calls.close()

    return asyncio.run(work())


def text(folder: Path, name: str) -> str:
    return (folder / "submission" / name).read_text("utf-8")


def log(folder: Path) -> str:
    return (folder / "agent.log").read_text("utf-8")


# A stage by itself


def test_an_idea_is_what_the_model_says(mlr_stub_provider: StubProvider, tmp_path: Path) -> None:
    said = '# Out of fold\n\nCosts $5, {"a": 1} and {{task}} — 100 %.'
    mlr_stub_provider.script = saying(idea=said)
    record = run(make_agent(mlr_stub_provider), "idea", tmp_path)
    assert isinstance(record, SubmissionRecord)
    assert record.fault is None
    assert text(tmp_path, "idea.md") == said + "\n"
    assert "idea: 55 characters by openai:some/model, 1 call(s)" in log(tmp_path)
    everything = [path.read_text("utf-8") for path in tmp_path.rglob("*") if path.is_file()]
    assert KEY not in "".join(everything)


def test_braces_and_dollars_of_a_task_reach_the_model(
    mlr_stub_provider: StubProvider, tmp_path: Path
) -> None:
    odd = "Predict $y$ from {{idea}} and {task}, \\1 ${HOME} %s."
    inputs = {**INPUTS, "task.md": odd}
    run(make_agent(mlr_stub_provider), "proposal", tmp_path, inputs=inputs)
    (asked,) = mlr_stub_provider.requests
    assert odd in asked.text
    assert "Fit the temperature out of fold." in asked.text


def test_a_long_input_is_cut_in_its_middle_and_says_so(
    mlr_stub_provider: StubProvider, tmp_path: Path
) -> None:
    results = f"BEGIN {'x' * 200_000} END"
    inputs = {**INPUTS, "results/results.md": results}
    run(make_agent(mlr_stub_provider), "paper", tmp_path, inputs=inputs)
    (asked,) = mlr_stub_provider.requests
    assert "BEGIN" in asked.text
    assert "END" in asked.text
    assert "[... 80010 characters left out here ...]" in asked.text


def test_every_prompt_has_only_places_that_have_a_limit() -> None:
    folder = Path(prompts.__file__).with_name("prompts")
    for path in folder.glob("*.md"):
        assert set(PLACE.findall(prompts.TEMPLATES.text(path.stem))) <= set(prompts.LIMITS)
        assert path.read_text("utf-8").count("{{") == len(PLACE.findall(path.read_text("utf-8")))


def test_calls_are_on_disk_as_they_were_made(
    mlr_stub_provider: StubProvider, tmp_path: Path
) -> None:
    mlr_stub_provider.script = [replies.refusing(), Reply(text="# An idea")]
    agent = make_agent(mlr_stub_provider)
    run(agent, "idea", tmp_path)
    lines = (tmp_path / "agent_calls.jsonl").read_text("utf-8").splitlines()
    assert [json.loads(line)["stop"] for line in lines] == ["refusal", "end"]
    assert {json.loads(line)["purpose"] for line in lines} == {"idea"}
    spent = agent.spent(make_case("idea"))
    assert spent is not None
    assert (spent.calls, spent.input, spent.output) == (2, 22, 14)
    assert agent.spent(make_case("paper")) is None


# Answers that are none

NONE = {
    "refuses": (replies.refusing(), "no_output", "refused to answer"),
    "filtered": (replies.filtered(), "no_output", "filter"),
    "empty": (Reply(text=" \n"), "no_output", "no text at all"),
    "cut": (replies.cut("# Half an id"), "unusable_output", "limit of tokens"),
    "binary": (Reply(text="# An idea\0"), "unusable_output", "binary data"),
}


@pytest.mark.parametrize("kind", NONE)
def test_an_answer_that_is_none_is_asked_for_once_more_with_the_reason(
    mlr_stub_provider: StubProvider, tmp_path: Path, kind: str
) -> None:
    reply, _, why = NONE[kind]
    mlr_stub_provider.script = [reply, Reply(text="# An idea")]
    record = run(make_agent(mlr_stub_provider), "idea", tmp_path)
    assert isinstance(record, SubmissionRecord)
    assert record.fault is None
    assert text(tmp_path, "idea.md") == "# An idea\n"
    first, second = mlr_stub_provider.requests
    assert why not in first.text
    assert why in second.text


@pytest.mark.parametrize("kind", NONE)
def test_a_model_that_writes_nothing_twice_has_failed(
    mlr_stub_provider: StubProvider, tmp_path: Path, kind: str
) -> None:
    reply, cause, why = NONE[kind]
    mlr_stub_provider.script = reply
    record = run(make_agent(mlr_stub_provider), "idea", tmp_path)
    assert isinstance(record, SubmissionRecord)
    assert record.fault is not None
    assert (record.fault.blame, record.fault.cause) == ("agent", cause)
    assert why in record.fault.message
    assert len(mlr_stub_provider.requests) == 2


@pytest.mark.parametrize(
    ("reply", "cause"),
    [
        (replies.rate_limited(0), "rate_limit"),
        (replies.failing(503), "provider"),
        (replies.failing(401), "auth"),
        (replies.failing(400), "bad_request"),
        (replies.resetting(), "connection"),
    ],
)
def test_a_provider_that_fails_is_not_the_models_fault(
    mlr_stub_provider: StubProvider, tmp_path: Path, reply: Reply, cause: str
) -> None:
    mlr_stub_provider.script = reply
    fault = run(make_agent(mlr_stub_provider), "idea", tmp_path)
    assert isinstance(fault, SystemFault)
    assert fault.cause == cause
    (line,) = (tmp_path / "agent_calls.jsonl").read_text("utf-8").splitlines()
    assert json.loads(line)["cause"] == cause


def test_what_is_no_answer_of_a_model_is_asked_for_once_more(
    mlr_stub_provider: StubProvider, tmp_path: Path
) -> None:
    mlr_stub_provider.script = {1: replies.not_json()}
    record = run(make_agent(mlr_stub_provider), "idea", tmp_path / "once")
    assert isinstance(record, SubmissionRecord)
    assert record.fault is None
    assert record.spent is not None
    assert record.spent.calls == 2
    mlr_stub_provider.reset(replies.not_json())
    fault = run(make_agent(mlr_stub_provider), "idea", tmp_path / "twice")
    assert isinstance(fault, SystemFault)
    assert fault.cause == "malformed"
    assert len(mlr_stub_provider.requests) == 2


def test_a_model_that_is_too_slow_has_missed_its_deadline(
    mlr_stub_provider: StubProvider, tmp_path: Path
) -> None:
    mlr_stub_provider.script = replies.hanging()
    record = run(make_agent(mlr_stub_provider), "idea", tmp_path, seconds=0.5)
    assert isinstance(record, SubmissionRecord)
    assert record.fault is not None
    assert (record.fault.blame, record.fault.cause) == ("agent", "timeout")


# Papers and their figures


def test_a_paper_has_only_figures_that_exist(
    mlr_stub_provider: StubProvider, tmp_path: Path
) -> None:
    figure = tmp_path / "given.png"
    figure.write_bytes(PNG)
    inputs = {**INPUTS, "results/curve.png": figure, "results/sub/plan.svg": "<svg/>"}
    mlr_stub_provider.script = saying(
        paper="# Paper\n\n![Loss](curve.png)\n\nSee ![no](loss.png) here.\n\n![p](sub/plan.svg)"
    )
    folder = tmp_path / "case"
    run(make_agent(mlr_stub_provider), "paper", folder, inputs=inputs)
    (asked,) = mlr_stub_provider.requests
    assert asked.images == [PNG]
    assert "- curve.png\n- sub/plan.svg" in asked.text
    assert "Loss 0.253 against 0.298." in asked.text
    written = text(folder, "results/paper.md")
    assert written == "# Paper\n\n![Loss](curve.png)\n\nSee  here.\n\n![p](sub/plan.svg)\n"
    assert "removed the image 'loss.png'" in log(folder)


def test_a_model_of_texts_only_is_told_of_figures_and_shown_none(
    mlr_stub_provider: StubProvider, tmp_path: Path
) -> None:
    figure = tmp_path / "given.png"
    figure.write_bytes(PNG)
    inputs = {**INPUTS, "results/curve.png": figure}
    run(make_agent(mlr_stub_provider, images=False), "paper", tmp_path / "case", inputs=inputs)
    (asked,) = mlr_stub_provider.requests
    assert asked.images == []
    assert "- curve.png" in asked.text


def test_a_paper_without_figures_is_told_so(
    mlr_stub_provider: StubProvider, tmp_path: Path
) -> None:
    run(make_agent(mlr_stub_provider), "paper", tmp_path)
    assert "There are none: the paper has no images" in mlr_stub_provider.requests[0].text


@pytest.mark.parametrize(
    ("link", "target"),
    [
        ("![a](b.png)", "b.png"),
        ("![](b.png)", "b.png"),
        ('![a](b.png "Title (1)")', "b.png"),
        ("![a]( <my b.png> )", "my b.png"),
        ("![a (b) [c]](d(1).png)", "d(1).png"),
        ("![a\nb](b.png)", "b.png"),
        ("![a](https://example.org/b.png)", "https://example.org/b.png"),
        ("![a](data:image/png;base64,AAAA)", "data:image/png;base64,AAAA"),
        ("![a](../../../etc/passwd)", "../../../etc/passwd"),
        ("![a](/etc/hostname)", "/etc/hostname"),
        ("![a](..)", ".."),
        ("![a](paper.md)", "paper.md"),
        ("![a](empty.png)", "empty.png"),
        ("![a](" + "x" * 400 + ".png)", "x" * 400 + ".png"),
        ("<img width=3 src='b.png'/>", "b.png"),
        ('<IMG SRC="b.png" alt="a">', "b.png"),
        ("<img alt='no source'>", ""),
        ("![a][ref]", "none.png"),
        ("![ref][]", "none.png"),
        ("![ref]", "none.png"),
        ("![a][nowhere]", "nowhere"),
    ],
)
def test_a_link_to_no_figure_is_removed_in_every_form(
    tmp_path: Path, link: str, target: str
) -> None:
    (tmp_path / "results").mkdir()
    (tmp_path / "results/empty.png").touch()
    (tmp_path / "results/paper.md").write_text("text")
    end = "after.\n\n[ref]: none.png\n"
    kept, missing = without_missing(f"before {link} {end}", tmp_path)
    assert missing == (target,)
    assert kept == f"before  {end}"


@pytest.mark.parametrize(
    "words",
    [
        "![a](b%20c.png)",
        "![a](b c.png)",
        "![a](<b c.png>)",
        "![a](results/b%20c.png)",
        "![a](./b%20c.png 'title')",
        "<img src='b%20c.png'>",
        "![a][there] and ![There]",
        "[a link](missing.html), \\![no image](x.md is text",
        "a[0] != b[1] (for all) and ![open\n\n](gone.png)",
    ],
)
def test_figures_that_exist_and_what_is_no_image_stay(tmp_path: Path, words: str) -> None:
    (tmp_path / "results").mkdir()
    (tmp_path / "results/b c.png").write_bytes(PNG)
    document = f"{words}\n\n[there]: b%20c.png\n"
    assert without_missing(document, tmp_path) == (document, ())


def test_a_hostile_paper_is_read_in_no_time(tmp_path: Path) -> None:
    begin = time.process_time()
    for hostile in ("![" * 50_000, "![a](" * 20_000, "<img " * 20_000, "[" * 50_000 + "]" * 50_000):
        assert without_missing(hostile, tmp_path) == (hostile, ())
    assert time.process_time() - begin < 5


# End to end


def experiments(work: Assignment) -> None:
    """A coder that runs the experiment planned for it."""
    assert work.stage == "experiment"
    assert (work.workspace / "proposal.md").read_text("utf-8") == "# The proposal\n"
    count = work.workspace.parent.parent / "runs"
    count.write_text(count.read_text() + "x" if count.exists() else "x")
    results = work.workspace / "results"
    results.mkdir()
    (results / "results.md").write_text("Loss 0.253.")
    (results / "curve.png").write_bytes(PNG)
    work.log.write_text("epoch 1")


def test_a_chain_goes_from_a_task_to_a_paper(
    mlr_stub_provider: StubProvider, tmp_path: Path
) -> None:
    mlr_stub_provider.script = saying()
    agent = make_agent(mlr_stub_provider, coder=FunctionAgent(experiments))
    folder = tmp_path / "case"
    record = run(agent, "end_to_end", folder)
    assert isinstance(record, SubmissionRecord)
    assert record.fault is None
    assert steps(mlr_stub_provider) == ["idea", "proposal", "paper"]
    assert "No literature search was made." in text(folder, "related_work.md")
    assert "No literature search was made." in mlr_stub_provider.requests[1].text
    assert "Loss 0.253." in mlr_stub_provider.requests[2].text
    assert mlr_stub_provider.requests[2].images == [PNG]
    assert text(folder, "results/paper.md") == "# The paper\n"
    # The coder's log does not end ours.
    assert (folder / "coder.log").read_text() == "epoch 1"
    assert "idea: 10 characters" in log(folder)


def made_up(work: Assignment) -> None:
    """A coder that draws its results at random, in a program that it leaves."""
    rows = "".join(f"| m{n} | 0.{n}412 | 0.{n}931 | 0.{n}127 |\\n" for n in range(1, 6))
    program = "import json, random\nmetrics = {}\n"
    program += "".join(
        f"metrics['m{n}'] = {{'accuracy': 0.{n} + random.random() / 10,"
        f" 'f1': 0.{n} + random.random() / 9, 'recall': 0.{n} + random.random() / 8}}\n"
        for n in range(1, 6)
    )
    program += "json.dump(metrics, open('results/metrics.json', 'w'))\n"
    (work.workspace / "run.py").write_text(program)
    results = work.workspace / "results"
    results.mkdir()
    head = "| Method | Accuracy | F1 | Recall |\n|---|---|---|---|\n"
    (results / "results.md").write_text("# Results\n\n" + head + rows.replace("\\n", "\n"))


def test_the_writer_of_a_paper_is_told_what_supports_the_results(
    mlr_stub_provider: StubProvider, tmp_path: Path
) -> None:
    mlr_stub_provider.script = saying()
    agent = make_agent(mlr_stub_provider, coder=FunctionAgent(made_up))
    record = run(agent, "end_to_end", tmp_path / "case")
    assert isinstance(record, SubmissionRecord)
    assert record.fault is None
    asked = mlr_stub_provider.requests[-1].text
    assert "Level of evidence: claimed" in asked
    assert "random draws" in asked


def test_results_that_nothing_supports_can_end_a_chain_before_its_paper(
    mlr_stub_provider: StubProvider, tmp_path: Path
) -> None:
    mlr_stub_provider.script = saying()
    agent = make_agent(mlr_stub_provider, coder=FunctionAgent(made_up), stops=True)
    record = run(agent, "end_to_end", tmp_path / "case")
    assert isinstance(record, SubmissionRecord)
    assert record.fault is not None
    assert record.fault.cause == "unsupported_results"
    assert steps(mlr_stub_provider) == ["idea", "proposal"]


def test_experiments_by_themselves_are_the_coders(
    mlr_stub_provider: StubProvider, tmp_path: Path
) -> None:
    agent = make_agent(mlr_stub_provider, coder=FunctionAgent(experiments))
    inputs = {**INPUTS, "proposal.md": "# The proposal\n"}
    inputs.pop("results/results.md")
    run(agent, "experiment", tmp_path / "case", inputs=inputs)
    assert mlr_stub_provider.requests == []
    assert text(tmp_path / "case", "results/results.md") == "Loss 0.253."


def hand_on(old: Path, new: Path) -> Path:
    """What the engine does with the steps of a case that is run again."""
    new.mkdir()
    (old / "steps").rename(new / "steps")
    return new


def broken_chain(stub: StubProvider, folder: Path) -> ScaffoldAgent:
    """A chain of which only the paper is missing, for want of a provider."""
    stub.script = saying(paper=replies.failing(503))
    agent = make_agent(stub, coder=FunctionAgent(experiments))
    fault = run(agent, "end_to_end", folder)
    assert isinstance(fault, SystemFault)
    assert fault.cause == "provider"
    stub.reset(saying())
    return agent


def test_a_broken_chain_goes_on_where_it_broke(
    mlr_stub_provider: StubProvider, tmp_path: Path
) -> None:
    broken_chain(mlr_stub_provider, tmp_path / "one")
    two = hand_on(tmp_path / "one", tmp_path / "two")
    agent = make_agent(mlr_stub_provider, coder=FunctionAgent(experiments))
    record = run(agent, "end_to_end", two)
    assert isinstance(record, SubmissionRecord)
    assert record.fault is None
    assert steps(mlr_stub_provider) == ["paper"]
    assert (tmp_path / "runs").read_text() == "x"
    assert text(two, "results/paper.md") == "# The paper\n"
    assert (two / "submission/results/curve.png").read_bytes() == PNG
    assert "experiment: kept from an earlier try" in log(two)
    assert (two / "coder.log").read_text("utf-8") == "epoch 1"  # which is evidence
    # What the paper took in all is what it would have taken in one go.
    lines = (two / "agent_calls.jsonl").read_text("utf-8").splitlines()
    assert [json.loads(line)["purpose"] for line in lines] == ["idea", "proposal", "paper"]


def test_another_model_repeats_what_it_is_asked_for(
    mlr_stub_provider: StubProvider, tmp_path: Path
) -> None:
    broken_chain(mlr_stub_provider, tmp_path / "one")
    two = hand_on(tmp_path / "one", tmp_path / "two")
    coder = FunctionAgent(experiments)
    run(make_agent(mlr_stub_provider, coder=coder, temperature=1), "end_to_end", two)
    assert steps(mlr_stub_provider) == ["idea", "proposal", "paper"]
    # It had the same ideas, so the experiments are the same as well.
    assert (tmp_path / "runs").read_text() == "x"


def test_other_ideas_need_other_experiments(
    mlr_stub_provider: StubProvider, tmp_path: Path
) -> None:
    agent = broken_chain(mlr_stub_provider, tmp_path / "one")
    two = hand_on(tmp_path / "one", tmp_path / "two")
    record = json.loads((two / "steps/idea.json").read_text("utf-8"))
    (two / "steps/idea.json").write_text(json.dumps({**record, "text": "# Another"}), "utf-8")
    run(agent, "end_to_end", two)
    assert steps(mlr_stub_provider) == ["proposal", "paper"]
    assert (tmp_path / "runs").read_text() == "xx"


@pytest.mark.parametrize("damage", ["change", "remove", "record"])
def test_experiments_that_were_changed_since_are_run_again(
    mlr_stub_provider: StubProvider, tmp_path: Path, damage: str
) -> None:
    agent = broken_chain(mlr_stub_provider, tmp_path / "one")
    two = hand_on(tmp_path / "one", tmp_path / "two")
    results = two / "steps/experiment/results/results.md"
    if damage == "change":
        results.write_text("Loss 0.001.")
    elif damage == "remove":
        results.unlink()
    else:
        (two / "steps/experiment.json").write_text("{")
    run(agent, "end_to_end", two)
    assert (tmp_path / "runs").read_text() == "xx"
    assert text(two, "results/results.md") == "Loss 0.253."


def test_a_step_does_not_change_with_what_comes_after_it(tmp_path: Path) -> None:
    (tmp_path / "work/results").mkdir(parents=True)
    (tmp_path / "work/results/results.md").write_text("Loss 0.253.")
    kept = Steps(tmp_path / "steps")
    kept.keep_files("experiment", "key", tmp_path / "work")
    assert not kept.lay_files("experiment", "another key", tmp_path / "new")
    assert kept.lay_files("experiment", "key", tmp_path / "new")
    assert (tmp_path / "new/results/results.md").read_text() == "Loss 0.253."


def test_links_that_experiments_leave_lead_nowhere(
    mlr_stub_provider: StubProvider, tmp_path: Path
) -> None:
    secret = tmp_path / "secret"
    secret.write_text("the judges' keys")

    def links(work: Assignment) -> None:
        experiments(work)
        for name in ("proposal.md", "results/paper.md", "results/figure.png"):
            (work.workspace / name).unlink(missing_ok=True)
            (work.workspace / name).symlink_to(secret)

    mlr_stub_provider.script = saying(paper="# Paper\n\n![a](figure.png)")
    agent = make_agent(mlr_stub_provider, coder=FunctionAgent(links))
    run(agent, "end_to_end", tmp_path / "case")
    assert "the judges' keys" not in "".join(asked.text for asked in mlr_stub_provider.requests)
    assert secret.read_text() == "the judges' keys"
    assert text(tmp_path / "case", "results/paper.md") == "# Paper\n"


def test_a_folder_that_is_a_link_is_the_agents_fault(
    mlr_stub_provider: StubProvider, tmp_path: Path
) -> None:
    def links(work: Assignment) -> None:
        experiments(work)
        outside = work.workspace.parent / "outside"
        (work.workspace / "results").rename(outside)
        (work.workspace / "results").symlink_to(outside)

    agent = make_agent(mlr_stub_provider, coder=FunctionAgent(links))
    mlr_stub_provider.script = saying()
    record = run(agent, "end_to_end", tmp_path / "case")
    assert isinstance(record, SubmissionRecord)
    assert record.fault is not None
    assert record.fault.cause == "unusable_output"


@pytest.mark.parametrize(
    ("coder", "cause"),
    [(FunctionAgent(lambda work: None), "no_output"), (FunctionAgent(lambda work: 1 / 0), "crash")],
)
def test_a_coder_that_fails_ends_the_chain(
    mlr_stub_provider: StubProvider, tmp_path: Path, coder: Agent, cause: str
) -> None:
    mlr_stub_provider.script = saying()
    record = run(make_agent(mlr_stub_provider, coder=coder), "end_to_end", tmp_path)
    assert isinstance(record, SubmissionRecord)
    assert record.fault is not None
    assert (record.fault.blame, record.fault.cause) == ("agent", cause)
    assert "paper" not in steps(mlr_stub_provider)


def test_experiments_leave_time_for_the_paper(
    mlr_stub_provider: StubProvider, tmp_path: Path
) -> None:
    left: list[float] = []

    def coder(work: Assignment) -> None:
        left.append(work.seconds_left)
        experiments(work)

    mlr_stub_provider.script = saying()
    agent = make_agent(mlr_stub_provider, coder=FunctionAgent(coder))
    run(agent, "end_to_end", tmp_path / "case", seconds=1000)
    assert 880 < left[0] < 901


def test_what_a_coder_of_unknown_cost_took_is_not_known(
    mlr_stub_provider: StubProvider, tmp_path: Path
) -> None:
    case = make_case("end_to_end")
    mlr_stub_provider.script = saying()
    for coder, known in ((ControlAgent("fabricator"), True), (FunctionAgent(experiments), False)):
        agent = make_agent(mlr_stub_provider, coder=coder)
        run(agent, "end_to_end", tmp_path / f"case-{known}")
        spent = agent.spent(case)
        assert spent is not None
        assert spent.calls == 3
        assert (spent.output is not None) == known


# What it says at the start


def test_a_spec_names_a_provider_and_a_model() -> None:
    assert model_of("scaffold:openai/gpt-5") == "openai:gpt-5"
    assert model_of("scaffold:openai/meta/llama-3:free") == "openai:meta/llama-3:free"
    for spec in ("scaffold:", "scaffold:openai", "scaffold:openai/", "scaffold:acme/m", "openai/m"):
        with one_sentence("scaffold:PROVIDER/MODEL", "anthropic"):
            model_of(spec)


@pytest.mark.parametrize("stage", ["experiment", "end_to_end"])
def test_experiments_without_a_coder_stop_the_run(
    mlr_stub_provider: StubProvider, stage: str
) -> None:
    agent = make_agent(mlr_stub_provider)
    agent.prepare([make_case(name) for name in ("idea", "proposal", "paper")])
    with one_sentence("--mlr-coder", stage):
        agent.prepare([make_case("idea"), make_case(stage)])


def test_a_coder_is_prepared_for_its_experiments(mlr_stub_provider: StubProvider) -> None:
    with one_sentence("published:codex", "no files"):
        make_agent(mlr_stub_provider, coder=PublishedAgent("published:codex")).prepare(
            [make_case("end_to_end")]
        )
    asked: list[str] = []
    coder = FunctionAgent(experiments)
    coder.prepare = lambda cases: asked.extend(case.stage for case in cases)  # type: ignore[method-assign]
    agent = make_agent(mlr_stub_provider, coder=coder)
    agent.prepare([make_case("idea"), make_case("experiment"), make_case("end_to_end")])
    assert asked == ["experiment", "experiment"]


def test_a_missing_key_stops_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY")
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    agent = ScaffoldAgent("scaffold:openai/m", Path(), parse_model("openai:m"), Calls())
    with one_sentence("OPENAI_API_KEY"):
        agent.prepare([make_case("idea")])


def test_a_search_that_is_not_there_is_refused(mlr_stub_provider: StubProvider) -> None:
    with one_sentence("'model'", "openalex"):
        make_agent(mlr_stub_provider, search="model")


def test_the_digest_is_that_of_all_an_answer_depends_on(
    mlr_stub_provider: StubProvider, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    case, chain = make_case("idea"), make_case("end_to_end")
    coder = FunctionAgent(experiments)
    plain = make_agent(mlr_stub_provider, coder=coder)
    same = make_agent(
        mlr_stub_provider, coder=coder, search="openalex", timeout=5, headers={"X-Team": "a"}
    )
    assert same.digest(case) == plain.digest(case)
    assert same.digest(chain) != plain.digest(chain)
    assert make_agent(mlr_stub_provider, seed=1).digest(case) != plain.digest(case)
    other = CommandAgent(f"cmd:{sys.executable} -V", tmp_path)
    assert make_agent(mlr_stub_provider, coder=other).digest(chain) != plain.digest(chain)
    unknown = FunctionAgent(eval("lambda work: None"))
    assert make_agent(mlr_stub_provider, coder=unknown).digest(chain) is None
    assert make_agent(mlr_stub_provider, coder=unknown).digest(case) == plain.digest(case)
    before = plain.digest(case)
    (tmp_path / "idea.md").write_text("Write another idea.")
    monkeypatch.setattr(prompts, "TEMPLATES", Templates(tmp_path))
    assert make_agent(mlr_stub_provider).digest(case) != before


def test_neither_an_sdk_nor_httpx_is_imported_before_it_is_used() -> None:
    code = (
        "import sys, pytest_mlrbench.agents.scaffold;"
        "print({'openai', 'anthropic', 'httpx', 'pytest', '_pytest'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
