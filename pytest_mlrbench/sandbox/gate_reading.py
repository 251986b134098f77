"""A body as a provider reads it: every object it may act upon, with names in one spelling.

Google takes ``fileUri`` and ``file_uri`` for one name, and an object for a list of one; so do we,
whoever is asked.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pytest_mlrbench.models.config import Provider
from pytest_mlrbench.sandbox.gate_refusals import Refusal

#: Objects and lists one within the other, without what is the agent's own: no prompt has more.
_DEEPEST = 100
#: Objects and lists in all, which take about a second to look at; a long session has thousands.
_MOST = 100_000
#: Names below which there is what the agent's own tools take and give, schemas, and what only
#: tells of the past: the provider hands it on to the model, and may hold any names. Each is of one
#: provider, which has nothing else by that name: ``input`` is the prompt of OpenAI.
_OWN: Mapping[Provider, frozenset[str]] = {
    "anthropic": frozenset(
        ("input", "inputschema", "inputexamples", "schema", "metadata", "citations")
    ),
    "openai": frozenset(
        (
            *("parameters", "arguments", "schema", "metadata", "clientmetadata", "logitbias"),
            *("action", "actions", "annotations"),
        )
    ),
    "google": frozenset(
        (
            *("args", "response", "parameters", "parametersjsonschema", "responseschema"),
            *("responsejsonschema", "labels"),
        )
    ),
}

#: An object of a body, by names in one spelling; what is in it is as it was sent.
Part = Mapping[str, Any]


def parts_of(provider: Provider, document: Mapping[str, Any]) -> list[Part]:
    """Return the objects in a body, itself the first, without what is the agent's own data.

    :raises Refusal: it is nested too deep, has too many, or can be read in two ways.
    """
    found: list[Part] = []
    layer: list[Any] = [document]
    seen = 0
    for _ in range(_DEEPEST):
        if not layer:
            return found
        seen += len(layer)
        if seen > _MOST:
            raise Refusal(413, "body", "the body has too many parts.")
        objects = [plain(one) for one in layer if isinstance(one, dict)]
        found += objects
        inner = [value for one in layer if isinstance(one, list) for value in one]
        for one in objects:
            inner += [value for name, value in one.items() if name not in _OWN[provider]]
        layer = [value for value in inner if isinstance(value, dict | list)]
    raise Refusal(400, "body", "the body is nested too deep.")


def plain(given: Mapping[str, Any]) -> Part:
    """Return an object by names in one spelling.

    :raises Refusal: a name is there in two.
    """
    found = {spelled(name): value for name, value in given.items()}
    if len(found) != len(given):
        raise Refusal(400, "body", "a name stands in two spellings in one object of the body.")
    return found


def spelled(name: str) -> str:
    """Return a name in the one spelling."""
    return name.replace("_", "").lower()


def each(value: Any) -> Iterator[Any]:
    """Yield what is in a list, and in those within it; anything but null is a list of one."""
    if isinstance(value, list):
        for part in value:
            yield from each(part)
    elif value is not None:
        yield value
