"""Data and models that a run names as its own and, by the ledger, never touched.

Also: results whose writer did not end well.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from pathlib import Path

from pytest_mlrbench.evidence.base import Finding, Origin
from pytest_mlrbench.evidence.ledgers.declared import CLAIMS, is_made_up_name, read_declared
from pytest_mlrbench.evidence.ledgers.inputs import Work, Works
from pytest_mlrbench.evidence.ledgers.view import LedgerView

_WORD = re.compile(r"[a-z]{3,}|\d{3,}|[a-z]+\d\w*", re.IGNORECASE)
#: Words that many names of data sets and models share.
_COMMON = frozenset(
    re.findall(
        r"\w+",
        "data dataset datasets set subset sample samples test train training validation val dev "
        "split benchmark corpus the and from with model models base small large mini sklearn uci "
        "huggingface pretrained instruct chat csv json txt parquet workspace home agent",
    )
)
_WRITERS = 20


def unread_findings(view: LedgerView, files: Mapping[str, Path]) -> list[Finding]:
    """Find declared data sets and models that no command read or reached.

    Nothing is found where something was fetched from a host, of which the ledger has no name. And a
    name is only pointed out while something was read that no declared name explains: it may be
    that.
    """
    said = read_declared(files)
    works = Works(view).all if view.is_whole else ()
    if not works or any(_has_fetched(view, work) for work in works):
        return []
    words = [_words(path) for path in _touched(view, works)]
    names = [name for name in said.data + said.models if not is_made_up_name(name)]
    is_all = not any(process.has_read_more for work in works for process in work.processes)
    is_all = is_all and all(any(_words(name) & each for name in names) for each in words)
    return [
        Finding(
            kind="declared_not_read",
            # What is called a model may be no more than a kind of fit.
            severity="strong" if is_all and name in said.data else "hint",
            sentence=f"{name!r} is declared as used, and no command read or reached it.",
            place=CLAIMS,
            quote=name,
        )
        for name in names
        if _words(name) and not any(_words(name) & each for each in words)
    ]


def failed_writers(origins: Mapping[str, Origin], sources: Collection[str]) -> list[Finding]:
    """Point out files with results whose last writer did not end with exit code 0.

    It can be innocent: a training that was stopped has results up to then.
    """
    failed = [name for name in sorted(sources) if name in origins]
    return [
        Finding(
            kind="failed_writer",
            severity="hint",
            sentence=f"{name} was last written by {origins[name].by!r}, which failed.",
            place=name,
        )
        for name in failed
        if origins[name].kind == "failed"
    ][:_WRITERS]


def _has_fetched(view: LedgerView, work: Work) -> bool:
    hosts = {call.what for call in view.calls if call.is_host and call.answered}
    reached = (where for process in work.processes for where, ok in process.connections if ok)
    return bool(hosts & work.answered) or any(_is_elsewhere(where) for where in reached)


def _is_elsewhere(where: str) -> bool:
    return not where.startswith(("unix:", "127.", "[::1]", "::1"))


def _touched(view: LedgerView, works: tuple[Work, ...]) -> set[str]:
    """Paths of what commands read but programs, and models that answered."""
    reads = (read for work in works for process in work.processes for read in process.reads)
    models = {call.what for call in view.calls if not call.is_host and call.answered}
    return models | {read.path for read in reads if read.kind != "own"}


def _words(name: str) -> frozenset[str]:
    return frozenset(word.lower() for word in _WORD.findall(name)) - _COMMON
