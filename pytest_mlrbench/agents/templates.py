"""Prompts in files: a folder of texts with ``{{places}}`` in them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from pytest_mlrbench.run import digests

#: Where a text is put in.
PLACE = re.compile(r"\{\{(\w+)\}\}")


@dataclass(frozen=True)
class Templates:
    """The texts in a folder."""

    folder: Path

    def text(self, name: str) -> str:
        """Return the text *name*, with its places still open."""
        return (self.folder / f"{name}.md").read_text("utf-8").strip()

    def fill(self, name: str, texts: dict[str, str]) -> str:
        """Return the text *name* with *texts* in its places.

        All places are filled at once: what looks like a place within a text stays as it is.
        """
        return PLACE.sub(lambda place: texts[place[1]], self.text(name))

    @cached_property
    def digest(self) -> str:
        """Digest of all the texts."""
        found = digests.walk(self.folder)
        return digests.of_files((name, path) for name, path in found if name.endswith(".md"))
