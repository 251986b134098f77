"""The scaffold at work on one case: files read and written, and steps that are taken once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from pytest_mlrbench.agents import scaffold_prompts as prompts
from pytest_mlrbench.agents.base import Assignment
from pytest_mlrbench.agents.scaffold_asking import Asking, Log
from pytest_mlrbench.agents.scaffold_steps import StepRecord, Steps
from pytest_mlrbench.errors import AgentFault
from pytest_mlrbench.models.config import ModelConfig, Parameters
from pytest_mlrbench.models.exchange import Part, Prompt
from pytest_mlrbench.run import digests

#: Bytes of an input that are read; prompts show less.
_LONGEST = 4_000_000


def content_of(config: ModelConfig) -> dict[str, Any]:
    """Return what answers depend on of a model: neither keys nor headers nor its timeout."""
    own = config.model_dump(include={"provider", "model", "api", *Parameters.model_fields})
    return {**own, "address": config.address}


@dataclass
class Author:
    """A model that answers one case.

    :param work: the case as the engine gave it.
    """

    work: Assignment
    asking: Asking
    steps: Steps
    log: Log

    def read(self, name: str) -> str:
        """Return a text of the workspace; empty where there is none, or a link in its place."""
        path = self.work.workspace / name
        root = self.work.workspace.resolve()
        if not path.is_file() or path.is_symlink() or not path.resolve().is_relative_to(root):
            return ""
        with path.open("rb") as file:
            return file.read(_LONGEST).decode("utf-8", "replace")

    def write(self, name: str, text: str) -> None:
        """Write a text into the workspace.

        :raises AgentFault: an experiment left something there that is in the way.
        """
        path = self.work.workspace / name
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            if not path.parent.resolve().is_relative_to(self.work.workspace.resolve()):
                raise OSError("its folder is a link that leaves the workspace")
            # Not into what lies there: it may be a link, or a file that a step shares.
            path.unlink(missing_ok=True)
            path.write_text(f"{text.rstrip()}\n", "utf-8", "replace")
        except OSError as error:
            why = error.strerror or error
            raise AgentFault("unusable_output", f"{name} cannot be written: {why}.") from None

    async def written(self, name: str, template: str, *shown: Part, **texts: str) -> str:
        """Return the text that the model writes for a prompt; that of an earlier try, if it stands.

        :param name: of the step.
        :param shown: follows the prompt.
        """
        prompt = _prompt(template, shown, texts)
        key = self.key(_described(prompt))
        if (found := self._found(name, key)) is not None:
            return found
        answer = await self.asking.text(prompt, name)
        self.steps.keep_text(name, key, *answer)
        return answer.text

    async def filled(
        self, name: str, schema: dict[str, Any], read: Callable[[Any], object], **texts: str
    ) -> str:
        """Return the JSON that the model writes for the prompt *name*, likewise."""
        prompt = _prompt(name, (), texts)
        key = self.key([_described(prompt), schema])
        if (found := self._found(name, key)) is not None:
            return found
        answer = await self.asking.json(prompt, schema, name, read)
        self.steps.keep_text(name, key, *answer)
        return answer.text

    def key(self, depends: object) -> str:
        """Return the digest of a step that depends on the model and on *depends*."""
        return digests.of_json([content_of(self.asking.config), depends])

    def _found(self, name: str, key: str) -> str | None:
        record: StepRecord | None = self.steps.find(name, key)
        if record is None or record.text is None:
            return None
        self.asking.enter(record.calls)
        self.log.say(f"{name}: kept from an earlier try")
        return record.text


def _prompt(template: str, shown: tuple[Part, ...], texts: dict[str, str]) -> Prompt:
    return Prompt.of(prompts.fill(template, **texts), *shown, system=prompts.fill("system"))


def _described(prompt: Prompt) -> list[str]:
    """A prompt as plain data."""
    parts = [part for message in prompt.messages for part in message.parts]
    shown = [part if isinstance(part, str) else sha256(part.data).hexdigest() for part in parts]
    return [prompt.system, *shown]


def case_files(work: Assignment) -> tuple[Path, Path]:
    """Return where a case's calls and steps are kept: beside the submission, for no judge."""
    folder = work.log.parent
    return folder / "agent_calls.jsonl", folder / "steps"
