"""What a shell command does to files, and which programs it runs. Nothing is executed."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from pytest_mlrbench.evidence.history.commands import bare, program_of, script_of
from pytest_mlrbench.evidence.history.shell import Step, steps
from pytest_mlrbench.evidence.history.texts import changes


@dataclass(frozen=True, slots=True)
class Wrote:
    """A file got a text that stands in the command; *text* is null where only part of it does."""

    path: str
    text: str | None
    is_added: bool = False


@dataclass(slots=True)
class Ran:
    """A program was run.

    :param program: its file, or the module after ``-m`` as a path; null where it is no file.
    :param code: its text, where that stands in the command.
    :param words: the whole command.
    :param writes: files that its output was put into.
    :param is_masked: whether it may have failed though the command did not.
    :param is_aside: whether it was left running.
    """

    program: str | None
    code: str | None
    words: tuple[str, ...]
    cwd: str
    writes: list[str] = field(default_factory=list)
    is_masked: bool = False
    is_aside: bool = False


@dataclass(frozen=True, slots=True)
class Copied:
    """Files were copied or moved to a file or folder; their content may have been cut down."""

    sources: tuple[str, ...]
    target: str
    is_move: bool = False


@dataclass(frozen=True, slots=True)
class Removed:
    """Files or folders were deleted."""

    paths: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Showed:
    """Files were shown to the agent."""

    paths: tuple[str, ...]


Effect = Wrote | Ran | Copied | Removed | Showed

#: How deep shells may stand in shells.
_DEEPEST = 4
#: They hand on what they are given, in part.
_FILTERS = {"cat", "head", "tail", "sed", "grep", "egrep", "awk", "cut", "sort", "uniq", "tr", "jq"}
_FILTERS |= {"less", "more", "nl", "tac", "column", "rg", "xxd", "od", "bat"}
_LOOKS = {"ls", "find", "wc", "du", "stat", "file", "pwd", "tree", "diff", "md5sum", "which", "df"}
#: They set things up, and print nothing that could be a result.
_TOOLS = {
    "pip",
    "pip3",
    "conda",
    "apt",
    "apt-get",
    "git",
    "wget",
    "curl",
    "mkdir",
    "touch",
    "chmod",
}
_TOOLS |= {
    "export",
    "set",
    "sleep",
    "kill",
    "pkill",
    "true",
    "false",
    "test",
    "[",
    "[[",
    "fi",
    "done",
}
_TOOLS |= {"for", "case", "esac", "}", "source", ".", "wait", "read", "nvidia-smi", "tar", "unzip"}
_TOOLS |= {"zip", "gzip", "ps", "date", "uname", "free", "huggingface-cli", "exit", "return", "cd"}


def effects(text: str, cwd: str = ".") -> tuple[list[Effect], str]:
    """Return what *text* does, in its order, and the folder in which it ends.

    Paths are joined to the folder in which their command runs.

    :param cwd: the folder in which it begins.
    """
    reader = _Reader(cwd)
    reader.read(steps(text), 0)
    return reader.found, reader.cwd


def join(cwd: str, path: str) -> str:
    """Return *path* as seen from where *cwd* is seen from."""
    return posixpath.normpath(posixpath.join(cwd, posixpath.expanduser(path[:4096])))[:4096]


class _Reader:
    """The effects so far, and what flows from one step to the next."""

    def __init__(self, cwd: str) -> None:
        self.found: list[Effect] = []
        self.cwd = cwd
        self._outer: list[str] = []
        #: What the step before printed: a text of the command, files, or a program's output.
        self._flow: str | tuple[str, ...] | Ran | None = None

    def read(self, given: Sequence[Step], depth: int) -> None:
        for step in given:
            if step.words == ["("]:
                self._outer.append(self.cwd)
            elif step.words == [")"]:
                self.cwd = self._outer.pop() if self._outer else self.cwd
            else:
                self._step(step, depth)

    def _step(self, step: Step, depth: int) -> None:
        before, self._flow = self._flow if step.is_piped else None, None
        words = bare(step.words)
        name = posixpath.basename(words[0]) if words else ""
        if name == "cd":
            target = words[1] if len(words) > 1 else "~"
            self.cwd = self.cwd if target == "-" else join(self.cwd, target)
        elif name in ("echo", "printf"):
            self._typed(step, _printed(words))
        elif name in _FILTERS or not words or "json.tool" in words:
            self._filtered(step, name, words, before)
        elif name == "tee":
            step.appends |= set(words[1:]) if "-a" in words or "--append" in words else set()
            given = step.stdin if before is None else before
            self._put(step, [*(w for w in words[1:] if w[:1] != "-"), *step.writes], given)
        elif name in ("cp", "mv", "rsync", "ln", "install"):
            paths = [join(self.cwd, word) for word in words[1:] if word[:1] != "-"]
            if len(paths) > 1:
                self.found.append(Copied(tuple(paths[:-1]), paths[-1], name == "mv"))
        elif name in ("rm", "unlink", "rmdir"):
            paths = [join(self.cwd, word) for word in words[1:] if word[:1] != "-"]
            self.found.append(Removed(tuple(paths)))
        elif name in _LOOKS:
            self.found.append(Showed(tuple(join(self.cwd, w) for w in words[1:] if w[:1] != "-")))
        elif name in ("apply_patch", "applypatch"):
            self._patched(step.stdin or next(iter(words[1:]), ""))
        elif (script := script_of(words, step.stdin)) is not None:
            self.read(steps(script) if depth < _DEEPEST else (), depth + 1)
        elif name not in _TOOLS or (name in ("source", ".") and words[-1].endswith(".sh")):
            self._ran(step, words)

    def _typed(self, step: Step, text: str) -> None:
        self._flow = text
        for path in step.writes:
            self.found.append(Wrote(join(self.cwd, path), text, path in step.appends))

    def _filtered(
        self,
        step: Step,
        name: str,
        words: Sequence[str],
        before: str | tuple[str, ...] | Ran | None,
    ) -> None:
        """Note a command that hands on its input: text, files, or another's output."""
        paths = tuple(join(self.cwd, w) for w in [*words[1:], *step.reads] if w[:1] != "-")
        if name == "sed" and any(re.match(r"-[a-zA-Z]*i|--in-place", w) for w in words[1:]):
            self.found += [Wrote(path, None) for path in paths[1:]]
            return
        if step.stdin is not None and name in ("cat", ""):
            before = step.stdin
        source = before if before is not None else paths
        if not step.writes:
            self._flow = source
            if source is paths:
                self.found.append(Showed(paths))
        else:
            self._put(step, step.writes, source)

    def _put(
        self, step: Step, targets: Sequence[str], source: str | tuple[str, ...] | Ran | None
    ) -> None:
        self._flow = source
        for path in targets:
            target = join(self.cwd, path)
            if isinstance(source, str):
                self.found.append(Wrote(target, source, path in step.appends))
            elif isinstance(source, Ran):
                source.writes.append(target)
            elif source:
                self.found.append(Copied(source, target))

    def _patched(self, patch: str) -> None:
        for change in changes(patch):
            if change.kind != "delete":
                path = join(self.cwd, change.path)
                self.found.append(Wrote(path, change.text if change.kind == "add" else None))

    def _ran(self, step: Step, words: Sequence[str]) -> None:
        program, code = program_of(words, step.stdin)
        ran = Ran(
            join(self.cwd, program) if program is not None else None,
            code,
            tuple(words),
            self.cwd,
            [join(self.cwd, path) for path in step.writes],
            step.is_masked,
            step.is_aside,
        )
        self.found.append(ran)
        self._flow = ran


def _printed(words: Sequence[str]) -> str:
    """Return what ``echo`` or ``printf`` prints, roughly."""
    given = [word for word in words[1:] if word not in ("-e", "-n", "-E", "-ne", "-en", "--")]
    if words[0].endswith("printf") and given:
        values = iter(given[1:])
        filled = _FIELD.sub(lambda field: next(values, field[0]), given[0])
        given = [filled, *values]
    return " ".join(given).replace("\\n", "\n").replace("\\t", "\t") + "\n"


#: A place of ``printf``'s first word that another takes.
_FIELD = re.compile(r"%[-+ #0]{0,3}\d{0,4}(?:\.\d{0,4})?[a-zA-Z]")
