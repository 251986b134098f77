"""Tasks as Markdown files: a text, with optional front matter that says what is known of it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pytest_mlrbench.suites.files import (
    NOT_ONE_LINE,
    field_faults,
    is_one_line,
    is_text,
    parse_yaml,
    repeated_keys,
)
from pytest_mlrbench.suites.tasks import Task

#: What front matter may say; the text below it is the task.
KEYS = ("title", "conference", "year", "category", "link")
#: Largest text that is read, in bytes: more is not shown to a judge either.
LIMIT = 2_000_000
_FRONT = re.compile(r"---[ \t]*\n(?P<yaml>.*?)^---[ \t]*(?:\n|\Z)", re.DOTALL | re.MULTILINE)
_OPENING = re.compile(r"---[ \t]*\n")
#: A heading with words in it, without the ``#`` that may close it.
_HEADING = re.compile(r"^#{1,6}[ \t]+(?P<title>[^\s#].*?)[ \t#]*$", re.MULTILINE)


def read_task(path: Path) -> Task:
    """Read the task in *path*; its id is the file's name without ``.md``.

    :raises ValueError: for all that is wrong, a sentence each, without the file's name.
    """
    text = read_text(path).removeprefix("\ufeff")
    about: Mapping[str, Any] = {}
    faults: list[str] = []
    if _OPENING.match(text):
        match = _FRONT.match(text)
        if match is None:
            raise ValueError("begins with '---' and has no second '---' to end the front matter")
        about = _front_matter(match["yaml"], faults)
        text = text[match.end() :].lstrip("\n")
        if not text.strip():
            faults.append("has no text")
    heading = _HEADING.search(text)
    title = about.get("title") or (heading["title"] if heading else path.stem)
    if not (about.get("title") or is_one_line(title)):
        faults.append(f"has a heading with {NOT_ONE_LINE}")
    if faults:
        raise ValueError(*faults)
    return Task(
        id=path.stem,
        title=str(title),
        **{key: str(about[key]) for key in KEYS[1:] if about.get(key) is not None},
        text=text,
    )


def read_text(path: Path) -> str:
    """Read a text an agent is to be given.

    :raises ValueError: a sentence on what is wrong, without the file's name.
    """
    try:
        if not path.is_file():
            raise ValueError("is no regular file")
        if path.stat().st_size > LIMIT:
            raise ValueError(f"has more than {LIMIT} bytes")
        text = path.read_text("utf-8")
    except UnicodeDecodeError:
        raise ValueError("is not UTF-8 text") from None
    except OSError as error:
        raise ValueError(f"cannot be read: {error.strerror}") from None
    if "\0" in text:
        raise ValueError("holds binary data")
    if not text.strip():
        raise ValueError("has no text")
    return text


def _front_matter(text: str, faults: list[str]) -> Mapping[str, Any]:
    """Return what front matter says; what is wrong with it is added to *faults*."""
    try:
        # Counted from the file's first line, which is the opening '---'.
        about = parse_yaml(text, first_line=2)
    except ValueError as error:
        faults.append(f"has front matter that is not YAML: {error}")
        return {}
    if about is None:
        return {}
    if not isinstance(about, dict):
        faults.append("has front matter that is not of the form 'key: value'")
        return {}
    known = {key: value for key, value in about.items() if key in KEYS}
    texts = {key: value for key, value in known.items() if is_text(value)}
    said = [
        *(f"with {key!r}: known are {', '.join(KEYS)}" for key in about if key not in KEYS),
        *(f"in which {key!r} is there twice" for key in repeated_keys(text)),
        *(f"in which {key!r} is no text: put it in quotes" for key in known if key not in texts),
        *field_faults(texts),
    ]
    faults += [f"has front matter {fault}" for fault in said]
    return texts
