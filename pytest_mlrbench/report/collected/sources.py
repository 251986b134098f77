"""Files and folders with scores, each read into rows."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pydantic import ValidationError

from pytest_mlrbench.errors import InputError
from pytest_mlrbench.report.collected.rows import PREFIX, CaseRow, Scalar, read
from pytest_mlrbench.report.collected.xml import LARGEST, test_cases
from pytest_mlrbench.report.document import Report
from pytest_mlrbench.report.junit import not_run_properties, reused_cases, xml_text
from pytest_mlrbench.report.properties import Property, properties
from pytest_mlrbench.run.folder import RunFolder
from pytest_mlrbench.suites.stages import STAGES

#: How tests are called that measure cases.
_OURS = re.compile(rf"test_({'|'.join(STAGES)})\b.*")


@dataclass(frozen=True)
class Source:
    """One file or folder, and what stands in it.

    :param foreign: how many other test cases stand beside ours.
    :param silent: test cases that are called like ours and have no properties: what they measured
        is not known from this source.
    """

    name: str
    kind: Literal["junit", "json", "run"]
    rows: tuple[CaseRow, ...]
    foreign: int = 0
    silent: tuple[str, ...] = ()


def read_source(path: Path) -> Source:
    """Read JUnit XML, a JSON report or a run folder.

    :raises InputError: it is nothing of these, is damaged, or has no case of ours.
    """
    try:
        if path.is_dir():
            source = _folder(path)
        else:
            source = _json(path) if _first(path) == b"{" else _junit(path)
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}.") from None
    if not source.rows:
        raise InputError(f"{path} {_nothing(source)}.")
    return source


def _nothing(source: Source) -> str:
    if source.kind != "junit":
        return "is of a run in which no case was selected"
    if not source.silent:
        return f"has no case of ours: none of its {source.foreign} test cases has mlr.case"
    return (
        f"has no scores: {len(source.silent)} of its test cases are called like ours, and none has"
        " the property mlr.case"
    )


def _first(path: Path) -> bytes:
    """The first byte that says something, behind a byte order mark."""
    with path.open("rb") as file:
        head = file.read(4096).removeprefix(b"\xef\xbb\xbf").lstrip()
    if not head:
        raise InputError(f"{path} is empty: whoever was to write it was stopped.")
    return head[:1]


def _junit(path: Path) -> Source:
    rows, silent, foreign = [], [], 0
    for case in test_cases(path):
        if name := case.properties.get(f"{PREFIX}case"):
            cells = read(case.properties, f"{path}: case {name!r}")
            rows.append(CaseRow(cells, (str(path),), _run(cells), case.written))
        elif _OURS.fullmatch(case.name):
            silent.append(case.name)
        else:
            foreign += 1
    return Source(str(path), "junit", tuple(rows), foreign, tuple(silent))


def _run(cells: Mapping[str, Scalar]) -> str | None:
    """The id of a run, which is the name of its folder, from the place of a case in it."""
    inside = "/cases/{stage}/{task}/r{repeat}".format_map(cells)
    folder, found, _ = str(cells.get("artifacts", "")).rpartition(inside)
    return folder.rpartition("/")[2] or None if found else None


def _json(path: Path) -> Source:
    if path.stat().st_size > LARGEST:
        raise InputError(f"{path} is larger than {LARGEST >> 30} GiB: it is not read.")
    try:
        report = Report.model_validate_json(path.read_bytes())
    except ValidationError as error:
        first = error.errors()[0]
        if first["type"] == "json_invalid":
            raise InputError(f"{path} is damaged: {first['msg']}.") from None
        raise InputError(f"{path} is not a JSON report of this version (--mlr-json).") from None
    return _report(str(path), "json", report, report.run.run, None)


def _folder(path: Path) -> Source:
    if not (path / "run.json").is_file():
        raise InputError(f"{path} is not a run folder: name one below .mlrbench/runs.")
    folder = RunFolder(path.resolve())
    report = Report.of(folder)
    return _report(str(path), "run", report, folder.shown_path, reused_cases(folder, report))


def _report(
    name: str, kind: Literal["json", "run"], report: Report, place: str, reused: set[str] | None
) -> Source:
    """Read the cases of a report through their properties: whatever the source, a row is the same.

    :param place: of the run folder.
    :param reused: cases that were on disk before the newest session; null where nobody knows.
    """
    sessions = report.run.sessions
    told: list[list[Property]] = [not_run_properties(case) for case in report.not_run]
    for result in report.cases:
        known = properties(
            result,
            resumed=result.case in (reused or ()),
            artifacts=f"{place}/{result.artifacts}",
            replayed=report.run.replayed,
        )
        told.append([one for one in known if reused is not None or one[0] != "mlr.resumed"])
    rows = []
    for pairs in told:
        texts = {key: xml_text(value) for key, value in pairs}
        cells = read(texts, f"{name}: case {texts['mlr.case']!r}")
        written = sessions[-1].started if sessions else None
        rows.append(CaseRow(cells, (name,), report.run.run, written))
    return Source(name, kind, tuple(rows))
