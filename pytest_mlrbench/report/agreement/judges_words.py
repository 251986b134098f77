"""How far judges agree among themselves, as the command says it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from pytest_mlrbench.report.agreement.judges import CEILING, Dimension
from pytest_mlrbench.report.agreement.measures import Figure
from pytest_mlrbench.report.agreement.words import (
    listed,
    named,
    not_shown,
    number,
    reasons,
    share,
    signed,
)
from pytest_mlrbench.report.collected.words import counted
from pytest_mlrbench.report.table import columns


def judges_lines(found: Sequence[Dimension]) -> Iterator[str]:
    """Say how the judges agree among themselves, group by group, and warn where they do not."""
    for group in dict.fromkeys(dimension.group for dimension in found):
        inside = [dimension for dimension in found if dimension.group == group]
        yield f"{group}: {counted(inside[0].works, 'case')}"
        yield ""
        yield from columns([_JUDGE, *_judge_rows(inside)])
        if rows := list(_pair_rows(inside)):
            yield ""
            yield from columns([_PAIR, *rows])
        yield ""
        yield from reasons(_figures_among(inside))
        yield from _warnings(inside)
        yield ""


_JUDGE = ("dimension", "judge", "n", "mean", "gives most", f"{CEILING} or more")
_PAIR = (
    *("dimension", "judges", "n", "equal", "difference", "kappa", "Spearman"),
    *("alpha of all", "its n"),
)


def _judge_rows(dimensions: Iterable[Dimension]) -> Iterator[tuple[str, ...]]:
    for dimension in dimensions:
        for judge in dimension.judges:
            yield (
                dimension.dimension,
                judge.judge,
                str(judge.n),
                f"{judge.mean:.2f}",
                f"{judge.usual_score} to {share(judge.usual, judge.n)}",
                share(judge.ceiling, judge.n),
            )


def _pair_rows(dimensions: Iterable[Dimension]) -> Iterator[tuple[str, ...]]:
    for dimension in dimensions:
        for pair in dimension.pairs:
            yield (
                dimension.dimension,
                " - ".join(pair.judges),
                str(pair.n),
                share(pair.same, pair.n),
                signed(pair.difference),
                number(pair.kappa),
                number(pair.spearman),
                number(dimension.alpha),
                str(dimension.alpha.n),
            )


def _figures_among(dimensions: Iterable[Dimension]) -> Iterator[tuple[str, Figure]]:
    for dimension in dimensions:
        yield f"{dimension.dimension}, alpha", dimension.alpha
        for pair in dimension.pairs:
            for name in ("difference", "kappa", "spearman"):
                yield f"{dimension.dimension}, {name}", getattr(pair, name)


def _warnings(dimensions: Sequence[Dimension]) -> Iterator[str]:
    alike: dict[str, list[str]] = {}
    unlike: dict[str, list[str]] = {}
    for dimension in dimensions:
        for judge in dimension.judges:
            if not judge.discriminates:
                most = f"{judge.usual_score} to {judge.usual} of {judge.n}"
                alike.setdefault(judge.judge, []).append(f"{dimension.dimension} ({most})")
        for pair in dimension.pairs:
            if not_shown(pair.spearman):
                who = " and ".join(pair.judges)
                unlike.setdefault(who, []).append(named(dimension.dimension, pair.spearman))
    for judge_, where in alike.items():
        yield f"WARNING: {judge_} does not discriminate, it mostly gives one score: " + listed(
            where
        )
    for who, where in unlike.items():
        yield f"WARNING: {who} are not shown to order cases alike: {listed(where)}"
    if not any(dimension.pairs for dimension in dimensions):
        yield "There is one judge: agreement needs two, or ratings by people (--human)."
