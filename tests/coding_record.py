"""Record ``fixtures/transcripts`` anew: ``python tests/coding_record.py`` with the real CLIs.

What is kept is what the readers look at: the rest of a session file is the vendor's own prompts.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from coding_cli import Desk, desk, gate, run
from coding_stub import CodingStub

from pytest_mlrbench.agents.coding import ADAPTERS, make_coding_agent
from pytest_mlrbench.agents.coding.base import CodingAgent
from pytest_mlrbench.agents.coding.events import Start
from pytest_mlrbench.agents.coding.reading import at, documents, kept

FOLDER = Path(__file__).parents[1] / "fixtures" / "transcripts"
#: What is kept of an entry of a session, by its type.
_KEPT: dict[str, tuple[str, ...]] = {
    "turn_context": ("type", "payload.model"),
    "token_usage_record": ("type", "payload.usage"),
    "assistant": ("type", "message.id", "message.model", "message.usage"),
    "gemini": ("type", "id", "model", "tokens", "toolCalls"),
}
#: What is kept of the first line that Claude Code prints: the rest lists what is installed.
_START = ("type", "subtype", "cwd", "model", "claude_code_version")


def main() -> None:
    """Run every CLI once, and keep what it leaves."""
    for kind in ADAPTERS:
        agent = make_coding_agent(kind)
        with desk() as place, CodingStub(workspace=place.workspace) as stub:
            code = run(agent, place, gate(stub))
            assert code == 0, place.log.read_text()
            save(agent, place)


def save(agent: CodingAgent, place: Desk) -> None:
    """Write what the CLI printed, and what is read of its session."""
    folder = FOLDER / agent.kind
    folder.mkdir(parents=True, exist_ok=True)
    printed = [
        _only(entry, _START) if entry.get("subtype") == "init" else entry
        for entry in documents([place.log])
    ]
    session = _session(kept(place.home, agent.sessions))
    (version,) = [e.version for e in place.transcript(agent) if isinstance(e, Start)]
    told = place.log.read_text().splitlines()
    started: str | dict[str, Any] = next(line for line in told if f"{version}" in line)
    for name, entries in (("agent.log", [started, *printed]), ("session.jsonl", [*session])):
        text = "".join(f"{_line(entry)}\n" for entry in entries)
        text = text.replace(str(place.workspace), "/workspace")
        (folder / name).write_text(text.replace(str(place.home), "/home/agent"), "utf-8")


def _line(entry: str | dict[str, Any]) -> str:
    return entry if isinstance(entry, str) else json.dumps(entry, ensure_ascii=False)


def _session(paths: list[Path]) -> Iterator[dict[str, Any]]:
    for entry in documents(paths):
        if (kind := str(entry.get("type"))) in _KEPT:
            yield _only(entry, _KEPT[kind])


def _only(entry: dict[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name in names:
        *outer, last = name.split(".")
        value = at(entry, *outer, last)
        if value is not None:
            place = found
            for step in outer:
                place = place.setdefault(step, {})
            place[last] = value
    return found


if __name__ == "__main__":
    main()
