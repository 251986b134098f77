"""A scripted session for coding CLIs: the stub speaks the streams they read and has them use their
own tools. Needs nothing that is installed for development only.

Which step is next depends on the request alone: it is as many as there are results of tools in it.
So questions that a CLI asks beside its work, and repeated requests, change nothing.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pytest_mlrbench.stub.filling import fill
from pytest_mlrbench.stub.replies import Reply, Tokens
from pytest_mlrbench.stub.server import StubProvider
from pytest_mlrbench.stub.wire import Received

#: Below these a server may offer each provider's interface.
_PREFIX = re.compile(r"^/(anthropic|openai|google)(?=/v1)")
_RESULTS = ("tool_result", "function_call_output", "custom_tool_call_output")


@dataclass(frozen=True, slots=True)
class Write:
    """Have a file written; *path* is relative to the workspace."""

    path: str
    text: str


@dataclass(frozen=True, slots=True)
class Run:
    """Have a command run by the shell."""

    command: str


@dataclass(frozen=True, slots=True)
class Say:
    """Say something, which ends the session."""

    text: str


Step = Write | Run | Say

#: A small experiment on the words of the task, with a report of its own numbers.
EXPERIMENT = '''\
"""Is the length of the next word better guessed by the mean so far or by the last word?"""
import json, pathlib, random, statistics

words = [len(word) for word in pathlib.Path("task.md").read_text().split()]
rows = []
for seed in range(3):
    at = random.Random(seed).sample(range(8, len(words)), k=min(20, len(words) - 8))
    mean = statistics.fmean(abs(words[i] - statistics.fmean(words[:i])) for i in at)
    last = statistics.fmean(abs(words[i] - words[i - 1]) for i in at)
    rows.append({"seed": seed, "mean": round(mean, 4), "last": round(last, 4)})
    print(f"seed {seed}: mean {mean:.4f}, last {last:.4f}")
results = pathlib.Path("results")
(results / "metrics.json").write_text(json.dumps({"seeds": rows}))
(results / "log.txt").write_text("".join(f"{row}\\n" for row in rows))
table = "".join(f"| {r['seed']} | {r['mean']:.4f} | {r['last']:.4f} |\\n" for r in rows)
(results / "results.md").write_text(
    "# Results\\n\\nMean absolute error of the guessed word length.\\n\\n"
    f"| seed | mean | last word |\\n|---|---|---|\\n{table}"
)
claims = [
    {"text": f"{name}, seed {row['seed']}", "value": row[name],
     "source": f"results/metrics.json#/seeds/{i}/{name}"}
    for i, row in enumerate(rows) for name in ("mean", "last")
]
(results / "claims.json").write_text(json.dumps(claims))
'''
#: A session in which an experiment fails at first.
SESSION: tuple[Step, ...] = (
    Run("ls task.md && python3 results/run.py"),
    Write("results/run.py", EXPERIMENT),
    Run("python3 results/run.py"),
    Say("The experiment is done; its report is results/results.md."),
)


class CodingStub(StubProvider):
    """A provider that leads a coding CLI through *steps*.

    :param workspace: as the CLI sees it.
    :ivar sent: the usage of each answer, in the order in which they were given.
    :ivar models: the model that each was asked of.
    """

    def __init__(
        self, steps: Sequence[Step] = SESSION, workspace: str | Path = "/workspace"
    ) -> None:
        super().__init__(self._answer)
        self.steps = steps
        self._workspace = Path(workspace)
        self.sent: list[Tokens] = []
        self.models: list[str] = []

    @property
    def total(self) -> Tokens:
        """The usage of all answers together."""
        return Tokens(
            *(
                sum(getattr(tokens, name) for tokens in self.sent)
                for name in ("input", "output", "cached", "reasoning")
            )
        )

    def _receive(self, target: str, headers: dict[str, str], content: bytes) -> Received | None:
        # The same request but for the form of the answer.
        target = target.replace(":streamGenerateContent", ":generateContent")
        return super()._receive(_PREFIX.sub("", target), headers, content)

    def _answer(self, asked: Received) -> Reply | None:
        tools = tools_of(asked.body)
        if asked.schema:
            # A question beside the work. Gemini CLI spells the types in capital letters.
            self._note(asked, Tokens())
            return Reply(text=json.dumps(fill(_small(asked.schema))))
        if not tools:
            return self._stream(asked, Say("ok"), tools)
        step = self.steps[min(_results(asked.body), len(self.steps) - 1)]
        if isinstance(step, Write) and asked.format == "anthropic":
            # It takes no relative paths.
            step = Write(str(self._workspace / step.path), step.text)
        return self._stream(asked, step, tools)

    def _stream(self, asked: Received, step: Step, tools: Mapping[str, Any]) -> Reply:
        number = len(self.sent) + 1
        tokens = Tokens(1000 * number + 1, 10 * number + 2, 100 * number + 3, number)
        self._note(asked, tokens)
        events = _STREAMS[asked.format](asked, step, tools, tokens)
        body = "".join(
            (f"event: {event['type']}\n" if "type" in event else "")
            + f"data: {json.dumps(event)}\n\n"
            for event in events
        )
        return Reply(body=body.encode(), headers={"content-type": "text/event-stream"})

    def _note(self, asked: Received, tokens: Tokens) -> None:
        self.sent.append(tokens)
        self.models.append(asked.model)


def _small(schema: Any) -> Any:
    if isinstance(schema, dict):
        return {
            key: value.lower() if key == "type" and isinstance(value, str) else _small(value)
            for key, value in schema.items()
        }
    return [_small(part) for part in schema] if isinstance(schema, list) else schema


def tools_of(body: Mapping[str, Any]) -> dict[str, Any]:
    """Name → declaration of the tools that are offered."""
    declared = list(body.get("tools") or ())
    for item in body.get("input") or ():
        # Models that run JavaScript are told of their tools in the conversation.
        if isinstance(item, dict) and item.get("type") == "additional_tools":
            declared += [tool for space in item["tools"] for tool in space.get("tools", ())]
    nested = [tool for entry in declared for tool in entry.get("functionDeclarations", ())]
    named = [tool for tool in (*declared, *nested) if "functionDeclarations" not in tool]
    return {tool.get("name", tool.get("type")): tool for tool in named}


def _results(value: Any) -> int:
    """How many results of tools there are in a request."""
    if isinstance(value, list):
        return sum(map(_results, value))
    if isinstance(value, dict):
        own = value.get("type") in _RESULTS or "functionResponse" in value
        return own + sum(_results(value.get(key)) for key in _CONVERSATION if key in value)
    return 0


_CONVERSATION = ("messages", "input", "contents", "content", "parts")


def _anthropic(asked: Received, step: Step, tools: Any, tokens: Tokens) -> list[dict[str, Any]]:
    match step:
        case Say(text):
            block: dict[str, Any] = {"type": "text", "text": ""}
            delta: dict[str, Any] = {"type": "text_delta", "text": text}
        case Run(command):
            block, delta = _tool_use(asked, "Bash", {"command": command, "description": "Run it"})
        case Write(path, text):
            given = {"file_path": path, "content": text}
            block, delta = _tool_use(asked, "Write", given)
    usage = {
        "input_tokens": tokens.input - tokens.cached,
        "cache_read_input_tokens": tokens.cached,
        "cache_creation_input_tokens": 0,
    }
    message: dict[str, Any] = {
        "id": f"msg_{asked.number}",
        "type": "message",
        "role": "assistant",
        "model": asked.model,
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": {**usage, "output_tokens": 1},
    }
    stop = "end_turn" if isinstance(step, Say) else "tool_use"
    return [
        {"type": "message_start", "message": message},
        {"type": "content_block_start", "index": 0, "content_block": block},
        {"type": "content_block_delta", "index": 0, "delta": delta},
        {"type": "content_block_stop", "index": 0},
        {
            "type": "message_delta",
            "delta": {"stop_reason": stop, "stop_sequence": None},
            "usage": {
                **usage,
                "output_tokens": tokens.output,
                "output_tokens_details": {"thinking_tokens": tokens.reasoning},
            },
        },
        {"type": "message_stop"},
    ]


def _tool_use(asked: Received, name: str, given: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    block = {"type": "tool_use", "id": f"toolu_{asked.number}", "name": name, "input": {}}
    return block, {"type": "input_json_delta", "partial_json": json.dumps(given)}


def _responses(asked: Received, step: Step, tools: Any, tokens: Tokens) -> list[dict[str, Any]]:
    call = {"id": f"c_{asked.number}", "call_id": f"call_{asked.number}", "status": "completed"}
    script = tools.get("exec", {}).get("type") == "custom"
    match step:
        case Say(text):
            part = {"type": "output_text", "text": text, "annotations": []}
            item = {"type": "message", "id": "m1", "role": "assistant", "content": [part]}
        case Run() | Write() if script:
            item = {"type": "custom_tool_call", "name": "exec", "input": _javascript(step), **call}
        case Run() | Write():
            given = json.dumps({"cmd": _shell(step)})
            item = {"type": "function_call", "name": "exec_command", "arguments": given, **call}
    response = {"id": f"resp_{asked.number}", "object": "response", "model": asked.model}
    usage = {
        "input_tokens": tokens.input,
        "input_tokens_details": {"cached_tokens": tokens.cached},
        "output_tokens": tokens.output,
        "output_tokens_details": {"reasoning_tokens": tokens.reasoning},
        "total_tokens": tokens.input + tokens.output,
    }
    done = {**response, "status": "completed", "output": [item], "usage": usage}
    return [
        {"type": "response.created", "response": {**response, "status": "in_progress"}},
        {"type": "response.output_item.done", "output_index": 0, "item": item},
        {"type": "response.completed", "response": done},
    ]


def _javascript(step: Run | Write) -> str:
    if isinstance(step, Run):
        command = json.dumps({"cmd": step.command, "yield_time_ms": 30000})
        return f"const done = await tools.exec_command({command});\ntext(done);"
    lines = "".join(f"+{line}\n" for line in step.text.splitlines())
    patch = f"*** Begin Patch\n*** Add File: {step.path}\n{lines}*** End Patch\n"
    return f"text(await tools.apply_patch({json.dumps(patch)}));"


def _shell(step: Run | Write) -> str:
    if isinstance(step, Run):
        return step.command
    folder = step.path.rpartition("/")[0] or "."
    return f"mkdir -p {folder} && cat > {step.path} <<'EOF'\n{step.text}EOF"


def _google(asked: Received, step: Step, tools: Any, tokens: Tokens) -> list[dict[str, Any]]:
    match step:
        case Say(text):
            part: dict[str, Any] = {"text": text}
        case Run(command):
            part = {"functionCall": {"name": "run_shell_command", "args": {"command": command}}}
        case Write(path, text):
            given = {"file_path": path, "content": text}
            part = {"functionCall": {"name": "write_file", "args": given}}
    candidate = {"index": 0, "finishReason": "STOP", "content": {"role": "model", "parts": [part]}}
    usage = {
        "promptTokenCount": tokens.input,
        "cachedContentTokenCount": tokens.cached,
        "candidatesTokenCount": tokens.output - tokens.reasoning,
        "thoughtsTokenCount": tokens.reasoning,
        "totalTokenCount": tokens.input + tokens.output,
    }
    return [
        {
            "candidates": [candidate],
            "modelVersion": asked.model,
            "responseId": f"r{asked.number}",
            "usageMetadata": usage,
        }
    ]


_STREAMS = {"anthropic": _anthropic, "responses": _responses, "google": _google}
