"""Records what the processes of a container do, where none of them can reach it.

The container's first process is strace, as root; the agent runs below it as somebody else. What
strace sees leaves the container by its standard error, which the agent does not hold, and is put
into the ledger here. Were strace to end, the container would, as its first process is gone.

Beside the events of :mod:`~pytest_mlrbench.sandbox.events`, the ledger gets:

``begin``
    ``run``, ``case``, ``command``, ``uid``, ``tree`` (digest of the workspace), ``inputs`` (how
    many files lie in it), ``traced`` (names of calls), ``unseen`` (what is not recorded).
``file``
    For each file of the workspace that was not there before, or not so: ``path`` (relative),
    ``kind`` (``file``, ``link``, ``other``, ``unreadable``), ``size``, ``sha256``, ``was`` (its
    digest before, null if it is new), ``writers`` (numbers of processes, the last one last),
    ``how`` the last one did it (as in ``write``, or ``link``, ``symlink``; ``killed``: it was so in
    a call that may have done it), ``since`` (how many of the writers, at the end, came since the
    file was emptied or made: what those before them wrote is gone; all, if it never was),
    ``origin`` (where it lay at first, null if it did not), ``by`` (command line of the last one at
    the time, cut short), ``code`` (its exit code), ``unsure`` (another one may have been the last,
    as calls that overlap were made in an unknown order: see
    :mod:`~pytest_mlrbench.sandbox.overlaps`).
``gone``
    For each file of the workspace that was there before: ``path``, ``was``.
``end``
    What :meth:`~pytest_mlrbench.sandbox.base.Ended.facts` has, ``tree``, ``unrecorded`` (paths of
    files that are not as they should be by what was recorded: changed, or gone, without a process
    having done it; and of those that are ``unsure``, but for empty ones, as locks are, and what
    Python keeps in ``__pycache__``, where processes that import one module put the same),
    ``unclear`` (how many such events), ``dropped`` (kind of event → how many were not written
    down), ``whole`` (the agent's first process was seen to end, the trace was read to its end, and
    no event was dropped).

A reader may rely on the ledger if ``end`` is there, ``whole`` is true, ``unrecorded`` is empty and
``unclear`` is 0.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from pytest_mlrbench.sandbox import strace
from pytest_mlrbench.sandbox.base import WORKSPACE, Job
from pytest_mlrbench.sandbox.calls import TRACED
from pytest_mlrbench.sandbox.cpu import Cpu
from pytest_mlrbench.sandbox.events import Events
from pytest_mlrbench.sandbox.seccomp import profile
from pytest_mlrbench.sandbox.shadow import Shadow
from pytest_mlrbench.sandbox.strace_arguments import string, text
from pytest_mlrbench.sandbox.tree import Entry, Tree, snapshot
from pytest_mlrbench.sandbox.way import Content

#: What no event tells.
UNSEEN = (
    "which of the processes that hold an open file wrote to it: the one that opened it counts",
    "what processes send each other, but for files",
    "who swaps, in memory, the path that a call in another thread is about to use (but to open)",
)
#: The agent gets the output, not the trace, then another uid, and is what memory is taken from
#: first. Its standard output has to be its own for it to open /dev/stdout and /dev/stderr.
_LAUNCH = (
    "exec 2>&1; /bin/chown {uid}:{gid} /proc/self/fd/1;"
    " {{ echo 900 >/proc/self/oom_score_adj; }} 2>/dev/null;"
    " exec /usr/bin/setpriv --reuid={uid} --regid={gid} --clear-groups --no-new-privs --"
    ' "$@"'
)
_STRACE = (
    *("/usr/bin/strace", "-f", "--seccomp-bpf", "-y", "-s", "4096", "-ttt"),
    # Of a signal that is left out here, strace would not say either that it was deadly.
    *("--quiet=attach,personality", "-e", "signal=!SIGCHLD,SIGCONT,SIGURG,SIGWINCH"),
    *("-o", "/proc/self/fd/2"),
)
_ROOT = WORKSPACE.encode()


class Recorder:
    """Writes the ledger of one job; made when the job's workspace is as the agent will find it.

    :meth:`feed` is called from one thread at a time.

    :param uid: as whom the agent runs, and *gid*.
    """

    #: What the container's root needs: to trace, to see where the descriptors of another user lead
    #: (``DAC_READ_SEARCH``), to become that user, to give it its output, and to end its processes.
    capabilities = ("SYS_PTRACE", "DAC_READ_SEARCH", "SETUID", "SETGID", "CHOWN", "KILL")

    def __init__(self, job: Job, *, uid: int, gid: int) -> None:
        self.job = job
        self.uid, self.gid = uid, gid
        self._lines = strace.Lines()
        self._launch = _Launch()
        self._cpu: Cpu | None = None
        self._lock = threading.Lock()
        self._is_finished = False
        #: How the agent's first process ended, as :class:`Ended` has it; null while it has not.
        self.main_exit: int | None = None
        #: When it did, Unix time by the trace; null while it has not.
        self.main_ended: float | None = None
        #: What strace complained of before the agent was started, if it did.
        self.complaint = ""
        shadow = Shadow()
        self._before = snapshot(job.workspace)
        for name in self._before.entries:
            shadow.given(_ROOT + b"/" + name, self._before.links.get(name))
        self._shadow = shadow
        self._events = Events(job.ledger.write, shadow, root=_ROOT, cpu=self._cpu_of)
        job.ledger.write(
            "begin",
            run=job.run,
            case=job.case,
            command=list(job.command),
            uid=uid,
            tree=self._before.digest,
            inputs=len(self._before.entries),
            traced=list(TRACED),
            unseen=list(UNSEEN),
        )

    @property
    def has_begun(self) -> bool:
        """Whether the agent's program was started; without, no end is the agent's doing."""
        return self._launch.is_over

    @property
    def security_options(self) -> list[str]:
        """For the container, beside those that it has without a recorder."""
        return [f"seccomp={profile()}"]

    def command(self) -> list[str]:
        """What the container runs as its first process, as root."""
        launch = _LAUNCH.format(uid=self.uid, gid=self.gid)
        traced = ["-e", "trace=" + ",".join(f"?{name}" for name in TRACED)]
        return [*_STRACE, *traced, "/bin/sh", "-c", launch, "sh", *self.job.command]

    def started(self, pid: int) -> None:
        """Have its processor time looked at; *pid* is ``State.Pid``, as the engine says."""
        self._cpu = Cpu(pid)
        self._cpu.start()

    def feed(self, data: bytes) -> None:
        """Take what came from the container's standard error; nothing once it is finished."""
        with self._lock:
            if self._is_finished:
                return
            for event in self._lines.feed(data):
                self._take(event)

    def close(self) -> None:
        """Look at processes no more; harmless if it was done before."""
        if self._cpu:
            self._cpu.stop()

    def finish(self, facts: Mapping[str, Any], *, is_read: bool = True) -> None:
        """Compare what is there with what was recorded, once the container is gone.

        :param facts: how the command ended, as the ledger's ``end`` event is to say it.
        :param is_read: whether there is no more of the trace than was fed.
        """
        self.close()
        with self._lock:
            self._is_finished = True
            for event in self._lines.close():
                self._take(event)
            self._events.close()
            if not is_read:
                self._events.take(strace.Unread(b"the rest of the trace was not read in time"))
            after = snapshot(self.job.workspace)
            unrecorded = self._compare(after)
            self.job.ledger.write(
                "end",
                **facts,
                tree=after.digest,
                unrecorded=[text(name) for name in unrecorded],
                unclear=self._events.unclear,
                dropped=self._events.dropped,
                whole=self.main_exit is not None and is_read and not self._events.dropped,
            )

    def _take(self, event: strace.Event) -> None:
        if self._launch.is_over:
            self._events.take(event)
        else:
            if isinstance(event, strace.Unread):
                self.complaint = self.complaint or text(event.line)
            self._launch.take(event)
            if self._launch.is_over and isinstance(event, strace.Call):
                self._events.processes.start(event.task, event.time, _ROOT)
                self._events.take(event)
        if isinstance(event, strace.Exit) and event.task == self._launch.task:
            self._main_ended(event)

    def _main_ended(self, event: strace.Exit) -> None:
        if self.main_exit is None:  # its number may be given again
            self.main_ended = event.time
            self.main_exit = -9 if event.code is None else event.code

    def _cpu_of(self, pid: int) -> float | None:
        return self._cpu.of(pid) if self._cpu else None

    def _compare(self, after: Tree) -> list[bytes]:
        """Write down each file that is not as before; return those that are so unrecorded."""
        known = self._shadow.names(_ROOT)
        unrecorded = []
        for name in after.differing(self._before):
            made = self._made(name, known.get(name))
            entry = after.entries[name]
            unsure = made.unsure and entry.size and b"/__pycache__/" not in b"/" + name
            if unsure or (not made.writers and entry != self._given(made)):
                unrecorded.append(name)
            self._file(name, entry, made)
        for name, was in sorted(self._before.entries.items()):
            if name not in after.entries:
                self.job.ledger.write("gone", path=text(name), was=was.sha256)
        gone = (name for name in known if name not in after.entries)
        return unrecorded + sorted(name for name in gone if self._killed_at(name) is None)

    def _given(self, made: Content) -> Entry | None:
        """What was laid out for the agent, and may lie under another name now."""
        if made.origin is None:
            return None
        return self._before.entries.get(made.origin.removeprefix(_ROOT + b"/"))

    def _made(self, name: bytes, content: Content | None) -> Content:
        """Who made a file; whoever was killed while it was about to comes last."""
        made = Content() if content is None else replace(content)
        if (killed := self._killed_at(name)) is not None:
            made.written(killed, "killed")
        return made

    def _killed_at(self, name: bytes) -> int | None:
        """Who was killed in a call that may have changed this name, or that of a folder above."""
        path = _ROOT + b"/" + name
        while len(path) > len(_ROOT):
            if (killed := self._events.cut_short.get(path)) is not None:
                return killed
            path = path.rpartition(b"/")[0]
        return None

    def _file(self, name: bytes, entry: Entry, made: Content) -> None:
        was = self._before.entries.get(name)
        last = self._events.writers.get(made.writers[-1]) if made.writers else None
        self.job.ledger.write(
            "file",
            path=text(name),
            kind=entry.kind,
            size=entry.size,
            sha256=entry.sha256,
            was=was.sha256 if was else None,
            writers=list(made.writers),
            how=made.how if made.writers else None,
            since=made.since,
            origin=None if made.origin is None else text(made.origin),
            by=last.program if last else None,
            code=last.code if last else None,
            unsure=made.unsure,
        )


class _Launch:
    """The steps of :data:`_LAUNCH`, which are ours, up to the start of the agent's program."""

    def __init__(self) -> None:
        self.is_over = False
        self.task: int | None = None
        self._is_last = False

    def take(self, event: strace.Event) -> None:
        """Follow a step."""
        if not isinstance(event, strace.Call):
            return
        if self.task is None:
            self.task = event.task
        if event.task != self.task:
            return
        if event.name == "execve" and event.result == 0:
            self.is_over = self._is_last
            self._is_last = string(event.arguments[0]) == b"/usr/bin/setpriv"
