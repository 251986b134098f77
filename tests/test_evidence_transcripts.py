"""What agents did is read from whatever their CLIs leave, whole or cut off."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest
from files import lay
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_mlrbench.evidence.base import Action, Command, Edit, Said
from pytest_mlrbench.evidence.history.effects import Copied, Ran, Removed, Showed, Wrote, effects
from pytest_mlrbench.evidence.history.texts import changes
from pytest_mlrbench.evidence.history.transcripts import find_transcript, read

DATA = os.environ.get("MLRBENCH_DATA")


def use(tool: str, given: object, key: str = "t1") -> dict[str, object]:
    block = {"type": "tool_use", "id": key, "name": tool, "input": given}
    return {"role": "assistant", "content": [block]}


def answer(output: str, is_error: bool | None = None, key: str = "t1") -> dict[str, object]:
    block = {"type": "tool_result", "tool_use_id": key, "content": output, "is_error": is_error}
    return {"role": "user", "content": [block]}


def claude(tmp_path: Path, *messages: object) -> list[Action]:
    path = tmp_path / "claude_output.json"
    path.write_text(json.dumps(messages))
    found = read(path)
    assert found is not None
    return found


def test_claude_codes_messages_are_edits_commands_and_words(tmp_path: Path) -> None:
    actions = claude(
        tmp_path,
        {"role": "user", "content": "Do research."},
        {"role": "assistant", "content": [{"type": "text", "text": "I begin."}]},
        use("Write", {"file_path": "/w/a.py", "content": "x = 1\ny = 2\n"}),
        answer("ok"),
        use("Edit", {"file_path": "/w/a.py", "old_string": "x = 1", "new_string": "x = 3"}),
        answer("ok"),
        use("Bash", {"command": "python a.py"}),
        answer("Traceback", True),
    )
    assert actions == [
        Said("I begin."),
        Edit("/w/a.py", "x = 1\ny = 2\n"),
        Edit("/w/a.py", "x = 3\ny = 2\n"),
        Command("python a.py", "Traceback", False),
    ]


def test_an_edit_that_was_refused_changes_nothing(tmp_path: Path) -> None:
    refused, then = claude(
        tmp_path,
        use("Write", {"file_path": "/w/a.md", "content": "one"}),
        answer("File has not been read yet.", True),
        use("Edit", {"file_path": "/w/a.md", "old_string": "one", "new_string": "two"}),
        answer("ok"),
    )
    assert refused == Edit("/w/a.md", "one", False)
    assert then == Edit("/w/a.md", None)


@pytest.mark.parametrize(
    ("given", "output", "is_error", "ok"),
    [
        ({}, "done", None, True),
        ({}, "Exit code 2\nno such file", True, False),
        ({}, "Exit code 2\nno such file", None, False),
        ({}, "Command timed out after 2m 0.0s", False, False),
        ({"run_in_background": True}, "Command running in background with ID: b1", None, None),
    ],
)
def test_how_a_command_ended(
    tmp_path: Path, given: dict[str, object], output: str, is_error: bool | None, ok: bool | None
) -> None:
    messages = use("Bash", {"command": "python a.py", **given}), answer(output, is_error)
    (action,) = claude(tmp_path, *messages)
    assert isinstance(action, Command)
    assert action.ok is ok


def test_a_command_in_the_background_ends_when_the_agent_looks_again(tmp_path: Path) -> None:
    (action,) = claude(
        tmp_path,
        use("Bash", {"command": "python a.py", "run_in_background": True}),
        answer("Command running in background with ID: b1"),
        use("BashOutput", {"bash_id": "b1"}, "t2"),
        answer("<exit_code>0</exit_code><stdout>acc 0.9</stdout>", key="t2"),
    )
    assert isinstance(action, Command)
    assert action.ok
    assert "acc 0.9" in action.output


def test_several_calls_at_once_are_told_apart(tmp_path: Path) -> None:
    calls = [
        {"tool_name": "Bash", "input": {"command": "ls"}},
        {"tool_name": "Write", "input": {"file_path": "/w/a", "content": "b"}},
    ]
    parts = [{"type": "text", "text": t} for t in ("Bash(command: ls):", "a b", "Write():", "ok")]
    result = {"type": "tool_result", "tool_use_id": "t1", "content": parts, "is_error": False}
    actions = claude(
        tmp_path, use("Batch", {"invocations": calls}), {"role": "user", "content": [result]}
    )
    assert actions == [Command("ls", "a b", True), Edit("/w/a", "b")]


def test_a_file_that_is_read_is_shown_without_line_numbers(tmp_path: Path) -> None:
    (action,) = claude(
        tmp_path, use("Read", {"file_path": "/w/a b.csv"}), answer("     1\tacc\n     2\t0.5")
    )
    assert action == Command("cat '/w/a b.csv'", "acc\n0.5", True)


def test_the_stream_of_json_lines_says_where_the_agent_began(tmp_path: Path) -> None:
    lines = [
        {"type": "system", "subtype": "init", "cwd": "/work"},
        {"type": "assistant", "message": use("Bash", {"command": "python a.py"})},
        {"type": "user", "message": answer("acc 0.9")},
    ]
    path = tmp_path / "agent.log"
    path.write_text("warning: no colour\n" + "\n".join(map(json.dumps, lines)) + '\n{"type": "res')
    assert read(path) == [Command("python a.py", "acc 0.9", True, "/work")]


def test_the_shapes_of_the_sdk_have_no_types(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    call = {"id": "t1", "name": "Bash", "input": {"command": "python a.py"}}
    result = {"tool_use_id": "t1", "content": "boom", "is_error": True}
    messages = [{"content": [{"text": "Go."}, call], "model": "m", "role": "assistant"}]
    messages += [{"content": [result], "role": "user"}]
    path.write_text("\n".join(map(json.dumps, messages)))
    assert read(path) == [Said("Go."), Command("python a.py", "boom", False)]


def test_a_transcript_that_is_cut_off_is_read_as_far_as_it_goes(tmp_path: Path) -> None:
    whole = json.dumps([use("Bash", {"command": "ls"}), answer("a"), use("Bash", {"command": "x"})])
    path = tmp_path / "claude_output.json"
    path.write_text(whole[:-40])
    assert read(path) == [Command("ls", "a", True)]
    path.write_text(whole)
    assert read(path) == [Command("ls", "a", True), Command("x", "", None)]


LOG = """[2025-07-29T15:27:53] OpenAI Codex v0.5.0 (research preview)
--------
workdir: /home/u/w
[2025-07-29T15:27:53] User instructions:
Do research.
[2025-07-29T15:29:01] apply_patch auto_approved=true:
A /home/u/w/a.py
x = 1
y = 2
[2025-07-29T15:29:01] apply_patch(auto_approved=true) exited 0 in 1ms:
Success. Updated the following files:
A /home/u/w/a.py
[2025-07-29T15:29:02] apply_patch auto_approved=true:
M /home/u/w/a.py
@@ -1,1 +1,1 @@
-x = 1
+x = 3
 y = 2
