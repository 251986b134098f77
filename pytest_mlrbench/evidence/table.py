"""What was found, as a neutral table in Markdown: for judges and for whoever writes the paper."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from pytest_mlrbench.evidence.base import Evidence, Finding

#: Findings and letters of each cell that are shown: an agent may have left thousands.
_MOST, _LONGEST = 40, 300


def table(evidence: Evidence) -> str:
    """Return what was found, strongest first, in words that accuse nobody."""
    lines = [
        f"Level of evidence: {evidence.level} ({evidence.because})",
        f"Looked at: {', '.join(evidence.examined) or 'the report alone'}",
        *_numbers(evidence),
        "",
    ]
    if not evidence.findings:
        return "\n".join([*lines, "Nothing was found, which does not say that there is nothing."])
    order = {"proof": 0, "strong": 1, "hint": 2}
    found = sorted(evidence.findings, key=lambda finding: order[finding.severity])
    lines += ["| certainty | what | where | as it stands there |", "|---|---|---|---|"]
    lines += map(_row, found[:_MOST])
    if len(found) > _MOST:
        lines.append(f"and {len(found) - _MOST} more")
    return "\n".join(lines)


def _numbers(evidence: Evidence) -> Iterator[str]:
    for document, counted in evidence.claims.items():
        yield (
            f"Numbers reported in {document}: {counted.reported}; found: {counted.traced};"
            f" there by chance as well: {counted.chance}; not found: {counted.untraced}"
        )


def _row(finding: Finding) -> str:
    cells = (finding.severity, finding.sentence, finding.place or "", finding.quote or "")
    return f"| {' | '.join(_cells(cells))} |"


def _cells(texts: Iterable[str]) -> Iterator[str]:
    for text in texts:
        plain = " ".join(text.split()).replace("|", "\\|")
        yield plain if len(plain) <= _LONGEST else f"{plain[:_LONGEST]} …"
