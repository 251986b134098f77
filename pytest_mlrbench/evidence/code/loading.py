"""Data that the agent typed into a file and its program loads: as typed as if they stood in it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import yaml

from pytest_mlrbench.evidence.base import Action, Edit
from pytest_mlrbench.evidence.code.values import (
    Items,
    Kind,
    Leaf,
    Place,
    Table,
    Value,
    literal,
)

#: Ending of a file → functions that load it.
LOADERS: Mapping[str, tuple[str, ...]] = {
    ".json": ("json.load", "json.loads"),
    ".yaml": ("yaml.safe_load", "yaml.load", "yaml.full_load"),
    ".yml": ("yaml.safe_load", "yaml.load", "yaml.full_load"),
}
#: Files, letters of one, values of one, and how deep they are nested.
_MOST, _LONGEST, _VALUES, _DEEPEST = 20, 20_000, 2000, 12


def typed_documents(actions: Iterable[Action], files: Mapping[str, Path]) -> dict[str, str]:
    """Return path → text of the small files of data that the agent typed, if they still are so.

    :param files: path below the submission → file.
    """
    found: dict[str, str] = {}
    for action in actions:
        if isinstance(action, Edit) and action.ok is not False:
            found.pop(action.path, None)
            is_small = action.content is not None and len(action.content) <= _LONGEST
            if is_small and action.path.endswith(tuple(LOADERS)) and len(found) < _MOST:
                found[action.path] = action.content or ""
    return {path: text for path, text in found.items() if not _is_other_now(path, text, files)}


def _is_other_now(path: str, text: str, files: Mapping[str, Path]) -> bool:
    """Tell whether something was written into the file since. It may also be gone."""
    for name, file in files.items():
        if f"/{path}".endswith(f"/{name}"):
            try:
                with file.open("rb") as opened:
                    now = opened.read(4 * _LONGEST).decode("utf-8", "replace")
            except OSError:
                return True
            return now.strip() != text.strip()
    return False


def loaded(function: str, path: Leaf, documents: Mapping[str, str]) -> Value | None:
    """Return what *function* loads from *path*; none if that is no typed file.

    What a command or an argument names can only be the one that there is.
    """
    fitting = [
        name
        for name in documents
        if any(name.endswith(end) and function in calls for end, calls in LOADERS.items())
    ]
    if isinstance(path.value, str):
        last = path.value.rpartition("/")[2]
        fitting = [name for name in fitting if name.rpartition("/")[2] == last]
    elif path.kind is not Kind.SETTING:
        return None
    if len(fitting) != 1:
        return None
    text = documents[fitting[0]]
    try:
        content = json.loads(text) if fitting[0].endswith(".json") else yaml.safe_load(text)
        return _value(content, Place(fitting[0], 1), [_VALUES], _DEEPEST)
    except (ValueError, RecursionError, yaml.YAMLError):
        return None


def _value(content: Any, place: Place, left: list[int], deepest: int) -> Value:
    left[0] -= 1
    if left[0] < 0 or deepest < 0:
        return Leaf(Kind.COMPUTED)
    if isinstance(content, dict):
        cells: dict[object, Value] = {
            key: _value(cell, place, left, deepest - 1)
            for key, cell in content.items()
            if isinstance(key, str | int | float)
        }
        return Table(cells)
    if isinstance(content, list):
        return Items([_value(item, place, left, deepest - 1) for item in content])
    if isinstance(content, int | float) and not isinstance(content, bool):
        return literal(content, place)
    # What is compared with a text of a file is examined, and no made-up number.
    return Leaf(Kind.SETTING, content if isinstance(content, str) else None, place=place)
