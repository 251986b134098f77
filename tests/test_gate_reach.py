"""However a body is spelled, no provider is sent onto the network, and no other model is asked."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
from gate_builders import Loop, Opened, Provider, behind, chat, open_gate, post

pytest_plugins = ["gate_fixtures"]

URL = "https://example.org/secret?stolen"
MESSAGES, CHAT = "/anthropic/v1/messages", "/openai/v1/chat/completions"
RESPONSES, EMBEDDINGS = "/openai/v1/responses", "/openai/v1/embeddings"
GOOGLE = "/google/v1beta/models/g:"
GENERATE, EMBED = f"{GOOGLE}generateContent", f"{GOOGLE}embedContent"
FILE = {"parts": [{"fileData": {"fileUri": URL}}]}


def ask(gate: Opened, path: str, more: dict[str, Any]) -> Any:
    model = {} if path.startswith("/google") else {"model": "m"}
    return post(gate, path, {**model, **more})


def refused(gate: Opened, provider: Provider, path: str, more: dict[str, Any]) -> str:
    answer = ask(gate, path, more)
    assert answer.status_code == 403, more
    assert provider.got == []
    return str(answer.headers["x-mlrbench-refused"])


@pytest.mark.parametrize(
    ("path", "more"),
    [
        (GENERATE, {"tools": {"google_search": {}}}),
        (GENERATE, {"tools": {"urlContext": {}}}),
        (GENERATE, {"tools": [[{"googleSearch": {}}]]}),
        (GENERATE, {"tools": [{"functionDeclarations": [], "google_search": {}}]}),
        (GENERATE, {"tools": [{"name": "x", "type": "function", "googleSearch": {}}]}),
        (GENERATE, {"tools": "google_search"}),
        (f"{GOOGLE}countTokens", {"generate_content_request": {"tools": {"googleSearch": {}}}}),
        (RESPONSES, {"tools": {"type": "web_search"}}),
        (RESPONSES, {"tools": [{"name": "x", "type": ["web_search"]}]}),
        (RESPONSES, {"input": {"type": "additional_tools", "tools": {"type": "web_search"}}}),
        (RESPONSES, {"input": [{"type": "tool_search_output", "tools": [
            {"type": "namespace", "name": "n", "tools": {"type": "mcp"}}]}]}),
        (RESPONSES, {"tools": {"type": "shell", "environment": {"type": "container_auto"}}}),
        (MESSAGES, {"tools": {"type": "web_fetch_20250910", "name": "web_fetch"}}),
        (MESSAGES, {"messages": {"content": {"tools": [{"type": "web_search_20250305"}]}}}),
        (MESSAGES, {"mcpServers": [{"name": "x"}]}),
        (CHAT, {"webSearchOptions": {}}),
        (CHAT, {"extra_body": {"google": {"tools": {"google_search": {}}}}}),
    ],
)  # fmt: skip
def test_a_tool_of_the_provider_is_found_wherever_and_however_it_is_spelled(
    opened: Opened, provider: Provider, path: str, more: dict[str, Any]
) -> None:
    assert refused(opened, provider, path, more) == "tools"


@pytest.mark.parametrize(
    ("path", "more"),
    [
        (GENERATE, {"system_instruction": FILE}),
        (GENERATE, {"systemInstruction": FILE}),
        (GENERATE, {"contents": FILE}),
        (GENERATE, {"contents": {"parts": {"file_data": {"file_uri": URL}}}}),
        (GENERATE, {"contents": [{"parts": [{"functionResponse": {"name": "f", "parts": [
            {"fileData": {"fileUri": URL}}]}}]}]}),
        (EMBED, {"content": FILE}),
        (f"{GOOGLE}batchEmbedContents", {"requests": [{"content": FILE}]}),
        (f"{GOOGLE}batchEmbedContents", {"requests": {"content": FILE}}),
        (f"{GOOGLE}countTokens", {"generateContentRequest": {"contents": [FILE]}}),
        (CHAT, {"messages": {"content": {"type": "image_url", "image_url": {"url": URL}}}}),
        (CHAT, {"messages": [{"content": [{"type": "image_url", "image_url": [URL]}]}]}),
        (CHAT, {"messages": [{"content": [{"type": "video_url", "video_url": {"url": URL}}]}]}),
        (CHAT, {"prediction": {"content": [{"type": "image_url", "image_url": URL}]}}),
        (RESPONSES, {"input": {"content": {"type": "input_file", "file_url": URL}}}),
        (RESPONSES, {"instructions": [{"content": [{"type": "input_image", "imageUrl": URL}]}]}),
        (RESPONSES, {"input": [{"type": "computer_call_output", "output": {
            "type": "computer_screenshot", "image_url": URL}}]}),
        (RESPONSES, {"input": [{"type": "mcp_list_tools", "server_url": URL}]}),
        (CHAT, {"messages": [{"content": [{"type": "file", "file": {"file_data": URL}}]}]}),
        (CHAT, {"messages": [{"content": [{"image": URL}]}]}),
        (MESSAGES, {"system": [{"type": "image", "source": {"type": "url", "url": URL}}]}),
        (MESSAGES, {"messages": [{"content": [{"type": "tool_result", "content": {
            "type": "document", "source": {"url": URL}}}]}]}),
        (MESSAGES, {"messages": [{"content": [{"type": "document", "source": {"type": "content",
            "content": [{"type": "image", "source": {"type": "url", "url": URL}}]}}]}]}),
        (EMBEDDINGS, {"input": [{"content": [{"type": "image_url", "image_url": {"url": URL}}]}]}),
    ],
)  # fmt: skip
def test_an_address_to_be_fetched_is_found_wherever_and_however_it_is_spelled(
    opened: Opened, provider: Provider, path: str, more: dict[str, Any]
) -> None:
    assert refused(opened, provider, path, more) == "address"


SCHEMA = {"type": "object", "properties": {"file_url": {"type": "string", "default": URL}}}
GIVEN = {"url": URL, "file_url": URL, "tools": [{"type": "web_search"}], "model": "other"}


@pytest.mark.parametrize(
    ("path", "more"),
    [
        (MESSAGES, {"system": f"See {URL}", "metadata": {"user_id": URL}}),
        (MESSAGES, {"tools": [{"name": "url", "input_schema": SCHEMA, "input_examples": [GIVEN]}]}),
        (MESSAGES, {"tools": [{"type": None, "name": "get", "input_schema": SCHEMA}]}),
        (MESSAGES, {"messages": [
            {"role": "assistant", "content": [{"type": "tool_use", "name": "x", "input": GIVEN}]},
            {"role": "user", "content": [{"type": "tool_result", "content": f"got {URL}"}]},
            {"content": [{"type": "document", "source": {"type": "text", "data": URL}}]},
            {"role": "user", "content": [{"type": "search_result", "source": URL, "content": []}]}],
            "output_config": {"format": {"type": "json_schema", "schema": SCHEMA}}}),
        (CHAT, {"messages": [{"role": "user", "content": [{"type": "text", "text": URL}]}],
            "tools": [{"type": "function", "function": {"name": "f", "parameters": SCHEMA}}],
            "functions": [{"name": "f", "parameters": SCHEMA}],
            "tool_choice": {"type": "allowed_tools", "allowed_tools": {"tools": [
                {"type": "function", "function": {"name": "f"}}]}},
            "response_format": {"type": "json_schema", "json_schema": {"schema": SCHEMA}}}),
        (RESPONSES, {"instructions": URL, "metadata": GIVEN,
            "text": {"format": {"type": "json_schema", "schema": SCHEMA}},
            "tools": [{"type": "function", "name": "f", "parameters": SCHEMA},
                {"type": "custom", "name": "c", "format": {"type": "grammar", "definition": URL}}],
            "input": [{"type": "function_call", "name": "f", "arguments": f'{{"url": "{URL}"}}'},
                {"type": "function_call_output", "output": URL},
                {"type": "local_shell_call", "action": {"type": "exec", "command": ["get", URL]}},
                {"type": "message", "content": [{"type": "output_text", "text": URL, "annotations":
                    [{"type": "url_citation", "url": URL}]}]},
                {"type": "message", "content": [{"type": "input_image", "image_url": "data:,"}]}]}),
        (GENERATE, {"systemInstruction": {"parts": [{"text": URL}]},
            "tools": {"function_declarations": {"name": "f", "parameters": SCHEMA,
                "parametersJsonSchema": SCHEMA, "response": SCHEMA}},
            "generation_config": {"responseSchema": SCHEMA, "response_json_schema": SCHEMA},
            "contents": [{"parts": [{"functionCall": {"name": "f", "args": GIVEN}}]},
                {"parts": [{"function_response": {"name": "f", "response": GIVEN}}]},
                {"parts": [{"inlineData": {"mimeType": "image/png", "data": "AAAA"}}]}]}),
    ],
)  # fmt: skip
def test_texts_schemas_and_what_the_agents_own_tools_are_given_pass(
    tmp_path: Path, loop: Loop, provider: Provider, path: str, more: dict[str, Any]
) -> None:
    limits: dict[str, Any] = {"models": ["m", "g"]}
    with open_gate(tmp_path, loop, behind(provider), **limits) as gate:
        answer = ask(gate, path, more)
        assert answer.status_code == 200, answer.text


def test_every_model_that_a_body_names_is_one_of_the_runs(
    tmp_path: Path, loop: Loop, provider: Provider
) -> None:
    batch = f"{GOOGLE}batchEmbedContents"
    others: list[tuple[str, dict[str, Any]]] = [
        (batch, {"requests": [{"model": "models/g"}, {"model": "models/dear"}]}),
        (batch, {"requests": {"model": "dear"}}),
        (f"{GOOGLE}countTokens", {"generateContentRequest": {"model": "models/dear"}}),
        (GENERATE, {"model": "models/dear"}),
        (RESPONSES, {"moderation": {"model": "dear"}}),
        (MESSAGES, {"tools": [{"type": "custom", "name": "x", "model": "dear"}]}),
    ]
    named = behind(provider)
    with open_gate(tmp_path, loop, named, models=["m", "g", "h"]) as gate:
        for path, more in others:
            assert refused(gate, provider, path, more) == "model"
        # The path of Google's counts, and is what is paid for.
        assert refused(gate, provider, batch, {"requests": [{"model": "models/h"}]}) == "model"
        assert ask(gate, batch, {"requests": [{"model": "models/g"}]}).status_code == 200
        assert ask(gate, GENERATE, {"model": "models/g"}).status_code == 200
        assert ask(gate, RESPONSES, {"moderation": {"model": "g"}}).status_code == 200
    # Whatever else a provider may do for an agent, it asks no other models.
    with open_gate(tmp_path, loop, named, models=["m", "g"], web_tools=True) as gate:
        advisor = {"type": "advisor_20260301", "name": "advisor", "model": "dear"}
        assert ask(gate, MESSAGES, {"tools": [advisor]}).status_code == 403


@pytest.mark.parametrize("names", [("fileUri", "file_uri"), ("tools", "Tools"), ("a_b", "aB")])
def test_what_stands_in_two_spellings_in_one_object_is_refused(
    opened: Opened, provider: Provider, names: tuple[str, str]
) -> None:
    one, other = names
    for first, second in ((one, other), (other, one)):
        answer = chat(opened, messages=[{first: [], second: [{"type": "web_search", "x": URL}]}])
        assert answer.status_code == 400
    assert provider.got == []


def test_a_body_that_is_nested_deep_is_refused(opened: Opened, provider: Provider) -> None:
    deep: Any = {"tools": [{"type": "web_search"}]}
    for _ in range(150):
        deep = {"content": [deep]}
    assert chat(opened, messages=[deep]).status_code == 400
    assert provider.got == []


def test_a_body_of_very_many_objects_keeps_nobody_waiting(
    opened: Opened, provider: Provider
) -> None:
    began = time.monotonic()
    answer = chat(opened, pad=[{}] * 500_000)
    assert answer.status_code == 413
    assert "too many parts" in answer.text
    assert provider.got == []
    # Numbers are read at once, and the agent's own data is not looked at.
    body = {"model": "m", "input": [7] * 500_000, "metadata": {"x": [{}] * 200_000}}
    assert post(opened, EMBEDDINGS, body).status_code == 200
    assert time.monotonic() - began < 15  # of which most is to write and read the bodies
