"""Where the transcript of a run lies, and what the agent did according to it.

The words of three CLIs are understood; whatever else lies there is no transcript.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pytest_mlrbench.agents.coding.reading import text
from pytest_mlrbench.evidence.base import Action, Command, Edit, Said
from pytest_mlrbench.evidence.history import claude as transcript_claude
from pytest_mlrbench.evidence.history import codex as transcript_codex
from pytest_mlrbench.evidence.history import gemini as transcript_gemini

#: Bytes of a transcript that are read, and of its start that tell what it is.
_LARGEST, _START = 64 * 2**20, 65_536
#: Files of one folder that are looked at.
_MOST = 200
_ENDINGS = (".json", ".jsonl", ".log")
#: Where a run folder keeps what the CLI printed, and what was made of it.
_KEPT = ("agent.log", "coder.log", "transcript.jsonl")


def find_transcript(root: Path, case_folder: Path | None = None) -> Path | None:
    """Return the transcript of the run whose submission *root* is; null where there is none.

    What lies beside the submission comes first: the agent could write into the submission.
    """
    if case_folder is not None:
        for name in _KEPT:
            if is_transcript(case_folder / name):
                return case_folder / name
    try:
        with os.scandir(root) as entries:
            names = sorted(e.name for _, e in zip(range(10_000), entries, strict=False))
    except OSError:
        return None
    candidates = [root / name for name in names if name.endswith(_ENDINGS)][:_MOST]
    # The largest is the whole story, where there are several.
    found = [path for path in candidates if is_transcript(path)]
    return max(found, key=lambda path: path.lstat().st_size, default=None)


def is_transcript(path: Path) -> bool:
    """Tell whether a file shows what an agent did, and not its words only."""
    return any(not isinstance(action, Said) for action in read(path) or ())


def read(path: Path) -> list[Action] | None:
    """Return what the agent did, in its order; null where *path* is no transcript.

    One that is cut off is read as far as it goes. Nothing is raised.
    """
    try:
        if not stat.S_ISREG(path.lstat().st_mode):
            return None
        with path.open("rb") as file:
            start = file.read(_START)
            if not _looks_like_one(start):
                return None
            content = (start + file.read(_LARGEST - len(start))).decode("utf-8", "replace")
    except OSError:
        return None
    if transcript_codex.is_log(content[:_START]):
        return transcript_codex.read_log(content)
    try:
        documents = list(_documents(content))
    except RecursionError:
        return None
    for reader in (
        transcript_codex.read_lines,
        transcript_gemini.read,
        transcript_claude.read,
        _own,
    ):
        if (actions := reader(documents)) is not None:
            return actions
    return None


#: Each CLI writes one of these near the beginning: it saves reading results as transcripts.
_SIGNS = (b'"role"', b'"type"', b'"kind"', b'"messages"', b"OpenAI Codex v", b'"tool_use')


def _looks_like_one(start: bytes) -> bool:
    return any(sign in start for sign in _SIGNS)


def _documents(content: str) -> Iterator[dict[str, Any]]:
    """Yield the JSON objects of a list, of lines among others, or the one that there is."""
    head = content[:1000].lstrip()
    if head.startswith("[") and head[1:].lstrip()[:1] == "{":
        yield from _entries(content, content.index("[") + 1)
        return
    lines = 0
    for line in content.splitlines():
        if line.lstrip().startswith("{") and isinstance(found := _parsed(line), dict):
            lines += 1
            yield found
    if not lines and head.startswith("{") and isinstance(whole := _parsed(content), dict):
        yield whole


def _parsed(line: str) -> Any:
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None


def _entries(content: str, place: int) -> Iterator[dict[str, Any]]:
    """Yield the objects of a list that may be cut off."""
    decoder = json.JSONDecoder()
    while True:
        while place < len(content) and content[place] in " \t\r\n,":
            place += 1
        try:
            found, place = decoder.raw_decode(content, place)
        except (ValueError, RecursionError):
            return
        if isinstance(found, dict):
            yield found


def _own(documents: list[dict[str, Any]]) -> list[Action] | None:
    """Return what ``transcript.jsonl`` of a run folder tells; null where it is none."""
    if not documents or not all(isinstance(entry.get("kind"), str) for entry in documents):
        return None
    actions = [action for entry in documents if (action := _event(entry)) is not None]
    return actions or None


def _event(entry: Mapping[str, Any]) -> Action | None:
    kind = entry["kind"]
    if kind == "message":
        return Said(text(entry.get("text")))
    if kind == "command":
        code = entry.get("exit_code")
        ok = code == 0 if type(code) is int else None
        return Command(text(entry.get("command")), text(entry.get("output")), ok, ".")
    if kind == "edit" and entry.get("change") != "delete":
        content = text(entry.get("text"))
        is_whole = entry.get("change") == "write" and "characters left out ...]" not in content
        return Edit(text(entry.get("path")), content if is_whole else None)
    return None
