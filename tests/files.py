"""Files for tests. Needs nothing that is installed for development only: see ``conftest.py``."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path


def lay(folder: Path, files: Mapping[str, str]) -> Path:
    """Write *files* (relative path → text) under *folder*."""
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
    return folder


def outside_variables(folder: Path, *dropped: str) -> dict[str, str]:
    """Return this process's variables as a session of pytest in *folder* is to have them.

    It keeps its temporary folders beside *folder*, since every session also clears away those that
    earlier ones have left: among them it would be other tests' that go on.

    :param dropped: beginnings of names that are left out, beside pytest's own.
    """
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("PYTEST_", *dropped))}
    return kept | {"PYTEST_DEBUG_TEMPROOT": str(folder.parent)}
