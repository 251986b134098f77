"""The words that all of ``evidence`` shares: findings, what they add up to, what is looked at."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pydantic import Field

from pytest_mlrbench.values import Record

Level = Literal["none", "claimed", "executed", "traced", "replayed"]
#: From the weakest to the strongest: the place of a level is its number.
LEVELS: tuple[Level, ...] = ("none", "claimed", "executed", "traced", "replayed")

#: ``proof`` follows from what the sandbox recorded; ``strong`` from what the agent left, by a rule
#: that has hardly an innocent explanation; ``hint`` is for a person to look at and decides nothing.
Severity = Literal["proof", "strong", "hint"]

#: What a finding that is no hint speaks for: results that no execution produced; data that were
#: made up and not said to be; a paper whose numbers are not those of its run.
Meaning = Literal["fabricated", "undisclosed_synthetic", "paper_untraced"]


class Finding(Record):
    """One thing that was found, said so that a person can check it."""

    #: One word, counted in reports: ``untraced_numbers``, ``literal_metric``, …
    kind: str
    severity: Severity
    #: What it speaks for, where it is no hint; null where it bears on the level only.
    means: Meaning | None = None
    #: A whole sentence.
    sentence: str
    #: ``file:line`` or ``file#key``, relative to the submission; null where there is no one place.
    place: str | None = None
    #: The number, the line of code or the entry it is about, as it stands there.
    quote: str | None = None


class Counted(Record):
    """The numbers that one document reports, and what became of them.

    ``reported == traced + chance + untraced``.
    """

    reported: int
    #: They lead to something that a command wrote or printed, or that the run was given.
    traced: int
    #: They occur there too, but so would a number picked at random.
    chance: int
    untraced: int
    #: How many of the traced ones would have been found as well, had they been numbers picked at
    #: random near them, as precise: the sum of their probabilities.
    coincidences: float = 0.0


class Rerun(Record):
    """The command that a run declares, run once more."""

    #: With the same ``seed``, ``another`` one, with ``labels`` shuffled, or another ``input``.
    kind: Literal["seed", "another", "labels", "input"]
    command: tuple[str, ...]
    seed: int | None
    #: Input → what became of it: ``shuffled``, ``resampled`` or ``withheld``.
    inputs: dict[str, str] = Field(default_factory=dict)
    #: Below the case's folder: its ledger, its log, the files that numbers were looked up in.
    folder: str
    #: ``exit 0``, ``timeout``, …
    ended: str
    #: Its last words, where that is no good end.
    said: str = ""
    seconds: float
    #: Address → the number there; null where there is none any more.
    numbers: dict[str, float | None] = Field(default_factory=dict)


class Replay(Record):
    """What came of running it again. Null means that it cannot be told."""

    #: Why there is no more to say.
    because: str
    #: Whether that is no fault of the run's, so that it may come out otherwise another time.
    is_open: bool = False
    #: Whether the reported numbers came out again, moved with the seed as far as was declared, and
    #: changed with the input.
    same: bool | None = None
    moved: bool | None = None
    changed: bool | None = None
    #: Address → the number that is reported of it.
    numbers: dict[str, float] = Field(default_factory=dict)
    runs: tuple[Rerun, ...] = ()
    #: What it read and was left as it was in all of them.
    left: tuple[str, ...] = ()

    @property
    def passed(self) -> str:
        """What is as it should be, in words."""
        said = {"same": self.same, "moved": self.moved, "changed": self.changed}
        return ",".join(name for name, is_so in said.items() if is_so)


class Evidence(Record):
    """The content of ``evidence.json``. Null means that it cannot be told."""

    level: Level
    #: Why it is no higher.
    because: str
    #: What there was to look at: ``ledger``, ``transcript``, ``code``, ``data``, ``papers``.
    examined: tuple[str, ...]
    fabricated: bool | None
    undisclosed_synthetic: bool | None
    paper_untraced: bool | None
    #: Document → its numbers.
    claims: dict[str, Counted] = Field(default_factory=dict)
    #: What catalogues say of cited works: verdict → how many; null if they were not asked.
    citations: dict[str, int] | None = None
    findings: tuple[Finding, ...] = ()
    #: What came of running it again; null where that was not asked for, or there was no reason to.
    replay: Replay | None = None


# What is looked at


@dataclass(frozen=True, slots=True)
class Edit:
    """The agent wrote a file itself, by a tool of its own.

    :param path: as it was given.
    :param content: the whole text after the edit; null where it is not known.
    :param ok: whether it worked; null if that is not known.
    """

    path: str
    content: str | None
    ok: bool | None = True


@dataclass(frozen=True, slots=True)
class Command:
    """The agent ran a command.

    :param text: as a shell takes it.
    :param output: what the agent was shown of it.
    :param ok: whether it ended with exit code 0; null if that is not known.
    :param cwd: the folder it started in; null where that is the one the command before ended in.
    """

    text: str
    output: str
    ok: bool | None
    cwd: str | None = None


@dataclass(frozen=True, slots=True)
class Said:
    """The agent's own words in between."""

    text: str


Action = Edit | Command | Said


@dataclass(frozen=True, slots=True)
class Origin:
    """Who wrote a file last.

    ``given`` it was laid out for the agent; ``command`` by a program that ended with 0; ``failed``
    by one that did not; ``typed`` by the agent itself, through its editor, ``echo``, a
    here-document or a literal on the command line, or copied from such a file; ``unknown``.

    :param by: command line or tool, cut short.
    """

    kind: Literal["given", "command", "failed", "typed", "unknown"]
    by: str = ""


@dataclass(frozen=True, slots=True)
class Source:
    """A program of the agent's.

    :param is_run: whether it was executed, or imported by what was; null if that is not known.
    """

    path: str
    text: str
    is_run: bool | None


@dataclass(frozen=True, slots=True)
class Claim:
    """A number that a document reports.

    :param document: ``results/results.md`` or ``results/paper.md``.
    :param line: its line there, from 1.
    :param text: the number as printed, with its unit.
    :param value: what that comes to; of ``12.3%``, 12.3.
    :param slack: half a unit of the last digit that is printed.
    :param percent: whether it is printed as a share of a hundred.
    :param in_table: whether it stands in a table.
    :param row: the name of its row there.
    :param column: the name of its column there.
    """

    document: str
    line: int
    text: str
    value: float
    slack: float
    percent: bool = False
    in_table: bool = False
    row: str = ""
    column: str = ""


@dataclass(frozen=True)
class Material:
    """What there is of a run.

    :param root: the submission.
    :param files: path below *root* → file; bounded, links left out.
    :param actions: of the agent, in their order, from a transcript; null where there is none.
    :param sources: its programs, from disk or rebuilt from the transcript.
    :param origins: path → who wrote it last, by ledger or transcript; null where there is neither.
    :param printed: what commands printed, as the sandbox or the transcript has it.
    :param ledger: events of the sandbox; null where there is none that can be relied on.
    """

    root: Path
    files: Mapping[str, Path]
    actions: Sequence[Action] | None = None
    sources: Sequence[Source] = ()
    origins: Mapping[str, Origin] | None = None
    printed: Sequence[str] = ()
    ledger: Sequence[Mapping[str, object]] | None = None
