"""The words for one case: its status, and the table that explains a verdict."""

from __future__ import annotations

from collections.abc import Sequence

from pytest_mlrbench.run.result import CaseResult


def status(verdict: str, overall: float | None, cause: str | None) -> str:
    """Return a verdict in words: ``4.5/10``, ``timeout`` or ``not measured (review)``."""
    if verdict == "not_measured":
        return f"not measured ({cause_words(cause or 'unknown')})"
    return cause_words(cause or "no score") if overall is None else f"{overall:.1f}/10"


def cause_words(cause: str) -> str:
    """``no_output`` → ``no output``."""
    return cause.replace("_", " ")


def explain(result: CaseResult, artifacts: str) -> str:
    """Return why a case failed or was not measured: the verdict first, then the numbers."""
    lines = [verdict_line(result)]
    if result.scores:
        lines += ["", *_score_table(result)]
    lines += [
        f"{name} = {judge.spec}" for name, judge in result.judges.items() if name != judge.spec
    ]
    lines.append(f"see {artifacts}")
    return "\n".join(lines)


def verdict_line(result: CaseResult) -> str:
    """Return the verdict and its reason in one line."""
    fault = result.fault
    words = status(result.verdict, result.overall, fault.cause if fault else None)
    return f"{words}: {fault.message}" if fault else f"{words}, missed {', '.join(result.missed)}"


def _score_table(result: CaseResult) -> Sequence[str]:
    judges = list(result.judges)
    missed = {check.name: check.threshold for check in result.thresholds if check.met is False}
    rows = [["", *judges, "mean"]]
    for name in (*result.scores, "overall"):
        mean = result.overall if name == "overall" else result.scores[name]
        each = [
            judge.overall if name == "overall" else judge.scores.get(name)
            for judge in result.judges.values()
        ]
        rows.append([name, *("-" if n is None else str(n) for n in each), f"{mean:.1f}"])
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines = []
    for row in rows:
        cells = [
            row[0].ljust(widths[0]),
            *(c.rjust(w) for c, w in zip(row[1:], widths[1:], strict=True)),
        ]
        mark = f"  < missed {missed[row[0]]}" if row[0] in missed else ""
        lines.append("  ".join(cells) + mark)
    return lines
