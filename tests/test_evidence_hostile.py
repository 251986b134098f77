"""Whatever lies in a folder, it is examined to the end, in bounded time and memory."""

from __future__ import annotations

import os
import time
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from files import lay

from pytest_mlrbench.evidence.base import Evidence
from pytest_mlrbench.evidence.examine import examine_case, examine_folder

REPORT = "# Results\n\n| Method | Accuracy |\n|---|---|\n| ours | 0.8713 |\n| base | 0.7392 |\n"
GIB = 2**30


def deep_json(folder: Path) -> None:
    (folder / "deep.json").write_text("[" * 200_000 + "]" * 200_000)
    (folder / "claims.json").write_text('{"a":' * 100_000 + "1" + "}" * 100_000)


def no_numbers(folder: Path) -> None:
    (folder / "nan.json").write_text(
        '{"accuracy": NaN, "f1": Infinity, "loss": -Infinity, "n": 1e999}'
    )
    (folder / "big.json").write_text('{"accuracy": ' + "9" * 10_000 + "}")


def lines_called_json(folder: Path) -> None:
    (folder / "metrics.json").write_text('{"accuracy": 0.87131}\n{"accuracy": 0.73918}\n{"acc')


def huge_csv(folder: Path) -> None:
    with (folder / "huge.csv").open("wb") as file:
        file.write(b"seed,accuracy\n1,0.87131\n")
        file.truncate(GIB)


def one_line(folder: Path) -> None:
    (folder / "line.csv").write_text("1," * 4_000_000)
    (folder / "log.txt").write_text("loss 0.1 " * 1_000_000)


def bomb(folder: Path) -> None:
    with zipfile.ZipFile(folder / "data.npz", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.npy", b"\0" * 50_000_000)
    (folder / "bad.npy").write_bytes(
        b"\x93NUMPY\x01\x00\xff\xff{'descr': '<f8', 'shape': (9999999999,)}"
    )


def loops(folder: Path) -> None:
    (folder / "loop").symlink_to(folder)
    (folder / "self.json").symlink_to("self.json")
    (folder / "out.json").symlink_to("/dev/zero")
    os.mkfifo(folder / "pipe.json")


def no_text(folder: Path) -> None:
    (folder / "x.json").write_bytes(b'{"accuracy": 0.8\xff713}')
    (folder / "y.csv").write_bytes(b"\xff\xfea\x00,\x00b\x00" * 100)
    (folder / os.fsdecode(b"caf\xe9.json")).write_text('{"accuracy": 0.87131}')
    (folder / "paper.md").write_bytes(b"# P\xff\n\n| a |\x00 b |\n|---|---|\n| x | 0.8713 |\n")


def notebooks(folder: Path) -> None:
    (folder / "a.ipynb").write_text('{"cells": [{"cell_type": "code", "source": 3}]}')
    (folder / "b.ipynb").write_text('{"cells": {"a": [[[[]]]]}}')


def programs(folder: Path) -> None:
    (folder / "deep.py").write_text("x = " + "(" * 5_000 + "1" + ")" * 5_000)
    (folder / "sum.py").write_text("x = " + "1+" * 50_000 + "1")
    (folder / "nul.py").write_bytes(b"x = 1\x00\nimport os")
    (folder / "loop.py").write_text("def f():\n    return f()\nf()\nwhile True:\n    x = [x]\n")


def transcripts(folder: Path) -> None:
    above = folder.parent
    (above / "claude_output.json").write_text(
        '[{"role": "assistant", "content": [{"type": "tool_use"'
    )
    (above / "codex_log.log").write_text("exec bash -lc '" + "a" * 1_000_000)
    (above / "other.json").write_text('[{"role": 3, "content": {"x": [1, null]}}, 4, null]')


def lists_of_claims(folder: Path) -> None:
    (folder / "claims.json").write_text(
        '[3, null, {}, {"source": 4}, {"source": "../../../etc/passwd#/0", "value": 0.1},'
        ' {"text": "x", "value": "0.8713", "source": "loop.json#/a"}]'
    )
    (folder / "loop.json").symlink_to("loop.json")


@pytest.mark.parametrize(
    "fill",
    [
        *(deep_json, no_numbers, lines_called_json, huge_csv, one_line, bomb, loops, no_text),
        *(notebooks, programs, transcripts, lists_of_claims),
    ],
)
def test_nothing_in_a_folder_ends_the_examination(
    tmp_path: Path, fill: Callable[[Path], None]
) -> None:
    lay(tmp_path, {"results/results.md": REPORT})
    fill(tmp_path / "results")
    begin = time.process_time()
    found = examine_folder(tmp_path)
    assert time.process_time() - begin < 20
    assert found.level in ("claimed", "executed")
    assert Evidence.model_validate_json(found.model_dump_json()) == found


@pytest.mark.parametrize(
    "ledger",
    [
        b"",
        b"\xff\xfe",
        b"{}\n",
        b'{"e": "begin", "prev": "' + b"0" * 64 + b'"}\n',
        b"[" * 100_000,
        b'{"e": "process", "prev": "' + b"0" * 64 + b'", "proc": {}, "argv": 3}\n',
    ],
)
def test_a_ledger_that_is_none_proves_nothing(tmp_path: Path, ledger: bytes) -> None:
    lay(tmp_path, {"submission/results/results.md": REPORT})
    (tmp_path / "ledger.jsonl").write_bytes(ledger)
    found = examine_case(tmp_path, "experiment")
    assert found.level == "claimed"
    assert all(finding.severity != "proof" for finding in found.findings)


@pytest.mark.parametrize("stage", ["experiment", "paper", "end_to_end"])
@pytest.mark.parametrize("what", ["nothing", "a file", "a link"])
def test_work_that_is_no_folder_has_no_evidence(tmp_path: Path, stage: str, what: str) -> None:
    if what == "a file":
        (tmp_path / "submission").write_text("x")
    elif what == "a link":
        (tmp_path / "submission").symlink_to("/etc")
    assert examine_case(tmp_path, stage).level == "none"
