"""Claude Code: what it did, from its messages in whatever wrapping."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from pytest_mlrbench.agents.coding.reading import at, name, objects, text
from pytest_mlrbench.evidence.base import Action, Command, Said
from pytest_mlrbench.evidence.history.texts import Texts

#: Tools that only look, and those that neither look nor do: what any other tool does is not known.
_LOOKS = ("Read", "Grep", "Glob", "LS", "NotebookRead")
_IDLE = ("TodoWrite", "TodoRead", "WebFetch", "WebSearch", "ExitPlanMode", "ToolSearch", "Skill")

_NUMBERED = re.compile(r"^ {0,12}\d{1,9}[\t→]", re.MULTILINE)
_FAILED = re.compile(r"\s{0,9}(?:Exit code [1-9]\d{0,8}\b|Command timed out\b)")
_BACKGROUND = re.compile(r"running in (?:the )?background|manually backgrounded", re.IGNORECASE)
_SHELL_ID = re.compile(r"\bID: (\w{1,40})")
_ENDED = re.compile(r"<exit_code>(-?\d{1,9})</exit_code>")


def read(documents: Iterable[dict[str, Any]]) -> list[Action] | None:
    """Return what was done; null where no document is a message of Claude Code's."""
    reader = _Reader()
    for entry in documents:
        reader.take(entry)
    return reader.finish()


class _Reader:
    """The actions so far, and the calls that are still without a result."""

    def __init__(self) -> None:
        self._actions: list[Action] = []
        self._texts = Texts()
        self._calls: dict[str, tuple[str, Any]] = {}
        #: Background shell → place of its command among the actions.
        self._shells: dict[str, int] = {}
        self._cwd: str | None = None
        self._is_known = False

    def take(self, entry: Mapping[str, Any]) -> None:
        """Note one message."""
        if entry.get("type") == "system" and isinstance(entry.get("cwd"), str):
            self._cwd = entry["cwd"][:4096]
        content = at(entry, "message", "content")
        content = entry.get("content") if content is None else content
        role = entry.get("role") or at(entry, "message", "role") or entry.get("type")
        is_agent = role == "assistant" or "model" in entry
        if is_agent and isinstance(content, str):
            self._said(content)
        for block in objects(content):
            if "tool_use_id" in block:
                self._is_known = True
                self._answered(block)
            elif "name" in block and "input" in block:
                self._is_known = True
                self._calls[text(block.get("id"))] = name(block["name"]), block["input"]
            elif is_agent:
                self._said(text(block.get("text")))

    def finish(self) -> list[Action] | None:
        """Return everything; calls that were never answered had no known end."""
        for call, given in self._calls.values():
            self._actions += self._used(call, given, "", None)
        return self._actions if self._is_known else None

    def _said(self, words: str) -> None:
        if words.strip():
            self._is_known = True
            self._actions.append(Said(words.strip()))

    def _answered(self, block: Mapping[str, Any]) -> None:
        key = text(block.get("tool_use_id"))
        if key not in self._calls:
            return
        tool, given = self._calls.pop(key)
        ok = block.get("is_error") is not True
        if tool == "Batch":
            self._batch(given, block.get("content"), ok)
        else:
            self._actions += self._used(tool, given, text(block.get("content")), ok)

    def _batch(self, given: Any, content: Any, ok: bool) -> None:
        """Note several calls at once, whose results are pairs of a heading and a text."""
        calls = objects(at(given, "invocations"))
        parts = [text(part.get("text")) for part in objects(content)]
        outputs = parts[1::2] if len(parts) == 2 * len(calls) else ["\n".join(parts)] * len(calls)
        for call, output in zip(calls, outputs, strict=True):
            done = ok and not output.startswith(("Error", "<tool_use_error>"))
            self._actions += self._used(
                name(call.get("tool_name")), call.get("input"), output, done
            )

    def _used(self, tool: str, given: Any, output: str, ok: bool | None) -> Iterator[Action]:
        path = text(at(given, "file_path")) or text(at(given, "notebook_path"))
        if tool == "Bash":
            yield self._command(given, output, ok)
        elif tool == "Write":
            yield self._texts.written(path, text(at(given, "content")), ok)
        elif tool in ("Edit", "MultiEdit", "NotebookEdit"):
            pairs = objects(at(given, "edits")) or [given] if isinstance(given, dict) else []
            yield self._texts.replaced(
                path,
                [
                    (
                        text(p.get("old_string")),
                        text(p.get("new_string")),
                        bool(p.get("replace_all")),
                    )
                    if tool != "NotebookEdit"
                    else ("\0", "", False)
                    for p in pairs
                ],
                ok,
            )
        elif tool in ("BashOutput", "TaskOutput"):
            self._went_on(given, output)
        elif tool in _LOOKS:
            path = path or text(at(given, "path")) or "."
            look = "cat" if tool in ("Read", "NotebookRead") else "ls"
            yield Command(f"{look} {shlex.quote(path)}", _NUMBERED.sub("", output), ok)
        elif tool not in _IDLE:
            yield Command(f"# {tool}", output, None)

    def _command(self, given: Any, output: str, ok: bool | None) -> Command:
        if ok and _FAILED.match(output):
            ok = False
        if at(given, "run_in_background") is True or _BACKGROUND.search(output[:400]):
            ok = None
            if found := _SHELL_ID.search(output):
                self._shells[found[1]] = len(self._actions)
        cwd, self._cwd = self._cwd, None
        return Command(text(at(given, "command")), output, ok, cwd)

    def _went_on(self, given: Any, output: str) -> None:
        """Add to a command in the background what it has printed since."""
        key = text(at(given, "bash_id")) or text(at(given, "task_id"))
        place = self._shells.get(key)
        before = self._actions[place] if place is not None else None
        if place is not None and isinstance(before, Command):
            ended = _ENDED.search(output)
            ok = int(ended[1]) == 0 if ended else before.ok
            self._actions[place] = replace(before, output=f"{before.output}\n{output}", ok=ok)
