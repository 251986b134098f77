"""What an agent left, read for checks: lazily, in bounds, and never outside the workspace."""

from __future__ import annotations

import csv
import json
import math
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from io import StringIO
from itertools import islice
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from pytest_mlrbench.judges import check_texts as texts
from pytest_mlrbench.suites.stages import STAGES

MAX_BYTES = 2_000_000
MAX_FILES = 5_000
MAX_DATA_FILES = 200
#: Sections, tables, images and claims beyond this many are not looked at.
MAX_ITEMS = 500
#: A file with more numbers is raw data: by chance it would contain any number one looks for.
MAX_NUMBERS = 20_000

DATA_SUFFIXES = frozenset({".json", ".jsonl", ".csv", ".tsv"})
CLAIMS = "results/claims.json"
_SKIPPED_FOLDERS = frozenset({"__pycache__", "node_modules", "site-packages", "venv"})

#: Stage → section → what its heading may say.
SECTIONS = {
    "idea": {
        "motivation": r"motivation|background|problem|context|introduction",
        "main idea": r"idea|approach|method|proposed|proposal",
    },
    "proposal": {
        "introduction": r"introduction|background|motivation|objective",
        "method": r"method|approach|design|algorithm",
        "evaluation": r"evaluation|experiment|validation|metric",
        "outcomes": r"outcome|impact|expected|contribution",
    },
    "experiment": {
        "set-up": r"set-?\s?up|setting|config|data|method|protocol|overview|description|design",
        "results": r"result|performance|comparison|finding|metric",
        "discussion": r"discussion|analysis|finding|interpretation|insight|conclusion|observation",
    },
    "paper": {
        "abstract": r"abstract",
        "introduction": r"introduction",
        "related work": r"related|background|prior",
        "method": r"method|approach|model|framework",
        "set-up": r"set-?\s?up|experiment|data|setting|protocol",
        "results": r"result|performance|finding",
        "analysis": r"analysis|discussion|ablation|limitation",
        "conclusion": r"conclusion|summary",
        "references": r"reference|bibliography",
    },
}
SECTIONS["end_to_end"] = SECTIONS["paper"]


@cache
def _labels(stage: str) -> re.Pattern[str]:
    """Return what a bold or ``Label:`` line must say to count as a heading."""
    names = "|".join(["title", "limitation", "risk", *SECTIONS[stage].values()])
    return re.compile(rf"(?:[\w&/-]+ ){{0,3}}(?:{names})[\w-]{{0,20}}(?: [\w&/-]+){{0,3}}", re.I)


@dataclass(frozen=True, slots=True)
class Claim:
    """An entry of the claims file beside what its source holds."""

    text: str
    printed: texts.Printed
    source: str
    recorded: float | None

    @property
    def holds(self) -> bool:
        """Whether the source, rounded likewise, gives the claim; a share may be in percent."""
        scales = (1, 100) if "%" in self.text else (1,)
        return self.recorded is not None and any(
            self.printed.within(scale * self.recorded) for scale in scales
        )