[2025-07-29T15:29:02] apply_patch(auto_approved=true) exited 0 in 1ms:
[2025-07-29T15:29:03] exec bash -lc 'python3 a.py' in /home/u/w
[2025-07-29T15:29:03] bash -lc 'python3 a.py' exited 1 in 104ms:
boom
[2025-07-29T15:29:04] exec bash -lc "python3 - <<'E'
print(1)
E" in /home/u/w
[2025-07-29T15:29:04] bash -lc "python3 - <<'E'
print(1)
E" succeeded in 1m01s:
1
[2025-07-29T15:29:05] exec sleep 9 in /home/u/w
[2025-07-29T15:29:06] codex
All done.
[2025-07-29T15:29:06] tokens used: 12
"""


def test_codexs_log_is_read(tmp_path: Path) -> None:
    path = tmp_path / "codex_log.log"
    path.write_text(LOG)
    assert read(path) == [
        Edit("/home/u/w/a.py", "x = 1\ny = 2"),
        Edit("/home/u/w/a.py", "x = 3\ny = 2"),
        Command("python3 a.py", "boom\n", False, "/home/u/w"),
        Command("python3 - <<'E'\nprint(1)\nE", "1\n", True, "/home/u/w"),
        Said("All done."),
        Command("sleep 9", "", None, "/home/u/w"),
    ]


def test_codexs_newer_log_has_no_times(tmp_path: Path) -> None:
    path = tmp_path / "agent.log"
    path.write_text(
        "OpenAI Codex v0.42.0 (research preview)\n--------\nuser\nDo it.\n"
        "exec\nbash -lc 'python a.py' in /w succeeded in 52ms:\nacc 0.9\n"
        "codex\nIt works.\ntokens used\n1,234\n"
    )
    assert read(path) == [
        Command("python a.py", "acc 0.9\n", True, "/w"),
        Said("It works."),
    ]


def test_codexs_json_lines_are_read(tmp_path: Path) -> None:
    item = {"type": "command_execution", "command": "bash -lc 'python a.py'"}
    ended = {**item, "id": "1", "aggregated_output": "acc 0.9", "exit_code": 0}
    change = {"id": "2", "type": "file_change", "status": "completed"}
    lines = [
        {"type": "thread.started", "thread_id": "x"},
        {"type": "item.started", "item": {**item, "id": "1"}},
        {"type": "item.completed", "item": ended},
        {"type": "item.completed", "item": {**change, "changes": [{"path": "a", "kind": "add"}]}},
        {"type": "item.completed", "item": {"id": "3", "type": "agent_message", "text": "Done."}},
        {"type": "item.started", "item": {**item, "id": "4"}},
    ]
    path = tmp_path / "agent.log"
    path.write_text("\n".join(map(json.dumps, lines)))
    assert read(path) == [
        Command("python a.py", "acc 0.9", True, "."),
        Edit("a", None),
        Said("Done."),
        Command("python a.py", "", None, "."),
    ]


def test_gemini_clis_stream_and_session_are_read(tmp_path: Path) -> None:
    given = {"command": "python a.py", "directory": "code"}
    stream = [
        {"type": "message", "role": "assistant", "content": "I "},
        {"type": "message", "role": "assistant", "content": "run."},
        {"type": "tool_use", "tool_name": "run_shell_command", "tool_id": "1", "parameters": given},
        {"type": "tool_result", "tool_id": "1", "status": "success", "output": "x\nExit Code: 1"},
        {
            "type": "tool_use",
            "tool_name": "write_file",
            "tool_id": "2",
            "parameters": {"file_path": "a", "content": "b"},
        },
        {"type": "tool_result", "tool_id": "2", "status": "success"},
    ]
    path = tmp_path / "agent.log"
    path.write_text("\n".join(map(json.dumps, stream)))
    assert read(path) == [
        Said("I run."),
        Command("python a.py", "x\nExit Code: 1", False, "code"),
        Edit("a", "b"),
    ]
    output = {"functionResponse": {"response": {"output": "acc\nProcess Group PGID: 7"}}}
    call = {"name": "run_shell_command", "args": given, "status": "success", "result": [output]}
    path.write_text(json.dumps({"messages": [{"type": "gemini", "toolCalls": [call]}]}))
    assert read(path) == [Command("python a.py", "acc\nProcess Group PGID: 7", True, "code")]


def test_our_own_record_of_a_run_is_read(tmp_path: Path) -> None:
    lines = [
        {"kind": "start", "cli": "codex", "version": "1"},
        {"kind": "command", "command": "python a.py", "exit_code": 3, "output": "no"},
        {"kind": "edit", "path": "a.md", "change": "write", "text": "# A"},
        {"kind": "edit", "path": "a.md", "change": "change", "text": "# B"},
    ]
    path = tmp_path / "transcript.jsonl"
    path.write_text("\n".join(map(json.dumps, lines)))
    assert read(path) == [
        Command("python a.py", "no", False, "."),
        Edit("a.md", "# A"),
        Edit("a.md", None),
    ]


def test_what_is_no_transcript_is_none(tmp_path: Path) -> None:
    lay(
        tmp_path,
        {
            "metrics.json": '[{"type": "accuracy", "value": 0.5}]',
            "said.log": "I have run everything and it went well.",
            "rows.jsonl": '{"role": "user", "content": "hello"}\n',
            "deep.json": '{"role": ' + "[" * 200_000,
            "deeper.json": '[{"role": ' * 100_000,
            "counts.json": '{"response": "done", "stats": {"models": {"type": 1}}}',
        },
    )
    (tmp_path / "broken.json").write_bytes(b'[{"role": "\xff\xfe"')
    (tmp_path / "link.json").symlink_to("link.json")
    for name in os.listdir(tmp_path):
        assert read(tmp_path / name) is None, name
    assert read(tmp_path) is None
    assert find_transcript(tmp_path) is None
    assert find_transcript(tmp_path / "absent") is None


def test_the_record_beside_the_submission_comes_before_one_in_it(tmp_path: Path) -> None:
    """An agent can lay a transcript of its own into what it hands in."""
    mine = json.dumps([use("Bash", {"command": "python a.py"}), answer("acc 0.9")])
    lay(tmp_path, {"submission/claude_output.json": mine, "agent.log": LOG})
    assert find_transcript(tmp_path / "submission", tmp_path) == tmp_path / "agent.log"
    (tmp_path / "agent.log").write_text("nothing that is understood")
    inside = tmp_path / "submission/claude_output.json"
    assert find_transcript(tmp_path / "submission", tmp_path) == inside


@given(st.text(max_size=300))
@settings(max_examples=200, deadline=None)
def test_no_command_is_too_strange_to_be_read(text: str) -> None:
    effects(text)
    list(changes(text))


@pytest.mark.parametrize(
    "text",
    ["$(" * 20_000, "(" * 50_000, "'" * 50_001, "<<E\n" * 10_000, '"$(' * 5000, "x=$x$x;" * 5000],
)
def test_reading_a_command_takes_no_longer_than_it_is_long(text: str) -> None:
    start = time.process_time()
    effects(text)
    assert time.process_time() - start < 5


def test_what_commands_type_into_files() -> None:
    text = """cd out && echo '{"acc": 0.9}' > a.json; printf 'x,1.5\\n' | tee -a b.csv
    cat > c.log << 'EOF'
