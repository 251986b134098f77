"""Tasks as Markdown files: a text, with optional front matter that says what is known of it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from pytest_mlrbench.suites.tasks import Task

#: What front matter may say; the text below it is the task.
KEYS = ("title", "conference", "year", "category", "link")
_FRONT = re.compile(r"---[ \t]*\n(?P<yaml>.*?)^---[ \t]*(?:\n|\Z)", re.DOTALL | re.MULTILINE)
_HEADING = re.compile(r"^#{1,6}[ \t]+(?P<title>.+?)[ \t]*#*$", re.MULTILINE)


def read_task(path: Path) -> Task:
    """Read the task in *path*; its id is the file's name without ``.md``.

    :raises ValueError: a sentence on what is wrong, without the file's name.
    """
    try:
        text = path.read_text("utf-8-sig")
    except UnicodeDecodeError:
        raise ValueError("is not UTF-8 text") from None
    except OSError as error:
        raise ValueError(f"cannot be read: {error.strerror}") from None
    about: Mapping[str, Any] = {}
    if text.startswith(("---\n", "---\r\n")):
        text = text.replace("\r\n", "\n")
        match = _FRONT.match(text)
        if match is None:
            raise ValueError("begins with '---' and has no second '---' to end the front matter")
        about = _front_matter(match["yaml"])
        text = text[match.end() :].lstrip("\n")
    if not text.strip():
        raise ValueError("has no text")
    heading = _HEADING.search(text)
    title = about.get("title") or (heading["title"] if heading else path.stem)
    return Task(
        id=path.stem,
        title=str(title),
        **{key: str(about[key]) for key in KEYS[1:] if about.get(key) is not None},
        text=text,
    )


def _front_matter(text: str) -> Mapping[str, Any]:
    try:
        about = yaml.load(text, getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    except yaml.MarkedYAMLError as error:
        # Counted from the file's first line, which is the opening '---'.
        line = error.problem_mark.line + 2 if error.problem_mark else 1
        raise ValueError(
            f"has front matter that is not YAML: {error.problem} in line {line}"
            " (a value with a colon in it needs quotes)"
        ) from None
    except (ValueError, yaml.YAMLError) as error:  # PyYAML lets bad dates through
        reason = " ".join(str(error).split())
        raise ValueError(f"has front matter that is not YAML: {reason}") from None
    if about is None:
        return {}
    if not isinstance(about, dict):
        raise ValueError("has front matter that is not of the form 'key: value'")
    for key, value in about.items():
        if key not in KEYS:
            raise ValueError(f"has front matter with {key!r}: known are {', '.join(KEYS)}")
        if isinstance(value, dict | list):
            raise ValueError(f"has front matter in which {key!r} is not one value")
    if not re.fullmatch(r"\d{4}|", str(about.get("year") or "")):
        raise ValueError(f"has front matter in which 'year' is {about['year']!r}, not a year")
    return about
