"""Whether a provider is asked to reach into the network in the agent's place.

Tools that a provider runs (search, fetching, connectors, programs) and files it is told to fetch
would be a way out of the container. What the agent runs itself is known by name, and what is mere
text or data of its own is not looked at; anything else is taken for the provider's, wherever it is
in a body, so that tools and fields which are new do not pass.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from pytest_mlrbench.models.config import Provider
from pytest_mlrbench.sandbox.gate_reading import Part, each, plain
from pytest_mlrbench.sandbox.gate_refusals import Refusal

#: Tools that the agent runs itself, by the beginning of their type.
_OWN = (
    *("custom", "function", "local_shell", "apply_patch", "computer", "namespace"),
    *("bash_", "text_editor_", "memory_", "tool_search"),
)
_OWN_OF_GOOGLE = "functiondeclarations"
#: What a body may hold beside tools that makes a provider go elsewhere; the last three are of
#: servers that speak as OpenAI does.
_ELSEWHERE = {
    **{"mcpservers": "mcp_servers", "websearchoptions": "web_search_options"},
    **{"searchparameters": "search_parameters", "datasources": "data_sources"},
    "plugins": "plugins",
}
#: How the names of fields end that hold an address to be fetched.
_ADDRESSES = ("url", "uri", "urls", "uris")
#: Fields for a file itself, in the place of which some servers take its address.
_FILES = ("filedata", "data", "image", "images", "video", "audio", "file")
_SCHEME = re.compile(r"\s*[A-Za-z][A-Za-z0-9+.-]*://")


def check_reach(provider: Provider, parts: Sequence[Part]) -> None:
    """Check the body of a request.

    :raises Refusal: the provider is asked to reach into the network.
    """
    for part in parts:
        for name, word in _ELSEWHERE.items():
            if part.get(name) is not None:
                raise Refusal(403, "tools", f"{word}, which the provider would use, does not pass.")
        for tool in each(part.get("tools")):
            for name in _named(provider, tool):
                raise Refusal(403, "tools", f"the provider's own tool {name[:60]!r} does not pass.")
        for address in _addresses(part):
            raise Refusal(403, "address", f"{address[:60]!r} is not fetched: send the file itself.")


def _named(provider: Provider, tool: Any) -> Iterator[str]:
    """Yield the name of a tool, or those in it, unless the agent runs it itself."""
    if not isinstance(tool, dict):
        yield str(tool)
        return
    known = plain(tool)
    kind = known.get("type")
    if provider == "google":  # whose tools are known by what they have in them
        yield from _unknown(known)
    elif kind == "shell":
        where = known.get("environment")
        if not (isinstance(where, dict) and where.get("type") == "local"):
            yield "shell"
    elif kind is not None:
        if not (isinstance(kind, str) and kind.startswith(_OWN)):
            yield str(kind)
    elif "name" not in known:  # Anthropic's need no type
        yield from _unknown(known)


def _unknown(tool: Part) -> Iterator[str]:
    return (name for name, value in tool.items() if name != _OWN_OF_GOOGLE and value is not None)


def _addresses(part: Part) -> Iterator[str]:
    """Yield what a part has fetched."""
    for name, value in part.items():
        if name.endswith(_ADDRESSES):
            texts = (one for one in each(value) if isinstance(one, str))
            yield from (text for text in texts if not text.startswith("data:"))
        # Anthropic has texts in the field for data.
        elif name in _FILES and part.get("type") != "text":
            texts = (one for one in each(value) if isinstance(one, str))
            yield from (text for text in texts if _SCHEME.match(text))
