"""Gemini CLI: what it did, from its stream of JSON lines or from its session file.

What it prints for people is its words only, from which it cannot be told what was done.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from pytest_mlrbench.agents.coding.reading import at, name, objects, text
from pytest_mlrbench.evidence.base import Action, Command, Said
from pytest_mlrbench.evidence.history.texts import Texts

_LOOKS = ("read_file", "read_many_files", "list_directory", "glob", "search_file_content")
_IDLE = ("save_memory", "google_web_search", "web_fetch", "write_todos")
_CODE = re.compile(r"^Exit Code: (-?\d{1,9})", re.MULTILINE)


def read(documents: Iterable[Mapping[str, Any]]) -> list[Action] | None:
    """Return what was done; null where no document is of Gemini CLI's."""
    actions: list[Action] = []
    texts = Texts()
    calls: dict[str, tuple[str, Any]] = {}
    words, is_known = "", False
    for entry in documents:
        kind = entry.get("type")
        if kind == "message" and entry.get("role") == "assistant":
            words += text(entry.get("content"))  # what is said comes in pieces
            continue
        if words.strip():
            actions.append(Said(words.strip()))
        words = ""
        if kind == "tool_use" and "tool_name" in entry:
            is_known = True
            key = text(entry.get("tool_id"))
            calls[key] = name(entry.get("tool_name")), entry.get("parameters")
        elif kind == "tool_result" and (key := text(entry.get("tool_id"))) in calls:
            output = text(entry.get("output")) or text(at(entry, "error", "message"))
            actions += _used(*calls.pop(key), output, entry.get("status") == "success", texts)
        for message in [entry, *objects(entry.get("messages"))]:
            for call in objects(message.get("toolCalls")):
                is_known = True
                actions += _kept(call, texts)
    if words.strip():
        actions.append(Said(words.strip()))
    for tool, given in calls.values():
        actions += _used(tool, given, "", None, texts)
    return actions if is_known else None


def _kept(call: Mapping[str, Any], texts: Texts) -> Iterator[Action]:
    """Yield a call as the session file keeps it."""
    shown = [
        text(at(part, "functionResponse", "response", "output"))
        for part in objects(call.get("result"))
    ]
    ok = {"success": True, "error": False, "cancelled": False}.get(text(call.get("status")))
    yield from _used(name(call.get("name")), call.get("args"), "\n".join(shown), ok, texts)


def _used(tool: str, given: Any, output: str, ok: bool | None, texts: Texts) -> Iterator[Action]:
    path = text(at(given, "file_path")) or text(at(given, "absolute_path"))
    if tool == "run_shell_command":
        cwd = text(at(given, "directory")) or text(at(given, "dir_path")) or "."
        yield Command(text(at(given, "command")), output, _ended(given, output, ok), cwd)
    elif tool == "write_file":
        yield texts.written(path, text(at(given, "content")), ok)
    elif tool == "replace":
        pair = text(at(given, "old_string")), text(at(given, "new_string"))
        yield texts.replaced(path, [(*pair, True)], ok)
    elif tool in _LOOKS:
        look = "cat" if tool == "read_file" else "ls"
        path = path or text(at(given, "path")) or text(at(given, "dir_path")) or "."
        yield Command(f"{look} {shlex.quote(path)}", output, ok, ".")
    elif tool not in _IDLE:
        yield Command(f"# {tool}", output, None, ".")


def _ended(given: Any, output: str, ok: bool | None) -> bool | None:
    """Tell how a command ended. The tool works well when the command does not."""
    if code := _CODE.search(output):
        return code[1] == "0"
    if at(given, "is_background") is True:
        return None
    if ok is False:
        return False
    return True if ok and "\nProcess Group PGID: " in output else None
