"""What there is of a run: its files, what was recorded of it, and what it reports."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from pathlib import Path

from pytest_mlrbench import folders
from pytest_mlrbench.evidence.base import Action, Claim, Origin, Source
from pytest_mlrbench.evidence.history import lineage as lineage_transcript
from pytest_mlrbench.evidence.history import rebuilt, transcripts, witnesses
from pytest_mlrbench.evidence.history.story import Story, tell
from pytest_mlrbench.evidence.ledgers import lineage as lineage_ledger
from pytest_mlrbench.evidence.ledgers.reading import read_view
from pytest_mlrbench.evidence.ledgers.view import LedgerView
from pytest_mlrbench.evidence.reports.claims import Report, read_report

RESULTS, PAPER, LOG = "results/results.md", "results/paper.md", "results/log.txt"
#: In place of the paper, as a report whose numbers nobody reads here.
PDF = "results/paper.pdf"
#: Files of a run that are looked at; bytes of a document.
_FILES, _LONGEST = 20_000, 8_000_000
#: Folders of what others wrote.
_SKIPPED = frozenset({"__pycache__", "node_modules", "site-packages", ".git", "venv", ".venv"})


@dataclass(frozen=True)
class Gathered:
    """All there is of one run. What takes time is read when it is first asked for.

    :param root: the submission.
    :param beside: the case's folder, with what was recorded; null for a folder on its own.
    :param given: names of the files that were laid out for the agent; null where that is unknown.
    """

    root: Path
    beside: Path | None = None
    given: frozenset[str] = frozenset()
    _texts: dict[str, str] = field(default_factory=dict, compare=False)

    @cached_property
    def files(self) -> Mapping[str, Path]:
        """Path below the submission → regular file; of one that is a link elsewhere, none."""
        if self.root.is_symlink():
            return {}
        listed = islice(folders.entries(self.root, skips=_SKIPPED.__contains__), 5 * _FILES)
        regular = (
            (name, Path(entry.path))
            for name, entry in listed
            if entry.is_file(follow_symlinks=False)
        )
        return dict(islice(regular, _FILES))

    @cached_property
    def transcript(self) -> Path | None:
        """The agent's transcript, if there is one."""
        return transcripts.find_transcript(self.root, self.beside)

    @cached_property
    def actions(self) -> Sequence[Action] | None:
        """What the agent did, by its transcript."""
        return transcripts.read(self.transcript) if self.transcript else None

    @cached_property
    def story(self) -> Story | None:
        """What became of the files, by the transcript."""
        return None if self.actions is None else tell(self.actions, self.files)

    @cached_property
    def view(self) -> LedgerView | None:
        """What the sandbox recorded, if it did: of a local process it does not."""
        path = self.beside / "ledger.jsonl" if self.beside else None
        if path is None or not path.is_file():
            return None
        view = read_view(path)
        return view if view.processes else None

    @cached_property
    def told(self) -> lineage_transcript.Lineage | None:
        """Who wrote which file, by the transcript."""
        return lineage_transcript.trace(self.story, self.files) if self.story else None

    @cached_property
    def origins(self) -> Mapping[str, Origin] | None:
        """Path → who wrote it last; null where nothing recorded it."""
        if self.view and self.view.is_whole:
            return lineage_ledger.origins(self.view, self.files)
        return self.told.origins() if self.told else None

    @cached_property
    def sources(self) -> Sequence[Source]:
        """The agent's programs."""
        return rebuilt.sources(self.files, self.actions, self.story)

    @cached_property
    def printed(self) -> Sequence[str]:
        """What commands printed, without those that showed what the agent had typed."""
        if self.actions is None:
            return ()
        return witnesses.printed(self.actions, self.files, self.story, self.told)

    @cached_property
    def documents(self) -> Mapping[str, str]:
        """The reports that there are: name → text."""
        found = {name: self.text(name) for name in (RESULTS, PAPER)}
        return {name: text for name, text in found.items() if text.strip()}

    @cached_property
    def reports(self) -> Mapping[str, Report]:
        """Name → what the document claims."""
        return {name: read_report(name, text) for name, text in self.documents.items()}

    @property
    def claims(self) -> list[Claim]:
        """The numbers that all documents report."""
        return [claim for report in self.reports.values() for claim in report.claims]

    def text(self, name: str) -> str:
        """The text of a file of the submission; empty where there is none."""
        if name not in self._texts:
            self._texts[name] = _read(self.files.get(name))
        return self._texts[name]


def _read(path: Path | None) -> str:
    try:
        if path is None:
            return ""
        with path.open("rb") as file:
            return file.read(_LONGEST).decode("utf-8", "replace")
    except OSError:
        return ""
