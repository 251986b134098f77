"""Figures in words: none without its n, no interval without its method."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from pytest_mlrbench.report.agreement.intervals import Interval
from pytest_mlrbench.report.agreement.measures import Figure


def reasons(figures: Iterable[tuple[str, Figure]]) -> Iterator[str]:
    """Say by which method intervals were found, and what could not be computed, and why."""
    methods: dict[str, None] = {}
    reasons: dict[str, list[str]] = {}
    for name, figure in figures:
        if figure.interval:
            methods[_method(figure.interval)] = None
        if figure.why:
            what = f"{name} (n={figure.n}" + ("" if figure.value is None else ", interval") + ")"
            reasons.setdefault(figure.why, []).append(what)
    for method in methods:
        yield f"[ ]: {method}"
    for why, names in reasons.items():
        yield f"-: {why}: {'; '.join(dict.fromkeys(names))}"


def _method(interval: Interval) -> str:
    return f"{interval.level:.0%} interval, {interval.method}"


def number(figure: Figure | None) -> str:
    """A figure with two decimals, and its interval."""
    return "-" if figure is None or figure.value is None else _shown(figure, "{:.2f}")


def signed(figure: Figure) -> str:
    """A difference with two decimals, and its interval."""
    return "-" if figure.value is None else _shown(figure, "{:+.2f}")


def _shown(figure: Figure, form: str) -> str:
    interval = figure.interval
    ends = (interval.low, interval.high) if interval else ()
    # Without the sign of what is rounded to 0.
    value, *between = (form.format(round(x, 2) + 0.0) for x in (figure.value or 0.0, *ends))
    return f"{value} [{', '.join(between)}]" if between else value


def two(value: float | None) -> str:
    """A number with two decimals."""
    return "-" if value is None else f"{value:.2f}"


def share(k: int, n: int) -> str:
    """``20% (1/5)``."""
    return f"{k / n:.0%} ({k}/{n})" if n else "-"


def not_shown(correlation: Figure) -> bool:
    """Whether a correlation may as well be none, or the other way round."""
    return correlation.interval is not None and correlation.interval.low <= 0


def named(dimension: str, correlation: Figure) -> str:
    """A correlation in one dimension, as a warning names it."""
    return f"{dimension} ({number(correlation)}, n={correlation.n})"


def listed(words: Iterable[str]) -> str:
    """Words in a row."""
    return ", ".join(words)
