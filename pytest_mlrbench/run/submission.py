"""What an agent left: checked against the stage's contract, digested, recorded."""

from __future__ import annotations

import os
from pathlib import Path

from pytest_mlrbench import folders
from pytest_mlrbench.errors import AgentFault
from pytest_mlrbench.run import digests
from pytest_mlrbench.run.result import FaultRecord
from pytest_mlrbench.spent import Spent
from pytest_mlrbench.suites.stages import Stage
from pytest_mlrbench.values import Record

#: Largest text file a judge is asked to read, in bytes.
TEXT_LIMIT = 2_000_000
#: Likewise of a PDF.
PDF_LIMIT = 50_000_000


class SubmissionRecord(Record):
    """How the agent ended and what it left: the content of ``submission.json``."""

    #: SHA-256 over all files and links of the workspace; null for an agent that has no files.
    digest: str | None
    files: int
    #: SHA-256 over names, sizes and times: while it holds, the digest need not be computed again.
    stamp: str | None = None
    seconds: float
    fault: FaultRecord | None
    #: What the agent's calls to models used, where it is known.
    spent: Spent | None = None
    #: Where its commands ran: ``docker`` or ``local``; null if it ran none.
    sandbox: str | None = None
    #: Lent to it, by UUID.
    gpus: tuple[str, ...] = ()
    #: Named digests of what the submission depends on.
    key: dict[str, str | None]


def check_contract(workspace: Path, stage: Stage) -> None:
    """Make sure that the required files are there and can be judged.

    :raises AgentFault: one is missing, leaves the workspace, or is not readable text.
    """
    if workspace.is_symlink():
        raise AgentFault("unusable_output", "the workspace was replaced by a link.")
    for name in stage.required:
        try:
            if not (name in stage.instead and _is_pdf(workspace, stage.instead[name])):
                _check_text(workspace, name, stage)
        except OSError as error:
            reason = f"{name} cannot be read: {error.strerror}."
            raise AgentFault("unusable_output", reason) from None


def can_be_judged(workspace: Path, stage: Stage, fault: FaultRecord | None) -> bool:
    """Whether judges are shown what an agent left: also where it crashed or had to be stopped.

    Not if it got rid of what records it: nobody knows how its work came about.

    :param fault: of the agent, if it did not end well.
    """
    if fault is None or is_tampered(fault):
        return fault is None
    try:
        check_contract(workspace, stage)
    except AgentFault:
        return False
    return True


def is_tampered(fault: FaultRecord | None) -> bool:
    """Whether an agent got rid of what records it."""
    return fault is not None and fault.cause == "tampering"


def _is_pdf(workspace: Path, name: str) -> bool:
    """Whether *name* is a PDF that a judge can be given."""
    path = workspace / name
    if not path.is_file() or not path.resolve().is_relative_to(workspace.resolve()):
        return False
    size = path.stat().st_size
    with path.open("rb") as file:
        begins = file.read(5) == b"%PDF-"
        file.seek(max(0, size - 2048))
        # Without the place of its contents at its end, no reader finds any.
        return begins and size <= PDF_LIMIT and b"startxref" in file.read()


def _check_text(workspace: Path, name: str, stage: Stage) -> None:
    path = workspace / name
    if not path.exists():
        there = sorted(p.name for p in workspace.iterdir()) if workspace.is_dir() else []
        new = [other for other in there if other not in stage.inputs][:5]
        instead = f"; it left {', '.join(new)}" if new else ""
        raise AgentFault("no_output", f"the agent left no {name}{instead}.")
    if not path.resolve().is_relative_to(workspace.resolve()):
        raise AgentFault("unusable_output", f"{name} is a link that leaves the workspace.")
    if not path.is_file():
        raise AgentFault("unusable_output", f"{name} is not a regular file.")
    size = path.stat().st_size
    if size > TEXT_LIMIT:
        raise AgentFault(
            "unusable_output", f"{name} has {size} bytes; at most {TEXT_LIMIT} can be judged."
        )
    try:
        text = path.read_text("utf-8")
    except UnicodeDecodeError:
        raise AgentFault("unusable_output", f"{name} is not UTF-8 text.") from None
    if not text.strip() or "\0" in text:
        state = "holds binary data" if text.strip() else "is empty"
        raise AgentFault("unusable_output", f"{name} {state}.")


def stamp_of(workspace: Path) -> str:
    """Return what changes whenever a file or a link does, read from the folders alone.

    Beside the time of its content a file has that of its last change of any kind, which nobody can
    set back. What cannot be reached is left out, as it is of the digest.
    """
    found: list[list[str | int]] = []
    start = len(os.fspath(workspace))
    waiting = [os.fspath(workspace)]
    while waiting:
        try:
            # Not digests.walk: a resumed run does this for every case, and paths cost most of it.
            entries = os.scandir(waiting.pop())
        except OSError:
            continue
        with entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(entry.path)
                elif folders.is_reached(entry.path):
                    found.append([entry.path[start:], *_about(entry)])
    return digests.of_json(sorted(found, key=lambda one: str(one[0])))


def _about(entry: os.DirEntry[str]) -> list[str | int]:
    if entry.is_symlink():
        return [os.readlink(entry.path)]
    if not entry.is_file(follow_symlinks=False):
        return []
    about = entry.stat(follow_symlinks=False)
    return [about.st_size, about.st_mtime_ns, about.st_ctime_ns]


def is_unchanged(workspace: Path, digest: str | None, stamp: str | None) -> bool:
    """Whether the workspace still holds what was recorded when the agent ended."""
    try:
        # Times differ after a copy, as out of a CI cache, though the content is the same.
        return digest is None or stamp_of(workspace) == stamp or digest_of(workspace)[0] == digest
    except OSError:
        return False


def digest_of(workspace: Path) -> tuple[str, int]:
    """Return the digest over the files and links of a workspace, and the number of the files."""
    return digests.of_folder(workspace)
