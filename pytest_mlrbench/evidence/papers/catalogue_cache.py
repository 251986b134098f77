"""What catalogues have answered, kept in the user's cache: a file for each work."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import time
from pathlib import Path

#: A work that was not known may be by now: seconds for which that is believed.
_BELIEVED = 30 * 24 * 3600.0
#: No answer of ours is larger, in bytes.
_LARGEST = 100_000


class Cache:
    """A folder of answers; one that cannot be read or written is as good as empty."""

    def __init__(self, folder: Path | None = None) -> None:
        if folder is None:
            import platformdirs

            folder = platformdirs.user_cache_path("pytest-mlrbench") / "catalogues"
        self._folder = folder

    def get(self, catalogue: str, wanted: str) -> tuple[str, ...] | None:
        """Return the titles that *catalogue* has for a work, none of one that it does not know.

        Null means that it is to be asked.
        """
        try:
            with self._path(catalogue, wanted).open("rb") as file:
                kept = json.loads(file.read(_LARGEST))
            titles = tuple(title for title in kept["titles"] if isinstance(title, str))
            fresh = titles or abs(time.time() - kept["time"]) < _BELIEVED
            return titles if fresh and kept["wanted"] == wanted else None
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            return None

    def put(self, catalogue: str, wanted: str, titles: tuple[str, ...]) -> None:
        """Keep an answer, as a whole or not at all."""
        path = self._path(catalogue, wanted)
        part = path.with_name(f"{path.name}.{os.getpid()}.part")
        kept = {"wanted": wanted, "titles": titles, "time": time.time()}
        with contextlib.suppress(OSError):
            path.parent.mkdir(parents=True, exist_ok=True)
            try:
                part.write_text(json.dumps(kept), "utf-8")
                part.replace(path)
            finally:
                part.unlink(missing_ok=True)

    def _path(self, catalogue: str, wanted: str) -> Path:
        # Whatever a paper calls a work, it makes a file name of ours.
        name = hashlib.sha256(wanted.encode("utf-8", "surrogatepass")).hexdigest()
        return self._folder / catalogue / name[:2] / f"{name}.json"
