"""Answers of a model that are error messages, in the files of a run."""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path

from pytest_mlrbench.evidence.base import Finding
from pytest_mlrbench.evidence.code.metrics import numerals

#: Bytes of one file and of all; values of one file; letters of a line of a table.
_LARGEST, _ALL_BYTES, _VALUES, _WIDEST = 2_000_000, 12_000_000, 50_000, 4000
#: Answers of one kind in a file, from which on a share of them says something, and that share.
_ANSWERS, _SHARE = 3, 0.9
_ANSWER = re.compile(
    r"answer|response|completion|prediction|generat|reply|translation|output_?text|hypothesis",
    re.IGNORECASE,
)
_FAILED = re.compile(
    r"[\s\[\](<{#*'\"`-]{0,8}(?:an? )?"
    r"(?:(?:api|request|model|generation|connection|timeout|http|llm|inference|call|rate limit)"
    r"[ _-]?)?"
    r"(?:error|exception|traceback|unauthorized|timed out"
    r"|failed to (?:generate|get|call|connect|complete|load|query))\b",
    re.IGNORECASE,
)
_ADMITTED = re.compile(
    r"\b(?:calls?|requests?|generations?|api|answers?|responses?|queries)\b[^.|\n]{0,60}"
    r"\b(?:fail\w*|error\w*|unavailable|not available|timed out|could not|unsuccessful)\b"
    r"|\b(?:fail\w*|error\w*|unavailable|unable)\b[^.|\n]{0,60}"
    r"\b(?:api|calls?|requests?|generations?|quer(?:y|ies))\b",
    re.IGNORECASE,
)


def hollow(files: Mapping[str, Path], reports: Mapping[str, str]) -> Iterator[Finding]:
    """Yield findings where answers of a model are error messages."""
    reports_numbers = any(
        line.lstrip().startswith("|") and numerals(line[:_WIDEST])
        for text in reports.values()
        for line in text.splitlines()
    )
    admitted = any(_ADMITTED.search(text) for text in reports.values())
    for name, document in _documents(files):
        for key, (failed, total, example) in _failures(document).items():
            if failed < _ANSWERS:
                continue
            is_strong = failed >= _SHARE * total and reports_numbers and not admitted
            yield Finding(
                kind="hollow_results",
                severity="strong" if is_strong else "hint",
                means="fabricated" if is_strong else None,
                sentence=f"{failed} of {total} values of “{key}” are error messages; what is "
                "computed from them measures nothing.",
                place=f"{name}#{key}",
                quote=example[:200],
            )


def _documents(files: Mapping[str, Path]) -> Iterator[tuple[str, object]]:
    left = _ALL_BYTES
    for name, path in sorted(files.items()):
        if not name.endswith((".json", ".jsonl")) or _is_transcript(name) or left <= 0:
            continue
        try:
            with path.open("rb") as file:
                content = file.read(min(_LARGEST, left) + 1)
        except OSError:
            continue
        left -= len(content)
        if len(content) > _LARGEST:
            continue
        text = content.decode("utf-8", "replace")
        try:
            if name.endswith(".jsonl"):
                yield name, [json.loads(line) for line in text.splitlines()[:5000] if line.strip()]
            else:
                yield name, json.loads(text)
        except (ValueError, RecursionError):
            continue


def _is_transcript(name: str) -> bool:
    last = name.rpartition("/")[2]
    return "transcript" in last or last.endswith(("_output.json", "_log.json"))


def _failures(document: object) -> dict[str, tuple[int, int, str]]:
    """Return key → how many of its texts are errors, of how many, and the first of them."""
    texts: dict[str, list[str]] = defaultdict(list)
    waiting: list[tuple[str, object]] = [("", document)]
    seen = 0
    while waiting and seen < _VALUES:
        key, value = waiting.pop()
        seen += 1
        if isinstance(value, dict):
            waiting += [(str(k)[:60], v) for k, v in list(value.items())[:2000]]
        elif isinstance(value, list):
            waiting += [(key, item) for item in value[:5000]]
        elif isinstance(value, str) and _ANSWER.search(key) and value.strip():
            texts[key].append(value[:300])
    found = {}
    for key, values in texts.items():
        # What an exception says is the same again and again; what a model says of errors is not.
        beginnings = Counter(value[:24] for value in values if _FAILED.match(value))
        if beginnings:
            beginning, count = beginnings.most_common(1)[0]
            example = next(value for value in values if value.startswith(beginning))
            found[key] = count, len(values), example
    return found
