"""Codex: what it did, from its JSON lines and from the log that it prints for people."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise
from typing import Any

from pytest_mlrbench.agents.coding.reading import at, objects, text
from pytest_mlrbench.evidence.base import Action, Command, Edit, Said
from pytest_mlrbench.evidence.history.texts import Texts

#: Lines of an output that the log shows at most, and what is put after those.
_SHOWN, CUT = 20, "\n[... what the log leaves out ...]\n"
#: Splitting a command takes quadratic time.
_LONGEST = 200_000


def unwrapped(command: str) -> str:
    """Return *command* without the shell that it was given to."""
    if not re.match(r"(?:/usr)?(?:/bin/)?(?:ba|z)?sh -l?c ", command) or len(command) > _LONGEST:
        return command
    try:
        words = shlex.split(command)
    except ValueError:
        return command
    return words[2] if len(words) == 3 else command


def read_lines(documents: Iterable[Mapping[str, Any]]) -> list[Action] | None:
    """Return what ``codex exec --json`` tells; null where it tells nothing."""
    actions: list[Action] = []
    started: dict[str, Mapping[str, Any]] = {}
    is_known = False
    for entry in documents:
        item = at(entry, "item")
        if not isinstance(item, dict):
            is_known |= entry.get("type") == "thread.started"
            continue
        is_known = True
        if entry.get("type") == "item.completed":
            started.pop(text(item.get("id")), None)
            actions += _item(item)
        elif entry.get("type") == "item.started":
            started[text(item.get("id"))] = item
    for item in started.values():
        actions += _item(item)
    return actions if is_known else None


def _item(item: Mapping[str, Any]) -> Iterator[Action]:
    kind = item.get("type")
    if kind in ("agent_message", "reasoning") and text(item.get("text")).strip():
        yield Said(text(item.get("text")).strip())
    elif kind == "command_execution":
        code = item.get("exit_code")
        ok = code == 0 if type(code) is int else None
        command = unwrapped(text(item.get("command")))
        yield Command(command, text(item.get("aggregated_output")), ok, ".")
    elif kind == "file_change":
        ok = {"completed": True, "failed": False}.get(text(item.get("status")))
        for change in objects(item.get("changes")):
            if change.get("kind") != "delete":
                yield Edit(text(change.get("path")), None, ok)
    elif kind == "mcp_tool_call":
        yield Command("# mcp_tool_call", "", None)


_STAMP = r"(?:\[\d{4}-\d\d-\d\dT[\d:.]{5,20}Z?\] )"
#: What begins an entry: in older logs a time, in newer ones one of these words on its own line.
_ENTRY = re.compile(
    rf"^(?:{_STAMP}|(?=(?:exec|codex|thinking|user|file update:?|tokens used)\n))", re.MULTILINE
)
_EXEC = re.compile(r"exec\s(?P<command>.*) in (?P<cwd>/\S*)\s*", re.DOTALL)
_RESULT = re.compile(r"\s(?:(?P<ok>succeeded)|exited -?\d{1,9}) in [^\s:]{1,20}:?(?:\n|$)")
_PATCHED = re.compile(r"apply_patch\([^)\n]{0,80}\) exited (-?\d{1,9}) in ")


def is_log(start: str) -> bool:
    """Tell whether a text that begins like this is what Codex prints for people."""
    return re.search(rf"^{_STAMP}?OpenAI Codex v\d", start, re.MULTILINE) is not None


def read_log(log: str) -> list[Action]:
    """Return what the log tells."""
    actions: list[Action] = []
    texts = Texts()
    waiting: dict[str, str] = {}
    patch: str | None = None
    bounds = [found.start() for found in _ENTRY.finditer(log)] + [len(log)]
    for start, end in pairwise(bounds):
        entry = re.sub(rf"\A{_STAMP}", "", log[start:end])
        if entry.startswith("exec"):
            actions += _executed(entry, waiting)
        elif entry.startswith("apply_patch auto"):
            patch = entry.partition("\n")[2].removesuffix("\n")
        elif patch is not None and (ended := _PATCHED.match(entry)):
            actions += texts.patched(patch, ended[1] == "0")
            patch = None
        elif entry.startswith(("codex\n", "thinking\n")) and entry.partition("\n")[2].strip():
            actions.append(Said(entry.partition("\n")[2].strip()))
        elif entry.startswith("file update"):
            paths = re.findall(r"^\+\+\+ (?:b/)?([^\n]{1,4096})", entry, re.MULTILINE)
            actions += [Edit(path, None) for path in paths if path != "/dev/null"]
        else:
            actions += _ended(entry, waiting)
    actions += [Command(unwrapped(given), "", None, cwd) for given, cwd in waiting.items()]
    return actions


def _executed(entry: str, waiting: dict[str, str]) -> Iterator[Command]:
    """Note a command, and yield it if its end stands in the same entry, as in newer logs."""
    if found := _EXEC.fullmatch(entry):
        waiting[found["command"]] = found["cwd"]
        return
    head, _, rest = entry.partition("\n")
    given = re.match(r"(.{1,200000}?) in (/\S{0,4096})(?=\s)", rest, re.DOTALL)
    result = _RESULT.match(rest, given.end()) if given else None
    if head == "exec" and given and result:
        output = rest[result.end() :]
        yield Command(unwrapped(given[1]), output, result["ok"] is not None, given[2])


def _ended(entry: str, waiting: dict[str, str]) -> Iterator[Command]:
    for given in [known for known in waiting if entry.startswith(known)]:
        if result := _RESULT.match(entry, len(given)):
            cwd = waiting.pop(given)
            output = entry[result.end() :]
            if output.count("\n") >= _SHOWN:
                output += CUT
            yield Command(unwrapped(given), output, result["ok"] is not None, cwd)
            return
