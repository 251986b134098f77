"""Whether a provider is asked to reach into the network in the agent's place.

Tools that a provider runs (search, fetching, connectors, programs) and files it is told to fetch
would be a way out of the container. What the agent runs itself is known by name; anything else is
taken for the provider's, so that tools which are new do not pass.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from pytest_mlrbench.sandbox.gate_refusals import Refusal

#: Tools that the agent runs itself, by the beginning of their type.
_OWN = (
    *("custom", "function", "local_shell", "apply_patch", "computer", "namespace"),
    *("bash_", "text_editor_", "memory_", "tool_search"),
)
_OWN_OF_GOOGLE = {"functionDeclarations", "function_declarations"}
#: What a body may hold beside tools that makes a provider go elsewhere.
_ELSEWHERE = ("mcp_servers", "web_search_options")
#: Where a body has its prompt, and where the parts of one have further parts.
_PROMPTS = ("messages", "contents", "input", "system", "systemInstruction")
_PARTS = ("content", "parts", "source", "output", "functionResponse", "function_response")


def check_reach(document: Mapping[str, Any]) -> None:
    """Check the body of a request.

    :raises Refusal: the provider is asked to reach into the network.
    """
    for name in _ELSEWHERE:
        if document.get(name) is not None:
            raise Refusal(403, "tools", f"{name}, which the provider would use, does not pass.")
    try:
        tool = next(_tools(document), None)
        address = next(_addresses([document.get(key) for key in _PROMPTS]), None)
    except RecursionError:
        raise Refusal(400, "body", "the body is nested too deep.") from None
    if tool is not None:
        raise Refusal(403, "tools", f"the provider's own tool {tool[:60]!r} does not pass.")
    if address is not None:
        raise Refusal(403, "address", f"{address[:60]!r} is not fetched: send the file itself.")


def _tools(place: Any) -> Iterator[str]:
    """Yield the names of the provider's tools in a body, a part of its prompt, or another tool."""
    if not isinstance(place, dict):
        return
    tools, prompt = place.get("tools"), place.get("input")
    for tool in tools if isinstance(tools, list) else ():
        if isinstance(tool, dict):
            yield from _named(tool)
            yield from _tools(tool)
    for part in prompt if isinstance(prompt, list) else ():
        yield from _tools(part)


def _named(tool: Mapping[str, Any]) -> Iterator[str]:
    kind = tool.get("type")
    if kind == "shell":
        where = tool.get("environment")
        if not (isinstance(where, dict) and where.get("type") == "local"):
            yield "shell"
    elif isinstance(kind, str):
        if not kind.startswith(_OWN):
            yield kind
    elif "name" not in tool:  # Anthropic's need no type, and Google's have neither
        yield from (name for name in tool if name not in _OWN_OF_GOOGLE)


def _addresses(value: Any) -> Iterator[str]:
    """Yield what the parts of a prompt have fetched."""
    if isinstance(value, list):
        for part in value:
            yield from _addresses(part)
    elif isinstance(value, dict):
        yield from _remote(_files(value))
        for key in _PARTS:
            yield from _addresses(value.get(key))


def _files(part: Mapping[str, Any]) -> Iterable[Any]:
    picture = part.get("image_url")
    yield picture.get("url") if isinstance(picture, dict) else picture
    yield part.get("file_url")
    if part.get("type") == "url":
        yield part.get("url")
    for key in ("fileData", "file_data"):
        file = part.get(key)
        if isinstance(file, dict):
            yield file.get("fileUri") or file.get("file_uri")


def _remote(addresses: Iterable[Any]) -> Iterator[str]:
    for address in addresses:
        if isinstance(address, str) and not address.startswith("data:"):
            yield address
