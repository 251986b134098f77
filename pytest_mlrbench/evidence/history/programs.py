"""The texts of programs, whatever kind of file they are kept in."""

from __future__ import annotations

import json
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

ENDINGS = (".py", ".sh", ".ipynb")
#: Bytes of one program and of all of them; how many.
_LARGEST, _ALL, _MOST = 1_000_000, 20_000_000, 3000


def on_disk(files: Mapping[str, Path]) -> dict[str, str]:
    """Return path → text of the programs among *files*; those that cannot be read are left out."""
    found: dict[str, str] = {}
    left = _ALL
    for path in sorted(path for path in files if path.endswith(ENDINGS))[:_MOST]:
        if (content := content_of(files[path], min(_LARGEST, left))) is not None:
            left -= len(content)
            found[path] = code(path, content)
    return found


def content_of(file: Path, most: int) -> str | None:
    """Return the text of a file; null if it is none, larger than *most*, or cannot be read."""
    try:
        status = file.lstat()
        if not stat.S_ISREG(status.st_mode) or status.st_size > most:
            return None
        with file.open("rb") as opened:
            return opened.read(most).decode("utf-8", "replace")
    except OSError:
        return None


def code(path: str, content: str) -> str:
    """Return the program that *content* is: of a notebook, the cells with code."""
    if not path.endswith(".ipynb"):
        return content
    try:
        notebook = json.loads(content)
    except (ValueError, RecursionError):
        return ""
    return "\n".join(_cells(notebook))


def _cells(notebook: Any) -> Iterator[str]:
    cells = notebook.get("cells") if isinstance(notebook, dict) else None
    for cell in cells if isinstance(cells, list) else ():
        if isinstance(cell, dict) and cell.get("cell_type") == "code":
            source = cell.get("source")
            lines = source if isinstance(source, list) else [source]
            text = "".join(line for line in lines if isinstance(line, str))
            # Commands of the notebook itself are no Python.
            yield "\n".join(
                line
                for line in text.splitlines()
                if line.lstrip()[:1] not in "%!" or not line.strip()
            )
