"""What a provider says an answer used: read here only, and believed only where it can be so."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from pytest_mlrbench.models.config import MOST_TOKENS, Provider
from pytest_mlrbench.models.exchange import Usage

#: Anthropic counts what is read from its cache, or put into it, beside the rest.
_INTO = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")


def count(value: Any) -> int | None:
    """Return a number of tokens; null for whatever cannot be that of one call."""
    return value if type(value) is int and 0 <= value <= MOST_TOKENS else None


def usage_of(provider: Provider, counts: Any) -> Usage:
    """Return what the provider's own *counts* say; null for each that is not there, or cannot be.

    :param counts: the part of an answer with its usage, whatever it is.
    """
    return _READERS[provider](counts) if isinstance(counts, dict) else Usage()


def usage_kept(counts: Any) -> Usage:
    """Return what was written down, by us or by whoever has changed it since."""
    found = counts if isinstance(counts, dict) else {}
    return Usage(**{name: count(found.get(name)) for name in Usage.model_fields})


def _sum(*values: Any) -> int | None:
    """Add counts up; what is left out is 0, and one that cannot be makes the sum unknown."""
    parts = [0 if value is None else count(value) for value in values]
    known = [part for part in parts if part is not None]
    return count(sum(known)) if len(known) == len(parts) else None


def _detail(counts: dict[str, Any], group: str, name: str) -> int | None:
    details = counts.get(group)
    return count(details.get(name)) if isinstance(details, dict) else None


def _anthropic(counts: dict[str, Any]) -> Usage:
    steps = counts.get("iterations")
    # What it took to shorten a conversation on the way is in no other count.
    own = [
        one
        for one in (steps if isinstance(steps, list) else ())
        if isinstance(one, dict) and one.get("type") == "compaction"
    ]
    into = [part.get(name) for part in (counts, *own) for name in _INTO]
    answered = [part.get("output_tokens") for part in (counts, *own)]
    return Usage(
        input=None if into[0] is None else _sum(*into),
        output=None if answered[0] is None else _sum(*answered),
        cached_input=count(counts.get("cache_read_input_tokens")),
        reasoning=_detail(counts, "output_tokens_details", "thinking_tokens"),
    )


def _openai(counts: dict[str, Any]) -> Usage:
    # Its counts include what is cached and reasoned, as ours do.
    into, out = ("input", "output") if "input_tokens" in counts else ("prompt", "completion")
    asked, answered = count(counts.get(f"{into}_tokens")), counts.get(f"{out}_tokens")
    if answered is None and asked is not None and counts.get("total_tokens") == asked:
        answered = 0  # embeddings have none
    return Usage(
        input=asked,
        output=count(answered),
        cached_input=_detail(counts, f"{into}_tokens_details", "cached_tokens"),
        reasoning=_detail(counts, f"{out}_tokens_details", "reasoning_tokens"),
    )


def _google(counts: dict[str, Any]) -> Usage:
    prompt, tools = counts.get("promptTokenCount"), counts.get("toolUsePromptTokenCount")
    out, thoughts = counts.get("candidatesTokenCount"), counts.get("thoughtsTokenCount")
    silent = prompt is None and out is None and thoughts is None
    return Usage(
        input=None if prompt is None else _sum(prompt, tools),
        # Google counts thoughts beside the answer, and leaves out what is 0.
        output=None if silent else _sum(out, thoughts),
        cached_input=count(counts.get("cachedContentTokenCount")),
        reasoning=count(thoughts),
    )


_READERS: Mapping[Provider, Callable[[dict[str, Any]], Usage]] = {
    "anthropic": _anthropic,
    "openai": _openai,
    "google": _google,
}
