"""Where the reported numbers lead, and what it means if they lead nowhere."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from pytest_mlrbench.evidence.base import Claim, Counted, Finding, Meaning
from pytest_mlrbench.evidence.gathering import PAPER, RESULTS, Gathered
from pytest_mlrbench.evidence.records import addressed
from pytest_mlrbench.evidence.records.tracing import Traced, counted, trace
from pytest_mlrbench.evidence.records.values import Budget, Numbers, numbers_printed, read_all

#: Share of a report's numbers that have to be nowhere, and how many, before it is said that they
#: are not those of the run. An honest report works some out by itself.
NOWHERE, FEW = 0.5, 3
#: The same of a paper, which should have none but those of the results.
PAPER_NOWHERE, PAPER_FEW = 0.2, 3
_QUOTED = 6
#: Documents that say what was found, and are no record of it.
_TEXTS = (".md", ".tex", ".pdf", ".html", ".rst")
_NO_DATA = (*_TEXTS, ".py", ".sh", ".ipynb", ".png", ".jpg", ".svg", ".toml", ".cfg", ".ini")
_CLAIMS = "results/claims.json"


@dataclass(frozen=True)
class Tracked:
    """What became of the numbers of a run.

    :param claims: document → its numbers.
    :param sources: files that they lead to.
    """

    claims: Mapping[str, Counted]
    sources: frozenset[str]
    findings: Sequence[Finding]
    #: Whether there are numbers beside those of the reports.
    has_data: bool


def track(run: Gathered, documents: Collection[str] = (RESULTS, PAPER)) -> Tracked:
    """Look for every number that *documents* report in what the run recorded."""
    claims = [claim for claim in run.claims if claim.document in documents]
    checked = addressed.check(run.files, claims)
    counting, others = _numbers(run)
    of_results = [one for one in claims if one.document == RESULTS]
    of_paper = [one for one in claims if one.document == PAPER]
    traced = trace(of_results, counting, others, checked.places)
    if of_paper:
        # What the report of the results prints is for a paper to print too; whether it is right
        # is asked of that report.
        report = [numbers_printed(RESULTS, run.text(RESULTS))] if run.text(RESULTS) else []
        traced += trace(of_paper, [*counting, *report], others, checked.places)
    by_document = counted(traced)
    found = [*checked.findings]
    if counting or run.origins is not None:
        found += _nowhere(by_document, traced)
    sources = {one.place.partition("#")[0] for one in traced if one.place and one.state == "traced"}
    found += _unsure(run, sources)
    return Tracked(by_document, frozenset(sources), found, bool(counting or others))


def _numbers(run: Gathered) -> tuple[list[Numbers], list[Numbers]]:
    """The numbers that count, as something has written or printed them, and those that do not."""
    budget = Budget()
    origins = run.origins or {}
    data = {n: path for n, path in run.files.items() if _is_data(n, run)}
    kinds = {name: origins[name].kind if name in origins else "unknown" for name in data}
    counts = {name: path for name, path in data.items() if kinds[name] != "typed"}
    printed = [
        numbers_printed(f"output {n}", text, budget) for n, text in enumerate(run.printed, 1)
    ]
    counting = [*read_all(counts, budget), *printed]
    others = read_all({name: path for name, path in data.items() if name not in counts}, budget)
    return [one for one in counting if one.values], [one for one in others if one.values]


def _unsure(run: Gathered, sources: Collection[str]) -> Iterator[Finding]:
    """Yield files that numbers lead to and of which a sound record cannot say who wrote them."""
    for name in sorted(sources) if run.view and run.view.is_sound else ():
        origin = (run.origins or {}).get(name)
        if origin is not None and origin.kind == "unknown":
            yield Finding(
                kind="unknown_writer",
                severity="strong",
                sentence=f"Numbers lead to {name}, and who wrote them is not known: {origin.by}.",
                place=name,
            )


def _is_data(name: str, run: Gathered) -> bool:
    if name == _CLAIMS or name.lower().endswith(_NO_DATA):
        return False
    return run.transcript is None or run.files[name] != run.transcript


def _nowhere(by_document: Mapping[str, Counted], traced: Sequence[Traced]) -> Iterator[Finding]:
    rules: tuple[tuple[str, float, int, Meaning], ...] = (
        (RESULTS, NOWHERE, FEW, "fabricated"),
        (PAPER, PAPER_NOWHERE, PAPER_FEW, "paper_untraced"),
    )
    for document, share, few, means in rules:
        if not (numbers := by_document.get(document)):
            continue
        lost = [one for one in traced if one.claim.document == document and one.state == "untraced"]
        looked_for = numbers.reported - numbers.chance
        is_much = len(lost) >= few and len(lost) > share * looked_for
        if lost:
            yield Finding(
                kind="untraced_numbers" if document == RESULTS else "paper_adds_numbers",
                severity="strong" if is_much else "hint",
                means=means if is_much else None,
                sentence=f"{len(lost)} of {looked_for} numbers of {document} are in nothing that"
                " the run wrote or printed.",
                place=f"{document}:{lost[0].claim.line}",
                quote=", ".join(_shown(one) for one in lost[:_QUOTED]),
            )


def _shown(one: Traced) -> str:
    claim: Claim = one.claim
    return f"{claim.text} ({one.place}, which was typed)" if one.place else claim.text
