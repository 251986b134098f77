"""What a model is asked and what came back."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from pytest_mlrbench.errors import InputError
from pytest_mlrbench.models.config import Parameters
from pytest_mlrbench.values import Value

Stop = Literal["end", "length", "refusal", "filter", "other"]

_IMAGES = ("image/png", "image/jpeg", "image/webp", "image/gif")


@dataclass(frozen=True, slots=True)
class Image:
    """A picture.

    :raises InputError: of a kind that no provider takes.
    """

    data: bytes = field(repr=False)
    media_type: str

    def __post_init__(self) -> None:
        if self.media_type not in _IMAGES:
            raise InputError(f"{self.media_type!r} is no image for a model: {', '.join(_IMAGES)}.")


Part = str | Image


@dataclass(frozen=True, slots=True)
class Message:
    """What one side says, in order: texts and images."""

    parts: tuple[Part, ...]
    role: Literal["user", "assistant"] = "user"


@dataclass(frozen=True, slots=True)
class Prompt:
    """A whole conversation up to now; the model speaks next."""

    messages: tuple[Message, ...]
    system: str = ""

    @classmethod
    def of(cls, *parts: Part, system: str = "") -> Prompt:
        """Return the prompt of one message."""
        return cls(messages=(Message(parts),), system=system)

    def then(self, answer: str, *parts: Part) -> Prompt:
        """Return this prompt, the model's *answer* to it and what is said to that."""
        said = Message((answer,), role="assistant")
        return Prompt(messages=(*self.messages, said, Message(parts)), system=self.system)


class Request(Parameters):
    """What the answer should be like; null parameters are those of the model's config.

    :param json_schema: the schema of a JSON document; the answer is not checked against it.
    """

    json_schema: dict[str, Any] | None = None


class Usage(Value):
    """Token counts; null where the provider does not say.

    :param input: all of the prompt, *cached_input* included.
    :param output: all that was generated, *reasoning* included.
    """

    input: int | None = None
    output: int | None = None
    cached_input: int | None = None
    reasoning: int | None = None


class Dropped(Value):
    """A parameter that was asked for and not sent, or is not enforced, and why."""

    name: str
    why: str


class Answer(Value):
    """What the body of one response says.

    :param raw_stop: the reason in the provider's words.
    :param model: the model's name as the provider says it; empty if it does not.
    """

    text: str
    stop: Stop
    raw_stop: str
    usage: Usage = Usage()
    model: str = ""


class Completion(Answer):
    """A valid answer, which can still be a refusal or cut off: see *stop*.

    :param latency: seconds from sending the request that was answered to having its answer.
    :param request_id: what the provider's support asks for; empty if it gave none.
    :param attempts: how often it was asked, the answered one included.
    :param dropped: what was asked for and not sent.
    """

    latency: float
    request_id: str
    attempts: int
    dropped: tuple[Dropped, ...] = ()