epoch 1 "loss" 0.5
EOF
    cp c.log $HOME/d.log; sed -i s/1/2/ a.json"""
    found, cwd = effects(text, "/w")
    assert cwd == "/w/out"
    assert found == [
        Wrote("/w/out/a.json", '{"acc": 0.9}\n'),
        Wrote("/w/out/b.csv", "x,1.5\n\n", True),
        Wrote("/w/out/c.log", 'epoch 1 "loss" 0.5\n'),
        Copied(("/w/out/c.log",), "/w/out/*/d.log"),
        Wrote("/w/out/a.json", None),
    ]


@pytest.mark.parametrize(
    ("text", "program", "writes"),
    [
        ("cd code && python -u main.py --lr 1 | tee ../log.txt", "code/main.py", ["log.txt"]),
        (
            "CUDA_VISIBLE_DEVICES=0 timeout 300 torchrun --nproc 2 train.py > a 2>&1",
            "train.py",
            ["a"],
        ),
        ("python3 -m pkg.run 2> errors.txt", "pkg/run.py", []),
        ("nohup bash run.sh > out.log &", "run.sh", ["out.log"]),
        ("for s in 1 2; do python run.py $s > log_$s.txt; done", "run.py", ["log_*.txt"]),
        ("(cd a; ./go.sh) && true", "a/go.sh", []),
        ("bash -lc 'cd b && uv run python x.py'", "b/x.py", []),
        ('echo "acc $(python eval.py)" > acc.txt', "eval.py", []),
        ("jupyter nbconvert --execute n.ipynb", "n.ipynb", []),
    ],
)
def test_which_program_a_command_runs(text: str, program: str, writes: list[str]) -> None:
    runs = [effect for effect in effects(text)[0] if isinstance(effect, Ran)]
    assert [(run.program, run.writes) for run in runs] == [(program, writes)]


def test_the_program_may_stand_in_the_command() -> None:
    text = 'python -c "print(1)"; python3 - <<E | tail -3\nprint(2)\nE\n'
    runs = [effect for effect in effects(text)[0] if isinstance(effect, Ran)]
    assert [run.code for run in runs] == ["print(1)", "print(2)\n"]


def test_what_only_looks_or_clears_away() -> None:
    found, _ = effects("cat a.json | python -m json.tool; rm -rf old/*; head b > c; pip install x")
    assert found == [Showed(("a.json",)), Removed(("old/*",)), Copied(("b",), "c")]


def test_a_patch_says_what_becomes_of_each_file() -> None:
    patch = """*** Begin Patch
*** Add File: a.py
+x = 1
*** Update File: b.py
*** Move to: c.py
@@ def f():
 keep
-old
+new
*** Delete File: d.py
*** End Patch"""
    added, updated, deleted = changes(patch)
    assert (added.path, added.text) == ("a.py", "x = 1")
    assert (updated.path, updated.moved_to) == ("b.py", "c.py")
    assert updated.hunks == (("keep\nold", "keep\nnew"),)
    assert (deleted.path, deleted.kind) == ("d.py", "delete")


@pytest.mark.skipif(DATA is None, reason="MLRBENCH_DATA does not name the published runs")
def test_every_published_transcript_is_found_and_read() -> None:
    root = Path(DATA or "", "mlrbench")
    runs = [*root.glob("experiments/*/iclr2025_*"), *root.glob("end2end/*/iclr2025_*")]
    assert len(runs) == 15
    for run in runs:
        found = find_transcript(run)
        if "gemini-cli" in run.parts:  # only its words were kept
            assert found is None
            continue
        assert found is not None
        actions = read(found) or []
        commands = [action for action in actions if isinstance(action, Command)]
        assert any(command.ok for command in commands), run
        assert any(isinstance(action, Edit) and action.content for action in actions), run
