"""What a judge is asked, in our own words; the longer texts are files in ``prompts/``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from string import Template
from typing import Any

from pytest_mlrbench.judges.fence import Fence, neutralise
from pytest_mlrbench.judges.llm_schema import form, hallucination_schema, review_schema
from pytest_mlrbench.judges.material import Material
from pytest_mlrbench.models.exchange import Completion, Message, Part, Prompt
from pytest_mlrbench.suites.rubrics import HIGHEST, LOWEST, Rubric

PROMPTS = Path(__file__).with_name("prompts")


@cache
def _template(name: str) -> Template:
    return Template((PROMPTS / f"{name}.md").read_text("utf-8").strip())


def _review_task(rubric: Rubric, stage: str) -> str:
    extras = ""
    if rubric.hallucination:
        extras += "\n\n## hallucination\n\nThe flag described above, with its details."
    if rubric.confidence:
        extras += "\n\n## confidence\n\nA whole number from 1 to 5, as described above."
    return _template("review").substitute(
        title=rubric.title,
        instructions=rubric.instructions.strip(),
        lowest=LOWEST,
        highest=HIGHEST,
        dimensions="\n\n".join(
            f"## {one.name}\n\n{_anchored(one.question, one.bands)}"
            for one in rubric.dimensions_of(stage)
        ),
        overall=_anchored(rubric.overall.question, rubric.overall.bands),
        extras=extras,
    )


@dataclass(frozen=True)
class Question:
    """What is asked about a work, whichever it is: the same for all cases of a stage.

    :param task: in words.
    :param schema: of the answer.
    """

    task: str
    schema: Mapping[str, Any]

    @cached_property
    def reminder(self) -> str:
        """What comes behind the material."""
        return _template("reminder").substitute(form=form(self.schema))


def review_question(rubric: Rubric, stage: str) -> Question:
    """Return what is asked of a judge who scores by *rubric*."""
    return Question(_review_task(rubric, stage), review_schema(rubric, stage))


def hallucination_question() -> Question:
    """Return what is asked of a judge who looks for what was made up."""
    return Question(_template("hallucinations").template, hallucination_schema())


def build(question: Question, material: Material, judge: str) -> Prompt:
    """Return the prompt: the task, the fenced material, a reminder; text in one part if it can be.

    :param judge: id of the judge; with the material it makes the fence.
    """
    texts, figures = material.blocks, material.figures
    parts = [part for one in texts for part in (one.name, one.text)]
    pictures = [part for one in figures for part in (one.name, one.image.data)]
    fence = Fence.around([*parts, *pictures], len(texts) + len(figures), judge)
    written: list[str] = [question.task, _contents(material, fence)]
    said: list[Part] = []
    for number, block in enumerate(texts, start=1):
        written.append(
            f"{fence.begin(number)}\nfile: {block.name}\n\n{block.text}\n{fence.end(number)}"
        )
    for number, figure in enumerate(figures, start=len(texts) + 1):
        written.append(f"{fence.begin(number)}\nfile: {figure.name}\n")
        said += ["\n\n".join(written), figure.image]
        written = [fence.end(number)]
    written.append(question.reminder)
    said.append("\n\n".join(written))
    return Prompt.of(*said, system=_template("system").template)


def ask_again(prompt: Prompt, answer: Completion | None, why: str) -> Prompt:
    """Return the one further question after an answer that cannot be used, or was none."""
    # It may quote what the author wrote, so it is treated as that was.
    said, why = neutralise(answer.text.strip() if answer else "").text, neutralise(why).text
    if answer and said and answer.stop not in ("refusal", "filter"):
        return prompt.then(said, _template("again").substitute(why=why))
    # There is nothing to go on from: the same message, and not a second one behind it, which not
    # every server takes.
    *before, last = prompt.messages
    note = _template("once_more").substitute(why=why)
    *parts, text = last.parts
    renewed = (*parts, f"{text}\n\n{note}") if isinstance(text, str) else (*last.parts, note)
    return Prompt(messages=(*before, Message(renewed)), system=prompt.system)


def _anchored(question: str, bands: Mapping[str, str]) -> str:
    lines = [f"- {band}: {' '.join(text.split())}" for band, text in bands.items()]
    return "\n".join([question.strip(), "", *lines])


def _contents(material: Material, fence: Fence) -> str:
    """The list of the blocks and of what is missing: all of it in our words."""
    lines = ["# The material", "", f"The code of all its lines is {fence.nonce}.", ""]
    for number, block in enumerate(material.blocks, start=1):
        missing = f" ({block.missing:,} characters were cut out of its middle)" * (
            block.missing > 0
        )
        lines.append(f"- block {number}: {block.what}{missing}")
    for number, _ in enumerate(material.figures, start=len(material.blocks) + 1):
        lines.append(f"- block {number}: a figure")
    if material.unseen:
        lines += ["", "You are not shown:", *(f"- {what}" for what in material.unseen)]
    return "\n".join(lines)
