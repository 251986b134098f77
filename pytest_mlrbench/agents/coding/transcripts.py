"""What each CLI prints while it works, read as one list of events.

What a command printed and how it ended comes after the call, so calls are kept until then; one that
was never answered is told as well. Whatever is not understood is left out.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal

from pytest_mlrbench.agents.coding.events import (
    LIMIT,
    Command,
    Edit,
    Event,
    Message,
    Tool,
    Trouble,
    cut,
)
from pytest_mlrbench.agents.coding.reading import at, inside, name, objects, text

_Documents = Iterable[dict[str, Any]]
#: Name of a tool, and what it is given.
_Call = tuple[str, Any]
Change = Literal["write", "change", "delete"]

#: How the tools are called that write files, and what they do to them.
_EDITS: Mapping[str, Change] = {
    "Write": "write",
    "Edit": "change",
    "NotebookEdit": "change",
    "write_file": "write",
    "replace": "change",
}
#: Likewise those that are given a command.
_SHELLS = ("Bash", "run_shell_command")
#: Whatever a tool calls the file, and the text that is put into it.
_PATHS = ("file_path", "notebook_path")
_TEXTS = ("content", "new_string", "new_source")


def codex(printed: _Documents, session: _Documents, workspace: str) -> Iterator[Event]:
    """Read ``codex exec --json``."""
    open_items: dict[str, dict[str, Any]] = {}
    for entry in printed:
        item, kind = at(entry, "item"), text(entry.get("type"))
        if kind == "item.started" and isinstance(item, dict):
            open_items[text(item.get("id"))] = item
        elif kind == "item.completed" and isinstance(item, dict):
            open_items.pop(text(item.get("id")), None)
            yield from _codex_item(item, workspace)
        elif kind in ("error", "turn.failed"):
            message = text(entry.get("message")) or text(at(entry, "error", "message"))
            yield Trouble(cut(message))
    for item in open_items.values():
        yield from _codex_item(item, workspace)


def _codex_item(item: Mapping[str, Any], workspace: str) -> Iterator[Event]:
    kind = name(item.get("type"))
    if kind == "agent_message":
        yield from _said(text(item.get("text")))
    elif kind == "command_execution":
        output = cut(text(item.get("aggregated_output")))
        yield Command(cut(_unwrapped(text(item.get("command")))), _code(item), output)
    elif kind == "file_change" and item.get("status") != "failed":
        changes: Mapping[str, Change] = {"add": "write", "delete": "delete"}
        for change in objects(item.get("changes")):
            done = changes.get(text(change.get("kind")), "change")
            yield Edit(inside(change.get("path"), workspace), done, None)
    elif kind == "error":
        yield Trouble(cut(text(item.get("message"))))
    elif kind not in ("reasoning", "todo_list", "file_change"):
        yield Tool(kind, cut(json.dumps(item)))


def _code(item: Mapping[str, Any]) -> int | None:
    code = item.get("exit_code")
    return code if type(code) is int and abs(code) < 2**31 else None


def _unwrapped(command: str) -> str:
    """Return the command without the shell that it was given to."""
    if len(command) > LIMIT:  # splitting takes quadratic time
        return command
    try:
        words = shlex.split(command)
    except ValueError:
        return command
    return words[2] if len(words) == 3 and words[1] in ("-c", "-lc") else command


def claude(printed: _Documents, session: _Documents, workspace: str) -> Iterator[Event]:
    """Read ``claude --output-format stream-json``."""
    calls: dict[str, _Call] = {}
    for entry in printed:
        kind = entry.get("type")
        for block in objects(at(entry, "message", "content")):
            part = block.get("type")
            if kind == "assistant" and part == "text" and not entry.get("is_api_error_message"):
                yield from _said(text(block.get("text")))
            elif kind == "assistant" and part == "tool_use":
                calls[text(block.get("id"))] = name(block.get("name")), block.get("input")
            elif part == "tool_result" and (key := text(block.get("tool_use_id"))) in calls:
                failed, output = block.get("is_error") is True, text(block.get("content"))
                code = _claude_code(output, failed)
                yield from _used(calls.pop(key), workspace, output, code, done=not failed)
        if kind == "result" and entry.get("is_error") is True:
            yield Trouble(cut(text(entry.get("result")) or text(entry.get("subtype"))))
    for call in calls.values():
        yield from _used(call, workspace, "", None, done=False)


def _claude_code(output: str, failed: bool) -> int | None:
    code = re.match(r"Exit code (\d{1,9})(?:\n|$)", output)
    return int(code[1]) if failed and code else None if failed else 0


def gemini(printed: _Documents, session: _Documents, workspace: str) -> Iterator[Event]:
    """Read ``gemini --output-format stream-json``; its session knows how commands ended."""
    codes = _gemini_codes(session)
    calls: dict[str, _Call] = {}
    said = ""
    for entry in printed:
        kind, key = entry.get("type"), text(entry.get("tool_id"))
        if kind == "message" and entry.get("role") == "assistant":
            said += text(entry.get("content"))  # what is said comes in pieces
            continue
        yield from _said(said)
        said = ""
        if kind == "tool_use":
            calls[key] = name(entry.get("tool_name")), entry.get("parameters")
        elif kind == "tool_result" and key in calls:
            done = entry.get("status") == "success"
            output = text(entry.get("output")) or text(at(entry, "error", "message"))
            yield from _used(calls.pop(key), workspace, output, codes.get(key), done=done)
        elif kind == "error" or (kind == "result" and entry.get("status") != "success"):
            yield Trouble(cut(text(entry.get("message")) or text(at(entry, "error", "message"))))
    yield from _said(said)
    for key, call in calls.items():
        yield from _used(call, workspace, "", codes.get(key), done=False)


#: What the model is shown of a command that has ended. Only a code that is not 0 is in it.
_GEMINI_ENDED = re.compile(
    r"(?:<untrusted_context>\n)?Output: .*?(?:\nExit Code: (?P<code>\d{1,9}))?"
    r"(?P<signal>\nSignal: \S+)?(?:\nBackground PIDs: [\d, ]+)?\nProcess Group PGID: \d+"
    r"(?:\n</untrusted_context>)?\s*",
    re.DOTALL,
)


def _gemini_codes(session: _Documents) -> dict[str, int]:
    """Call → exit code, for commands that came to their end."""
    codes = {}
    for entry in session:
        for call in objects(entry.get("toolCalls")):
            for part in objects(call.get("result")):
                shown = text(at(part, "functionResponse", "response", "output"))
                ended = _GEMINI_ENDED.fullmatch(shown)
                if ended and not ended["signal"]:
                    codes[text(call.get("id"))] = int(ended["code"] or 0)
    return codes


def _said(words: str) -> Iterator[Event]:
    if words.strip():
        yield Message(cut(words.strip()))


def _used(
    call: _Call, workspace: str, output: str, code: int | None, *, done: bool
) -> Iterator[Event]:
    """Tell of the use of a tool, by its name.

    :param code: of a command that has ended.
    :param done: whether the tool did what it was asked for.
    """
    tool, given = call
    if tool in _SHELLS:
        # What runs in the background has not ended when the tool answers.
        aside = at(given, "run_in_background") or at(given, "is_background")
        yield Command(cut(text(at(given, "command"))), None if aside else code, cut(output))
    elif tool not in _EDITS:
        yield Tool(tool, cut(json.dumps(given)))
    elif done:
        path, words = (
            next((found for key in keys if (found := text(at(given, key)))), "")
            for keys in (_PATHS, _TEXTS)
        )
        yield Edit(inside(path, workspace), _EDITS[tool], cut(words))