class Submission:
    """The workspace of a finished case."""

    def __init__(self, stage: str, workspace: Path) -> None:
        self.stage = STAGES[stage]
        self.root = Path(os.path.realpath(workspace))
        self.document_path = self.stage.required[0]
        #: A data file as plain values, or None; the rows of a CSV file are dictionaries.
        self.document = lru_cache(maxsize=16)(self._parse)

    # Files

    def find(self, relative: str) -> Path | None:
        """Return the regular file *relative*, unless it lies outside the workspace."""
        try:
            path = (self.root / relative).resolve()
            return path if path.is_relative_to(self.root) and path.is_file() else None
        except (OSError, ValueError, RuntimeError):  # name too long, NUL in it, circle of links
            return None

    def read(self, relative: str) -> bytes:
        """Return the bytes of a file, at most :data:`MAX_BYTES` and one; none if it is absent."""
        path = self.find(relative)
        if path is None:
            return b""
        try:
            with path.open("rb") as file:
                return file.read(MAX_BYTES + 1)
        except OSError:
            return b""

    def text(self, relative: str) -> str:
        """Return a file as text whatever its bytes are, cut at the bound."""
        return self.read(relative)[:MAX_BYTES].decode("utf-8-sig", errors="replace")

    @cached_property
    def files(self) -> tuple[str, ...]:
        """Paths of the files in the workspace; hidden and installed ones are left out."""
        return tuple(islice(self._walk(), MAX_FILES))

    def _walk(self) -> Iterator[str]:
        for folder, below, names in os.walk(self.root):
            below[:] = sorted(
                name for name in below if name not in _SKIPPED_FOLDERS and name[0] != "."
            )
            for name in sorted(names):
                path = Path(folder, name).relative_to(self.root).as_posix()
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
    def own(self) -> str:
        """The document without code and without what was copied from the task."""
        return texts.without(texts.without_fences(self.raw), self.task)

    @cached_property
    def sections(self) -> list[texts.Section]:
        """The document's sections."""
        return texts.sections(self.own, _labels(self.stage.name))[:MAX_ITEMS]

    @cached_property
    def title(self) -> str:
        """What a Title section says, else the first line unless it is prose or names a section."""
        for section in self.sections:
            if section.body and re.search(r"\b(?:title|name)\b", section.title, re.IGNORECASE):
                return texts.plain(section.body.splitlines()[0])
        line = next(filter(str.strip, self.own.splitlines()), "")
        named = texts.plain(line)
        prose = named.endswith((".", "!"))
        ordinary = not line.startswith("# ") and _labels(self.stage.name).fullmatch(named)
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
    def tables(self) -> list[texts.Table]:
        """The document's tables that print measured numbers."""
        return texts.tables(self.own)[:MAX_ITEMS]

    @cached_property
    def table_numbers(self) -> list[texts.Printed]:
        """The measured numbers in all tables."""
        return [number for table in self.tables for number in table.numbers]

    @cached_property
    def images(self) -> list[str]:
        """The targets of the document's images, each once."""
        return list(dict.fromkeys(texts.image_links(self.own)))[:MAX_ITEMS]

    def image(self, link: str) -> bytes:
        """Return an image's bytes; links start at the document's folder, or at the workspace."""
        link = unquote(link)
        beside = os.path.normpath(os.path.join(os.path.dirname(self.document_path), link))
        return self.read(beside) or self.read(link)

    # Recorded numbers

    @cached_property
    def data_files(self) -> tuple[str, ...]:
        """Machine-readable results: those under ``results/``, else those anywhere."""
        claims = self.find(CLAIMS)
        every = [
            path
            for path in self.files
            if Path(path).suffix in DATA_SUFFIXES and self.find(path) != claims
        ]
        results = [path for path in every if path.startswith("results/")]
        return tuple((results or every)[:MAX_DATA_FILES])

    @cached_property
    def known(self) -> texts.Known:
        """The numbers that the report may draw on."""
        numbers = [
            number for path in self.data_files for number in all_numbers(self.document(path))
        ]
        if "results" in self.stage.inputs:  # a paper may rely on the report it was given
            given = texts.printed_numbers(self.text("results/results.md"))
            numbers += [number.value for number in given]
        return texts.Known(numbers)

    @cached_property
    def backed_tables(self) -> list[texts.Table]:
        """The tables that count as results: at least half of their numbers are recorded."""
        return [
            table
            for table in self.tables
            if 2 * sum(number in self.known for number in table.numbers) >= len(table.numbers)
        ]

    @cached_property
    def _claims(self) -> list[Any]:
        listed = self.document(CLAIMS)
        return listed[:MAX_ITEMS] if isinstance(listed, list) else []

    @property
    def claims_listed(self) -> int:
        """How many entries the claims file has, usable or not."""
        return len(self._claims)

    @cached_property
    def claims(self) -> list[Claim]:
        """The entries of the claims file that have the three fields."""
        return [
            Claim(entry["text"], texts.as_printed(value), source, self.lookup(source))
            for entry in self._claims
            if isinstance(entry, dict)
            and isinstance(entry.get("text"), str)
            and isinstance(source := entry.get("source"), str)
            and not isinstance(entry.get("value"), str)
            and (value := as_number(entry.get("value"))) is not None
        ]

    def _parse(self, relative: str) -> Any:
        data = self.read(relative)
        if len(data) > MAX_BYTES:
            return None
        try:
            text = data.decode("utf-8-sig")
            match Path(relative).suffix:
                case ".json":
                    return _json(text)
                case ".jsonl":
                    return [_json(line) for line in text.splitlines() if line.strip()]
                case ".csv" | ".tsv" as suffix:
                    comma = "," if suffix == ".csv" else "\t"
                    return list(csv.DictReader(StringIO(text), delimiter=comma))
        except (ValueError, RecursionError, csv.Error):
            pass
        return None

    def lookup(self, source: str) -> float | None:
        """Return the number at ``file#/json/pointer`` or ``file.csv#row=3,column=acc``.

        Rows are counted from 1, below the header.
        """
        relative, _, place = source.partition("#")
        if self.find(relative) == self.find(CLAIMS):  # a claim cannot prove itself
            return None
        document = self.document(relative)
        if cell := re.fullmatch(r"row=([1-9]\d{0,7}),column=(.{1,200})", place):
            return as_number(_step(_step(document, str(int(cell[1]) - 1)), unquote(cell[2])))
        if not place.startswith("/"):
            return None
        for token in unquote(place).split("/")[1:]:
            document = _step(document, token.replace("~1", "/").replace("~0", "~"))
        return as_number(document)


def _json(text: str) -> Any:
    return json.loads(text, parse_constant=lambda name: None)


def _step(value: Any, token: str) -> Any:
    if isinstance(value, dict):
        return value.get(token)
    if isinstance(value, list) and re.fullmatch(r"0|[1-9][0-9]{0,8}", token):
        return value[int(token)] if int(token) < len(value) else None
    return None


def as_number(value: Any) -> float | None:
    """Return *value* as a finite number; the cells of a CSV file are text, so text counts."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        converted = float(value)
    except (ValueError, OverflowError):
        return None
    return converted if math.isfinite(converted) else None


def all_numbers(document: Any) -> list[float]:
    """Return the numbers anywhere in *document*, or none where there are too many."""
    found: list[float] = []
    pending = [document]
    while pending and len(found) <= MAX_NUMBERS:
        value = pending.pop()
        if isinstance(value, dict):
            pending += value.values()
        elif isinstance(value, list):
            pending += value
        elif (converted := as_number(value)) is not None:
            found.append(converted)
    return found if len(found) <= MAX_NUMBERS else []
