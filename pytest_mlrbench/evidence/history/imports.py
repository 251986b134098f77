"""Which of the known programs a program brings in: imported, or started as its own process."""

from __future__ import annotations

import ast
import posixpath
import re
from collections.abc import Iterator, Mapping
from functools import lru_cache

from pytest_mlrbench.evidence.history.parsed import nodes

#: Characters of a program that are read.
_LONGEST = 1_000_000
_STARTED = re.compile(r"[\w./-]{0,200}[\w-]\.(?:py|sh)\b")
_STARTERS = re.compile(r"\b(?:subprocess|os\.system|os\.exec|Popen|runpy|popen|exec)\b")


def reached(path: str, text: str, known: Mapping[str, str]) -> dict[str, str]:
    """Return the programs that running *path* brings in, itself included, with their texts.

    :param known: path → text of all programs that there are.
    """
    found = {path: text}
    waiting = [(path, text)]
    while waiting:
        place, program = waiting.pop()
        for wanted in _wanted(program):
            for name in _candidates(posixpath.dirname(place), wanted):
                if name in known:
                    if name not in found:
                        found[name] = known[name]
                        waiting.append((name, known[name]))
                    break
    return found


def _candidates(folder: str, wanted: str) -> Iterator[str]:
    """Yield where *wanted* may lie, from beside the program upwards."""
    while True:
        yield posixpath.normpath(posixpath.join(folder, wanted))
        if wanted.endswith(".py"):
            yield posixpath.normpath(posixpath.join(folder, wanted[:-3], "__init__.py"))
        if not folder or folder == "/":
            return
        folder = posixpath.dirname(folder)


@lru_cache(maxsize=512)
def _wanted(text: str) -> tuple[str, ...]:
    """Return what a program imports and starts, as paths."""
    text = text[:_LONGEST]
    if (parsed := nodes(text)) is None:
        return tuple(dict.fromkeys(_STARTED.findall(text)))  # a shell's, or a broken one
    starts = _STARTERS.search(text) is not None
    found: list[str] = []
    for node in parsed[1]:
        if isinstance(node, ast.Import):
            found += [alias.name.replace(".", "/") + ".py" for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = "../" * max(0, node.level - 1) + (node.module or "").replace(".", "/")
            found += [f"{base}.py"] if node.module else []
            found += [posixpath.join(base, alias.name + ".py") for alias in node.names]
        elif starts and isinstance(node, ast.Constant) and isinstance(node.value, str):
            found += _STARTED.findall(node.value[:1000])
    return tuple(dict.fromkeys(found))
