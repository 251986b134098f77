"""What a CLI says its calls to models used, by model.

It is taken from what the CLI prints at its end, where that tells of models, and else from the calls
in its session files, which a killed one leaves too.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from pytest_mlrbench.agents.coding.events import Usage
from pytest_mlrbench.agents.coding.reading import amount, at, name, number, text
from pytest_mlrbench.models.config import ModelConfig, Provider
from pytest_mlrbench.models.exchange import Usage as Tokens
from pytest_mlrbench.models.prices import cost_usd
from pytest_mlrbench.spent import Spent

_Documents = Iterable[dict[str, Any]]


def codex(printed: _Documents, session: _Documents) -> list[Usage]:
    """Read the records of a Codex session; the turn's end, which names no model, if there are none.

    Sub-agents have session files of their own.
    """
    calls, model = [], ""
    for entry in session:
        payload, kind = entry.get("payload"), entry.get("type")
        if kind == "turn_context":
            model = name(at(payload, "model"))
        elif kind == "token_usage_record":
            calls.append(_codex(model, at(payload, "usage"), 1))
    ends = [entry.get("usage") for entry in printed if entry.get("type") == "turn.completed"]
    return _by_model(calls or [_codex("", usage, None) for usage in ends])


def _codex(model: str, usage: Any, calls: int | None) -> Usage:
    return Usage(
        model=model,
        calls=calls,
        input=number(at(usage, "input_tokens")),
        output=number(at(usage, "output_tokens")),
        cached_input=number(at(usage, "cached_input_tokens")),
        reasoning=number(at(usage, "reasoning_output_tokens")),
    )


def claude(printed: _Documents, session: _Documents) -> list[Usage]:
    """Read the last word of Claude Code, which has costs, else the messages of its session."""
    # A message is written again when more of it is there; one of an error is of no model.
    messages = {
        text(at(entry, "message", "id")): entry.get("message")
        for entry in session
        if entry.get("type") == "assistant"
        and text(at(entry, "message", "model")) not in ("", "<synthetic>")
    }
    calls = _by_model(map(_claude_message, messages.values()))
    counts = {usage.model: usage.calls for usage in calls}
    ends = [entry.get("modelUsage") for entry in printed if entry.get("type") == "result"]
    models = ends[-1] if ends and isinstance(ends[-1], dict) else {}
    told = [_claude_end(model, usage, counts.get(model)) for model, usage in models.items()]
    return told or calls


def _claude_message(message: Any) -> Usage:
    usage = at(message, "usage")
    cached = number(at(usage, "cache_read_input_tokens"))
    written = number(at(usage, "cache_creation_input_tokens"))
    return Usage(
        model=name(at(message, "model")),
        calls=1,
        input=number(at(usage, "input_tokens")) + cached + written,
        output=number(at(usage, "output_tokens")),
        cached_input=cached,
        reasoning=number(at(usage, "output_tokens_details", "thinking_tokens")),
    )


def _claude_end(model: str, usage: Any, calls: int | None) -> Usage:
    cached = number(at(usage, "cacheReadInputTokens"))
    return Usage(
        model=name(model),
        calls=calls,
        input=number(at(usage, "inputTokens"))
        + cached
        + number(at(usage, "cacheCreationInputTokens")),
        output=number(at(usage, "outputTokens")),
        cached_input=cached,
        reasoning=number(at(usage, "thinkingTokens")),
        cost_usd=amount(at(usage, "costUSD")),
    )


def gemini(printed: _Documents, session: _Documents) -> list[Usage]:
    """Read the last word of Gemini CLI, which counts what it asks beside its work too."""
    messages = {text(entry.get("id")): entry for entry in session if entry.get("type") == "gemini"}
    calls = _by_model(map(_gemini_message, messages.values()))
    counts = {usage.model: usage.calls for usage in calls}
    ends = [at(entry, "stats", "models") for entry in printed if entry.get("type") == "result"]
    models = ends[-1] if ends and isinstance(ends[-1], dict) else {}
    told = [_gemini_end(model, usage, counts.get(model)) for model, usage in models.items()]
    return [usage for usage in told if usage.input] or calls


def _gemini_message(message: Any) -> Usage:
    tokens = at(message, "tokens")
    thoughts = number(at(tokens, "thoughts"))
    return Usage(
        model=name(at(message, "model")),
        calls=1,
        input=number(at(tokens, "input")),
        output=number(at(tokens, "output")) + thoughts,
        cached_input=number(at(tokens, "cached")),
        reasoning=thoughts,
    )


def _gemini_end(model: str, usage: Any, calls: int | None) -> Usage:
    # Thoughts are in the total only.
    asked, answered = number(at(usage, "input_tokens")), number(at(usage, "output_tokens"))
    output = max(answered, number(at(usage, "total_tokens")) - asked)
    return Usage(
        model=name(model),
        calls=calls,
        input=asked,
        output=output,
        cached_input=number(at(usage, "cached")),
        reasoning=output - answered,
    )


def _by_model(calls: Iterable[Usage]) -> list[Usage]:
    """Add up calls to the same model."""
    sums: dict[str, Usage] = {}
    for call in calls:
        sums[call.model] = _plus(sums[call.model], call) if call.model in sums else call
    return list(sums.values())


def _plus(one: Usage, other: Usage) -> Usage:
    return Usage(
        model=one.model,
        calls=None if one.calls is None or other.calls is None else one.calls + other.calls,
        input=one.input + other.input,
        output=one.output + other.output,
        cached_input=one.cached_input + other.cached_input,
        reasoning=one.reasoning + other.reasoning,
    )


def spent(used: Sequence[Usage], provider: Provider) -> Spent | None:
    """Return what the calls used together, priced as the CLI reckons or by the price table.

    A sum that a part is missing of is null, and so is all of it if nothing is known.
    """
    return Spent.total(_spent(usage, provider) for usage in used) if used else None


def _spent(usage: Usage, provider: Provider) -> Spent:
    calls = usage.calls or 1
    return Spent(
        calls=calls,
        attempts=calls,
        input=usage.input,
        output=usage.output,
        cached_input=usage.cached_input,
        reasoning=usage.reasoning,
        cost_usd=_cost(usage, provider) if usage.cost_usd is None else usage.cost_usd,
    )


def _cost(usage: Usage, provider: Provider) -> float | None:
    tokens = Tokens(
        input=usage.input,
        output=usage.output,
        cached_input=usage.cached_input,
        reasoning=usage.reasoning,
    )
    try:
        config = ModelConfig(provider=provider, model=usage.model)
    except ValueError:  # it is no name of a model
        return None
    return cost_usd(config, tokens)
