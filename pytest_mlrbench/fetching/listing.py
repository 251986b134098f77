"""The repository's list of files: what GitHub answers, and the part of it that is kept."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, TypeAlias

from pytest_mlrbench.suites.source import Source, is_result
from pytest_mlrbench.suites.stages import STAGES

#: Path in the repository → git's id of the file's content.
Listing: TypeAlias = Mapping[str, str]

_FILES = {need for stage in STAGES.values() for need in stage.inputs} - {"results"}
_BLOB = re.compile(r"[0-9a-f]{40}")


def parse_listing(answer: bytes, source: Source) -> Listing:
    """Return the files that stages may need from GitHub's answer.

    :raises ValueError: what is wrong with the answer, as the end of a sentence.
    """
    try:
        data = json.loads(answer)
    except ValueError:
        raise ValueError("is not JSON") from None
    if not isinstance(data, dict) or not isinstance(data.get("tree"), list):
        raise ValueError("is JSON of another form")
    if data.get("truncated"):
        raise ValueError("was cut short")
    blobs = {
        entry["path"]: entry.get("sha")
        for entry in data["tree"]
        if isinstance(entry, dict)
        and entry.get("type") == "blob"
        and isinstance(entry.get("path"), str)
    }
    listing = _checked({path: blobs[path] for path in _needed(blobs, source)})
    if not listing:
        raise ValueError("names none of the files that are needed")
    return listing


def _needed(paths: Iterable[str], source: Source) -> Iterable[str]:
    """Of all tasks, whichever are fetched now: the list is asked for only once."""
    places = "|".join(re.escape(source.path("TASK", need)) for need in _FILES)
    results = re.escape(source.path("TASK", "results"))
    pattern = re.compile(f"{places}|{results}/(?P<result>.+)".replace("TASK", "[^/]+"))
    for path in paths:
        match = pattern.fullmatch(path)
        if match and (match["result"] is None or is_result(match["result"])):
            yield path


def _checked(listing: Any) -> Listing:
    if not isinstance(listing, dict):
        raise ValueError("is JSON of another form")
    for path, blob in listing.items():
        # Whatever a mirror says, nothing is written outside the folder.
        parts = str(path).split("/")
        if not isinstance(path, str) or {"", ".", ".."} & {*parts} or "\\" in path or "\0" in path:
            raise ValueError(f"names the odd path {path!r}")
        if not isinstance(blob, str) or not _BLOB.fullmatch(blob):
            raise ValueError(f"gives no id for {path}")
    return listing


def listing_path(source: Source) -> Path:
    """Return where the list is kept, beside the files."""
    return source.root / ".mlrbench-listing.json"


def load_listing(source: Source) -> Listing | None:
    """Return the kept list; null if there is none of this commit."""
    try:
        data = json.loads(listing_path(source).read_bytes())
        if (data["repository"], data["commit"]) != (source.repository, source.commit):
            return None
        return _checked(data["files"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def dump_listing(source: Source, listing: Listing) -> bytes:
    """Return what to keep of a list."""
    data = {"repository": source.repository, "commit": source.commit, "files": listing}
    return json.dumps(data, indent=0).encode()
