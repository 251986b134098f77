"""What a declared command reads, and the same made wrong.

What it reads is known from the ledger of its first repetition, which began with the inputs and the
code and nothing else. What the agent had typed is no input: it is the agent's own word.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from pytest_mlrbench import folders
from pytest_mlrbench.evidence.ledgers.programs import is_code, is_document, is_setting
from pytest_mlrbench.evidence.ledgers.view import ROOT, LedgerView
from pytest_mlrbench.evidence.records.data import read
from pytest_mlrbench.evidence.replays.corrupting import MOST_BYTES, is_data, resampled, shuffled
from pytest_mlrbench.evidence.replays.declared import Declaration
from pytest_mlrbench.sandbox.base import DATA

_MOST = 100
#: Where an agent can write: what lies there is not the image's.
_WRITABLE = (ROOT, "/home/", "/tmp/", "/dev/", "/agent/", f"{DATA}/")


@dataclass(frozen=True, slots=True)
class Place:
    """An input.

    :param name: below the submission, or a whole path in the container.
    :param source: the file on this machine; null where it lies in the image.
    """

    name: str
    source: Path | None

    @property
    def is_own(self) -> bool:
        """Whether it lies in the submission."""
        return not self.name.startswith("/")


@dataclass(frozen=True, slots=True)
class Inputs:
    """The inputs of a command.

    :param places: those that can be made wrong.
    :param left: names of what else it read, and its results may rest on.
    """

    places: tuple[Place, ...] = ()
    left: tuple[str, ...] = ()


def find(
    view: LedgerView,
    declared: Declaration,
    given: Mapping[str, Path],
    known: Collection[str],
    data: Mapping[str, Path],
) -> Inputs:
    """Return what the command read in the case of *view*, and what it was declared to read.

    :param given: files that the case began with: path below the submission → file.
    :param known: all files of the clean submission.
    :param data: name below ``/data`` → folder.
    """
    places: dict[str, Place] = {}
    left: dict[str, None] = {}
    for name in _declared(declared, given, data):
        if place := _own_or_data(name, given, data):
            places[place.name] = place
    for path, kind in _read(view):
        name = path.removeprefix(ROOT)
        if name in places or is_code(path) or is_document(path):
            continue
        if place := _own_or_data(name, given, data):
            places[name] = place
        elif _is_of_image(path, kind):
            places[path] = Place(path, None)
        elif name not in known and not is_setting(path):
            left[path] = None
    kept = tuple(islice(places.values(), _MOST))
    return Inputs(kept, (*left, *(name for name in islice(places, _MOST, None))))


def made_wrong(
    place: Place, content: bytes | None, labels: Mapping[str, str], *, is_all: bool
) -> tuple[bytes, str] | None:
    """Return what to have in its place, and a word for that; null to leave it as it is.

    :param content: of an input of the image, which is no file here.
    :param is_all: whether all of it is made wrong, or else withheld; else its labels only are.
    """
    data = content if place.source is None else read(place.source, MOST_BYTES)
    if data is not None and len(data) <= MOST_BYTES:
        label = labels.get(place.name) or labels.get(ROOT + place.name)
        new = resampled(place.name, data) if is_all else shuffled(place.name, data, label)
        if new is not None:
            return new, "resampled" if is_all else "shuffled"
    return (b"", "withheld") if is_all else None


def _read(view: LedgerView) -> Iterator[tuple[str, str]]:
    """Yield path and class of what was read and no process of the case had written before."""
    for process in view.processes.values():
        for read_ in process.reads:
            if not read_.writers:
                yield read_.path, read_.kind
        if process.is_partial or process.has_read_more:
            yield "more than is recorded", "own"


def _declared(
    declared: Declaration, given: Mapping[str, Path], data: Mapping[str, Path]
) -> Iterator[str]:
    """Yield the files that are named, and those of the folders that are."""
    for said in declared.inputs:
        name = said.removeprefix(ROOT).removeprefix("./").rstrip("/")
        yield name
        yield from (it for it in given if it.startswith(f"{name}/"))
        top, _, rest = name.removeprefix(f"{DATA}/").partition("/")
        if name.startswith(f"{DATA}/") and top in data and ".." not in rest.split("/"):
            folder = data[top] / rest
            for inner, _ in islice(folders.entries(folder), _MOST):
                yield f"{name}/{inner}"


def _is_of_image(path: str, kind: str) -> bool:
    """Whether a file is data of the image; of packages, what can be nothing else."""
    is_input = kind in ("image", "weights") or (kind == "package" and is_data(path))
    return is_input and not path.startswith(_WRITABLE)


def _own_or_data(name: str, given: Mapping[str, Path], data: Mapping[str, Path]) -> Place | None:
    if name in given:
        return Place(name, given[name])
    top, _, rest = name.removeprefix(f"{DATA}/").partition("/")
    if not name.startswith(f"{DATA}/") or top not in data or ".." in rest.split("/"):
        return None
    source = data[top] / rest
    # A link may lead to anything of the user's; the container sees it only where that is in there.
    is_inside = source.resolve().is_relative_to(data[top].resolve()) if rest else False
    return Place(name, source) if is_inside and source.is_file() else None
