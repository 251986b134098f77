"""Examines a run: every look that there is something for, and what the findings come to."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from pytest_mlrbench.errors import InputError
from pytest_mlrbench.evidence.base import Command, Evidence, Finding
from pytest_mlrbench.evidence.code import findings as code
from pytest_mlrbench.evidence.code.announced import announced
from pytest_mlrbench.evidence.code.hollow import hollow
from pytest_mlrbench.evidence.code.offsets import constant_offsets
from pytest_mlrbench.evidence.executions import executed
from pytest_mlrbench.evidence.gathering import LOG, PAPER, PDF, RESULTS, Gathered
from pytest_mlrbench.evidence.history import typed
from pytest_mlrbench.evidence.ledgers.closed import closed_findings
from pytest_mlrbench.evidence.ledgers.unread import failed_writers, unread_findings
from pytest_mlrbench.evidence.papers import beside as papers
from pytest_mlrbench.evidence.papers import citations
from pytest_mlrbench.evidence.tracking import Tracked, track
from pytest_mlrbench.evidence.weighing import Run, weigh

_LITERATURE = "related_work.md"
#: Texts of a run, beside what it printed, that are held against its paper.
_RECORDS = (".json", ".csv", ".txt", ".log", ".yaml", ".yml", ".tsv", ".jsonl")
_MANY = 200


def examine_case(folder: Path, stage: str, *, asks: bool = False) -> Evidence:
    """Examine the case in *folder*: its submission, and what was recorded beside it.

    :param asks: whether catalogues are asked, over the network, for the works that are cited.
    :raises InputError: they cannot be asked.
    """
    run = Gathered(folder / "submission", folder)
    if stage == "paper":
        found = _examine(run, "its results were given", is_given=True)
    else:
        found = _examine(run, executed(run))
    return _looked_up(run, found) if asks else found


def examine_folder(folder: Path, *, asks: bool = False) -> Evidence:
    """Examine a run that is a folder on its own, as in the published layout.

    :param asks: as for a case.
    :raises InputError: it has no results, or catalogues cannot be asked.
    """
    run = Gathered(folder)
    if not run.documents:
        raise InputError(f"{folder} has neither {RESULTS} nor {PAPER}.")
    found = _examine(run, executed(run))
    return _looked_up(run, found) if asks else found


def _looked_up(run: Gathered, found: Evidence) -> Evidence:
    """Add what catalogues say of the works that are cited."""
    from pytest_mlrbench.evidence.papers.looked_up import look_up  # with what asking needs

    counted, findings = look_up(_cited(run), datetime.now(UTC).date())
    added = _ordered([*found.findings, *findings])
    return found.model_copy(update={"citations": counted, "findings": tuple(added)})


def _cited(run: Gathered) -> dict[str, str]:
    """The documents that cite."""
    return {name: text for name in (PAPER, _LITERATURE) if (text := run.text(name))}


def _examine(run: Gathered, how: str, *, is_given: bool = False) -> Evidence:
    """Look at everything that there is.

    :param how: it is known that something was executed; empty if it is not.
    :param is_given: whether the results were given, so that only the paper is the agent's.
    """
    tracked = track(run, (PAPER,)) if is_given else track(run)
    found = [] if is_given else [*_of_results(run, tracked)]
    found += tracked.findings
    found += _of_texts(run)
    reports = {*run.documents, *({PDF} & run.files.keys())} - ({RESULTS} if is_given else set())
    weighed = Run(
        has_report=bool(reports),
        examined=tuple(_examined(run, tracked)),
        claims=tracked.claims,
        executed=how,
        is_known=is_given or run.origins is not None,
    )
    return weigh(weighed, _ordered(found))


def _examined(run: Gathered, tracked: Tracked) -> Iterator[str]:
    there = {
        "ledger": run.view is not None and run.view.is_whole,
        "transcript": run.actions is not None,
        "code": bool(run.sources),
        "data": tracked.has_data,
        "papers": PAPER in run.documents,
    }
    return (name for name, is_there in there.items() if is_there)


def _of_results(run: Gathered, tracked: Tracked) -> Iterator[Finding]:
    """What speaks for or against the results."""
    if run.actions is not None:
        yield from typed.findings(run.actions, run.sources, run.files, run.story, run.told)
    if run.view is not None:
        yield from closed_findings(
            run.view, run.files, run.claims, printed=run.printed, sources=tracked.sources or None
        )
        yield from unread_findings(run.view, run.files)
        yield from failed_writers(run.origins or {}, tracked.sources)
    yield from code.findings(run.sources, run.files, run.actions)
    yield from hollow(run.files, run.documents)
    yield from constant_offsets(run.files, run.documents)
    yield from announced([*run.printed, run.text(LOG)], run.documents)


def _of_texts(run: Gathered) -> Iterator[Finding]:
    """What the paper adds to its run, and what it cites."""
    if paper := run.text(PAPER):
        records = [name for name in run.files if name.endswith(_RECORDS)][:_MANY]
        # With the commands themselves, which say with what seeds programs were run again.
        commands = [it.text for it in run.actions or () if isinstance(it, Command)]
        texts = [*run.printed, *commands, *map(run.text, records)]
        yield from papers.findings(paper, run.text(RESULTS), texts, run.sources)
    yield from citations.findings(_cited(run), datetime.now(UTC).date())


def _ordered(found: list[Finding]) -> list[Finding]:
    order = {"proof": 0, "strong": 1, "hint": 2}
    return sorted(dict.fromkeys(found), key=lambda one: order[one.severity])
