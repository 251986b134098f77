"""The run folder: the record of a run, written so that a killed run loses no finished case.

::

    <run id>/run.json              what was asked: settings, digests, versions
             selection.json        the cases of the run → their test ids
             journal.jsonl         one line per finished case, in the order they finished
             cases/<stage>/<task>/r<N>/
                 inputs/           what the agent was given
                 submission/       its workspace, as it left it
                 agent.log         what it printed
                 agent_calls.jsonl, steps/   the calls and steps of a scaffold agent
                 submission.json   how it ended
                 evidence.json     what supports its results
                 reviews/<judge>.json
                 checkpoints/<stage>/reviews/<judge>.json    of the stages within an end-to-end case
                 result.json       the case's result
             superseded/           cases that were run again, as they were
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
import secrets
import time
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import IO, TypeVar

from pydantic import ValidationError

from pytest_mlrbench.errors import InputError
from pytest_mlrbench.run.result import CaseResult, Verdict
from pytest_mlrbench.values import Record, Value

#: Name of a case.
_NAME = re.compile(r".+/[^/]+/[^/]+/r[1-9]\d*")
#: Folder in a case's folder with what was said of the stages within it.
CHECKPOINTS = "checkpoints"
_Model = TypeVar("_Model", bound=Value)

#: How long a session waits for the processes of an earlier, killed one to end, in seconds.
LOCK_PATIENCE = 20.0


class JournalLine(Record):
    """One line of the journal: a case that has come to its end."""

    #: ISO 8601, in UTC.
    time: str
    case: str
    verdict: Verdict
    overall: float | None
    #: How long the agent took; null if it was not run.
    seconds: float | None


class RunFolder:
    """One run on disk; several processes of a session may have it open."""

    def __init__(self, path: Path) -> None:
        self.path = path
        # As text: a resumed run asks for a place of each case several times.
        self._cases = os.fspath(path / "cases")
        self._lock: IO[bytes] | None = None
        self._known: dict[str, CaseResult] = {}
        #: Names of the cases whose results were on disk before this session.
        self.reused: set[str] = set()

    @classmethod
    def create(cls, out: Path) -> RunFolder:
        """Make a new run under *out*; its id sorts by time of creation.

        :raises InputError: *out* cannot be written.
        """
        now = datetime.now(UTC)
        run_id = f"{now:%Y%m%dT%H%M%S}{now.microsecond // 1000:03d}Z-{secrets.token_hex(2)}"
        try:
            ours = not out.exists()
            (out / run_id / "cases").mkdir(parents=True)
            if ours:
                (out / ".gitignore").write_text("# Made by pytest-mlrbench.\n*\n")
        except OSError as error:
            raise InputError(f"--mlr-out {out} cannot be written: {error.strerror}.") from None
        return cls(out / run_id)

    @classmethod
    def find(cls, out: Path, name: str) -> RunFolder:
        """Open the run *name* under *out*, ``last`` for the newest, or a path to a run.

        :raises InputError: there is none.
        """
        if name == "last":
            runs = sorted(path.parent for path in out.glob("*/run.json"))
            if not runs:
                raise InputError(
                    f"--mlr-resume: there is no run in {out} yet; leave the option out."
                )
            return cls(runs[-1])
        for path in (out / name, Path(name)):
            if (path / "run.json").is_file():
                return cls(path.resolve())
        raise InputError(
            f"--mlr-resume: {name!r} is no run in {out}; write --mlr-resume=RUN, and the paths of"
            " tests in front of it."
        )

    @property
    def run_id(self) -> str:
        """Name of the folder."""
        return self.path.name

    @cached_property
    def shown_path(self) -> str:
        """The folder's path as a person in the current folder would write it."""
        inside = self.path.is_relative_to(Path.cwd())
        return os.path.relpath(self.path) if inside else str(self.path)

    def shown(self, result: CaseResult) -> str:
        """The path of a case's folder, likewise."""
        return f"{self.shown_path}/{result.artifacts}"

    def acquire(self, *, alone: bool) -> None:
        """Hold the folder until :meth:`release`, or until the process ends.

        A session's controller asks to be *alone* for a moment, so that nothing of an earlier
        session still writes; then its workers may share.

        :raises InputError: another session is using the run.
        """
        self._lock = (self.path / "lock").open("ab")
        if alone:
            end = time.monotonic() + LOCK_PATIENCE
            while not self._try_lock(fcntl.LOCK_EX):
                if time.monotonic() > end:
                    self.release()
                    raise InputError(
                        f"run {self.run_id} is in use by another session; wait for it."
                    )
                time.sleep(0.1)
        fcntl.flock(self._lock, fcntl.LOCK_SH)

    def release(self) -> None:
        """Let other sessions use the run."""
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def _try_lock(self, kind: int) -> bool:
        assert self._lock is not None
        try:
            fcntl.flock(self._lock, kind | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def case_folder(self, stage: str, task: str, repeat: int) -> Path:
        """Where everything about one case lies."""
        return Path(f"{self._cases}/{stage}/{task}/r{repeat}")

    def _folder_of(self, name: str) -> Path:
        _, stage, task, repeat = name.rsplit("/", 3)
        return self.case_folder(stage, task, int(repeat[1:]))

    def supersede(self, case: Path, *, keeping: str = "") -> None:
        """Move a case's folder aside, so that the case can be run again and nothing is lost.

        :param keeping: a folder of it that stays where it is.
        """
        if not any(path.name != keeping for path in case.iterdir()):
            return  # it was not begun again since it was moved aside
        aside = self.path / "superseded" / case.relative_to(self.path / "cases")
        aside.mkdir(parents=True, exist_ok=True)
        old = aside / str(max((int(path.name) for path in aside.iterdir()), default=0) + 1)
        case.rename(old)
        if keeping and (old / keeping).is_dir():
            case.mkdir(parents=True)
            (old / keeping).rename(case / keeping)

    def attempts(self, case: Path) -> int:
        """How often the case was started, this time included."""
        aside = self.path / "superseded" / case.relative_to(self.path / "cases")
        return 1 + (max(int(path.name) for path in aside.iterdir()) if aside.is_dir() else 0)

    def record(self, result: CaseResult) -> None:
        """Write a finished case: its result, then its line in the journal."""
        self._write(result)
        line = JournalLine(
            time=datetime.now(UTC).isoformat(timespec="milliseconds"),
            case=result.case,
            verdict=result.verdict,
            overall=result.overall,
            seconds=result.seconds_agent,
        )
        # One write to a file opened for appending is not torn between processes.
        file = os.open(self.path / "journal.jsonl", os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o644)
        try:
            size = os.fstat(file).st_size
            torn = size > 0 and os.pread(file, 1, size - 1) != b"\n"
            os.write(file, ("\n" * torn + _dump(line) + "\n").encode())
        finally:
            os.close(file)

    def reuse(self, result: CaseResult, *, changed: bool) -> None:
        """Take a result of an earlier session for one of this; it is written if it has *changed*.

        The journal has its line: nothing was run.
        """
        self.reused.add(result.case)
        if changed:
            self._write(result)
        self._known[result.case] = result

    def known(self, name: str) -> CaseResult | None:
        """Return a result that this process has read or written."""
        return self._known.get(name)

    def _write(self, result: CaseResult) -> None:
        write_json(self.path / result.artifacts / "result.json", result)
        self._known[result.case] = result

    def journal(self) -> Iterator[JournalLine]:
        """Yield the journal's lines; a last line torn by a kill is left out."""
        try:
            text = (self.path / "journal.jsonl").read_text("utf-8")
        except FileNotFoundError:
            return
        for line in text.splitlines():
            with contextlib.suppress(ValidationError):
                yield JournalLine.model_validate_json(line)

    def select(self, cases: Mapping[str, str]) -> None:
        """Add the cases a session has collected (case name → test id) to those of the run."""
        _replace(self.path / "selection.json", json.dumps({**self.selection(), **cases}, indent=0))

    def selection(self) -> dict[str, str]:
        """The cases of the run, of all its sessions; empty before the first has collected."""
        try:
            selection: dict[str, str] = json.loads(
                (self.path / "selection.json").read_text("utf-8")
            )
            if not isinstance(selection, dict) or not all(map(_NAME.fullmatch, selection)):
                raise ValueError
        except FileNotFoundError:
            return {}
        except (ValueError, TypeError):
            # Taken for empty, a report would show no case and say nothing of those there were.
            raise InputError(
                f"{self.path / 'selection.json'} is damaged: start a new run."
            ) from None
        return selection

    def refuse(self, why: str) -> None:
        """Tell the controller, from a worker, that the session cannot go on."""
        _replace(self.path / "refused", why)

    def refusal(self) -> str:
        """Why a worker has refused the session; empty if none has."""
        path = self.path / "refused"
        return path.read_text("utf-8").strip() if path.exists() else ""

    def holds(self, names: Iterable[str]) -> bool:
        """Whether all of these cases have a result, be it one that will not stand."""
        return all((self._folder_of(name) / "result.json").exists() for name in names)

    def results(self) -> dict[str, CaseResult]:
        """The finished cases of the run, by name, in the order of the selection."""
        found = {}
        for name in self.selection():
            folder = self._folder_of(name)
            result = self._known.get(name) or read_model(folder / "result.json", CaseResult)
            # Case folders do not say of which suite: a run may have been resumed with another.
            if result and result.case == name:
                found[name] = result
        return found


def read_model(path: Path, model: type[_Model]) -> _Model | None:
    """Read a JSON file of ours; null if it is absent or was not written by this version."""
    try:
        return model.model_validate_json(path.read_bytes())
    except (OSError, ValidationError):
        return None


def write_json(path: Path, model: Value) -> None:
    """Write a JSON file so that a reader sees the old one or the new one, never a part."""
    _replace(path, _dump(model, indent=2))


def _dump(model: Value, indent: int | None = None) -> str:
    """JSON of a model; half a character, which judges and file names may hold, becomes a ``?``."""
    text = json.dumps(model.model_dump(), indent=indent, ensure_ascii=False, allow_nan=False)
    return text.encode("utf-8", "replace").decode()


def _replace(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.{os.getpid()}")
    part.write_text(text + "\n", "utf-8")
    part.replace(path)
