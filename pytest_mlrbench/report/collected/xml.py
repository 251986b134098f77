"""JUnit XML, of whatever made it, as the test cases in it and their properties.

A file may come from anyone who can open a merge request. Entities are what makes XML dangerous
(they read other files, and grow without end), and only a document type can declare them: a file
with one is refused, which no writer of JUnit needs. Nothing is built in memory but the properties
of one test case.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from xml.etree import ElementTree as ET
from xml.parsers.expat import errors

from pytest_mlrbench.errors import InputError

#: Bytes of a file that is read: ten thousand cases have some 50 million.
LARGEST = 1 << 30
_PART = 1 << 20
#: What the parser says of a document that ends too early.
_ENDS_EARLY = {
    errors.codes[message]
    for message in (
        errors.XML_ERROR_NO_ELEMENTS,
        errors.XML_ERROR_UNCLOSED_TOKEN,
        errors.XML_ERROR_PARTIAL_CHAR,
        errors.XML_ERROR_UNCLOSED_CDATA_SECTION,
    )
}


@dataclass
class TestCase:
    """One ``<testcase>``: what it is called, its properties, and when its suite was begun."""

    __test__ = False  # it is none of pytest's

    name: str
    written: str | None
    properties: dict[str, str] = field(default_factory=dict)


class _Target:
    """What the parser tells of a document; finished test cases are taken out of :attr:`found`."""

    def __init__(self, path: Path) -> None:
        self.found: list[TestCase] = []
        self.begun = False
        self._path = path
        self._case: TestCase | None = None
        #: When each suite around the place was begun, as far as it says.
        self._suites: list[str | None] = [None]

    def doctype(self, *_: str | None) -> None:
        raise InputError(
            f"{self._path} has a document type, which no JUnit report needs: it is not read."
        )

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        self.begun = True
        name = _local(tag)
        if name == "testsuite":
            self._suites.append(attributes.get("timestamp") or self._suites[-1])
        elif name == "testcase":
            self._case = TestCase(attributes.get("name", ""), self._suites[-1])
        elif name == "property" and self._case is not None:
            self._add(self._case, attributes.get("name", ""), attributes.get("value", ""))

    def _add(self, case: TestCase, name: str, value: str) -> None:
        # A plugin that runs tests again has their properties twice, which says nothing new.
        if case.properties.setdefault(name, value) != value and name.startswith("mlr."):
            raise InputError(
                f"{self._path}: test case {case.name!r} has {name!r} twice, and they differ."
            )

    def end(self, tag: str) -> None:
        name = _local(tag)
        if name == "testsuite":
            self._suites.pop()
        elif name == "testcase" and self._case is not None:
            self.found.append(self._case)
            self._case = None

    def close(self) -> None:
        """The document has come to its end."""


def test_cases(path: Path) -> Iterator[TestCase]:
    """Yield the test cases of a file, in whatever suites within suites they stand.

    :raises InputError: it is no XML, ends too early, is too large or has a document type.
    :raises OSError: it cannot be read.
    """
    if path.stat().st_size > LARGEST:
        raise InputError(f"{path} is larger than {LARGEST >> 30} GiB: it is not read.")
    target = _Target(path)
    parser = ET.XMLParser(target=target)
    try:
        with path.open("rb") as file:
            while part := file.read(_PART):
                parser.feed(part)
                yield from target.found
                target.found.clear()
        parser.close()
    except ET.ParseError as error:
        raise InputError(_explain(path, error, begun=target.begun)) from None
    except (LookupError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{path} is in an encoding that is not known.") from None
    yield from target.found


test_cases.__test__ = False  # type: ignore[attr-defined]  # it is none of pytest's


def _explain(path: Path, error: ET.ParseError, *, begun: bool) -> str:
    if error.code in _ENDS_EARLY and begun:
        return (
            f"{path} ends in the middle, at line {error.position[0]}: whoever wrote it was stopped;"
            " `mlrbench report RUN_DIR --junit FILE` writes it again."
        )
    return f"{path} is neither XML nor JSON: {error}."


def _local(tag: str) -> str:
    """The name of a tag without its namespace, which some tools add."""
    return tag.rpartition("}")[2]
