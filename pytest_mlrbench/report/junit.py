"""JUnit XML made from a run folder, for when pytest could not write its own."""

from __future__ import annotations

import re
from collections.abc import Iterable
from xml.etree import ElementTree as ET

from pytest_mlrbench.report.document import Report
from pytest_mlrbench.report.properties import Property, properties
from pytest_mlrbench.report.summary import NOT_RUN
from pytest_mlrbench.report.table import explain
from pytest_mlrbench.run.folder import RunFolder
from pytest_mlrbench.run.result import CaseResult

# Characters XML 1.0 cannot carry, and one that pytest does not write either.
_ILLEGAL = re.compile("[^\t\n\r\x20-\x7e\x80-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def junit(folder: RunFolder, report: Report) -> str:
    """Return the document pytest's ``--junitxml`` would hold for all cases of a run.

    A case without a result is an error: it was to be measured and was not.
    """
    selection = folder.selection()
    results = {result.case: result for result in report.cases}
    before = reused_cases(folder, report)
    verdicts = [results[name].verdict if name in results else "not_measured" for name in selection]
    suites = ET.Element("testsuites", name="pytest tests")
    suite = ET.SubElement(
        suites,
        "testsuite",
        name="pytest",
        errors=str(verdicts.count("not_measured")),
        failures=str(verdicts.count("fail")),
        skipped="0",
        tests=str(len(verdicts)),
        time=f"{sum(_seconds(result) for result in results.values()):.3f}",
        # Readers who find a case in two files of a run take that of the later session.
        timestamp=report.run.sessions[-1].started,
    )
    for name, test in selection.items():
        result = results.get(name)
        if result is None:
            case = _add_case(suite, test, 0.0)
            _list(case, not_run_properties(name))
            ET.SubElement(case, "error", message="not measured (not run)")
            continue
        _tell(
            _add_case(suite, test, _seconds(result)),
            result,
            folder.shown(result),
            resumed=name in before,
            replayed=report.run.replayed,
        )
    ET.indent(suites)
    return ET.tostring(suites, encoding="unicode", xml_declaration=True)


def reused_cases(folder: RunFolder, report: Report) -> set[str]:
    """Names of the cases whose results were on disk before the newest session."""
    started = report.run.sessions[-1].started
    before = {line.case for line in folder.journal() if line.time < started}
    return before - {line.case for line in folder.journal() if line.time >= started}


def not_run_properties(case: str) -> list[Property]:
    """What can be said of a case that was selected and has no result."""
    suite, stage, task, repeat = case.rsplit("/", 3)
    return [
        ("mlr.case", case),
        ("mlr.suite", suite),
        ("mlr.stage", stage),
        ("mlr.task", task),
        ("mlr.repeat", int(repeat[1:])),
        ("mlr.verdict", "not_measured"),
        ("mlr.cause", NOT_RUN),
    ]


def _add_case(suite: ET.Element, test: str, seconds: float) -> ET.Element:
    return ET.SubElement(suite, "testcase", _names(test) | {"time": f"{seconds:.3f}"})


def _tell(
    case: ET.Element, result: CaseResult, artifacts: str, *, resumed: bool, replayed: bool
) -> None:
    _list(case, properties(result, resumed=resumed, artifacts=artifacts, replayed=replayed))
    if result.verdict != "pass":
        text = xml_text(explain(result, artifacts))
        kind = "failure" if result.verdict == "fail" else "error"
        ET.SubElement(case, kind, message=text.partition("\n")[0]).text = text


def _list(case: ET.Element, told: Iterable[Property]) -> None:
    listed = ET.SubElement(case, "properties")
    for key, value in told:
        ET.SubElement(listed, "property", name=key, value=xml_text(value))


def xml_text(value: object) -> str:
    """A value as it stands in XML: what that cannot carry is ``#x07``, as pytest writes it."""
    return _ILLEGAL.sub(lambda found: f"#x{ord(found[0]):02X}", str(value))


def _names(test: str) -> dict[str, str]:
    """Name a test the way pytest does: ``a/b.py::test[x]`` → class ``a.b``, name ``test[x]``."""
    path, _, name = test.partition("::")
    return {"classname": path.removesuffix(".py").replace("/", "."), "name": name}


def _seconds(result: CaseResult) -> float:
    return (result.seconds_agent or 0.0) + (result.seconds_judge or 0.0)
