"""Which pictures of a submission a judge sees."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from urllib.parse import unquote, urlsplit

from pytest_mlrbench.judges.budget import Budget
from pytest_mlrbench.judges.check_texts import image_links
from pytest_mlrbench.judges.fence import neutral_name
from pytest_mlrbench.judges.images import LARGEST, UnfitImageError, to_image
from pytest_mlrbench.judges.reading import Files
from pytest_mlrbench.models.exchange import Image

_SUFFIXES = (".png", ".jpg", ".jpeg", ".webp", ".gif")
#: Links of a document beyond this many are not looked at.
_LINKS = 50


@dataclass(frozen=True, slots=True)
class Figure:
    """A picture and where it is from.

    :param name: fit to be shown.
    """

    name: str
    image: Image


@dataclass
class Gallery:
    """The pictures that are shown, as they come, until there is no room.

    :param more: how many there was no room for.
    """

    budget: Budget
    figures: list[Figure] = field(default_factory=list)
    notices: list[str] = field(default_factory=list)
    more: int = 0
    _seen: set[bytes] = field(default_factory=set)
    _bytes: int = 0

    def add(self, name: str, data: bytes) -> None:
        """Take a picture, if it is fit to be shown and not there already.

        :param name: fit to be shown.
        """
        digest = hashlib.sha256(data).digest()
        if digest in self._seen:
            return
        self._seen.add(digest)
        try:
            image = to_image(data)
        except UnfitImageError as why:
            self.notices.append(f"{name} is not shown: it {why}")
            return
        if self.is_full or self._bytes + len(data) > self.budget.picture_bytes:
            self.more += 1
            return
        self._bytes += len(data)
        self.figures.append(Figure(name, image))

    @property
    def is_full(self) -> bool:
        """Whether there are as many pictures as may be shown."""
        return len(self.figures) >= self.budget.figures


def hang(gallery: Gallery, files: Files, documents: Sequence[tuple[str, str]]) -> None:
    """Add the pictures that *documents* link, in their order, then the others of ``results/``.

    :param documents: path and text of each.
    """
    places = [*_linked(files, documents, gallery.notices), *_others(files)]
    for place in dict.fromkeys(places):
        # The rest is counted and not read: a run may leave thousands.
        if gallery.is_full:
            gallery.more += 1
            continue
        name = neutral_name(place)
        data = files.data(place, LARGEST)
        if data is None:
            gallery.notices.append(f"{name} is not shown: it has more than {LARGEST:,} bytes")
        else:
            gallery.add(name, data)


def _linked(
    files: Files, documents: Sequence[tuple[str, str]], notices: list[str]
) -> Iterator[str]:
    for document, text in documents:
        for link in dict.fromkeys(image_links(text)[:_LINKS]):
            if link.startswith("data:"):
                continue  # a part of the text
            if place := _place(files, document, link):
                yield place
            else:
                notices.append(
                    f"{document} shows the figure {neutral_name(link)}, which is not there"
                )


def _place(files: Files, document: str, link: str) -> str | None:
    """Return the path of a linked file; links start at the document's folder or the workspace."""
    try:
        if urlsplit(link).scheme:
            return None
    except ValueError:
        return None
    for path in (unquote(link), link):
        for start in (os.path.dirname(document), ""):
            place = os.path.normpath(os.path.join(start, path))
            if not os.path.isabs(place) and files.find(place):
                return place
    return None


def _others(files: Files) -> Iterator[str]:
    for name in files.names:
        if name.startswith("results/") and name.lower().endswith(_SUFFIXES):
            yield name
