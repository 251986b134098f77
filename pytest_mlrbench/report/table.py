"""The words for one case: its status, and the table that explains a verdict."""

from __future__ import annotations

from collections.abc import Sequence

from pytest_mlrbench.run.result import CaseResult


def status(verdict: str, overall: float | None, cause: str | None, level: str | None = None) -> str:
    """Return a verdict in words: ``4.5/10``, ``timeout, 4.5/10`` or ``not measured (review)``.

    :param level: of the evidence, which is said behind the score where it was examined.
    """
    if verdict == "not_measured":
        return f"not measured ({cause_words(cause or 'unknown')})"
    score = None if overall is None else f"{number(overall)}/10"
    words = ", ".join(filter(None, (cause and cause_words(cause), score))) or "no score"
    return f"{words} evidence {level}" if level else words


def number(score: float | None) -> str:
    """A score with one decimal, or two where one would round it onto a threshold."""
    if score is None:
        return "-"
    return f"{score:.1f}" if (score * 10).is_integer() else f"{score:.2f}"


def cause_words(cause: str) -> str:
    """``no_output`` → ``no output``."""
    return cause.replace("_", " ")


def columns(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return *rows* as lines in which the cells of a column stand below each other."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]


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
    level = result.evidence.level if result.evidence else None
    words = status(result.verdict, result.overall, result.cause, level)
    if result.fault:
        return f"{words}: {result.fault.message}"
    if result.verdict == "not_measured":
        if result.evidence:
            return f"{words}: its results could not be run again, see evidence.json."
        return f"{words}: there are no files that the evidence could be examined in."
    return f"{words}, missed {', '.join(result.missed)}"


def _score_table(result: CaseResult) -> list[str]:
    missed: dict[str, list[str]] = {}
    for check in result.thresholds:
        if check.met is False:
            missed.setdefault(check.name, []).append(check.threshold)
    means = {**result.scores, "overall": result.overall}
    alone = len(result.judges) == 1
    rows = [["", *result.judges, *([] if alone else ["mean"])]]
    for name, mean in means.items():
        each = [
            judge.overall if name == "overall" else judge.scores.get(name)
            for judge in result.judges.values()
        ]
        cells = ["-" if n is None else str(n) for n in each]
        rows.append([name, *cells, *([] if alone else [number(mean)])])
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for name, *cells in rows:
        padded = [cell.rjust(width) for cell, width in zip(cells, widths[1:], strict=True)]
        mark = f"  < missed {', '.join(missed[name])}" if name in missed else ""
        lines.append("  ".join([name.ljust(widths[0]), *padded]) + mark)
    return lines
