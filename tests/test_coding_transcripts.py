"""What coding CLIs leave is read as one list of events, however little of it is whole.

The recordings in ``fixtures/transcripts`` were made by the real CLIs (see ``coding_record.py``).
"""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from coding_stub import EXPERIMENT
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_mlrbench.agents.coding import ADAPTERS, make_coding_agent, reading
from pytest_mlrbench.agents.coding.events import (
    LIMIT,
    Command,
    Edit,
    Event,
    Message,
    Start,
    Tool,
    Trouble,
    Usage,
    lines,
)
from pytest_mlrbench.resources import shipped

RECORDED = shipped("fixtures") / "transcripts"
#: Where each CLI keeps its sessions.
SESSIONS = {
    "claude-code": ".claude/projects/-workspace/1.jsonl",
    "codex": ".codex/sessions/2026/11/30/rollout-1.jsonl",
    "gemini-cli": ".gemini/tmp/workspace/chats/session-1.jsonl",
}
VERSIONS = {"claude-code": "2.1.332", "codex": "0.171.0", "gemini-cli": "0.61.0"}
KINDS = pytest.mark.parametrize("kind", ADAPTERS)


class Left:
    """What a CLI left: the lines that it printed, and those of its session."""

    def __init__(self, kind: str, folder: Path) -> None:
        self.kind = kind
        self.log, self.home = folder / "agent.log", folder / "home"
        self.session = self.home / SESSIONS[kind]
        self.session.parent.mkdir(parents=True)
        shutil.copy(RECORDED / kind / "agent.log", self.log)
        shutil.copy(RECORDED / kind / "session.jsonl", self.session)

    def printed(self) -> list[str]:
        return self.log.read_text("utf-8").splitlines()

    def cut_short(self, number: int) -> None:
        """Leave the first lines only, and half of the next: the CLI was killed."""
        whole = self.printed()
        rest = "\n".join([*whole[:number], whole[number][: len(whole[number]) // 2]])
        self.log.write_text(rest, "utf-8")

    def print(self, *entries: object) -> None:
        self.log.write_text("".join(json.dumps(entry) + "\n" for entry in entries), "utf-8")

    def events(self) -> list[Event]:
        return make_coding_agent(self.kind).transcript(self.log, self.home)


@pytest.fixture
def left(kind: str, tmp_path: Path) -> Left:
    return Left(kind, tmp_path)


@KINDS
def test_a_session_is_the_same_list_for_every_cli(left: Left) -> None:
    start, failed, edit, ran, said, *used = left.events()

    assert start == Start(left.kind, VERSIONS[left.kind])
    assert isinstance(failed, Command)
    assert failed.command == "ls task.md && python3 results/run.py"
    assert failed.exit_code == 2
    assert "can't open file '/workspace/results/run.py'" in failed.output
    known = None if left.kind == "codex" else EXPERIMENT.strip()
    assert isinstance(edit, Edit)
    assert (edit.path, edit.change) == ("results/run.py", "write")
    assert (edit.text and edit.text.strip()) == known
    assert isinstance(ran, Command)
    assert (ran.command, ran.exit_code) == ("python3 results/run.py", 0)
    assert "seed 2: mean 1.2471, last 2.0500" in ran.output
    assert said == Message("The experiment is done; its report is results/results.md.")
    assert used
    assert all(isinstance(event, Usage) for event in used)


@pytest.mark.parametrize(
    ("kind", "used"),
    [
        # The stub sent 1001, 2001, … tokens, and 11 where it was asked beside the work.
        ("claude-code", [Usage("claude-opus-5-5", 4, 10004, 108, 1012, 10, 0.0383304)]),
        ("codex", [Usage("gpt-6.2-sol", 4, 10004, 108, 1012, 10)]),
        (
            "gemini-cli",
            [
                Usage("gemini-3.5-flash-lite", None, 11, 7, 3, 2),
                Usage("gemini-3.1-pro-preview", 4, 14004, 148, 1412, 14),
            ],
        ),
    ],
)
def test_usage_is_what_the_server_sent(left: Left, used: list[Usage]) -> None:
    assert left.events()[5:] == used


@KINDS
def test_one_that_was_killed_has_told_what_it_did_and_used(left: Left) -> None:
    first = next(i for i, line in enumerate(left.printed()) if "ls task.md" in line)
    left.cut_short(first + 1)

    start, pending, *used = left.events()

    assert isinstance(start, Start)
    assert isinstance(pending, Command)
    assert pending.command == "ls task.md && python3 results/run.py"
    assert pending.output == ""
    sums = [(event.calls, event.cost_usd) for event in used if isinstance(event, Usage)]
    assert sums == [(4, None)]  # of the session file, which the killed one has written


@KINDS
def test_without_session_files_the_last_word_counts(left: Left) -> None:
    shutil.rmtree(left.home)

    *told, used = left.events()

    assert isinstance(used, Usage)
    assert (used.model == "") == (left.kind == "codex")
    assert used.input == (14004 if left.kind == "gemini-cli" else 10004)
    codes = [event.exit_code for event in told if isinstance(event, Command)]
    assert codes == ([None, None] if left.kind == "gemini-cli" else [2, 0])


@KINDS
def test_broken_lines_and_foreign_ones_are_passed_over(left: Left) -> None:
    before = left.events()
    noise = [b"\xff\xfe{", b"{", b'{"type": 7, "message": [1]}', b'{"a":' * 100_000, b"[1, 2]", b""]
    noise += [b'{"type":"assistant","message":{"content":[{"type":"tool_use","input":3}, null]}}']
    noise += [b'{"type":"tool_use"}', b'{"type":"item.completed","item":{"type":"reasoning"}}']
    with left.log.open("rb") as file:
        good = file.read().splitlines()
    mixed = [line for pair in zip(good, noise * len(good), strict=False) for line in pair]
    left.log.write_bytes(b"\n".join(mixed))
    with left.session.open("ab") as file:
        file.write(b'{"type": "assistant"}\n{"type": "gemini", "tokens": "many"}\n{"type"')

    after = left.events()

    ours = (Command, Edit, Message)
    found = [event for event in after if isinstance(event, ours) and event not in NOISE]
    assert found == [event for event in before if isinstance(event, ours)]


#: What the noise says in the language of one of the CLIs.
NOISE = [Command("", None, "")]


WORDS = st.sampled_from(
    [
        *("type", "item.completed", "item.started", "item", "id", "a", "changes", "path", "kind"),
        *("command_execution", "exit_code", "aggregated_output", "file_change", "assistant"),
        *("message", "content", "tool_use", "tool_result", "tool_use_id", "name", "input", "Bash"),
        *("Write", "file_path", "is_error", "result", "modelUsage", "costUSD", "inputTokens"),
        *("usage", "model", "tool_id", "tool_name", "parameters", "run_shell_command", "stats"),
        *("models", "gemini", "toolCalls", "functionResponse", "response", "output", "tokens"),
        *("payload", "turn_context", "token_usage_record", "input_tokens", "turn.completed"),
        *("Exit code 99999999999999999999", "sh -c 'x", "text", "\ud800", "a b\n?#"),
    ]
)
VALUES = st.recursive(
    WORDS | st.none() | st.booleans() | st.integers() | st.floats() | st.just(10**4000),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(WORDS, inner, min_size=1, max_size=5)
    ),
    max_leaves=25,
)


@KINDS
@settings(max_examples=20)
@given(entries=st.lists(st.dictionaries(WORDS, VALUES, max_size=5), max_size=6))
def test_whatever_an_agent_writes_is_read(kind: str, entries: list[object]) -> None:
    """An error of ours would hide what the agent did."""
    text = "\n".join(map(json.dumps, entries))
    with TemporaryDirectory() as folder:
        log, session = Path(folder, "log"), Path(folder, "home", SESSIONS[kind])
        session.parent.mkdir(parents=True)
        log.write_text(text)
        session.write_text(text)
        agent = make_coding_agent(kind)
        events = agent.transcript(log, Path(folder, "home"))
    for line in lines(events):
        json.loads(line.encode("utf-8", "replace"), parse_constant=pytest.fail)
    spent = agent.spent_by(events)
    assert spent is None or spent.cost_usd is None or spent.cost_usd >= 0


@pytest.mark.parametrize("kind", ["claude-code"])
@pytest.mark.parametrize("amount", ["1e999", "NaN", "-1", "true", '"1"', "[1]", "1" * 4000])
def test_amounts_that_are_none_are_nothing(left: Left, amount: str) -> None:
    tokens = f'{{"inputTokens": {amount}, "outputTokens": 7, "costUSD": {amount}}}'
    models = f'{{"a model?": {tokens}, "claude-opus-4-5": {tokens}}}'
    call = '{"type": "tool_use", "id": "1", "name": "Bash", "input": {"command": "x"}}'
    said = f"Exit code {'9' * 5000}"
    answer = f'{{"type": "tool_result", "tool_use_id": "1", "is_error": true, "content": "{said}"}}'
    left.log.write_text(
        f'{{"type": "assistant", "message": {{"content": [{call}, {answer}]}}}}\n'
        f'{{"type": "result", "modelUsage": {models}}}\n'
    )
    _, command, odd, known = left.events()
    assert command == Command("x", None, said)
    assert odd == Usage("a model?", None, 0, 7, 0, 0)
    assert known == Usage("claude-opus-4-5", None, 0, 7, 0, 0)
    spent = make_coding_agent(left.kind).spent_by([odd, known])
    assert spent is not None
    assert spent.cost_usd is None


@KINDS
def test_nothing_at_all_is_no_error(kind: str, tmp_path: Path) -> None:
    agent = make_coding_agent(kind)
    assert agent.transcript(tmp_path / "none.log", tmp_path / "none") == []
    assert agent.spent_by([]) is None


@KINDS
def test_the_transcript_is_json_lines(left: Left) -> None:
    written = [json.loads(line) for line in lines(left.events())]
    assert [entry["kind"] for entry in written[:6]] == [
        *("start", "command", "edit", "command", "message", "usage")
    ]
    assert written[1]["exit_code"] == 2


@pytest.mark.parametrize(
    ("kind", "printed", "version"),
    [
        ("codex", "WARNING: proceeding in 1.2.3 ways\ncodex-cli 0.171.0\n", "0.171.0"),
        ("claude-code", "2.1.332 (Claude Code)\n", "2.1.332"),
        ("gemini-cli", "Early cleanup failed: v24.19.0\n0.61.0\n", "0.61.0"),
        ("gemini-cli", "0.62.0-preview.1\n", "0.62.0-preview.1"),
        ("codex", "/bin/sh: 1: codex: not found\n", None),
    ],
)
def test_the_version_is_found_among_warnings(left: Left, printed: str, version: str | None) -> None:
    left.log.write_text(printed)
    assert left.events()[0] == Start(left.kind, version)


@KINDS
def test_links_and_pipes_in_the_home_of_an_agent_are_not_followed(
    left: Left, tmp_path: Path
) -> None:
    whole = left.events()
    outside = tmp_path / "elsewhere"
    shutil.move(left.session, outside)
    left.session.symlink_to(outside)
    os.mkfifo(left.session.with_name("session-rollout-pipe.jsonl"))
    (left.session.with_name("session-loop.jsonl")).symlink_to("session-loop.jsonl")
    linked = left.events()
    shutil.rmtree(left.home)
    assert linked == left.events() != whole


@KINDS
def test_no_folder_above_the_sessions_is_followed_elsewhere(left: Left, tmp_path: Path) -> None:
    whole = left.events()
    folder = next(left.home.iterdir())
    outside = shutil.move(folder, tmp_path / "elsewhere")
    folder.symlink_to(outside)
    linked = left.events()
    folder.unlink()
    assert linked == left.events() != whole


@KINDS
def test_what_else_fills_a_home_hides_no_session(
    left: Left, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = left.events()
    monkeypatch.setattr(reading, "_LOOKS", 10)
    for number in range(20):
        (left.home / f"data-{number}").mkdir()
        (left.home / f"data-{number}" / "image").touch()
    assert left.events() == whole


@pytest.mark.parametrize("kind", ["claude-code"])
def test_other_tools_and_refused_edits(left: Left) -> None:
    uses = [
        {"type": "tool_use", "id": "1", "name": "Read", "input": {"file_path": "/data/x"}},
        {"type": "tool_use", "id": "2", "name": "Write", "input": {"file_path": "/etc/x"}},
        {
            "type": "tool_use",
            "id": "3",
            "name": "Bash",
            "input": {"command": "sleep 9", "run_in_background": True},
        },
        {"type": "tool_use", "id": "4", "name": "Bash", "input": {"command": "yes"}},
    ]
    results = [
        {"type": "tool_result", "tool_use_id": "1", "content": [{"type": "text", "text": "1"}]},
        {"type": "tool_result", "tool_use_id": "2", "content": "EACCES", "is_error": True},
        {"type": "tool_result", "tool_use_id": "3", "content": "Running with ID b1"},
        {"type": "tool_result", "tool_use_id": "4", "content": "y\n" * LIMIT},
    ]
    left.print(
        {"type": "assistant", "message": {"content": uses}},
        {"type": "user", "message": {"content": results}},
    )

    _, read, aside, long, *_ = left.events()

    assert read == Tool("Read", '{"file_path": "/data/x"}')
    assert aside == Command("sleep 9", None, "Running with ID b1")
    assert isinstance(long, Command)
    assert len(long.output) < LIMIT + 100
    assert "characters left out" in long.output


@pytest.mark.parametrize(
    ("kind", "entry"),
    [
        ("claude-code", {"type": "result", "is_error": True, "result": "API Error: 500"}),
        ("codex", {"type": "turn.failed", "error": {"message": "API Error: 500"}}),
        ("gemini-cli", {"type": "result", "error": {"message": "API Error: 500"}}),
    ],
)
def test_what_the_cli_complains_of_is_kept(left: Left, entry: object) -> None:
    left.print(entry)
    assert left.events()[1] == Trouble("API Error: 500")


@pytest.mark.parametrize("kind", ["gemini-cli"])
@pytest.mark.parametrize(
    ("shown", "code"),
    [
        ("Output: Exit Code: 3\nExit Code: 1\nProcess Group PGID: 7", 1),
        ("Output: Exit Code: 3\nProcess Group PGID: 7", 0),
        ("Output: Exit Code: 3\nnot the end\nProcess Group PGID: 7", 0),
        ("Output: killed\nSignal: 9\nProcess Group PGID: 7", None),
        ("Command moved to background (PID: 7). Output hidden.", None),
        ("Command was cancelled by user before it could complete.", None),
    ],
)
def test_how_gemini_tells_that_a_command_failed(left: Left, shown: str, code: int | None) -> None:
    left.print(
        {"type": "tool_use", "tool_id": "a", "tool_name": "run_shell_command", "parameters": {}},
        {"type": "tool_result", "tool_id": "a", "status": "success", "output": "x"},
    )
    told = {"functionResponse": {"response": {"output": shown}}}
    call = {"id": "a", "name": "run_shell_command", "result": [told]}
    left.session.write_text(json.dumps({"type": "gemini", "toolCalls": [call]}), "utf-8")

    assert left.events()[1] == Command("", code, "x")
