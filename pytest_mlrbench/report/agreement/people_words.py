"""How far judges agree with people, as the command says it: the faults of the ratings first."""

from __future__ import annotations

from collections.abc import Iterator

from pytest_mlrbench.report.agreement.measures import Decisions, Figure, RankSum
from pytest_mlrbench.report.agreement.people import Beside, People
from pytest_mlrbench.report.agreement.words import (
    listed,
    named,
    not_shown,
    number,
    reasons,
    signed,
    two,
)
from pytest_mlrbench.report.collected.words import counted
from pytest_mlrbench.report.table import columns


def people_lines(people: People) -> Iterator[str]:
    """Say how judges agree with people, the faults of the ratings first."""
    yield (
        f"{counted(people.ratings, 'rating')} by {counted(people.reviewers, 'reviewer')} of"
        f" {counted(people.papers, 'judged paper')} of {counted(people.tasks, 'task')};"
        f" {people.paired_papers} of {people.papers} rated by two or more people, once by each"
    )
    yield from (f"  FAULT: {fault}" for fault in people.faults)
    yield ""
    alphas = (f"{name} {number(f)} (n={f.n})" for name, f in people.among.items())
    yield f"people among themselves, Krippendorff's alpha (ordinal): {listed(alphas)}"
    for beside in people.beside:
        yield ""
        yield from _beside(beside, people.threshold)
    yield ""
    yield from columns([_SYSTEM, *_system_rows(people)])
    yield ""
    yield from _NOTES


_SYSTEM = ("overall of", "ratings", "people", "papers", "judges")
_NOTES = (
    "bias, ICC, correlations and decisions: judge and the mean of a paper's ratings (n: papers);"
    " kappa: quadratic weights, judge and single ratings (n: ratings), of single judges only.",
    "[ ] of decisions: 95% interval, Wilson, as if papers were independent; by chance: what two"
    " reach who pass as many as these do, without looking.",
    "U, p: Mann-Whitney, two-sided, of |person - person| and |person - judge|. A p above .05 shows"
    " no agreement: it also comes of few pairs, and pairs of one paper are not independent.",
)


def _beside(beside: Beside, threshold: float) -> Iterator[str]:
    who = " and ".join(beside.judges)
    yield f"people and {f'the mean of {who}' if len(beside.judges) > 1 else who}"
    head = (
        *("dimension", "papers", "ratings", "people", "judge", "bias", "kappa", "ICC"),
        *("Spearman", "Pearson", f"same at {threshold:g}", "by chance"),
    )
    rows = [
        (
            found.dimension,
            str(found.papers),
            str(found.ratings),
            two(found.people_mean),
            two(found.judge_mean),
            signed(found.bias),
            number(found.kappa),
            number(found.icc),
            number(found.spearman),
            number(found.pearson),
            _decided(found.decisions),
            two(found.decisions.by_chance),
        )
        for found in beside.dimensions
    ]
    yield from columns([head, *rows])
    yield ""
    differences = [(d.dimension, *_rank_sum(d.differences)) for d in beside.dimensions]
    yield from columns([_DIFFERENCES, *differences])
    yield from reasons(_figures_beside(beside))
    unlike = [named(d.dimension, d.spearman) for d in beside.dimensions if not_shown(d.spearman)]
    if unlike:
        yield f"WARNING: not shown to order papers as people do: {listed(unlike)}"


_DIFFERENCES = ("dimension", "|person - person|", "|person - judge|", "U", "p")


def _rank_sum(found: RankSum) -> tuple[str, ...]:
    sides = [f"{two(mean)} (n={n})" for mean, n in zip(found.mean, found.n, strict=True)]
    u = "-" if found.u is None else f"{found.u:.1f}"
    return (*sides, u, "-" if found.p is None else f"{found.p:.3f}")


def _figures_beside(beside: Beside) -> Iterator[tuple[str, Figure]]:
    for found in beside.dimensions:
        for name in ("bias", "kappa", "icc", "spearman", "pearson"):
            if (figure := getattr(found, name)) is not None:
                yield f"{found.dimension}, {name}", figure


def _system_rows(people: People) -> Iterator[tuple[str, ...]]:
    for system in people.systems:
        counts = str(system.ratings), str(system.papers)
        means = two(system.people_mean), two(system.judges_mean)
        yield system.system, counts[0], means[0], counts[1], means[1]


def _decided(found: Decisions) -> str:
    interval = found.interval
    between = f" [{interval.low:.2f}, {interval.high:.2f}]" if interval else ""
    return f"{found.same}/{found.n}{between}"
