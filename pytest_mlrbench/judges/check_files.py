"""What an agent left, read for checks: lazily, in bounds, and never outside the workspace."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from functools import cached_property, lru_cache
from itertools import chain, islice
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from pytest_mlrbench import folders
from pytest_mlrbench.judges import check_texts as texts
from pytest_mlrbench.judges.check_data import Claim, number_at, parse
from pytest_mlrbench.judges.check_records import Together, all_numbers, as_number, records
from pytest_mlrbench.judges.check_sections import SECTIONS, labels
from pytest_mlrbench.suites.stages import STAGES

MAX_BYTES = 2_000_000
MAX_FILES = 5_000
MAX_DATA_FILES = 200
#: Sections, tables, images and claims beyond this many are not looked at.
MAX_ITEMS = 500
#: Words under a heading that make it more than a heading.
FEW_WORDS = 15
#: Share of a document's prose that must be new for the rest to count as quoted.
LEAST_NEW = 0.5

DATA_SUFFIXES = frozenset({".json", ".jsonl", ".csv", ".tsv"})
#: The end of such a file's name as a program writes it down; what comes before may be computed.
_DATA_NAME = re.compile(r"(?<![\w.-])[\w.-]{0,100}\.(?:jsonl|json|csv|tsv)\b")
CODE_SUFFIXES = (
    *(".py", ".ipynb", ".sh", ".r", ".jl", ".m", ".pl", ".rb", ".js", ".ts"),
    *(".c", ".cc", ".cpp", ".cu", ".rs", ".go", ".java", ".scala"),
)
CLAIMS = "results/claims.json"
_SKIPPED_FOLDERS = frozenset({"__pycache__", "node_modules", "site-packages", "venv"})


class Submission:
    """The workspace of a finished case."""

    def __init__(self, stage: str, workspace: Path) -> None:
        self.stage = STAGES[stage]
        self.root = Path(os.path.realpath(workspace))
        self.document_path = self.stage.required[0]
        #: A data file as plain values, or None; the rows of a CSV file are dictionaries.
        self.document = lru_cache(maxsize=16)(self._parse)
        self._found: dict[str, Path | None] = {}

    # Files

    def find(self, relative: str) -> Path | None:
        """Return the regular file *relative*, unless it lies outside the workspace."""
        if relative not in self._found:
            self._found[relative] = self._resolve(relative)
        return self._found[relative]

    def _resolve(self, relative: str) -> Path | None:
        if len(relative) > folders.LONGEST_PATH:
            return None
        try:
            path = (self.root / relative).resolve()
            return path if path.is_relative_to(self.root) and path.is_file() else None
        except (OSError, ValueError, RuntimeError):  # name too long, NUL in it, circle of links
            return None

    def read(self, relative: str) -> bytes:
        """Return the bytes of a file, at most :data:`MAX_BYTES` and one; none if it is absent."""
        path = self.find(relative)
        return read(path) if path else b""

    def text(self, relative: str) -> str:
        """Return a file as text whatever its bytes are, cut at the bound."""
        return self.read(relative)[:MAX_BYTES].decode("utf-8-sig", errors="replace")

    @cached_property
    def files(self) -> tuple[str, ...]:
        """Paths of the files in the workspace; hidden and installed ones are left out."""
        return tuple(islice(self._walk(), MAX_FILES))

    def _walk(self) -> Iterator[str]:
        for path, entry in folders.entries(self.root, _is_skipped):
            if entry.is_file(follow_symlinks=False):
                self._found[path] = self.root / path  # resolving each costs much where it is deep
            if self.find(path):
                yield path

    # The report

    @cached_property
    def raw(self) -> str:
        """The stage's document as it is."""
        return self.text(self.document_path)

    @cached_property
    def task(self) -> str:
        """The task's text."""
        return self.text("task.md")

    @cached_property
    def given(self) -> str:
        """The texts the agent was given beside the task."""
        names = [name for name in self.stage.inputs if name.endswith(".md") and name != "task.md"]
        names += ["results/results.md"] * ("results" in self.stage.inputs)
        return "\n".join(map(self.text, names))

    @cached_property
    def share_new(self) -> float:
        """Which share of the document's prose none of the given texts holds."""
        return texts.new_share(texts.without_fences(self.raw), f"{self.task}\n{self.given}")

    @cached_property
    def own(self) -> str:
        """The document without code and without what was copied from the task.

        Passages of the other inputs may be taken over, as a paper does with its bibliography. Where
        they are most of the document, though, it counts for what it adds to them.
        """
        text = texts.without(texts.without_fences(self.raw), self.task)
        return text if self.share_new >= LEAST_NEW else texts.without(text, self.given)

    @cached_property
    def sections(self) -> list[texts.Section]:
        """The document's sections."""
        return texts.sections(self.own, labels(self.stage.name))[:MAX_ITEMS]

    @cached_property
    def title(self) -> str:
        """What a Title section says, else the first line unless it is prose or names a section."""
        for section in self.sections:
            if section.body and re.search(r"\b(?:title|name)\b", section.title, re.IGNORECASE):
                return texts.plain(section.body.splitlines()[0])
        line = next(filter(str.strip, self.own.splitlines()), "")
        named = texts.plain(line)
        prose = named.endswith((".", "!"))
        ordinary = not line.startswith("# ") and labels(self.stage.name).fullmatch(named)
        return "" if prose or ordinary else named

    @cached_property
    def expected_sections(self) -> dict[str, int]:
        """Section the stage expects → words under its heading, 0 where it is absent."""
        return {
            name: max((len(texts.words(s.body)) for s in self.sections_about(pattern)), default=0)
            for name, pattern in SECTIONS[self.stage.name].items()
        }

    def sections_about(self, pattern: str) -> list[texts.Section]:
        """Return the sections whose heading matches *pattern*; the title is none of them."""
        return [
            section
            for section in self.sections
            if section.title != self.title and re.search(pattern, section.title, re.IGNORECASE)
        ]

    @cached_property
    def sentences(self) -> list[str]:
        """The document's sentences, table rows and headings among them."""
        return texts.sentences(self.own)

    @cached_property
    def told(self) -> list[str]:
        """The sentences without the headings, which only announce something."""
        return [sentence for sentence in self.sentences if not sentence.startswith("#")]

    @cached_property
    def headings(self) -> list[str]:
        """The headings that something stands under."""
        return [s.title for s in self.sections if len(texts.words(s.body)) >= FEW_WORDS]

    @cached_property
    def tables(self) -> list[texts.Table]:
        """The document's tables that print measured numbers."""
        return list(islice(texts.tables(self.own), MAX_ITEMS))

    @cached_property
    def table_numbers(self) -> list[texts.Printed]:
        """The measured numbers in all tables."""
        return [number for table in self.tables for number in table.numbers]

    @cached_property
    def images(self) -> list[str]:
        """The targets of the document's images, each once."""
        return list(dict.fromkeys(texts.image_links(self.own)))[:MAX_ITEMS]

    def image(self, link: str) -> Path | None:
        """Return an image's file; links start at the document's folder, or at the workspace."""
        link = unquote(link)
        beside = os.path.normpath(os.path.join(os.path.dirname(self.document_path), link))
        return next((path for path in map(self.find, (beside, link)) if path), None)

    # Recorded numbers

    @cached_property
    def programs(self) -> tuple[str, ...]:
        """Paths of the program files that are not blank."""
        found = (path for path in self.files if Path(path).suffix.lower() in CODE_SUFFIXES)
        return tuple(islice((path for path in found if self.read(path).strip()), MAX_ITEMS))

    @cached_property
    def _endings(self) -> frozenset[str]:
        """How the names of data files end that programs write down, ``_results.json`` say."""
        return frozenset(
            ending for path in self.programs for ending in _DATA_NAME.findall(self.text(path))
        )

    def written(self, path: str) -> bool:
        """Whether a run may have written the data file *path*: a program in the workspace names it.

        What none names was typed, for all a reader can tell. The results that a paper is about were
        given to its author, and are beyond that doubt.
        """
        name = Path(path).name
        ends = (name[start:] for start in range(len(name)))
        return "results" in self.stage.inputs or not self._endings.isdisjoint(ends)

    @cached_property
    def _machine_readable(self) -> list[str]:
        claims = self.find(CLAIMS)
        return [
            path
            for path in self.files
            if Path(path).suffix in DATA_SUFFIXES and self.find(path) != claims
        ]

    @property
    def typed_files(self) -> list[str]:
        """The data files that no program names."""
        return [path for path in self._machine_readable if not self.written(path)]

    @cached_property
    def data_files(self) -> tuple[str, ...]:
        """Machine-readable results of a run: those under ``results/``, else those anywhere."""
        every = [path for path in self._machine_readable if self.written(path)]
        results = [path for path in every if path.startswith("results/")]
        return tuple((results or every)[:MAX_DATA_FILES])

    @cached_property
    def _given_report(self) -> str:
        """The report that a paper is about and may rely on."""
        return self.text("results/results.md") if "results" in self.stage.inputs else ""

    @cached_property
    def known(self) -> texts.Known:
        """The numbers that the report may draw on."""
        numbers = [
            number for path in self.data_files for number in all_numbers(self.document(path))
        ]
        numbers += [number.value for number in texts.printed_numbers(self._given_report)]
        return texts.Known(numbers)

    @cached_property
    def _together(self) -> Together:
        """The numbers that stand together in a record, or in the report that was given."""
        found = (self.document(path) for path in self.data_files)
        small = chain.from_iterable(records(data) for data in found if all_numbers(data))
        pairs = texts.spreads(self._given_report)[1]
        return Together(chain(small, ([mean.value, std.value] for mean, std in pairs)))

    def recorded(self, alone: Sequence[texts.Printed], pairs: Sequence[texts.Pair]) -> int:
        """How many of these numbers are recorded; of ``a ± b`` both or none.

        Among hundreds of recorded numbers a lone one is often found by chance, a pair hardly ever.
        """
        found = sum(number in self.known for number in alone)
        return found + 2 * sum(pair in self._together for pair in pairs)

    @cached_property
    def recorded_in_tables(self) -> list[int]:
        """How many numbers of each table are recorded."""
        return [self.recorded(table.alone, table.pairs) for table in self.tables]

    @cached_property
    def backed_tables(self) -> list[texts.Table]:
        """The tables that count as results: at least half of their numbers are recorded."""
        found = zip(self.tables, self.recorded_in_tables, strict=True)
        return [table for table, recorded in found if 2 * recorded >= len(table.numbers)]

    @cached_property
    def _claims(self) -> list[Any]:
        listed = self.document(CLAIMS)
        if isinstance(listed, dict):  # which says more than where numbers come from
            listed = listed.get("claims")
        return listed[:MAX_ITEMS] if isinstance(listed, list) else []

    @property
    def claims_listed(self) -> int:
        """How many entries the claims file has, usable or not."""
        return len(self._claims)

    @cached_property
    def claims(self) -> list[Claim]:
        """The entries of the claims file that have the three fields."""
        found = [
            (entry["text"], texts.as_printed(value), source)
            for entry in self._claims
            if isinstance(entry, dict)
            and isinstance(entry.get("text"), str)
            and isinstance(source := entry.get("source"), str)
            and not isinstance(entry.get("value"), str)
            and (value := as_number(entry.get("value"))) is not None
        ]
        # In the order of the files, so that each of them is parsed once.
        sources = sorted({source for _, _, source in found})
        recorded = {source: self.lookup(source) for source in sources}
        return [Claim(*claim, recorded[claim[2]]) for claim in found]

    def _parse(self, relative: str) -> Any:
        data = self.read(relative)
        return parse(data, Path(relative).suffix) if len(data) <= MAX_BYTES else None

    def lookup(self, source: str) -> float | None:
        """Return the number at ``file#/json/pointer`` or ``file.csv#row=3,column=acc``."""
        relative, _, place = source.partition("#")
        path = self.find(relative)
        if path is None or path == self.find(CLAIMS):  # a claim cannot prove itself
            return None
        if not self.written(relative):
            return None
        return number_at(self.document(relative), place)


def read(path: Path) -> bytes:
    """Return the bytes of a file, at most :data:`MAX_BYTES` and one; none if it cannot be read."""
    try:
        with path.open("rb") as file:
            return file.read(MAX_BYTES + 1)
    except OSError:
        return b""


def _is_skipped(folder: str) -> bool:
    return folder in _SKIPPED_FOLDERS or folder[0] == "."
