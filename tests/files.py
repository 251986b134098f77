"""Files for tests. Needs nothing that is installed for development only: see ``conftest.py``."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path


def lay(folder: Path, files: Mapping[str, str]) -> Path:
    """Write *files* (relative path → text) under *folder*."""
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
    return folder
