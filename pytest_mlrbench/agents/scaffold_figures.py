"""Figures of a paper: those there are, shown to the model, and links to those there are not."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote

from pytest_mlrbench.models.exchange import Image, Part
from pytest_mlrbench.run import digests

#: Where a paper and its figures lie.
RESULTS = "results"
#: Most figures that are named to the model, and that are shown to it.
MOST_NAMED = 60
MOST_SHOWN = 8
#: Most bytes and most pixels a side of a figure that is shown; providers refuse larger ones.
LARGEST = 3_500_000
LONGEST_SIDE = 7_900

#: What the first bytes say of an image that models take.
_KINDS = {
    b"\x89PNG\r\n\x1a\n": "image/png",
    b"\xff\xd8\xff": "image/jpeg",
    b"GIF8": "image/gif",
}
_SUFFIXES = frozenset({".png", ".jpg", ".jpeg", ".gif", ".webp", ".svg", ".pdf"})


class Figures(NamedTuple):
    """Paths of figures, as a paper beside them links them, and pictures with their captions."""

    paths: tuple[str, ...]
    shown: tuple[Part, ...]


def figures(workspace: Path) -> Figures:
    """Return the figures among the results in *workspace*."""
    folder = workspace / RESULTS
    if folder.is_symlink():
        return Figures((), ())
    files = sorted(
        (name, path)
        for name, path in digests.walk(folder)
        if path.suffix.lower() in _SUFFIXES and path.stat().st_size
    )[:MOST_NAMED]
    shown: list[Part] = []
    for name, path in files:
        if len(shown) < 2 * MOST_SHOWN and (image := _image(path)):
            shown += [f"The figure {name}:", image]
    return Figures(tuple(name for name, _ in files), tuple(shown))


def describe(found: Figures) -> str:
    """Return what the model is told of the figures it may use."""
    if not found.paths:
        return "There are none: the paper has no images, and speaks of no figure as if it had one."
    names = "\n".join(f"- {name}" for name in found.paths)
    return (
        "These files exist, and no others may be linked. Use those that carry an argument, each as"
        f" `![caption](path)` with the path exactly as given here:\n\n{names}\n\n"
        f"{len(found.shown) // 2} of them are shown to you below. Say of a figure only what you can"
        " see in it or what the results say of it."
    )


def _image(path: Path) -> Image | None:
    """The picture as models take it; null for one that they do not take."""
    if path.stat().st_size > LARGEST:
        return None
    data = path.read_bytes()
    kind = next((kind for start, kind in _KINDS.items() if data.startswith(start)), None)
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        kind = "image/webp"
    if kind == "image/png" and not _is_moderate(data):
        return None
    return Image(data, kind) if kind else None


def _is_moderate(png: bytes) -> bool:
    sides = [int.from_bytes(png[start : start + 4], "big") for start in (16, 20)]
    return all(0 < side <= LONGEST_SIDE for side in sides)


# Links

_DEFINITION = re.compile(
    r"^ {0,3}\[([^\[\]\n]{1,200})\]:[ \t]{0,9}<?([^\s>]{1,1000})", re.MULTILINE
)
_TAG = re.compile(r"<img\b[^<>]{0,2000}>", re.IGNORECASE)
_SOURCE = re.compile(r"\bsrc\s{0,5}=\s{0,5}(?:\"([^\"]*)\"|'([^']*)'|([^\s>]+))", re.IGNORECASE)
#: A bracket, or a character that is escaped and so none.
_BRACKET = re.compile(r"\\.|[()\[\]]", re.DOTALL)
_TITLE = re.compile(r"\s+(?:\"[^\"]*\"|'[^']*'|\([^()]*\))\s*$")


@dataclass(frozen=True, slots=True)
class _Link:
    start: int
    end: int
    target: str


def without_missing(text: str, workspace: Path) -> tuple[str, tuple[str, ...]]:
    """Return *text* without links to images that are not there, and the targets of those.

    A link starts at the folder of the results, where the paper lies, or at the workspace.
    """
    kept, missing, place = [], [], 0
    for link in sorted(_links(text), key=lambda link: link.start):
        if link.start >= place and not _is_there(link.target, workspace):
            kept.append(text[place : link.start])
            missing.append(link.target)
            place = link.end
    return "".join((*kept, text[place:])), tuple(missing)


def _is_there(target: str, workspace: Path) -> bool:
    root = workspace.resolve()
    for start in (workspace / RESULTS, workspace):
        for name in {target, unquote(target)}:
            try:
                path = Path(os.path.normpath(start / name))
                if path.resolve().is_relative_to(root) and path.is_file() and path.stat().st_size:
                    return path.suffix.lower() in _SUFFIXES
            except (OSError, ValueError):  # a name too long, or with a zero byte
                continue
    return False


def _links(text: str) -> Iterator[_Link]:
    """Yield the images of a Markdown text, of every form there is."""
    names = {name.casefold(): target for name, target in _DEFINITION.findall(text)}
    for tag in _TAG.finditer(text):
        source = _SOURCE.search(tag[0])
        yield _Link(
            tag.start(), tag.end(), next(filter(None, source.groups()), "") if source else ""
        )
    closing = _closing(text)
    start = text.find("![")
    while start >= 0:
        if link := _link(text, start, closing, names):
            yield link
        start = text.find("![", start + 2)


def _link(
    text: str, start: int, closing: Mapping[int, int], names: Mapping[str, str]
) -> _Link | None:
    if (end := closing.get(start + 1)) is None or "\n\n" in text[start:end]:
        return None
    label, after = text[start + 2 : end], text[end + 1 : end + 2]
    if (close := closing.get(end + 1)) is not None and "\n\n" not in text[end:close]:
        if after == "(":
            return _Link(start, close + 1, _target(text[end + 2 : close]))
        name = text[end + 2 : close] or label
        return _Link(start, close + 1, names.get(name.casefold(), name))
    if label.casefold() in names:
        return _Link(start, end + 1, names[label.casefold()])
    return None


def _target(inside: str) -> str:
    """What stands between an image's parentheses, without its title."""
    inside = inside.strip()
    if inside.startswith("<") and ">" in inside:
        return inside[1 : inside.index(">")]
    return _TITLE.sub("", inside).strip()


def _closing(text: str) -> dict[int, int]:
    """The places of brackets → those of the brackets that close them."""
    found: dict[int, int] = {}
    opened: dict[str, list[int]] = {"(": [], "[": []}
    for bracket in _BRACKET.finditer(text):
        if bracket[0] in opened:
            opened[bracket[0]].append(bracket.start())
        elif (kind := {")": "(", "]": "["}.get(bracket[0])) and opened[kind]:
            found[opened[kind].pop()] = bracket.start()
    return found
